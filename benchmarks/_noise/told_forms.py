"""How many drawn equations the rows to fit allow to be found: the room of all methods together.

The control is told the form of the equation and, as where its fit begins, its constants. It fits these to the
rows with noise by least squares and is judged like a method: by the NMSE on 1,000 rows without noise. What it
misses is missed for want of rows, whatever the search. The second figure is of the same formula when it is
finished (`dgsr.finishing`): its constants became simple numbers, or have the digits that the rows determine.
The sets are those of the published tables unless a seed is given, and take a quarter of a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking.drawn import PREFIX, DrawnProblem, draw_problems
from dgsr.benchmarking.recording import nmse
from dgsr.benchmarking.recovery import is_found
from dgsr.benchmarking.summaries import wilson_interval
from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.estimator.parameters import CONFIG
from dgsr.expressions.formulas.expression import Expression
from dgsr.finishing import finish
from dgsr.finishing.digits import with_measured_digits

SETS, NOISE = ("physics", "laws"), (0.0, 0.01, 0.05)
#: What identifies a record.
KEY = ("set", "draw_seed", "problems", "noise")
# Differences between the target and the equation that rounding leaves, as a share of the largest value.
_ROUNDING = 1e-9


class Verdicts(NamedTuple):
    """Whether the form of an equation counts as found once it is fitted, and once it is finished, too."""

    fitted: bool
    finished: bool


def counted(found: list[bool]) -> dict[str, object]:
    """Return the number of equations that are found, with both ends of the 95% interval of their share."""
    interval = wilson_interval(sum(found), len(found))
    return {"found": sum(found), "interval": [round(end, 3) for end in interval]}


def verdicts_on(problem: DrawnProblem, noise: float) -> Verdicts:
    """Fit and finish the form of an equation on its rows with noise, and judge both formulas."""
    sample = problem.sample(noise)
    form = told_form(problem)
    population = Population.from_expressions([form])
    data = DataSet.from_arrays(sample.X_train, sample.y_train)
    with np.errstate(all="ignore"):
        fit_constants(population, data, scaled=False, n_iterations=100, precision=1e-12)
        fitted = form.with_constants(population.constants[0, : len(form.constants)])
        scales = np.ones(problem.n_columns)
        tolerance = CONFIG["tolerance"][0]
        (simple,) = finish(population, scales, data, tolerance)
        finished = with_measured_digits(simple, data, tolerance)
        errors = [nmse(sample.y_test, formula(sample.X_test)) for formula in (fitted, finished)]
    return Verdicts(*(is_found(error, noise) for error in errors))


def told_form(problem: DrawnProblem) -> Expression:
    """Return the equation with its constants, and with the scale and the offset that y has."""
    values = problem.truth(problem.X)
    if _agree(values, problem.y):
        return problem.truth
    index = problem.truth.library.index
    add, mul, const = index["add"], index["mul"], index["const"]
    tokens, constants = problem.truth.tokens.tolist(), problem.truth.constants.tolist()
    with np.errstate(invalid="ignore"):
        scale = float(np.nanmedian(problem.y / values))
    scaled = Expression(problem.truth.library, [mul, const, *tokens], [scale, *constants])
    if _agree(scaled(problem.X), problem.y):
        return scaled
    terms = np.column_stack([values, np.ones_like(values)])
    scale, offset = np.linalg.lstsq(terms, problem.y, rcond=None)[0]
    return Expression(problem.truth.library, [add, mul, const, *tokens, const], [scale, *constants, offset])


class Control(NamedTuple):
    """The equations of a drawn set with one noise, for `record_all`."""

    set: str
    n_problems: int
    draw_seed: int
    noise: float

    def identity(self) -> dict[str, Any]:
        name = f"{PREFIX}{self.set}"
        return {"set": name, "draw_seed": self.draw_seed, "problems": self.n_problems, "noise": self.noise}

    def record(self) -> dict[str, Any]:
        """Return how many equations count as found, fitted and finished, and how many finishing changes."""
        problems = draw_problems(self.set, self.n_problems, self.draw_seed)
        verdicts = [verdicts_on(problem, self.noise) for problem in problems]
        return {
            **self.identity(),
            "fitted": counted([verdict.fitted for verdict in verdicts]),
            "finished": counted([verdict.finished for verdict in verdicts]),
            "lost": sum(verdict.fitted and not verdict.finished for verdict in verdicts),
            "won": sum(verdict.finished and not verdict.fitted for verdict in verdicts),
        }


def runs(n_problems: int, draw_seed: int) -> list[Control]:
    """Return the controls of both sets with every noise."""
    return [Control(name, n_problems, draw_seed, noise) for name in SETS for noise in NOISE]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print how many equations count as found by set and noise."""
    for one in (record for record in records if "error" not in record):
        fitted, finished = one["fitted"]["found"], one["finished"]["found"]
        print(
            f"{one['set']}, noise {one['noise']}: {fitted} fitted, {finished} finished, of {one['problems']}"
        )


def _agree(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.allclose(a, b, rtol=0.0, atol=_ROUNDING * np.abs(b).max()))
