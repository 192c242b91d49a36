"""Error beyond the rows, with and without rules that people know of the answer: two sets of ten tables.

The rules by which the tables were chosen were written before the first fit of each set.

- ``measured``: the first ten tables of benchmarks/data/measured_laws.json, in its order, that have one
  column, at least ten rows and none that is known to be wrong, and whose accepted law, fitted to all rows, is
  monotone between the rows and no line, and leaves at least a thousandth of the variance. Noise and rows are
  measured.
- ``drawn``: the first ten laws of the drawn set `drawn:laws` of a seed that are monotone in a column on the
  box of all their rows, with 30 rows and noise of 20% of the standard deviation. The set was added after a
  look at the results of the other.

A table is fitted to rows of the four fifths with the smallest values of a column, and judged by the others:
of drawn laws these have no noise, and the column is the monotone one whose ranks are correlated most with
those of y.

Told are the signs of the slopes in which the law is monotone, the lower bound 0 where no target is negative,
and of measured laws the value at 0 where it is 0; the numbers of the law are not told. The error is the root
of the mean square over the standard deviation of all targets, infinite where a formula is undefined. That of
the law beside it is of the law fitted to the same rows, and 0 for drawn ones. The summary has the errors of
the chosen formulas, geometric means over the seeds, and those of all formulas of the fronts without rules:
which of them the rules exclude. That these are compared, and that an error of less than 0.01 counts as that,
was decided after the first results, in which the rules changed few of the chosen formulas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from measured_laws import TABLES, Table, fitted_law, load
from scipy.stats import spearmanr

from dgsr import DGSRRegressor
from dgsr.benchmarking.drawn import DrawnProblem, draw_problems
from dgsr.data.table import Table as DataTable
from dgsr.estimator.parameters import flat
from dgsr.expressions.formulas.shape_proof import keeps_shape
from dgsr.expressions.programs.shape import ShapeConstraints
from dgsr.fitting.shape import shape_of

from .told_forms import told_form

SEEDS = (0, 1, 2)
ARMS = ("without", "with")
#: What identifies a run in a file of records.
KEY = ("set", "table", "arm", "random_state")
# Least number of rows, and least NMSE of the law, of measured tables.
_ROWS, _NMSE = 10, 1e-3
# Rows of a drawn table, their noise, and laws that the ten are found among.
_DRAWN_ROWS, _NOISE, _MOST = 30, 0.2, 20
# Share of the rows, those with the largest values of the column, that are beyond the fitted ones.
_BEYOND = 0.2
# Differences that rounding leaves, as a share of the spread of the law.
_ROUNDING = 1e-9
# Errors that a formula counts with at the least and at the most, in standard deviations of the targets.
_LEAST, _WORST = 0.01, 100.0


class Case(NamedTuple):
    """A table to fit, the rows that judge, and what is told."""

    set: str
    table: str
    rules: dict[str, Any]
    inner: Table
    beyond: Table
    spread: float  # standard deviation of all targets
    law: float  # error of the law

    def error(self, predicted: np.ndarray) -> float:
        return _error(predicted, self.beyond.y, self.spread)


def _error(predicted: np.ndarray, y: np.ndarray, spread: float) -> float:
    with np.errstate(all="ignore"):
        size = float(np.sqrt(np.mean((predicted - y) ** 2)) / spread)
    return float(np.clip(size, _LEAST, _WORST)) if np.isfinite(size) else _WORST


def split(table: Table, column: str) -> tuple[Table, Table]:
    """Return the rows up to the last fifth by a column, and that fifth."""
    order = np.argsort(table.X[column].to_numpy(), kind="stable")
    n_beyond = round(_BEYOND * len(order))
    return table.rows(order[:-n_beyond]), table.rows(order[-n_beyond:])


def measured() -> Iterator[Case]:
    """Yield the measured tables that fulfil the rule, in their order."""
    for name, spec in json.loads(TABLES.read_text(encoding="utf-8")).items():
        table = load(spec)
        rules = _told_of_measured(spec, table)
        if rules is not None:
            inner, beyond = split(table, table.X.columns[0])
            spread = float(table.y.std())
            law = _error(fitted_law(spec, inner)(beyond.X), beyond.y, spread)
            yield Case("measured", name, rules, inner, beyond, spread, law)


def _told_of_measured(spec: dict[str, Any], table: Table) -> dict[str, Any] | None:
    """Return the rules that are known of a table, None if it is not one of those that are chosen from."""
    is_right = table.X.shape[1] == 1 and len(table.y) >= _ROWS and table.right.all()
    if not is_right or np.ptp(table.y) == 0.0:
        return None
    (name,), law = table.X.columns, fitted_law(spec, table)
    x = table.X[name].to_numpy()
    grid = np.linspace(x.min(), x.max(), 1_000)
    values = law(pd.DataFrame({name: grid}))
    steps, spread = np.diff(values), float(np.ptp(values))
    is_line = np.abs(np.diff(steps)).max() <= _ROUNDING * spread
    rises, falls = (bool((sign * steps >= -_ROUNDING * spread).all()) for sign in (1, -1))
    nmse = float(np.mean((law(table.X) - table.y) ** 2) / table.y.var())
    if is_line or not (rises or falls) or nmse < _NMSE:
        return None
    rules: dict[str, Any] = {"monotone": {name: "increasing" if rises else "decreasing"}}
    if table.y.min() >= 0.0:
        rules["lower"] = 0
    if abs(float(law(pd.DataFrame({name: [0.0]}))[0])) <= _ROUNDING * spread:
        rules["at"] = {name: 0, "value": 0}
    return rules


def drawn(seed: int) -> Iterator[Case]:
    """Yield the drawn laws that fulfil the rule, in their order."""
    for problem in draw_problems("laws", _MOST, seed):
        directions = _directions(problem)
        if directions:
            yield _drawn_case(problem, directions)


def _directions(problem: DrawnProblem) -> dict[int, int]:
    """Return the columns in which a law is monotone on the box of all rows, with the signs of its slopes."""
    law, X = told_form(problem), problem.X
    box = ShapeConstraints(X.min(axis=0), X.max(axis=0), X[:100].T, float(problem.y.std()))
    used = {int(law.library.table.argument[t]) for t in law.tokens if t >= law.library.first_variable}

    def keeps(column: int, sign: int) -> bool:
        rules = ShapeConstraints(box.low, box.high, box.rows, box.spread, monotone=((column, sign),))
        return keeps_shape(law, rules)

    return {column: sign for column in sorted(used) for sign in (1, -1) if keeps(column, sign)}


def _drawn_case(problem: DrawnProblem, directions: dict[int, int]) -> Case:
    names = [f"x{i + 1}" for i in range(problem.n_columns)]
    X, y = pd.DataFrame(problem.X, columns=names), problem.y
    table = Table(X, y, np.ones(len(y), dtype=bool))
    column = max(directions, key=lambda i: abs(spearmanr(problem.X[:, i], y).statistic))
    inner, beyond = split(table, names[column])
    rng = np.random.default_rng((problem.seed, problem.number))
    inner = inner.rows(rng.permutation(len(inner.y))[:_DRAWN_ROWS])
    noise = _NOISE * inner.y.std() * rng.normal(size=len(inner.y))
    words = {1: "increasing", -1: "decreasing"}
    rules: dict[str, Any] = {"monotone": {names[i]: words[sign] for i, sign in directions.items()}}
    if y.min() >= 0.0:
        rules["lower"] = 0
    noisy = inner._replace(y=inner.y + noise)
    return Case("drawn", problem.name, rules, noisy, beyond, float(y.std()), 0.0)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of one table, for `record_all`."""

    case: Case
    arm: str
    seed: int
    max_evaluations: int

    def identity(self) -> dict[str, Any]:
        named = {"set": self.case.set, "table": self.case.table, "arm": self.arm, "random_state": self.seed}
        rules = self.case.rules if self.arm == "with" else None
        return {**named, "rules": rules, "budget": self.max_evaluations}

    def record(self) -> dict[str, Any]:
        """Fit; return the errors of the chosen formula and of the law beyond the rows."""
        case, identity = self.case, self.identity()
        limits = {"max_evaluations": self.max_evaluations, "random_state": self.seed}
        model = DGSRRegressor(constraints=identity["rules"], **limits).fit(case.inner.X, case.inner.y)
        X, front = case.beyond.X.to_numpy(), [candidate.expression for candidate in model.pareto_front_]
        settings = flat(DGSRRegressor(constraints=case.rules).get_params())
        names = list(case.inner.X.columns)
        shape = shape_of(settings, names, DataTable(case.inner.X.to_numpy(), case.inner.y))
        assert shape is not None
        return {
            **identity,
            "rows": len(case.inner.y),
            "formula": str(model.expression_),
            "beyond": case.error(model.expression_(X)),
            "law": case.law,
            "front": [round(case.error(expression(X)), 4) for expression in front],
            "keeps": [keeps_shape(expression, shape) for expression in front],
        }


