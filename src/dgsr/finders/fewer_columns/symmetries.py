"""Symmetries of a table: combinations of columns on which the target depends, and factors of the target.

They follow from the gradient of a smooth function through the rows (module ``gaussian_process``). If y does
not change when two columns change by the same amount, it depends on their difference. If scaling some columns
multiplies y by a power of the scale, y is a product of powers times a function of fewer groups of columns, as
in the pi theorem, but no units are needed. Each such step removes a column, and is accepted only if the
smooth function of the new columns predicts left-out rows as well.

References
----------
Udrescu and Tegmark, Science Advances 6, eaay2631, 2020 (AI Feynman); Buckingham, Phys. Rev. 4, 345, 1914.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dgsr.data import redundant_columns
from dgsr.finders.fewer_columns.separation import Separation, separation_of
from dgsr.finders.fewer_columns.tables import (
    TARGET,
    Reduction,
    Symmetry,
    scaled,
    whole_table,
    with_sum,
    without,
)
from dgsr.finders.fewer_columns.views import NEGLIGIBLE, SMALL, TIMES_LARGE, Logarithms, View
from dgsr.finders.finder import Deadline, never
from dgsr.finders.terms import WIDEST_TABLE

#: Fewest rows for each column.
ROWS_PER_COLUMN = 5
# Most rows for combinations of columns, and for sums and products. The time rises with their third power.
_MOST_ROWS, _MOST_SEPARATED = 400, 200
# Smallest entry of a column in the unit vector of a scaling symmetry.
_LEAST_SHARE = 0.02
# Smallest effect of scaling a column, relative to the scaling of the target or of the column with the largest
# effect, whichever is smaller. Columns with less are not scaled.
_LEAST_PART = 0.01
# Smallest ratio of the mean slopes of two columns whose sum or difference is tried.
_ALIKE = 0.05
# Most columns that are scaled together.
_MOST_SCALED = 3
# Largest absolute value of an exponent.
_MOST_EXPONENT = 6
# Most candidates that are tried for one step.
_MOST_TRIED = 8
# Denominators of exponents.
_DENOMINATORS = (1, 2, 3, 4)
# Error of the smooth function below which exponents may be fractions; with larger ones they are integers.
_ERROR_OF_FRACTIONS = 1e-2
# Largest ratio of the errors after and before a step, if that before is small; others raise it more.
_TIMES_SMALL = 1.5
# Error below which it may grow by a factor, up to `TIMES_LARGE` times the error with all columns.
_MODERATE = 3e-2
_TIMES_AT_MOST = 3.0
# Largest variance of the noise, as a share of the variance of the target, with which a table is exact.
_NO_NOISE = 1e-6
# Smallest absolute value of a column that divides others, relative to its largest one.
_LEAST_DIVISOR = 1e-6


def find_symmetries(
    X: Any, y: Any, feature_names: Sequence[str] | None = None, target_name: str | None = None
) -> list[Symmetry]:
    """Find combinations of columns on which a target depends, its factors, and whether it separates.

    The only assumption is that the formula is smooth; no units are needed. This takes half a second for 200
    rows, and some seconds for 400 rows of a dozen columns.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        From 2 to 12 columns, with at least 5 rows for each, else the list is empty. Constant columns and
        copies of others do not count. At most 400 random rows are used, and 200 for sums and products.
    y : array-like of shape (n_rows,)
    feature_names : sequence of str, optional
        By default the names of a data frame, else x1 and so on.
    target_name : str, optional
        By default the name of a series, else y.

    Returns
    -------
    list of Symmetry
        At most two that are printed as ``y/(G*m1*m2) depends on x2 - x1 and y2 - y1 alone``, the second of
        fewer columns; then one such as ``y is a function of x1, times a function of x2 and x3`` if the
        remaining function separates. All hold within the error of the rows. Their fields are `kind`, `target`
        and `groups`.

    Raises
    ------
    ValueError
        If X or y has numbers that are not finite, or the numbers of rows, or of names and columns, differ.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(1, 3, (100, 4))
    >>> (found,) = find_symmetries(X, X[:, 0] * np.exp(-X[:, 1] * X[:, 2] / X[:, 3]))
    >>> print(found)
    y/x1 depends on x4/(x3*x2) alone
    >>> found.groups
    (('x4/(x3*x2)',),)
    """
    names = getattr(X, "columns", None) if feature_names is None else feature_names
    target = getattr(y, "name", None) if target_name is None else target_name
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or y.shape != X.shape[:1] or not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError(
            f"X of shape {X.shape} and y of shape {y.shape} must be a table and a number for each of its "
            "rows, all of them finite."
        )
    names = [f"x{i + 1}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]
    if len(names) != X.shape[1]:
        raise ValueError(f"feature_names={names} must have {X.shape[1]} names, one for each column.")
    target = "y" if target is None else str(target)
    used = columns_looked_at(X)
    with np.errstate(all="ignore"), threadpool_limits(1, user_api="blas"):
        table = X[:, used], y, [f"x{i + 1}" for i in used]
        found = reductions_of(*table)
        separation = smallest_separation(*table, found)
    shown = {TARGET: target, **{f"x{i + 1}": name for i, name in enumerate(names)}}
    return [each.symmetry(shown) for each in (*found, separation) if each is not None]


def columns_looked_at(X: np.ndarray) -> list[int]:
    """Return the columns of a table that `find_symmetries` examines, none if the table is not suitable."""
    n_rows, n_columns = X.shape
    left_out = redundant_columns(X.T, range(n_columns), with_constants=True) if n_rows else ()
    used = [i for i in range(n_columns) if i not in left_out]
    return used if _is_suitable(n_rows, len(used)) else []


def reductions_of(
    X: np.ndarray, y: np.ndarray, names: Sequence[str], is_over: Deadline = never
) -> list[Reduction]:
    """Return tables of fewer columns from which the target is predicted as well as from all columns.

    They are at most two: one after all steps that make formulas shorter (factors, products and differences
    outside of which their columns do not occur, idle columns), and one after further steps that may make
    formulas longer. The names of the columns are those in trees. The deadline is called before each step.
    """
    rows = _rows_of(X, _MOST_ROWS)
    if not len(rows) or is_over():
        return []
    state = View.of(whole_table(X, y, names), rows)
    if state is None:
        return []
    limit = TIMES_LARGE * state.error  # for errors that may grow by a factor
    found: list[Reduction] = []
    for shortens in (True, False):
        before = state
        while following := _following(state, rows, shortens, limit, is_over):
            state = following
        if state is not before:
            found.append(replace(state.reduction, is_exact=state.surrogate.noise <= _NO_NOISE))
    return found


def smallest_separation(
    X: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    reductions: Sequence[Reduction],
    is_over: Deadline = never,
) -> Separation | None:
    """Return the separation of the target in the smallest table in which it separates, None if in none.

    The arguments are those of `reductions_of`, and its result. The original table is examined only if it has
    no reductions, because its factors of single columns, for example, are then known.
    """
    rows = _rows_of(X, _MOST_SEPARATED)
    tables = reversed(reductions) if reductions else [whole_table(X, y, names)]
    for table in tables if len(rows) else ():
        if table.X.shape[1] == 1:  # a single column cannot be separated
            return None
        separation = separation_of(table, rows, is_over)
        if separation is not None:
            return separation
    return None


def _rows_of(X: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` rows of a table, none if its number of rows or columns is not suitable."""
    n_rows = len(X)
    if not _is_suitable(*X.shape):
        return np.zeros(0, dtype=np.int64)
    if n_rows <= most:
        return np.arange(n_rows)
    # In evenly spaced rows of a grid, two columns may be equal.
    return np.sort(np.random.default_rng(0).choice(n_rows, most, replace=False))


