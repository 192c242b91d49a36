"""Laws with a few wrong rows: how often the law is found, and whether the wrong rows are named.

The laws are the first of the drawn set `drawn:laws` of a seed, with 100 rows each. A table is spoilt in one
of three ways, or not at all:

- ``rows``: noise of 1%, and 5% of the rows off by a normal number of five standard deviations of y;
- ``digit``: noise of 1%, and one row ten times as large, as with a shifted point;
- ``exact``: no noise, and two rows with each other's targets.

A law is found if the NMSE of the formula on 900 rows or more without noise is below 1e-8, or a fiftieth of
the square of the noise if that is more. Rows are right if those that are left out are those that were changed
by more than six standard deviations of the noise. A method is one of the tables, and a loss behind a colon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgsr.benchmarking import METHODS
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.fits import timed_fit
from dgsr.benchmarking.recovery import is_found
from dgsr.problems import Sample

N_ROWS, MOST_EQUATIONS = 100, 10**9
#: The kinds of tables, and a number that their random draws follow from.
KINDS = {"clean": 5, "rows": 4, "digit": 5, "exact": 5}
#: What identifies a run in a file of records.
KEY = ("problem", "kind", "method")


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


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of one table by one method, for `record_all`."""

    problem: DrawnProblem
    kind: str
    method: str
    max_time: float

    def identity(self) -> dict[str, Any]:
        named = {"problem": self.problem.name, "truth": self.problem.truth.text, "kind": self.kind}
        return {**named, "method": self.method, "max_time": self.max_time}

    def record(self) -> dict[str, Any]:
        """Fit; return whether the law is found, which rows are wrong, and which are left out."""
        problem = self.problem
        order = np.random.default_rng(problem.number).permutation(len(problem.y))
        (X, others), (truth, judges) = (np.split(part[order], [N_ROWS]) for part in (problem.X, problem.y))
        y, wrong, noise = spoilt(truth, problem, self.kind)
        settings = {"max_length": 30, "random_state": 0, "max_time": self.max_time}
        fit = self.method, self._unfitted, Sample(X, y, others, judges)
        regressor, entries = timed_fit(*fit, "physics", MOST_EQUATIONS, **settings)
        return {
            **self.identity(),
            "found": is_found(entries["test_nmse"], noise),
            "nmse": entries["test_nmse"],
            "wrong": wrong.tolist(),
            "left_out": getattr(regressor, "outliers_", np.zeros(0, dtype=int)).tolist(),
            "seconds": round(entries["seconds"], 2),
            "formula": entries["formula"],
        }

    def _unfitted(self, **settings: Any) -> Any:
        name, _, loss = self.method.partition(":")
        regressor = METHODS[name](**settings)
        return regressor.set_params(loss=loss) if loss else regressor


def runs(n_laws: int, seed: int, max_time: float, methods: Sequence[str]) -> list[Fit]:
    """Return the fits of all kinds of tables of the first laws of a seed, by all methods in turn."""
    problems = draw_problems("laws", n_laws, seed)
    return [Fit(p, kind, method, max_time) for p in problems for kind in KINDS for method in methods]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print by kind and method how many laws are found, and how often the right rows are left out."""
    for kind in KINDS:
        for method in dict.fromkeys(record["method"] for record in records):
            own = [r for r in records if (r["kind"], r["method"]) == (kind, method) and "error" not in r]
            n_found, n_right = sum(r["found"] for r in own), sum(r["left_out"] == r["wrong"] for r in own)
            seconds = sum(r["seconds"] for r in own)
            print(f"{kind}, {method}: {n_found} of {len(own)}, rows right in {n_right}, {seconds:.0f} s")
