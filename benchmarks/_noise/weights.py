"""Laws of rows with weights, which are precisions or shares: how often the form of the law is chosen.

The laws are the first of the drawn set `drawn:laws` of a seed, with 80 rows each. Deviations are in standard
deviations of the law. The weights are of one of four kinds:

- ``reference``: two rows have noise of 0.03%, the others 3%, and the weights are one over its variance;
- ``precision``: noise from 0.1 to 30%, as often of each size, and the weights are one over its variance;
- ``shares``: noise of 3% in all rows, and weights from 0.01 to 100, as often of each size;
- ``window``: noise of 3% in all rows, and weights that fall off to both sides of the middle row, by the
  order of the first column, as those of a local fit do.

The effective number is that of the front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgsr.benchmarking import METHODS
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.benchmarking.recovery import has_the_form

N_ROWS = 80
KINDS = ("reference", "precision", "shares", "window")
#: What identifies a run in a file of records.
KEY = ("problem", "kind")


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


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of one table, for `record_all`."""

    problem: DrawnProblem
    kind: str
    max_evaluations: int

    def identity(self) -> dict[str, Any]:
        named = {"problem": self.problem.name, "truth": self.problem.truth.text, "kind": self.kind}
        return {**named, "budget": self.max_evaluations}

    def record(self) -> dict[str, Any]:
        """Fit; return whether the form of the law is chosen, and the effective number of rows."""
        problem = self.problem
        rng = np.random.default_rng((problem.seed, problem.number, KINDS.index(self.kind)))
        rows = rng.permutation(len(problem.y))[:N_ROWS]
        X, truth = problem.X[rows], problem.y[rows]
        deviation, weights = weighted(X, self.kind, rng)
        y = truth + deviation * truth.std() * rng.normal(size=N_ROWS)
        limits = {"max_evaluations": self.max_evaluations, "max_length": 30}
        regressor = METHODS["dgsr"](library="physics", random_state=0, **limits).fit(X, y, weights)
        return {
            **self.identity(),
            "form": has_the_form(regressor.expression_, problem.X, problem.y, problem.truth.complexity),
            "effective_number": regressor.pareto_front_.n_samples,
            "formula": str(regressor.expression_),
        }


def runs(n_laws: int, seed: int, max_evaluations: int) -> list[Fit]:
    """Return the fits of all kinds of weights of the first laws of a seed."""
    problems = draw_problems("laws", n_laws, seed)
    return [Fit(problem, kind, max_evaluations) for problem in problems for kind in KINDS]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print how often the form is chosen by kind of weights, and the median of the effective numbers."""
    for kind in KINDS:
        own = [record for record in records if record["kind"] == kind and "error" not in record]
        numbers = np.median([record["effective_number"] for record in own]) if own else np.nan
        print(f"{kind:>10}: {sum(r['form'] for r in own)} of {len(own)}, effective number {numbers:.0f}")
