"""Outliers: rows that lie far from a formula that fits all others, by its residuals.

The residuals come from a narrow normal distribution or, for the outliers, from a wide one. Each residual is
that of its row when the row is left out of the fit, since a formula with a pole may fit one row exactly.

References
----------
Box and Tiao, Biometrika 55, 1968: two normal distributions for data with outliers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import LEAST_LEFT, MAD_TO_SIGMA, Directions, derivatives
from dgsr.data import are_counts
from dgsr.data.dataset import DataSet, weighted_median
from dgsr.data.table import Table
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.trees.simple_numbers import ROUNDING
from dgsr.fitting.losses import LEAST_PRECISION, MOST_COMPARED

# Steps of expectation and maximisation in the fit of the two distributions.
_STEPS = 30
# Size of residuals above which the fit begins with them as outliers, in robust standard deviations.
_FAR = 4.0
#: Largest share of outliers among the rows. With more the formula is no law of the others.
MOST_OUTLIERS = 0.15
# Leverage above which a single row determines the value of the formula there.
_OWN = 0.5
# Step to either side of a row that reveals a narrow pole, as a share of the distance to a neighbour.
_STEP = 1e-3
# Number of rows between a row and that neighbour in a column, as a share of all rows.
_NEIGHBOURHOOD = 0.05
# Change of the values in such a step above which there is a narrow pole, relative to their distance from the
# median.
_CHANGED = 0.5
#: Largest residual whose square is finite, with a margin.
LARGEST_RESIDUAL = 1e150


class Mixture(NamedTuple):
    """Mixture of two normal distributions of residuals with a mean of 0, a narrow and a wide one."""

    share: float  # of the narrow one; 1 if a single distribution describes the residuals
    narrow: float  # variance
    wide: float  # variance

    @classmethod
    def single(cls, residuals: np.ndarray, data: DataSet) -> Mixture:
        """Return a single distribution of residuals of shape (n_rows,)."""
        variance = max(float(np.average(residuals**2, weights=data.weights)), _least_variance(data))
        return cls(1.0, variance, variance)

    @classmethod
    def of(cls, residuals: np.ndarray, data: DataSet) -> Mixture:
        """Fit the distributions to residuals of shape (n_rows,), by expectation and maximisation."""
        shares, squares = data.weights / data.weights.sum(), residuals**2
        least = _least_variance(data)
        middle = max(MAD_TO_SIGMA * weighted_median(np.abs(residuals), data.weights), np.sqrt(least))
        of_narrow = (squares <= (_FAR * middle) ** 2).astype(np.float64)
        found = cls.single(residuals, data)
        for _ in range(_STEPS):
            share = float(shares @ of_narrow)
            if not 0.0 < share < 1.0:
                break
            narrow = max(float(shares @ (of_narrow * squares)) / share, least)
            wide = max(float(shares @ ((1.0 - of_narrow) * squares)) / (1.0 - share), narrow)
            found = cls(share, narrow, wide)
            of_narrow = found.of_narrow(residuals)
        return found

    @property
    def deviation(self) -> float:
        """The standard deviation of the narrow one."""
        return float(np.sqrt(self.narrow))

    def of_narrow(self, residuals: np.ndarray) -> np.ndarray:
        """Return the probability of each residual to come from the narrow distribution, shape (n_rows,)."""
        own, other = self._logarithms(residuals)
        return np.exp(own - np.logaddexp(own, other))

    def bits(self, residuals: np.ndarray, data: DataSet) -> float:
        """Return the negative log-likelihood of all residuals, in bits."""
        logarithms = np.logaddexp(*self._logarithms(residuals))
        return -data.n_effective * float(np.average(logarithms, weights=data.weights)) / float(np.log(2.0))

    def _logarithms(self, residuals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of the densities of both distributions, each times its share."""
        with np.errstate(divide="ignore"):
            shares = np.log(self.share), np.log1p(-self.share)
        own, other = (
            -0.5 * (residuals**2 / variance + np.log(2.0 * np.pi * variance))
            for variance in (self.narrow, self.wide)
        )
        return shares[0] + own, shares[1] + other


def _least_variance(data: DataSet) -> float:
    """Return the smallest variance, which is due to rounding, by a robust spread of the target."""
    middle = weighted_median(data.y, data.weights)
    spread = MAD_TO_SIGMA * weighted_median(np.abs(data.y - middle), data.weights) or np.sqrt(data.variance)
    return float((ROUNDING * spread) ** 2) or float(np.finfo(np.float64).tiny)


