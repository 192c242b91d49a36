"""Trainings of equal time: by the paper's objective and others, and of the paper's architecture and others.

    python benchmarks/trainings.py objectives [NAME ...] [--minutes 4] [--work FOLDER] --out FILE.json
    python benchmarks/trainings.py architectures [NAME ...] [--minutes 5] [--work FOLDER] --out FILE.json

``objectives``: `untrained` is our network as it begins; `vpg` trains it from scratch by vanilla policy
gradient on the reward of sampled programs, as the paper does, and `paper` does so with the paper's network
and settings; `cross-entropy` by the likelihood of the true program. `then-vpg` and `then-risk-seeking` go on
from there by the reward, for as long again, and `twice` by likelihood. Each is trained with at most 5
variables and measured on new equations with 1 to 12 variables, and in the search on Feynman d=2.

``architectures``, the ablations of the paper: `untrained` is the paper's network as it begins, and `paper` is
trained as in the paper, by policy gradient on the NMSE. The others are trained by cross-entropy:
`cross-entropy` is the paper's network, `lstm` has an LSTM as decoder, `plain` a plain transformer as encoder,
and `two-variables` sees tables of at most two columns where the others see up to five (P3 of the paper). Each
is measured on new equations with 2 and 5 variables, and in the search on Feynman d=2 and d=5. Minutes are of
processor time, of which other programs on the machine take none away.

All see the same equations. The searches are without exact search, with 3 seeds and budgets of 300,000
evaluations. Trainings go on from the states in FOLDER, and finished measurements of the same training are
kept. Printed are for each number of variables the nats of the truth given its own data, another's and none,
the share of valid samples, that of the equations found among 1, 10, 100 and 1,000 samples, and that found
with another's data, and then how many searches find the law and how many evaluations they need.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _architectures import LSTMGenerator, PlainGenerator

from dgsr.benchmarking import is_recovered
from dgsr.estimator.regressor import DGSRRegressor
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.generator.checkpoints import load_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.pretraining import PRETRAINING_CONFIGS, pretrain
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior
from dgsr.pretraining.stream import Batch, Stream
from dgsr.pretraining.trainer import Trainer
from dgsr.pretraining.training_state import load_training_state, save_training_state
from dgsr.problems import load_set
from dgsr.problems.problem import Problem

LIBRARY, N_VARIABLES = "koza", 5
SEEDS, BUDGET = (0, 1, 2), 300_000
#: Seed of the equations of the figures.
SEED = 20_261_121
#: The equations of all trainings and of the figures, whichever network is trained.
PRIOR = replace(Prior.varied_for(get_library(LIBRARY, N_VARIABLES), N_VARIABLES), transformed=0.0)


def figures(generator: Generator, n_variables: int, n_equations: int) -> dict[str, float]:
    """Return what `measure` says of a generator on new equations, which are no problem of any set."""
    generator = generator.with_variables(n_variables)
    excluded = benchmark_decontamination(generator.library, generator.constraints)
    held_out = draw_validation_set(generator, PRIOR, excluded, n_equations, SEED, n_variables)
    return measure(generator, held_out, n_programs=1000, n_datasets=n_equations)


def evaluations(generator: Generator, problem: Problem, seed: int) -> int:
    """Return how many evaluations a search without exact search needs, `BUDGET` where it does not succeed."""
    data = problem.sample(seed)
    regressor = DGSRRegressor(
        problem.library,
        generator,
        max_evaluations=BUDGET,
        look_up=False,
        max_length=problem.max_length,
        random_state=seed,
    ).fit(data.X_train, data.y_train)
    found = is_recovered(regressor.expression_, problem).recovered
    return regressor.n_evaluations_ if found else BUDGET


def line_of(hit: dict[str, Any]) -> str:
    """Return what `figures` found for a number of variables, as a line."""
    likelihoods = [hit[f"log_likelihood_{given}"] for given in ("right", "wrong", "none")]
    found = [hit[f"hit_{count}"] for count in (1, 10, 100, 1000)]
    return (
        f"  d={hit['n_variables']:<2} nats "
        + " ".join(f"{value:6.1f}" for value in likelihoods)
        + f"  valid {hit['valid']:.0%}  found "
        + " ".join(f"{value:4.0%}" for value in found)
        + f"  with wrong data {hit['hit_100_wrong']:.0%}"
    )


def save(rows: dict[str, Any], out: Path) -> None:
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


# Objectives ----------------------------------------------------------------------------------------

#: Numbers of variables of the new equations.
OBJECTIVES_ON = (1, 2, 3, 5, 9, 12)
_BY_REWARD = {"n_datasets": 8, "n_groups": 2, "n_programs": 100}
_GOING_ON = {"learning_rate": 1e-4, "warmup": 20}
#: Settings by name, and which training each goes on from.
OBJECTIVES: dict[str, tuple[dict[str, Any], str | None]] = {
    "untrained": ({"max_time": 0.0}, None),
    "paper": ({"config": "paper", "training": replace(PRETRAINING_CONFIGS["paper"], steps=10**6)}, None),
    "vpg": ({"objective": "vpg", **_BY_REWARD}, None),
    "cross-entropy": ({}, None),
    "then-vpg": ({"objective": "vpg", **_BY_REWARD, **_GOING_ON}, "cross-entropy"),
    "then-risk-seeking": ({"objective": "risk-seeking", **_BY_REWARD, **_GOING_ON}, "cross-entropy"),
    "twice": (_GOING_ON, "cross-entropy"),
}


def train_by_objective(name: str, minutes: float, work: Path) -> Generator:
    """Return the generator of a training, which is made if the folder has none."""
    settings, start = OBJECTIVES[name]
    out = work / name
    if start is not None:
        train_by_objective(start, minutes, work)
        settings = {**settings, "start_from": work / start}
    if not (out / "card.json").exists():
        usual = {"max_time": 60.0 * minutes, "n_validation": 16, "prior": PRIOR}
        pretrain(LIBRARY, N_VARIABLES, out, **usual | settings)
    return load_generator(out)


def in_the_search(generator: Generator) -> dict[str, Any]:
    needed = [evaluations(generator, problem, seed) for problem in load_set("feynman_d2") for seed in SEEDS]
    return {
        "runs": len(needed),
        "recovered": sum(n < BUDGET for n in needed),
        "median": float(np.median(needed)),
        "mean": float(np.mean(needed)),
    }


def measure_objectives(arguments: argparse.Namespace, rows: dict[str, Any]) -> None:
    """Train by the objectives that are asked for, and print what the file has of all."""
    for name in arguments.names:
        row = rows.setdefault(name, {"minutes": arguments.minutes, "equations": arguments.equations})
        generator = train_by_objective(name, arguments.minutes, arguments.work)
        reads_any = generator.config.encoder == "descriptions"
        counts = [d for d in OBJECTIVES_ON if d <= N_VARIABLES or reads_any]
        row.setdefault("hits", [])
        for d in counts[len(row["hits"]) :]:
            row["hits"].append({"n_variables": d, **figures(generator, d, arguments.equations)})
            save(rows, arguments.out)
        if "search" not in row:
            row["search"] = in_the_search(generator)
            save(rows, arguments.out)
    for name, row in rows.items():
        print(name, {key: round(value) for key, value in row["search"].items()})
        for hit in row["hits"]:
            print(line_of(hit))


# Architectures -------------------------------------------------------------------------------------

#: Numbers of variables of the new equations, and the sets of the searches.
ARCHITECTURES_ON, SETS = (2, 5), ("feynman_d2", "feynman_d5")
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


def train_architecture(name: str, minutes: float, work: Path) -> Trainer:
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


def measure_architectures(arguments: argparse.Namespace, rows: dict[str, Any]) -> None:
    """Train the architectures that are asked for, and print what the file has of all."""
    for name in arguments.names:
        trainer = train_architecture(name, arguments.minutes, arguments.work)
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
        for d in ARCHITECTURES_ON[len(hits) :]:
            hits.append({"n_variables": d, **figures(generator, d, arguments.equations)})
            save(rows, arguments.out)
        for problem_set in SETS:
            own = needed.setdefault(problem_set, {})
            for problem in load_set(problem_set):
                if problem.name not in own:
                    own[problem.name] = [evaluations(generator, problem, seed) for seed in SEEDS]
                    save(rows, arguments.out)
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


#: What is measured, of which names, and the minutes of a training by default.
KINDS = {
    "objectives": (measure_objectives, OBJECTIVES, 4.0),
    "architectures": (measure_architectures, ABLATIONS, 5.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind, (_, known, minutes) in KINDS.items():
        own = kinds.add_parser(kind)
        own.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
        own.add_argument("--minutes", type=float, default=minutes)
        own.add_argument("--equations", type=int, default=32)
        own.add_argument("--work", type=Path, default=Path(kind), help="folder of the trainings")
        own.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    measure_kind, known, _ = KINDS[arguments.kind]
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"no such name: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    arguments.names = arguments.names or list(known)
    torch.set_num_threads(1)
    rows = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    measure_kind(arguments, rows)


if __name__ == "__main__":
    main()
