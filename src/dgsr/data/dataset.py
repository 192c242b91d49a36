"""A table in the layout of the kernels, with the noise that the digits and weights of its targets imply."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

import numpy as np

#: Largest NMSE that counts as rounding, for targets in single precision and for rows that were not searched.
#: With a larger one six laws on an offset of 101325 ended in crude formulas.
LARGEST_ROUNDING = 1e-10
#: Rows above which what takes time for every row is done for fewer first, or without a copy of the table.
MANY_ROWS = 100_000
#: Rows that show a property of a table, such as the digits of its targets, as well as all rows do.
SOME_ROWS = 1_000
# Rows on which finders compare candidates, unless they ask for more.
_MOST_ORDINARY = 200
#: Fewest rows of a group in a sample: its scale, offset and a few other constants must leave some.
ROWS_OF_A_GROUP = 10
# Weight of all anchors together, as a multiple of that of all rows. A fit misses them by about the inverse of
# it, in what it would miss them by without; larger ones slow the fits of constants.
_WEIGHT_OF_ANCHORS = 1e4
# Smallest weight of a row of ordinary weight, as a share of the median weight.
_LEAST_WEIGHT = 0.01


class DataSet(NamedTuple):
    """A data set in the layout that the kernels read."""

    columns: np.ndarray  # (n_features, n_samples) float64, contiguous
    y: np.ndarray  # (n_samples,) float64
    weights: np.ndarray  # (n_samples,) float64, with a mean of 1
    mean: float  # of y, weighted
    variance: float  # of y, weighted
    counts: np.ndarray  # (n_samples,) float64, number of equal measurements that are joined in each row
    n_effective: float  # effective number of measurements, by their weights before `with_precision`
    # (n_samples,) int64: numbers of the groups of rows with a scale and an offset of their own; or empty
    groups: np.ndarray = np.zeros(0, dtype=np.int64)

    @classmethod
    def from_arrays(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> DataSet:
        """Return the data set of `X` (n_samples, n_features), `y` (n_samples,) and weights (n_samples,).

        The weights are divided by their mean. A row of several equal measurements, whose number is in
        `counts`, has the sum of their weights. The effective number of measurements is
        (sum w)**2 / sum w**2 over all of them (Kish, 1965).
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

        For targets in single precision it is two units, since the numbers behind them were rounded, too, and
        at most 1e-10; coarser rounding counts as noise.
        """
        if _are_single(self.y):
            units = np.spacing(np.abs(self.y).astype(np.float32)).astype(np.float64)
            return min(float(np.mean(self.weights * (2.0 * units) ** 2) / self.variance), LARGEST_ROUNDING)
        half_units = 0.5 * np.spacing(np.abs(self.y))
        return float(np.mean(self.weights * half_units**2) / self.variance)

    @property
    def digits_nmse(self) -> float:
        """NMSE that is due to rounding all targets to the last decimal place of any of them."""
        place = _last_place(self.y)
        return max(self.rounding_nmse, float(place**2 / 12.0 / self.variance))

    def bits_explained(self, nmse: np.ndarray) -> np.ndarray:
        """Return the bits of the targets that formulas explain, by their NMSE; digits limit them."""
        return np.maximum(-0.5 * self.n_independent * np.log2(np.maximum(nmse, self.digits_nmse)), 0.0)

    @property
    def has_ordinary_weight(self) -> np.ndarray:
        """Whether each row has an ordinary weight, unlike an outlier's of almost 0, shape (n_samples,)."""
        return self.weights >= _LEAST_WEIGHT * np.median(self.weights)

    @property
    def n_independent(self) -> float:
        """Effective number of measurements, at most that of rows, which as many constants fit exactly."""
        return min(self.n_effective, float(len(self.y)))

    def with_precision(self, precision: np.ndarray) -> DataSet:
        """Return the data with weights times the precision of rows, (n_samples,), and equal effective number.

        A weight is how often a row was measured; a precision is how exactly.
        """
        other = DataSet.from_arrays(self.columns.T, self.y, self.weights * precision, self.counts)
        return other._replace(n_effective=self.n_effective, groups=self.groups)

    def with_anchors(self, columns: np.ndarray, values: np.ndarray) -> DataSet:
        """Return the data with points that are known exactly, which a fit of constants hardly misses.

        The points are of shape (n_features, n_points), and their values of (n_points,). The NMSE of a formula
        that passes them is that on the rows alone, and the effective number of measurements is theirs. Data
        with groups are returned as they are, since a point would be of one of them.
        """
        if not len(values) or len(self.groups):
            return self
        share = np.full(len(values), _WEIGHT_OF_ANCHORS * self.weights.sum() / len(values))
        found = DataSet.from_arrays(
            np.hstack([self.columns, columns]).T,
            np.concatenate([self.y, values]),
            np.concatenate([self.weights, share]),
            np.concatenate([self.counts, np.ones(len(values))]),
        )
        variance = self.variance / (1.0 + _WEIGHT_OF_ANCHORS)
        return found._replace(variance=variance, n_effective=self.n_effective)

    def with_noise_exponent(self, exponent: float) -> DataSet:
        """Return the data with the effective number for a noise of variance in proportion to w**-exponent.

        With an exponent of 1 all measurements carry the same information, and their number is the effective
        one. With 0 the noise is the same in all rows, and Kish's formula counts a few heavy ones most.
        """
        influence = (self.weights / self.counts) ** (1.0 - exponent)
        n_effective = (self.counts @ influence) ** 2 / (self.counts @ influence**2)
        return self._replace(n_effective=float(n_effective))

    def evenly_spaced(self, n: int) -> DataSet:
        """Return a data set of at most `n` evenly spaced rows of those with a positive weight.

        Of data with groups these are rows of the largest ones.
        """
        counted = np.flatnonzero(self.weights)
        if len(self.groups):
            counted = counted[np.isin(self.groups[counted], self._largest(max(n // ROWS_OF_A_GROUP, 1)))]
        return self.at(counted[evenly_spaced(len(counted), n)], len(counted))

    def at(self, rows: np.ndarray, n_counted: int | None = None) -> DataSet:
        """Return the data set of some rows, which stand for `n_counted` rows, by default for all."""
        sample = DataSet.from_arrays(
            self.columns[:, rows].T, self.y[rows], self.weights[rows], self.counts[rows]
        )
        share = len(rows) / (n_counted or len(self.y))
        groups = self.groups[rows] if len(self.groups) else self.groups
        return sample._replace(n_effective=self.n_effective * share, groups=groups)

    def largest_groups(self, n_groups: int) -> list[DataSet]:
        """Return the groups with the most rows, at most `n_groups`, as tables without groups."""
        each = [self.at(np.flatnonzero(self.groups == label)) for label in self._largest(n_groups)]
        return [table._replace(groups=table.groups[:0]) for table in each]

    def _largest(self, n_groups: int) -> np.ndarray:
        """Return the numbers of the groups with the most rows, at most `n_groups`."""
        labels, counts = np.unique(self.groups, return_counts=True)
        return labels[np.argsort(-counts, kind="stable")[:n_groups]]

    def ordinary_rows(self, n: int = _MOST_ORDINARY) -> DataSet:
        """Return a data set of at most `n` evenly spaced rows of those with an ordinary weight."""
        return self._replace(weights=self.weights * self.has_ordinary_weight).evenly_spaced(n)

    def bits_of_residuals(self, nmse: np.ndarray) -> np.ndarray:
        """Return the bits of residuals up to a constant that all formulas share; -inf if they are 0."""
        with np.errstate(all="ignore"):
            return 0.5 * self.n_effective * np.log2(nmse)


def evenly_spaced(n_rows: int, n: int) -> np.ndarray:
    """Return the indices of at most `n` of `n_rows` rows, evenly spaced."""
    return np.unique(np.linspace(0, n_rows - 1, n).astype(np.int64))


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the median of values (n,) with weights (n,), which for equal weights is numpy's."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    middle = [np.searchsorted(below, 0.5 * below[-1], side=side) for side in ("left", "right")]
    return float(np.mean(values[order[np.minimum(middle, len(order) - 1)]]))


def _last_place(values: np.ndarray) -> float:
    """Return the unit of the last decimal place of any of the values; 0 if some have 15 digits or more."""
    some = np.unique(values[evenly_spaced(len(values), SOME_ROWS)])
    written = [Decimal(repr(value)).normalize().as_tuple() for value in some.tolist() if value != 0.0]
    if any(len(number.digits) >= np.finfo(np.float64).precision for number in written):  # computed ones
        return 0.0
    return 10.0 ** min((int(number.exponent) for number in written), default=0)


def _are_single(values: np.ndarray) -> bool:
    """Return whether values are rounded to single precision, and neither whole nor short numbers."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32)
    if not np.array_equal(single, values) or np.array_equal(np.round(values), values):
        return False
    # Three quarters of rounded numbers have one of the last two bits set.
    return bool(np.mean(single.view(np.int32) & 3 != 0) > 0.5)
