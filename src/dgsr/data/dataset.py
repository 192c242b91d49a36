"""A table as the kernels read it, with what its targets' digits and weights say of noise."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np

# Largest NMSE that the rounding of targets in single precision is taken to leave.
_MOST_OF_SINGLE = 1e-10
# Digits from which on a number was computed and not measured, and most targets whose digits are read.
_DIGITS_OF_COMPUTED, _MOST_READ = 15, 1_000
# Least weight of a usual row, as a share of the median one.
_LEAST_WEIGHT = 0.01


class DataSet(NamedTuple):
    """A data set in the layout that the kernels read."""

    columns: np.ndarray  # (n_features, n_samples) float64, contiguous
    y: np.ndarray  # (n_samples,) float64
    weights: np.ndarray  # (n_samples,) float64, with a mean of 1
    mean: float  # of y, weighted
    variance: float  # of y, weighted
    counts: np.ndarray  # (n_samples,) float64, the equal measurements that each row stands for
    n_effective: float  # the effective number of measurements, by their weights before `with_precision`

    @classmethod
    def from_arrays(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> DataSet:
        """Return the data set of `X` (n_samples, n_features), `y` (n_samples,) and weights (n_samples,).

        The weights must not be negative, nor all 0; they are divided by their mean. A row that stands for
        several equal measurements, of which `counts` has the number, has the sum of their weights. The
        effective number of measurements is (sum w)**2 / sum w**2 over all of them (Kish, 1965).
        """
        y = np.ascontiguousarray(y, dtype=np.float64)
        columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        counts = np.ones(len(y)) if counts is None else counts
        if sample_weight is None:
            return cls(columns, y, np.ones(len(y)), float(y.mean()), float(y.var()), counts, float(len(y)))
        weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
        weights = weights / weights.max()  # first, so that the mean cannot overflow
        weights = weights / weights.mean()
        n_effective = float(weights.sum() ** 2 / (weights**2 / counts).sum())
        mean = float(np.mean(weights * y))
        variance = float(np.mean(weights * (y - mean) ** 2))
        return cls(columns, y, weights, mean, variance, counts, n_effective)

    @property
    def rounding_nmse(self) -> float:
        """NMSE of predictions that miss every target by half a unit in its last place.

        Targets such as 1e6 + 1e-9*f are rounded so coarsely that lower errors say nothing of a formula. Of
        targets in single precision it is two units, since what they were computed from was rounded, too, but
        no more than 1e-10: what is rounded more coarsely is judged as any noise is.
        """
        if _are_single(self.y):
            units = np.spacing(np.abs(self.y).astype(np.float32)).astype(np.float64)
            return min(float(np.mean(self.weights * (2.0 * units) ** 2) / self.variance), _MOST_OF_SINGLE)
        half_units = 0.5 * np.spacing(np.abs(self.y))
        return float(np.mean(self.weights * half_units**2) / self.variance)

    @property
    def digits_nmse(self) -> float:
        """NMSE of predictions as exact as the digits of the targets can show.

        They miss a target by as much as a number does that is rounded to the last place of all targets.
        Targets of fifteen digits and more were computed, and have all digits of their type.
        """
        place = _last_place(self.y)
        return max(self.rounding_nmse, float(place**2 / 12.0 / self.variance))

    def bits_explained(self, nmse: np.ndarray) -> np.ndarray:
        """Return the bits of the targets that formulas explain, by their NMSE: at most all digits."""
        return np.maximum(-0.5 * self.n_independent * np.log2(np.maximum(nmse, self.digits_nmse)), 0.0)

    @property
    def is_usual(self) -> np.ndarray:
        """Whether each row weighs more than next to nothing, as an outlier may, shape (n_samples,)."""
        return self.weights >= _LEAST_WEIGHT * np.median(self.weights)

    @property
    def n_independent(self) -> float:
        """Effective number of rows, but no more than different ones: as many constants would fit those."""
        return min(self.n_effective, float(len(self.y)))

    def with_precision(self, precision: np.ndarray) -> DataSet:
        """Return the data with weights multiplied by the precision of the rows, as many rows as before.

        A weight says how often a row was measured, a precision, of shape (n_samples,), how exactly.
        """
        other = DataSet.from_arrays(self.columns.T, self.y, self.weights * precision, self.counts)
        return other._replace(n_effective=self.n_effective)

    def with_noise_exponent(self, exponent: float) -> DataSet:
        """Return the data with the effective number for a noise of variance in proportion to w**-exponent.

        With an exponent of 1 all measurements say equally much of a formula, and their number counts. With 0
        the noise is the same in all rows, and a few heavy ones have most of the say, by Kish's formula.
        """
        say = (self.weights / self.counts) ** (1.0 - exponent)
        n_effective = (self.counts @ say) ** 2 / (self.counts @ say**2)
        return self._replace(n_effective=float(n_effective))

    def evenly_spaced(self, n: int) -> DataSet:
        """Return a data set of at most `n` of the rows that have a weight, evenly spaced."""
        counted = np.flatnonzero(self.weights)
        rows = counted[np.unique(np.linspace(0, len(counted) - 1, n).astype(np.int64))]
        sample = DataSet.from_arrays(
            self.columns[:, rows].T, self.y[rows], self.weights[rows], self.counts[rows]
        )
        return sample._replace(n_effective=self.n_effective * len(rows) / len(counted))

    def usual_rows(self, n: int) -> DataSet:
        """Return a data set of at most `n` of the usual rows, evenly spaced."""
        return self._replace(weights=self.weights * self.is_usual).evenly_spaced(n)

    def bits_of_residuals(self, nmse: np.ndarray) -> np.ndarray:
        """Return the bits of residuals, but for a number that all formulas share; -inf where they are 0."""
        with np.errstate(all="ignore"):
            return 0.5 * self.n_effective * np.log2(nmse)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of values (n,) with weights (n,), which for equal weights is numpy's."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = [np.searchsorted(below, 0.5 * below[-1], side=side) for side in ("left", "right")]
    return float(np.mean(values[order[np.minimum(middle, len(order) - 1)]]))


def _last_place(values: np.ndarray) -> float:
    """Return the place of the last digit of any of the values as people write them; 0 if they are long."""
    some = np.unique(values[np.unique(np.linspace(0, len(values) - 1, _MOST_READ).astype(np.int64))])
    written = [Decimal(repr(value)).normalize().as_tuple() for value in some.tolist() if value != 0.0]
    if any(len(number.digits) >= _DIGITS_OF_COMPUTED for number in written):
        return 0.0
    return 10.0 ** min((int(number.exponent) for number in written), default=0)


def _are_single(values: np.ndarray) -> bool:
    """Return whether values look like rounded to single precision, and not like whole or short numbers."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
    if not np.array_equal(single, values) or np.array_equal(np.round(values), values):
        return False
    # Of rounded numbers three quarters use one of the last two bits.
    return bool(np.mean(single.view(np.int32) & 3 != 0) > 0.5)