class InlierModel:
    """The rows that are no outliers, by the residuals of a formula on all rows of the table."""

    def __init__(self, formula: Expression, data: DataSet) -> None:
        self._formula = formula
        sample = data.evenly_spaced(MOST_COMPARED)
        residuals = self._residuals(sample, fitted=True)
        self._mixture = Mixture.of(np.nan_to_num(residuals), sample)
        are_inliers = self._of_narrow(residuals) >= 0.5
        # A formula is no law if by it many rows are outliers, or all others have the same target.
        is_law = (
            np.average(~are_inliers, weights=sample.weights) <= MOST_OUTLIERS
            and np.ptp(sample.y[are_inliers]) > 0.0
        )
        if not is_law:
            self._mixture = self._mixture._replace(share=1.0)

    def precision(self, data: DataSet, fitted: bool = True) -> np.ndarray:
        """Return the probability of each row to be no outlier, (n_rows,); 0.5 where the formula is undefined.

        `fitted` says whether the constants of the formula were fitted to these rows.
        """
        return np.maximum(self._of_narrow(self._residuals(data, fitted)), LEAST_PRECISION)

    def _of_narrow(self, residuals: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(residuals), 0.5, self._mixture.of_narrow(np.nan_to_num(residuals)))

    def _residuals(self, data: DataSet, fitted: bool) -> np.ndarray:
        """Return the residual of each row when left out of the fit, nan where the formula is undefined."""
        with np.errstate(all="ignore"):
            values = self._formula(data.columns.T)
            residuals = data.y - values
            if fitted and len(data.y) <= MOST_COMPARED:
                residuals, _ = left_out_of_fit(self._formula, values, data, small_steps(data.columns))
        return np.where(
            np.isfinite(residuals), np.clip(residuals, -LARGEST_RESIDUAL, LARGEST_RESIDUAL), np.nan
        )


def outlying_rows(formula: Expression, table: Table) -> np.ndarray:
    """Return the indices of the rows that are more probably outliers than not.

    Rows with the weight 0 were not in the fit.
    """
    X, y, weights = table.weighted
    weights = np.ones(len(y), dtype=np.int64) if weights is None else weights
    counts = weights.astype(np.float64) if are_counts(weights) else None
    data = DataSet.from_arrays(X, y, weights, counts)
    return table.used[InlierModel(formula, data).precision(data) < 0.5]


def residual_bits_with_outliers(data: DataSet, predicted: np.ndarray) -> float:
    """Return the bits of the residuals of a formula with values (n_rows,) where there may be outliers."""
    residuals = data.y - predicted
    if not (np.abs(residuals) < LARGEST_RESIDUAL).all():
        return np.inf
    return Mixture.of(residuals, data).bits(residuals, data)


def left_out_of_fit(
    formula: Expression, values: np.ndarray, data: DataSet, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the residual of each row when left out of the fit, and where a row alone determines the value.

    Both are of shape (n_rows,), like the values of the formula. At a pole or peak so narrow that it serves
    one row alone, by the `steps` of `small_steps`, the larger of the residuals to either side is returned.
    """
    constants = np.asarray(formula.constants)
    groups = list(np.arange(len(constants))[:, None])
    slopes = derivatives(formula.library, formula.tokens, constants, groups, data.columns)
    leverages = Directions.of((slopes * np.sqrt(data.weights)).T).leverages / data.counts
    residuals = (data.y - values) / np.maximum(1.0 - leverages, LEAST_LEFT)
    beside = np.array([formula((data.columns + sign * steps).T) for sign in (1.0, -1.0)])
    changes = np.nan_to_num(np.abs(beside - values), nan=0.0)  # nan beyond the end of a domain
    distances = np.abs(values - np.nanmedian(values))
    is_narrow = changes.max(axis=0) > _CHANGED * np.maximum(distances, MAD_TO_SIGMA * np.nanmedian(distances))
    others = np.where(np.isfinite(beside), data.y - beside, 0.0)
    farther = np.take_along_axis(others, np.abs(others).argmax(axis=0)[None], axis=0)[0]
    return np.where(is_narrow, farther, residuals), is_narrow | (leverages > _OWN)


def small_steps(columns: np.ndarray) -> np.ndarray:
    """Return a small share of the distance of each value to another in its column: (n_columns, n_rows)."""
    n = columns.shape[1]
    n_apart = min(max(int(_NEIGHBOURHOOD * n), 1), n - 1)
    order = np.argsort(columns, axis=1, kind="stable")
    gaps = np.take_along_axis(columns, order, axis=1)
    gaps = gaps[:, n_apart:] - gaps[:, : n - n_apart]
    gaps = np.where(gaps > 0.0, gaps, np.inf)
    ends = np.full((len(columns), n_apart), np.inf)
    nearest = np.minimum(np.hstack([gaps, ends]), np.hstack([ends, gaps]))
    steps = np.empty_like(columns)
    np.put_along_axis(steps, order, _STEP * np.where(np.isfinite(nearest), nearest, 0.0), axis=1)
    return steps
