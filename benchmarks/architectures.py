"""Ablations of the paper's architecture and training: networks of its sizes after equal processor time.

    python benchmarks/architectures.py [NAME ...] [--minutes 5] [--work FOLDER] --out FILE.json

`untrained` is the paper's network as it begins, and `paper` is trained as in the paper, by policy gradient on
the NMSE. The others are trained by cross-entropy: `cross-entropy` is the paper's network, `lstm` has an LSTM
as decoder, `plain` a plain transformer as encoder, and `two-variables` sees tables of at most two columns
where the others see up to five (P3 of the paper). Each is measured on new equations with 2 and 5 variables,
and in the search without exact search: Feynman d=2 and d=5, budgets of 300,000 evaluations, 3 seeds. Minutes
are of processor time, of which other programs on the machine take none away. Trainings go on from the states
in FOLDER, and finished measurements of the same training are kept.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from _architectures import LSTMGenerator, PlainGenerator
from objectives import (
    BUDGET,
    LIBRARY,
    N_VARIABLES,
    PRIOR,
    SEEDS,
    arguments_of,
    evaluations,
    figures,
    line_of,
)

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import get_library
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.pretraining import PRETRAINING_CONFIGS
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.stream import Batch, Stream
from dgsr.pretraining.trainer import Trainer
from dgsr.pretraining.training_state import load_training_state, save_training_state
from dgsr.problems import load_set

VARIABLES = (2, 5)
SETS = ("feynman_d2", "feynman_d5")
CONFIG, CONSTRAINTS = CONFIGS["paper"], Constraints(max_length=CONFIGS["paper"].max_length)


class Ablation(NamedTuple):
    """An architecture and its training."""

    kind: type[Generator] = Generator
    training: str | None = "base"  # name of its settings
    n_variables: int = N_VARIABLES  # most columns of a table in training


ABLATIONS = {
    "untrained": Ablation(training=None),
    "paper": Ablation(training="paper"),
    "cross-entropy": Ablation(),
    "lstm": Ablation(LSTMGenerator),
    "plain": Ablation(PlainGenerator),
    "two-variables": Ablation(n_variables=2),
}


class PaddedStream(Stream):
    """Tables of the columns of a library, with columns of zeros in the places of the others."""

    def __getitem__(self, number: int) -> Batch:
        batch = super().__getitem__(number)
        n_more = N_VARIABLES - self.library.n_variables
        X = np.pad(batch.drawn.X, ((0, 0), (0, 0), (0, n_more)))
        return batch._replace(drawn=batch.drawn._replace(X=X))


def trainer_of(ablation: Ablation) -> Trainer:
    """Return the beginning of a training; its last step is never reached, as its time is limited."""
    generator = ablation.kind.untrained(get_library(LIBRARY, N_VARIABLES), CONFIG, CONSTRAINTS, seed=0)
    library = get_library(LIBRARY, ablation.n_variables)
    excluded = benchmark_decontamination(library, CONSTRAINTS)
    config = PRETRAINING_CONFIGS[ablation.training or "base"]
    trainer = Trainer(generator.train(), PRIOR, config, excluded, seed=0)
    trainer.stream = PaddedStream(library, CONSTRAINTS, PRIOR, config, excluded, seed=0)
    return trainer


def train(name: str, minutes: float, work: Path) -> Trainer:
    """Train for minutes of processor time in all, those of earlier calls included."""
    trainer, path = trainer_of(ABLATIONS[name]), work / f"{name}.safetensors"
    if ABLATIONS[name].training is None:
        return trainer
    work.mkdir(parents=True, exist_ok=True)
    earlier = load_training_state(path, trainer)[1] if path.exists() else 0.0
    trainer_of(ABLATIONS[name]).run_step()  # compiles what the steps need, outside their time
    start = time.process_time() - earlier
    try:
        while time.process_time() - start < 60.0 * minutes:
            trainer.run_step()
    finally:
        save_training_state(path, trainer, [], time.process_time() - start)
    return trainer


def main() -> None:
    arguments = arguments_of(__doc__, ABLATIONS, minutes=5.0, work="architectures")
    torch.set_num_threads(1)
    rows = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    for name in arguments.names:
        trainer = train(name, arguments.minutes, arguments.work)
        generator = trainer.generator.eval()
        about = {
            "minutes": arguments.minutes,
            "equations": arguments.equations,
            "steps": trainer.step,
            "weights": generator.n_parameters(),
        }
        row = rows.get(name, {})
        if {key: row.get(key) for key in about} != about:  # figures of another training are measured anew
            row = rows[name] = about | {"hits": [], "evaluations": {}}
        hits, needed = row["hits"], row["evaluations"]
        for d in VARIABLES[len(hits) :]:
            hits.append({"n_variables": d, **figures(generator, d, arguments.equations)})
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        for problem_set in SETS:
            own = needed.setdefault(problem_set, {})
            for problem in load_set(problem_set):
                if problem.name not in own:
                    own[problem.name] = [evaluations(generator, problem, seed) for seed in SEEDS]
                    arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(f"{name}: {row['weights']:,} weights, {row['steps']:,} steps")
        for hit in row["hits"]:
            print(line_of(hit))
        for problem_set, own in row["evaluations"].items():
            needed = np.array(list(own.values()))
            found = needed[needed < BUDGET]
            print(
                f"  {problem_set}: {len(found)} of {needed.size} runs, evaluations of these"
                f" {found.mean():.0f}, of all {needed.mean():.0f}"
            )


if __name__ == "__main__":
    main()
