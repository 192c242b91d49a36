"""Error beyond the rows of measured tables, with and without rules that people know of the answer.

The rule by which the tables were chosen was written before the first fit. They are the first ten of
benchmarks/data/measured_laws.json, in its order, that have one column, at least ten rows and none that is
known to be wrong, and whose accepted law, fitted to all rows, is monotone between the rows and no line, and
leaves at least a thousandth of the variance. A table is fitted to the four fifths of its rows with the
smallest values of the column, and judged by the others.

Told are the sign of the slope, the lower bound 0 where no target is negative, and the value at 0 where the
law is 0 there; the numbers of the law are not told. The error is the root of the mean square over the
standard deviation of all targets, infinite where a formula is undefined. That of the law, fitted to the same
rows, stands beside it. The summary has the geometric means over the seeds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from measured_laws import TABLES, Table, fitted_law, load

from dgsr import DGSRRegressor

SEEDS = (0, 1, 2)
ARMS = ("without", "with")
#: What identifies a run in a file of records.
KEY = ("table", "arm", "random_state")
# Least number of rows, and least NMSE of the law.
_ROWS, _NOISE = 10, 1e-3
# Share of the rows, those with the largest values of the column, that are beyond the fitted ones.
_BEYOND = 0.2
# Differences that rounding leaves, as a share of the spread of the law.
_ROUNDING = 1e-9
# Error that a formula counts with at the most, in standard deviations of the targets.
_WORST = 100.0


def told(spec: dict[str, Any], table: Table) -> dict[str, Any] | None:
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
    if is_line or not (rises or falls) or nmse < _NOISE:
        return None
    rules: dict[str, Any] = {"monotone": {name: "increasing" if rises else "decreasing"}}
    if table.y.min() >= 0.0:
        rules["lower"] = 0
    if abs(float(law(pd.DataFrame({name: [0.0]}))[0])) <= _ROUNDING * spread:
        rules["at"] = {name: 0, "value": 0}
    return rules


def tables() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield name, entry and rules of the tables that fulfil the rule, in their order."""
    for name, spec in json.loads(TABLES.read_text(encoding="utf-8")).items():
        rules = told(spec, load(spec))
        if rules is not None:
            yield name, spec, rules


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of one table, for `record_all`."""

    table: str
    spec: dict[str, Any]
    rules: dict[str, Any]
    arm: str
    seed: int
    max_evaluations: int

    def identity(self) -> dict[str, Any]:
        named = {"table": self.table, "arm": self.arm, "random_state": self.seed}
        return {**named, "rules": self.rules if self.arm == "with" else None, "budget": self.max_evaluations}

    def record(self) -> dict[str, Any]:
        """Fit; return the errors of the chosen formula and of the law beyond the rows."""
        table = load(self.spec)
        order = np.argsort(table.X.iloc[:, 0].to_numpy(), kind="stable")
        n_beyond = round(_BEYOND * len(order))
        inner, beyond = table.rows(order[:-n_beyond]), table.rows(order[-n_beyond:])
        rules = self.rules if self.arm == "with" else None
        limits = {"max_evaluations": self.max_evaluations, "random_state": self.seed}
        model = DGSRRegressor(constraints=rules, **limits).fit(inner.X, inner.y)
        law = fitted_law(self.spec, inner)

        def error(predicted: np.ndarray) -> float:
            with np.errstate(all="ignore"):
                size = float(np.sqrt(np.mean((predicted - beyond.y) ** 2)) / table.y.std())
            return min(size, _WORST) if np.isfinite(size) else _WORST

        return {
            **self.identity(),
            "rows": len(inner.y),
            "beyond": error(model.expression_(beyond.X.to_numpy())),
            "law": error(law(beyond.X)),
            "formula": str(model.expression_),
        }


def runs(n_tables: int, max_evaluations: int) -> list[Fit]:
    """Return the fits of the first tables by the rule."""
    chosen = [each for each, _ in zip(tables(), range(n_tables))]
    return [Fit(*each, arm, seed, max_evaluations) for each in chosen for seed in SEEDS for arm in ARMS]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print the errors beyond the rows by table, and on how many tables either way errs less."""
    ratios = []
    for table in dict.fromkeys(record["table"] for record in records):
        own = [record for record in records if record["table"] == table]
        errors = {arm: _mean([r["beyond"] for r in own if r["arm"] == arm]) for arm in ARMS}
        ratios.append(errors["with"] / errors["without"])
        each = "  ".join(f"{arm} {error:8.3f}" for arm, error in errors.items())
        print(f"{table:28} {each}  law {_mean([r['law'] for r in own]):8.3f}  ratio {ratios[-1]:7.3f}")
    print(
        f"with rules the error is smaller on {sum(r < 0.99 for r in ratios)} of {len(ratios)} tables and larger "
        f"on {sum(r > 1.01 for r in ratios)}; the geometric mean of the ratios is {_mean(ratios):.3f}"
    )


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean."""
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-12)))))
