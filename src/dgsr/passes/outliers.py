"""Rows that lie far from what fits all others: whether a table has some, by the formulas found so far.

The residuals of a formula come from a narrow normal distribution, but for a share of them, the outliers, from
a wide one. A table is taken to have outliers where this makes the description of formula and residuals much
shorter, and a few rows are far off. Rows of a law that the formula is not may be far off, too, but they stand
together: where a column, or the formula, is the largest or the smallest, or beside rows that are off as well.

Residuals are those of rows left out of the fit, since a formula with a pole has none at the row that its
constants serve.

References
----------
Box and Tiao, Biometrika 55, 1968: two normal distributions for data with outliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom, norm

from dgsr.constants.uncertainty import DEVIATIONS, Directions, derivatives
from dgsr.expressions.coordinates import Coordinates
from dgsr.expressions.expression import Expression
from dgsr.pareto import ParetoArchive
from dgsr.population import DataSet, weighted_median
from dgsr.search import Search

# Steps of the fit of the two distributions, and the size of residuals, in robust standard deviations, beyond
# which it begins with them as outliers.
_STEPS, _FAR = 30, 4.0
# Least size of the residuals of outliers, in standard deviations of the others, largest share of outliers
# among rows, and bits by which the description must be shorter at least.
_OUTLYING, _MOST, _LEAST_GAIN = 6.0, 0.15, 40.0
# Shares of the budget at which a search looks for outliers, and the share from which it is too late.
_LOOKS, _TOO_LATE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), 0.9
# Fewest rows that are judged, most rows of a judgement, and most rows whose leverages are computed.
_FEWEST_ROWS, _MOST_ROWS, _MOST_LEVERAGES = 20, 400, 5_000
# Probability at which rows that stand together are no outliers, and leverage from which the value of a
# formula is that of the row.
_TOGETHER, _OWN = 0.1, 0.5
# Nearest rows, the standard deviations from which these are off, and the probability at which rows are no
# outliers whose nearest ones are off.
_NEAREST, _OFF, _COMPANY = 3, 1.5, 0.02
# Step of the columns, as a share of their spread, that a narrow pole shows in: values change by this share of
# their distance from the middle one.
_STEP, _CHANGED = 1e-4, 0.5
# Smallest standard deviation of residuals, in that of the target, smallest part of a residual that the
# leverage leaves, and smallest precision.
_SMALLEST, _LEAST_LEFT, _LEAST = 1e-12, 1e-6, 1e-250


class _Mixture(NamedTuple):
    """Two normal distributions that residuals come from, a narrow and a wide one."""

    bits: float  # minus the logarithm of the density of all residuals
    bits_of_one: float  # the same of a single normal distribution
    deviation: float  # of the narrow one
    of_narrow: np.ndarray  # (n_rows,): the probability of each row to be of the narrow one

    @classmethod
    def of(cls, residuals: np.ndarray, data: DataSet) -> _Mixture:
        """Fit the distributions to residuals of shape (n_rows,), by expectation and maximisation."""
        shares, squares = data.weights / data.weights.sum(), residuals**2
        floor = _SMALLEST**2 * data.variance

        def bits(logarithms: np.ndarray) -> float:
            return -data.n_effective * float(shares @ logarithms) / float(np.log(2.0))

        variance = max(float(shares @ squares), floor)
        whole = bits(_logarithms(squares, variance))
        middle = max(DEVIATIONS * weighted_median(np.abs(residuals), data.weights), np.sqrt(floor))
        of_narrow = (squares <= (_FAR * middle) ** 2).astype(np.float64)
        narrow, density = variance, _logarithms(squares, variance)
        for _ in range(_STEPS):
            share = float(shares @ of_narrow)
            if not 0.0 < share < 1.0:
                break
            narrow = max(float(shares @ (of_narrow * squares)) / share, floor)
            wide = max(float(shares @ ((1.0 - of_narrow) * squares)) / (1.0 - share), narrow)
            own, other = np.log(share), np.log1p(-share)
            own, other = own + _logarithms(squares, narrow), other + _logarithms(squares, wide)
            density = np.logaddexp(own, other)
            of_narrow = np.exp(own - density)
        return cls(min(bits(density), whole), whole, float(np.sqrt(narrow)), of_narrow)

    def are_far(self, residuals: np.ndarray) -> np.ndarray:
        """Return whether each residual is that of an outlier, shape (n_rows,)."""
        return (self.of_narrow < 0.5) & (np.abs(residuals) > _OUTLYING * self.deviation)


def _logarithms(squares: np.ndarray, variance: float) -> np.ndarray:
    """Return the logarithms of normal densities."""
    return -0.5 * (squares / variance + np.log(2.0 * np.pi * variance))


class Watch:
    """Looks for outliers now and then, while the first search of a fit judges by squares.

    Parameters
    ----------
    is_on : bool
        Whether it looks at all.
    coordinates : Coordinates
        Those of the search.

    Attributes
    ----------
    formula : Expression or None
        The best formula so far by which some rows are outliers; None if there are none.
    """

    def __init__(self, is_on: bool, coordinates: Coordinates) -> None:
        self._is_on, self._coordinates, self._due = is_on, coordinates, _LOOKS[0]
        self.formula: Expression | None = None

    def begin(self, search: Search, is_first: bool) -> None:
        """Watch a search if it is the first of a fit, which may have been resumed."""
        self._is_on &= is_first
        self._plan(search)

    def _plan(self, search: Search) -> None:
        self._due = next((share for share in _LOOKS if share > search.budget.share), np.inf)

    def is_due(self, search: Search) -> bool:
        """Return whether it is time for a look."""
        return self._is_on and search.budget.share >= self._due

    def sees_outliers(self, search: Search) -> bool:
        """Look, unless it is too late, and return whether there are outliers."""
        self._plan(search)
        if not self._is_on or search.budget.share >= _TOO_LATE:
            return False
        found = with_outliers(search.archive, search.data)
        if found is not None:
            self._is_on, self.formula = False, self._coordinates.written(found)
        return found is not None


def with_outliers(archive: ParetoArchive, data: DataSet) -> Expression | None:
    """Return the program by which a table has outliers, or None.

    Parameters
    ----------
    archive : ParetoArchive
        Programs whose constants were fitted to the data.
    data : DataSet
    """
    programs, data = archive.population(), data.evenly_spaced(_MOST_ROWS)
    values, places = programs.predict(data.columns.T), archive.places(programs)
    able = np.flatnonzero(np.isfinite(values).all(axis=1)).tolist()
    if len(data.y) < _FEWEST_ROWS or not able:
        return None
    left_out = {i: _left_out(programs[i], values[i], data) for i in able}
    found = {i: _Mixture.of(residuals, data) for i, (residuals, _) in left_out.items()}
    best = min(able, key=lambda i: places[i] + found[i].bits)
    shortest = min(places[i] + found[i].bits_of_one for i in able)
    residuals, are_own = left_out[best]
    is_far = found[best].are_far(residuals)
    if places[best] + found[best].bits > shortest - _LEAST_GAIN or not 0.0 < np.mean(is_far) <= _MOST:
        return None
    columns = [*data.columns] if are_own[is_far].any() else [*data.columns, values[best]]
    sizes = residuals / found[best].deviation
    return None if _stand_together(is_far, columns) or _have_company(is_far, sizes, data) else programs[best]


def _stand_together(is_far: np.ndarray, columns: Sequence[np.ndarray]) -> bool:
    """Return whether some rows are those with the largest, or the smallest, values of a column."""
    n, n_far, n_ends = len(is_far), int(is_far.sum()), 2 * len(columns)
    ranks = [np.argsort(np.argsort(column, kind="stable"), kind="stable")[is_far] for column in columns]
    least = min(min(own.max() + 1, n - own.min()) for own in ranks)
    return bool(n_ends * (least / n) ** n_far < _TOGETHER)


def _have_company(is_far: np.ndarray, residuals: np.ndarray, data: DataSet) -> bool:
    """Return whether the rows nearest to some rows are off in the same direction more often than by chance.

    Parameters
    ----------
    is_far : ndarray of shape (n_rows,), bool
    residuals : ndarray of shape (n_rows,)
        In standard deviations of the rows that are not far off.
    data : DataSet
    """
    ranks = np.argsort(np.argsort(data.columns, axis=1, kind="stable"), axis=1, kind="stable").T
    _, nearest = cKDTree(ranks).query(ranks[is_far], k=_NEAREST + 1)
    are_off = np.sign(residuals[is_far])[:, None] * residuals[nearest[:, 1:]] > _OFF
    return bool(binom.sf(are_off.sum() - 1, are_off.size, norm.sf(_OFF)) < _COMPANY)


def _left_out(formula: Expression, values: np.ndarray, data: DataSet) -> tuple[np.ndarray, np.ndarray]:
    """Return the residuals of rows that are left out of the fit, and which values are those of the row.

    Leverages tell how far the constants give way to a row, to first order. A pole or a peak may be so narrow
    that it is that of a row; its value there is the one beside it then.

    Parameters
    ----------
    formula : Expression
    values : ndarray of shape (n_rows,)
        Its values on the data.
    data : DataSet

    Returns
    -------
    residuals : ndarray of shape (n_rows,)
    are_own : ndarray of shape (n_rows,), bool
    """
    constants = np.asarray(formula.constants)
    groups = list(np.arange(len(constants))[:, None])
    slopes = derivatives(formula.library, formula.tokens, constants, groups, data.columns)
    rows = Directions.of((slopes * np.sqrt(data.weights)).T).rows
    leverages = (rows**2).sum(axis=1) / data.counts
    residuals = (data.y - values) / np.maximum(1.0 - leverages, _LEAST_LEFT)
    steps = _STEP * np.ptp(data.columns, axis=1, keepdims=True)
    beside = np.array([formula((data.columns + sign * steps).T) for sign in (1.0, -1.0)])
    changes = np.nan_to_num(np.abs(beside - values), nan=np.inf)
    distances = np.abs(values - np.median(values))
    is_narrow = changes.max(axis=0) > _CHANGED * np.maximum(distances, DEVIATIONS * np.median(distances))
    others = np.where(np.isfinite(beside), data.y - beside, 0.0)
    farther = np.take_along_axis(others, np.abs(others).argmax(axis=0)[None], axis=0)[0]
    return np.where(is_narrow, farther, residuals), is_narrow | (leverages > _OWN)


def precision_of_usual(formula: Expression, data: DataSet) -> np.ndarray:
    """Return the probability of each row to be none of the outliers, by the residuals of a formula.

    Parameters
    ----------
    formula : Expression
        Rows where it is undefined are as probable as not.
    data : DataSet

    Returns
    -------
    ndarray of shape (n_rows,)
        At least 1e-250.
    """
    residuals, mixture = _judged(formula, data)
    return np.maximum(np.where(np.isfinite(residuals), mixture.of_narrow, 0.5), _LEAST)


def are_outliers(formula: Expression, data: DataSet) -> np.ndarray:
    """Return whether each row is an outlier, by the residuals of a formula, shape (n_rows,).

    Parameters
    ----------
    formula : Expression
    data : DataSet
    """
    residuals, mixture = _judged(formula, data)
    return mixture.are_far(residuals)


def _judged(formula: Expression, data: DataSet) -> tuple[np.ndarray, _Mixture]:
    """Return the residuals of rows left out, nan where a formula is undefined, and their distributions."""
    with np.errstate(all="ignore"):
        values = formula(data.columns.T)
        residuals = data.y - values
        if len(data.y) <= _MOST_LEVERAGES:
            residuals, _ = _left_out(formula, values, data)
        residuals = np.where(np.isfinite(residuals), residuals, np.nan)
        return residuals, _Mixture.of(np.nan_to_num(residuals), data)


def description_with_outliers(data: DataSet, predicted: np.ndarray) -> float:
    """Return the bits of the residuals of a formula where some rows may be outliers.

    Parameters
    ----------
    data : DataSet
        The rows as given.
    predicted : ndarray of shape (n_rows,)
        Values of the formula.
    """
    residuals = data.y - predicted
    return _Mixture.of(residuals, data).bits if np.isfinite(residuals).all() else np.inf
