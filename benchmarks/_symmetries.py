"""Which symmetries are found in tables of SRBench's laws, and how many of them hold.

Every law of the Feynman and Strogatz sets with at least two columns has a table of 200 rows without noise,
and the same with noise of 0.1, 1 and 5% of the standard deviation of y. What is said, that y/f is a function
of some combinations of the columns alone, holds if the gradient of y/f lies in the span of the gradients of
these combinations at twenty random points of the law's domain, to 1e-4 of its length. That it is a sum (a
product) of functions of some of them holds if its (its logarithm's) mixed second derivatives by combinations
in different functions, times the standard deviations of both, are below a hundredth of its own there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.fewer_columns.separation import Separation
from dgsr.finders.fewer_columns.symmetries import reductions_of, smallest_separation
from dgsr.finders.fewer_columns.tables import Reduction
from dgsr.problems import Problem, load_set

NOISE = (0.0, 0.001, 0.01, 0.05)
N_ROWS, N_POINTS = 200, 20
_STEP, _TOLERANCE, _MIXED = 1e-5, 1e-4, 1e-2


def values(tree: Tree, X: np.ndarray) -> np.ndarray:
    """Return the values of a formula of x1, x2, ..., shape (n_rows,)."""
    return np.broadcast_to(evaluate(tree, {f"x{i + 1}": column for i, column in enumerate(X.T)}), len(X))


def gradients(function: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Return the gradients of a function of rows at points, shape (n_points, n_columns)."""
    steps = _STEP * np.eye(points.shape[1])
    return np.column_stack(
        [(function(points + step) - function(points - step)) / (2.0 * _STEP) for step in steps]
    )


def holds(reduction: Reduction, problem: Problem, points: np.ndarray) -> bool:
    """Return whether the law is a factor times a function of the combinations of columns."""
    factor = replace(reduction, columns=()).lifted(1)
    columns = [replace(reduction, factor={}).lifted(f"x{i + 1}") for i in range(len(reduction.columns))]
    own = gradients(lambda X: problem.target(X) / values(factor, X), points)
    parts = [gradients(partial(values, column), points) for column in columns]
    for gradient, *basis in zip(own, *parts):
        directions = np.column_stack([part / np.linalg.norm(part) for part in basis])
        rest = gradient - directions @ np.linalg.lstsq(directions, gradient, rcond=None)[0]
        if np.linalg.norm(rest) > _TOLERANCE * max(np.linalg.norm(gradient), 1e-6):
            return False
    return True


def separates(separation: Separation, problem: Problem, points: np.ndarray) -> bool:
    """Return whether the law is a sum or a product of functions of the groups of combinations."""
    reduction = separation.reduction
    factor = replace(reduction, columns=()).lifted(1)
    columns = [
        partial(values, replace(reduction, factor={}).lifted(f"x{i + 1}"))
        for i in range(len(reduction.columns))
    ]

    def target(X: np.ndarray) -> np.ndarray:
        quotient = problem.target(X) / values(factor, X)
        return np.log(np.abs(quotient)) if separation.is_product else quotient

    def slopes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives by the combinations, and the directions in which they change alone."""
        jacobians = np.stack([gradients(column, X) for column in columns], axis=1)
        directions = np.linalg.pinv(jacobians, rcond=1e-9)
        return np.einsum("nc,nck->nk", gradients(target, X), directions), directions

    spread = np.array([column(points).std() for column in columns])
    size, (_, directions) = target(points).std(), slopes(points)
    for group in separation.groups:
        others = [i for i in range(len(columns)) if i not in group]
        for i in group:
            step = 1e-3 * spread[i]
            above, below = (slopes(points + sign * step * directions[:, :, i])[0] for sign in (1.0, -1.0))
            mixed = (above - below)[:, others] / (2.0 * step) * spread[i] * spread[others]
            if not np.sqrt(np.mean(mixed**2, axis=0)).max() <= _MIXED * size:
                return False
    return True


def measure(seed: int, out: Path) -> None:
    """Look for the symmetries of every law at every noise, and write the counts of those that hold."""
    problems = [
        p for name in ("srbench_feynman", "strogatz") for p in load_set(name) if len(p.variable_names) > 1
    ]
    rows = []
    for noise in NOISE:
        counts = {"laws": len(problems), "with a statement": 0, "wrong": 0, "columns": 0, "columns left": 0}
        counts |= {"separate": 0, "separate wrongly": 0}
        wrong, wrongly, seconds = [], [], 0.0
        for problem in problems:
            data = problem.sample(seed)
            random = np.random.default_rng(seed)
            at = random.permutation(len(data.y_train))[:N_ROWS]
            X, y = data.X_train[at], data.y_train[at]
            y = y + noise * y.std() * random.normal(size=len(y))
            begun = time.perf_counter()
            with threadpool_limits(1, user_api="blas"):  # as in a search
                table = X, y, [f"x{i + 1}" for i in range(X.shape[1])]
                found = reductions_of(*table)
                separation = smallest_separation(*table, found)
            seconds += time.perf_counter() - begun
            counts["columns"] += X.shape[1]
            counts["columns left"] += found[-1].X.shape[1] if found else X.shape[1]
            counts["with a statement"] += bool(found)
            with np.errstate(all="ignore"):
                if not all(holds(each, problem, data.X_test[:N_POINTS]) for each in found):
                    counts["wrong"] += 1
                    wrong.append(problem.name)
                if separation is not None:
                    counts["separate"] += 1
                    if not separates(separation, problem, data.X_test[:N_POINTS]):
                        counts["separate wrongly"] += 1
                        wrongly.append(problem.name)
        more = {"wrong of": wrong, "separate wrongly of": wrongly}
        rows.append({"noise": noise, **counts, "seconds": round(seconds, 1), **more})
        print(rows[-1], flush=True)
    out.write_text(json.dumps({"seed": seed, "rows": rows}, indent=1) + "\n", "utf-8")