def _is_suitable(n_rows: int, n_columns: int) -> bool:
    return 2 <= n_columns <= WIDEST_TABLE and n_rows >= ROWS_PER_COLUMN * n_columns


class _Step(NamedTuple):
    """A candidate for a step; the first three fields order candidates."""

    lengthens: bool  # whether formulas may get longer
    size: int  # number of columns
    broken: float  # violation of the symmetry, 0 if it is exact
    key: str  # unique name of the step
    taken: partial[Reduction]  # returns the table after the step


def _following(state: View, rows: np.ndarray, shortens: bool, most: float, is_over: Deadline) -> View | None:
    """Return the state after the first acceptable step, None if every step raises the error too much.

    There is no step from a single column.
    """
    if state.reduction.X.shape[1] == 1:
        return None
    steps = {step.key: step for step in _steps(state, rows) if not (step.lengthens and shortens)}
    error = state.error
    limit = max((_TIMES_SMALL if error < SMALL else TIMES_LARGE) * error, NEGLIGIBLE)
    if error < _MODERATE:
        limit = max(limit, min(_TIMES_AT_MOST * error, most))
    for step in sorted(steps.values(), key=lambda step: step[:3])[:_MOST_TRIED]:
        if is_over():
            return None
        with np.errstate(all="ignore"):
            reduction = step.taken()
        kinds = (Logarithms(columns, state.logarithms.target) for columns in (False, True))
        views = [View.fitted(reduction, rows, kind, state.surrogate) for kind in kinds]
        best = min((new for new in views if new is not None), key=lambda new: new.error, default=None)
        if best is not None and best.error <= limit:
            return best
    return None


