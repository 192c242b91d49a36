"""Laws with a few wrong rows: how often the law is found, and whether the wrong rows are named.

    python benchmarks/outliers.py --out benchmarks/results/outliers.jsonl

The laws are the first of the drawn set `drawn:laws` of a seed, with 100 rows each. A table is spoilt in one
of three ways, or not at all:

- ``rows``: noise of 1%, and 5% of the rows off by a normal number of five standard deviations of y;
- ``digit``: noise of 1%, and one row ten times as large, as with a shifted point;
- ``exact``: no noise, and two rows with each other's targets.

A law is found if the NMSE of the formula on 900 rows or more without noise is below 1e-8, or a fiftieth of
the square of the noise if that is more. Rows are right if those that are left out are those that were changed
by more than six standard deviations of the noise. A method is one of the tables, and a loss behind a colon.
The file has a line for each run, and runs in it are not made again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from _written_laws import judged

from dgsr.benchmarking import METHODS, read_records
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.environment import environment

N_ROWS = 100
#: The kinds of tables, and a number that their random draws follow from.
KINDS = {"clean": 5, "rows": 4, "digit": 5, "exact": 5}


def spoilt(truth: np.ndarray, problem: DrawnProblem, kind: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Return targets, the numbers of the wrong ones, and the noise of the others."""
    rng = np.random.default_rng((problem.seed, problem.number, KINDS[kind]))
    noise, spread = (0.0 if kind == "exact" else 0.01), truth.std()
    y = truth + noise * spread * rng.normal(size=N_ROWS)
    if kind == "rows":
        rows = rng.choice(N_ROWS, N_ROWS // 20, replace=False)
        y[rows] += 5.0 * spread * rng.normal(size=len(rows))
    elif kind == "digit":
        rows = rng.choice(N_ROWS, 1)
        y[rows] *= 10.0
    elif kind == "exact":
        rows = rng.choice(N_ROWS, 2, replace=False)
        y[rows] = y[rows[::-1]]
    return y, np.flatnonzero(np.abs(y - truth) > max(6.0 * noise, 1e-6) * spread), noise


def run(problem: DrawnProblem, kind: str, method: str, seconds: float) -> dict:
    """Return the record of a run."""
    order = np.random.default_rng(problem.number).permutation(len(problem.y))
    (X, others), (truth, judges) = (np.split(part[order], [N_ROWS]) for part in (problem.X, problem.y))
    y, wrong, noise = spoilt(truth, problem, kind)
    settings = {"library": "physics", "max_evaluations": 10**9, "max_length": 30, "random_state": 0}
    name, _, loss = method.partition(":")
    regressor = METHODS[name](max_time=seconds, **settings)
    if loss:
        regressor.set_params(loss=loss)
    took, nmse = judged(regressor, X, y, others, judges)
    left_out = getattr(regressor, "outliers_", np.zeros(0, dtype=int)).tolist()
    return {
        "problem": problem.name, "truth": problem.truth.text, "kind": kind, "method": method,
        "max_time": seconds, "found": bool(nmse < max(1e-8, noise**2 / 50.0)), "nmse": nmse,
        "wrong": wrong.tolist(), "left_out": left_out, "seconds": round(took, 2),
        "formula": str(regressor.expression_), "environment": environment(),
    }  # fmt: skip


def main() -> None:
    """Make the runs, and print how many laws are found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--laws", type=int, default=30)
    parser.add_argument("--seed", type=int, default=20261127)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--methods", nargs="+", default=["dgsr:auto", "dgsr:squared"])
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    records = read_records(arguments.out) if arguments.out.exists() else []
    made = {(r["problem"], r["kind"], r["method"]) for r in records}
    problems = draw_problems("laws", arguments.laws, arguments.seed)
    for method in arguments.methods:  # one short fit, so that no run has the compiling in its time
        run(problems[0], "clean", method, 0.1)
    for problem in problems:
        for kind in KINDS:
            for method in arguments.methods:
                if (problem.name, kind, method) not in made:
                    records.append(run(problem, kind, method, arguments.seconds))
                    with arguments.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(records[-1]) + "\n")
    for kind in KINDS:
        for method in dict.fromkeys(r["method"] for r in records):
            own = [r for r in records if (r["kind"], r["method"]) == (kind, method)]
            n_found, n_right = sum(r["found"] for r in own), sum(r["left_out"] == r["wrong"] for r in own)
            seconds = sum(r["seconds"] for r in own)
            print(f"{kind}, {method}: {n_found} of {len(own)}, rows right in {n_right}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