def runs(n_tables: int, seed: int, max_evaluations: int) -> list[Fit]:
    """Return the fits of the first tables of both sets by their rules."""
    cases = [case for cases in (measured(), drawn(seed)) for case in islice(cases, n_tables)]
    return [Fit(case, arm, seed, max_evaluations) for case in cases for seed in SEEDS for arm in ARMS]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print the errors beyond the rows by table, and on how many tables of a set either way errs less."""
    for name in dict.fromkeys(record["set"] for record in records):
        of_set, ratios = [record for record in records if record["set"] == name], []
        for table in dict.fromkeys(record["table"] for record in of_set):
            own = [record for record in of_set if record["table"] == table]
            errors = {arm: _mean([r["beyond"] for r in own if r["arm"] == arm]) for arm in ARMS}
            ratios.append(errors["with"] / errors["without"])
            each = "  ".join(f"{arm} {error:8.3f}" for arm, error in errors.items())
            print(f"{table:28} {each}  law {own[0]['law']:8.3f}  ratio {ratios[-1]:7.3f}")
        fronts = [r for r in of_set if r["arm"] == "without"]
        each = [(error, keeps) for r in fronts for error, keeps in zip(r["front"], r["keeps"])]
        kept, broken = ([error for error, keeps in each if keeps is kind] for kind in (True, False))
        print(
            f"{name}: of {len(each)} formulas on the fronts without rules {len(broken)} break one; their "
            f"median error is {np.median(broken):.2f}, and that of the others {np.median(kept):.2f}; "
            f"above 10 are {sum(e > 10 for e in broken)} and {sum(e > 10 for e in kept)}"
        )
        less, more = sum(r < 0.99 for r in ratios), sum(r > 1.01 for r in ratios)
        print(
            f"{name}: with rules the error is smaller on {less} of {len(ratios)} tables and larger on "
            f"{more}; the geometric mean of the ratios is {_mean(ratios):.3f}"
        )


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-12)))))