def _steps(state: View, rows: np.ndarray) -> Iterator[_Step]:
    """Yield the steps that agree with the gradient."""
    reduction, X = state.reduction, state.reduction.X[rows]
    n_columns = X.shape[1]
    changes = state.gradient * X.std(axis=0)
    sizes = _rms(changes) / max(state.target.std(), 1e-300)
    for i in range(n_columns):
        if sizes[i] < state.allowed:
            yield _Step(False, 0, float(sizes[i]), f"idle {i}", partial(without, reduction, i))
    slopes = _rms(state.gradient)
    for i, j in combinations(range(n_columns), 2):
        if min(slopes[i], slopes[j]) <= _ALIKE * max(slopes[i], slopes[j]):
            continue
        for sign in (-1, 1):  # y depends on x_i + sign*x_j
            broken = float(_rms(state.gradient[:, i] - sign * state.gradient[:, j]))
            broken /= float(slopes[i] + slopes[j])
            if broken < state.allowed:
                taken = partial(with_sum, reduction, i, j, sign)
                yield _Step(False, 2, broken, f"sum {i} {j} {sign}", taken)
    yield from _scalings(state, X)


def _scalings(state: View, X: np.ndarray) -> Iterator[_Step]:
    """Yield the steps for columns whose common scaling multiplies the target by a power of the scale."""
    n_columns = X.shape[1]
    # The last column is the change when the target itself is scaled: -y, or -1 for its logarithm.
    own = -np.ones(len(X)) if state.logarithms.target else -state.target
    changes = np.column_stack([X * state.gradient, own])
    sizes = _rms(changes)
    products = (changes / np.maximum(sizes, 1e-300)).T
    products = products @ products.T / len(X)
    able = [i for i in range(n_columns) if sizes[i] > _LEAST_PART * min(sizes[-1], sizes[:-1].max())]
    for size in range(1, _MOST_SCALED + 1):
        for columns in combinations(able, size):
            for has_factor in (True, False)[: 1 + (size > 1)]:
                at = [*columns, n_columns] if has_factor else [*columns]
                values, vectors = np.linalg.eigh(products[np.ix_(at, at)])
                broken, vector = float(np.sqrt(max(values[0], 0.0))), vectors[:, 0]
                if broken > state.allowed or np.abs(vector[:size]).min() < _LEAST_SHARE:
                    continue
                exponents = _exponents(vector / sizes[at], size, X[:, columns], state.surrogate.error)
                if exponents is None:
                    continue
                pivot, powers, factor = exponents
                lengthens = size > 2 or (size == 2 and factor != 0)
                taken = partial(scaled, state.reduction, columns, pivot, powers, factor)
                yield _Step(lengthens, size, broken, f"scale {columns} {powers} {factor}", taken)


def _exponents(
    vector: np.ndarray, size: int, X: np.ndarray, error: float
) -> tuple[int, tuple[Fraction, ...], Fraction] | None:
    """Return the column that divides the others, the exponents, and the exponent of the target's factor."""
    found = []
    for pivot in range(size):
        column = X[:, pivot]
        if np.abs(column).min() <= _LEAST_DIVISOR * np.abs(column).max():
            continue
        ratios = vector / vector[pivot]
        if not np.isfinite(ratios).all():
            continue
        rational = [near for ratio in ratios if (near := _nearest(ratio, error)) is not None]
        if len(rational) < len(ratios) or not all(rational[:size]):
            continue
        if not (column > 0.0).all() and any(ratio.denominator > 1 for ratio in rational):
            continue
        cost = sum(abs(ratio) + 2 * (ratio.denominator > 1) for ratio in rational)
        factor = rational[size] if len(rational) > size else Fraction(0)
        found.append((cost, pivot, tuple(rational[:size]), factor))
    return min(found)[1:] if found else None


def _nearest(ratio: float, error: float) -> Fraction | None:
    """Return the simple fraction within the error of a ratio of slopes, None if there is none."""
    allowed = 0.03 + 0.02 * abs(ratio) + 0.5 * min(error, 0.3)
    for denominator in _DENOMINATORS if error < _ERROR_OF_FRACTIONS else (1,):
        near = Fraction(round(ratio * denominator), denominator)
        if abs(float(near) - ratio) <= allowed and abs(near) <= _MOST_EXPONENT:
            return near
    return None


def _rms(values: np.ndarray) -> np.ndarray:
    """Return the root mean squares over the rows."""
    return np.sqrt(np.mean(values**2, axis=0))
