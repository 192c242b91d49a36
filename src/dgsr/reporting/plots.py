"""The rows and curves that the script of a report draws, as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dgsr.pareto import Candidate
from dgsr.reporting.facts import Judged, Rows, sampled_rows

# Evenly spaced points of a curve. The values of a column are points of it, too, if they are not more.
_POINTS = 100
# Columns that a report shows if the formulas have fewer; each makes the file longer by its values.
_MOST_COLUMNS = 24
#: Kinds of rows, by which they are marked: those of the fit, those held out of it, outliers that it left out.
FIT, TEST, OUTLIER = range(3)


def kinds_of(n_rows: int, n_test: int, outliers: Sequence[int]) -> np.ndarray:
    """Return the kind of each row: `n_rows` of a report, some of them outliers, and `n_test` held out."""
    kinds = np.repeat([FIT, TEST], [n_rows, n_test])
    kinds[np.asarray(outliers, dtype=np.int64)] = OUTLIER
    return kinds


def drawn(
    candidates: Sequence[tuple[Judged, Judged | None]],
    rows: Rows,
    test: Rows | None,
    kinds: np.ndarray,
    relative: bool,
    group_column: int | None = None,
) -> dict[str, Any]:
    """Return the rows that are drawn, a sample if there are many, and the curves of each candidate.

    Parameters
    ----------
    candidates : sequence of pairs
        Each candidate as judged on `rows` and on `test`.
    rows, test : Rows
        Rows of the report, and those held out.
    kinds : ndarray of shape (n_rows + n_test,)
        Kinds of these rows, see `kinds_of`.
    relative : bool
        Whether the noise is in proportion to the formula.
    group_column : int, optional
        The column with the numbers of groups, which is not drawn.
    """
    X, y = (rows.X, rows.y) if test is None else (np.vstack([rows.X, test.X]), np.append(rows.y, test.y))
    sample = sampled_rows(len(y))
    X, y = X[sample], y[sample]
    names = candidates[0][0].candidate.expression.feature_names
    used = [_used_columns(one.candidate) for one, _ in candidates]
    columns = [i for i in _columns_shown(set[int]().union(*used), len(names)) if i != group_column]
    grids = {column: _grid(X[:, column]) for column in columns}
    medians, digits = np.median(rows.X, axis=0), _digits_of(y)
    if group_column is not None:
        medians[group_column] = -1.0  # the curves are those of a new group
    digits_of_curves = digits - 4
    of_each = []
    for (one, tested), its_columns in zip(candidates, used):
        residuals = one.residuals if tested is None else np.append(one.residuals, tested.residuals)
        curves = [
            _curve(one.candidate, medians, column, grids[column], relative, digits_of_curves)
            if column in its_columns
            else None
            for column in columns
        ]
        level = _values(one.candidate.expression(medians[None]), digits_of_curves)[0]
        of_each.append({"residuals": _values(residuals[sample], 5), "curves": curves, "level": level})
    return {
        "n_features": len(names),
        # Rows are counted from 1, those held out from 1 again.
        "rows": (np.where(kinds == TEST, 1 - len(rows.y), 1)[sample] + sample).tolist(),
        "kinds": kinds[sample].tolist(),
        "measured": _values(y, digits),
        "columns": [
            {
                "name": names[column],
                "values": _values(X[:, column], _digits_of(X[:, column]) - 3),
                "grid": _values(grids[column], _digits_of(X[:, column]) - 3),
            }
            for column in columns
        ],
        "candidates": of_each,
    }


def _used_columns(candidate: Candidate) -> set[int]:
    """Return the indices of the columns in a formula."""
    library, tokens = candidate.expression.library, candidate.expression.tokens
    return set(library.table.argument[tokens[tokens >= library.first_variable]].tolist())


def _columns_shown(used: set[int], n_features: int) -> list[int]:
    """Return the columns to show: those in some formula, and others while there are few."""
    others = [column for column in range(n_features) if column not in used]
    return sorted([*used, *others[: max(_MOST_COLUMNS - len(used), 0)]])


def _grid(values: np.ndarray) -> np.ndarray:
    """Return the places, sorted, where a curve over a column is computed."""
    distinct = np.unique(values)
    evenly = 2.0 * np.linspace(distinct[0] / 2.0, distinct[-1] / 2.0, _POINTS)  # the spread may be no float
    return np.union1d(evenly, distinct) if len(distinct) <= _POINTS else evenly


def _curve(
    candidate: Candidate, medians: np.ndarray, column: int, grid: np.ndarray, relative: bool, digits: int
) -> list[list[float | None]]:
    """Return the values of a formula over one column, and the standard deviations of a new measurement.

    The other columns are at `medians`. Values that are not defined or not known are None.
    """
    X = np.tile(medians, (len(grid), 1))
    X[:, column] = grid
    deviations = np.full(len(grid), np.nan)
    if candidate.uncertainty is not None:
        deviations = candidate.uncertainty.of_predictions(candidate.expression, X, relative)
    return [_values(candidate.expression(X), digits), _values(deviations, 3)]


def _digits_of(values: np.ndarray) -> int:
    """Return how many digits show values: nine more than all of them share, at most 17."""
    values = values / 2.0  # as in `_grid`
    spread = float(np.ptp(values))
    shared = math.log10(np.abs(values).max() / spread) if spread > 0.0 else 0.0
    return min(9 + max(0, math.ceil(shared)), 17)


def _values(values: np.ndarray, digits: int) -> list[float | None]:
    """Return values rounded to significant digits, None (null in JSON) for those that are not finite."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values.tolist()]
