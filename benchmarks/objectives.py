"""What to train a generator for: the paper's objective and others, with equal time on the same equations.

    python benchmarks/objectives.py [NAME ...] [--minutes 4] [--work FOLDER] --out FILE.json

`untrained` is the network as it begins; `vpg` trains it from scratch by vanilla policy gradient on the
reward of sampled programs, as the paper does, and `paper` does so with the paper's network and settings;
`cross-entropy` by the likelihood of the true program. `then-vpg` and `then-risk-seeking` go on from there by
the reward, for as long again, and `twice` by likelihood. Each is trained with at most 5 variables and
measured on new equations with 1 to 12 variables, and in the search without exact search: Feynman d=2, budgets
of 300,000 evaluations, 3 seeds. Trainings go on from the states in FOLDER, and finished measurements are
kept.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgsr.benchmarking import is_recovered
from dgsr.expressions import get_library
from dgsr.generator.checkpoints import load_generator
from dgsr.generator.generator import Generator
from dgsr.pretraining import PRETRAINING_CONFIGS, pretrain
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior
from dgsr.problems import load_set
from dgsr.problems.problem import Problem
from dgsr.regressor import DGSRRegressor

LIBRARY, N_VARIABLES = "koza", 5
VARIABLES = (1, 2, 3, 5, 9, 12)
SEEDS, BUDGET = (0, 1, 2), 300_000
#: Seed of the equations of the figures.
SEED = 20_261_121
#: The equations of all trainings and of the figures, whichever network is trained.
PRIOR = replace(Prior.varied_for(get_library(LIBRARY, N_VARIABLES), N_VARIABLES), transformed=0.0)

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


def train(name: str, minutes: float, work: Path) -> Generator:
    settings, start = OBJECTIVES[name]
    out = work / name
    if start is not None:
        train(start, minutes, work)
        settings = {**settings, "start_from": work / start}
    if not (out / "card.json").exists():
        usual = {"max_time": 60.0 * minutes, "n_validation": 16, "prior": PRIOR}
        pretrain(LIBRARY, N_VARIABLES, out, **usual | settings)
    return load_generator(out)


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
    found = is_recovered(regressor.expression_, problem, confirm=False).recovered
    return regressor.n_evaluations_ if found else BUDGET


def in_the_search(generator: Generator) -> dict[str, Any]:
    needed = [evaluations(generator, problem, seed) for problem in load_set("feynman_d2") for seed in SEEDS]
    return {
        "runs": len(needed),
        "recovered": sum(n < BUDGET for n in needed),
        "median": float(np.median(needed)),
        "mean": float(np.mean(needed)),
    }


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


def arguments_of(description: str, known: Collection[str], minutes: float, work: str) -> argparse.Namespace:
    """Return the arguments of a program that trains networks of known names and measures them.

    Parameters
    ----------
    description : str
        The text of its help.
    known : collection of str
        What it can train; all of it by default.
    minutes : float
        Minutes of a training, by default.
    work : str
        Folder of the trainings, by default.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--equations", type=int, default=32)
    parser.add_argument("--work", type=Path, default=Path(work))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"no such name: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    arguments.names = arguments.names or list(known)
    return arguments


def main() -> None:
    arguments = arguments_of(__doc__, OBJECTIVES, minutes=4.0, work="objectives")
    torch.set_num_threads(1)
    rows = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    for name in arguments.names:
        row = rows.setdefault(name, {"minutes": arguments.minutes, "equations": arguments.equations})
        generator = train(name, arguments.minutes, arguments.work)
        reads_any = generator.config.encoder == "descriptions"
        counts = [d for d in VARIABLES if d <= N_VARIABLES or reads_any]
        row.setdefault("hits", [])
        for d in counts[len(row["hits"]) :]:
            row["hits"].append({"n_variables": d, **figures(generator, d, arguments.equations)})
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        if "search" not in row:
            row["search"] = in_the_search(generator)
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(name, {key: round(value) for key, value in row["search"].items()})
        for hit in row["hits"]:
            print(line_of(hit))


if __name__ == "__main__":
    main()
