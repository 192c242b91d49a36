"""Measure which symmetries are found in tables of SRBench's laws, and how many of them hold.

    python benchmarks/symmetries.py --out benchmarks/results/symmetries.json

Every law of the Feynman and Strogatz sets with at least two columns has a table of 200 rows without noise,
and the same with noise of 0.1, 1 and 5% of the standard deviation of y. What is said, that y/f is a function
of some combinations of the columns alone, holds if the gradient of y/f lies in the span of the gradients of
these combinations at twenty random points of the law's domain, to 1e-4 of its length.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from dgsr.expressions.evaluation import evaluate
from dgsr.expressions.trees import Tree
from dgsr.problems import Problem, load_set
from dgsr.search.reduction import Reduction
from dgsr.search.symmetries import reductions_of

NOISE = (0.0, 0.001, 0.01, 0.05)
N_ROWS, N_POINTS = 200, 20
_STEP, _TOLERANCE = 1e-5, 1e-4


def gradients(tree: Tree, points: np.ndarray) -> np.ndarray:
    """Return the gradients of a formula of x1, x2, ... at points, shape (n_points, n_columns)."""

    def values(X: np.ndarray) -> np.ndarray:
        found = evaluate(tree, {f"x{i + 1}": column for i, column in enumerate(X.T)})
        return np.broadcast_to(found, len(X))

    found = np.empty_like(points)
    for i in range(points.shape[1]):
        step = np.zeros(points.shape[1])
        step[i] = _STEP
        found[:, i] = (values(points + step) - values(points - step)) / (2.0 * _STEP)
    return found


def holds(reduction: Reduction, problem: Problem, points: np.ndarray) -> bool:
    """Return whether the law is a factor times a function of the combinations of columns."""
    columns = [Reduction((column,), {}, points, points[:, 0]).lifted("x1") for column in reduction.columns]
    factor = Reduction((), reduction.factor, points, points[:, 0]).lifted(1)

    def left(X: np.ndarray) -> np.ndarray:
        variables = {f"x{i + 1}": column for i, column in enumerate(X.T)}
        return problem.target(X) / evaluate(factor, variables)

    own = np.empty_like(points)
    for i in range(points.shape[1]):
        step = np.zeros(points.shape[1])
        step[i] = _STEP
        own[:, i] = (left(points + step) - left(points - step)) / (2.0 * _STEP)
    parts = [gradients(column, points) for column in columns]
    for at, gradient in enumerate(own):
        basis = np.column_stack([part[at] for part in parts])
        basis = basis / np.linalg.norm(basis, axis=0)
        rest = gradient - basis @ np.linalg.lstsq(basis, gradient, rcond=None)[0]
        if np.linalg.norm(rest) > _TOLERANCE * max(np.linalg.norm(gradient), 1e-6):
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    problems = [
        p for name in ("srbench_feynman", "strogatz") for p in load_set(name) if len(p.variable_names) > 1
    ]
    rows = []
    for noise in NOISE:
        counts = {"laws": len(problems), "with a statement": 0, "wrong": 0, "columns": 0, "columns left": 0}
        wrong, seconds = [], 0.0
        for problem in problems:
            data = problem.sample(arguments.seed)
            random = np.random.default_rng(arguments.seed)
            at = random.permutation(len(data.y_train))[:N_ROWS]
            X, y = data.X_train[at], data.y_train[at]
            y = y + noise * y.std() * random.normal(size=len(y))
            begun = time.perf_counter()
            found = reductions_of(X, y, [f"x{i + 1}" for i in range(X.shape[1])])
            seconds += time.perf_counter() - begun
            counts["columns"] += X.shape[1]
            counts["columns left"] += found[-1].X.shape[1] if found else X.shape[1]
            counts["with a statement"] += bool(found)
            with np.errstate(all="ignore"):
                if not all(holds(each, problem, data.X_test[:N_POINTS]) for each in found):
                    counts["wrong"] += 1
                    wrong.append(problem.name)
        rows.append({"noise": noise, **counts, "seconds": round(seconds, 1), "wrong of": wrong})
        print(rows[-1], flush=True)
    arguments.out.write_text(json.dumps({"seed": arguments.seed, "rows": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
