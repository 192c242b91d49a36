"""Laws of rows with weights, which are precisions or shares: how often the form of the law is chosen.

    python benchmarks/weighted_rows.py --out benchmarks/results/weighted_rows.jsonl

The laws are the first of the drawn set `drawn:laws` of a seed, with 80 rows each. Deviations are in standard
deviations of the law. The weights are of one of four kinds:

- ``reference``: two rows have noise of 0.03%, the others 3%, and the weights are one over its variance;
- ``precision``: noise from 0.1 to 30%, as often of each size, and the weights are one over its variance;
- ``shares``: noise of 3% in all rows, and weights from 0.01 to 100, as often of each size;
- ``window``: noise of 3% in all rows, and weights that fall off to both sides of the middle row, by the
  order of the first column, as those of a local fit do.

The effective number is that of the front. The file has a line for each run, and runs in it are not made
again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from dgsr.benchmarking import METHODS, read_records
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.recovery import has_the_form

N_ROWS = 80
KINDS = ("reference", "precision", "shares", "window")


def weighted(X: np.ndarray, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the deviation of the noise in each row, and the weights."""
    n = len(X)
    if kind == "reference":
        deviation = np.where(np.arange(n) < 2, 0.0003, 0.03)
        return deviation, 1.0 / deviation**2
    if kind == "precision":
        deviation = 10.0 ** rng.uniform(-3.0, np.log10(0.3), n)
        return deviation, 1.0 / deviation**2
    if kind == "shares":
        return np.full(n, 0.03), 10.0 ** rng.uniform(-2.0, 2.0, n)
    rank = np.argsort(np.argsort(X[:, 0])) / n
    return np.full(n, 0.03), np.exp(-0.5 * ((rank - 0.5) / 0.15) ** 2)


def run(problem: DrawnProblem, kind: str, budget: int) -> dict:
    """Return the record of a run."""
    rng = np.random.default_rng((problem.seed, problem.number, KINDS.index(kind)))
    rows = rng.permutation(len(problem.y))[:N_ROWS]
    X, truth = problem.X[rows], problem.y[rows]
    deviation, weights = weighted(X, kind, rng)
    y = truth + deviation * truth.std() * rng.normal(size=N_ROWS)
    regressor = METHODS["dgsr"](library="physics", max_evaluations=budget, max_length=30, random_state=0)
    formula = regressor.fit(X, y, weights).expression_
    return {
        "problem": problem.name, "truth": problem.truth.text, "kind": kind, "budget": budget,
        "form": has_the_form(formula, problem.X, problem.y, problem.truth.complexity),
        "effective_number": regressor.pareto_front_.n_samples, "formula": str(formula),
        "environment": environment(),
    }  # fmt: skip


def main() -> None:
    """Make the runs, and print how often the form is chosen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--laws", type=int, default=30)
    parser.add_argument("--seed", type=int, default=20261128)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = read_records(arguments.out) if arguments.out.exists() else []
    made = {(record["problem"], record["kind"]) for record in records}
    for problem in draw_problems("laws", arguments.laws, arguments.seed):
        for kind in KINDS:
            if (problem.name, kind) not in made:
                record = run(problem, kind, arguments.budget)
                records.append(record)
                with arguments.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    for kind in KINDS:
        own = [record for record in records if record["kind"] == kind]
        numbers = np.median([record["effective_number"] for record in own])
        print(f"{kind:>10}: {sum(r['form'] for r in own)} of {len(own)}, effective number {numbers:.0f}")


if __name__ == "__main__":
    main()
