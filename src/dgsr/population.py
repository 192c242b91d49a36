"""Many programs as a structure of arrays, with their values, errors and complexities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, overload

import numpy as np

from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library
from dgsr.kernels.evaluate import predictions, squared_errors
from dgsr.kernels.programs import Programs

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


def rewards_of(nmse: np.ndarray) -> np.ndarray:
    """Return the rewards 1/(1 + NMSE) of programs (paper, section 3.1), which are 0 for invalid ones."""
    return 1.0 / (1.0 + nmse)


@dataclass(frozen=True, eq=False)
class Population:
    """Programs of one library.

    Parameters
    ----------
    library : Library
    tokens : ndarray of shape (n_programs, max_length), int64
        Token ids in prefix order, zero after the end.
    lengths : ndarray of shape (n_programs,), int64
    constants : ndarray of shape (n_programs, max_constants), float64
        Values of the ``const`` tokens in the order they stand in the program; no columns where the
        library has no constants.
    """

    library: Library
    tokens: np.ndarray
    lengths: np.ndarray
    constants: np.ndarray

    @property
    def arrays(self) -> Programs:
        """The programs in the form that kernels read."""
        return Programs(self.tokens, self.lengths, self.constants)

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int | np.integer) -> Expression: ...
    @overload
    def __getitem__(self, index: slice | np.ndarray) -> Population: ...
    def __getitem__(self, index):
        if isinstance(index, (int, np.integer)):
            return Expression(self.library, self.tokens[index, : self.lengths[index]], self.constants[index])
        return Population(self.library, self.tokens[index], self.lengths[index], self.constants[index])

    @classmethod
    def empty(cls, n_programs: int, library: Library, max_length: int, max_constants: int) -> Population:
        """Return arrays for `n_programs` programs, which have no tokens yet; constants are 1."""
        tokens, constants = np.zeros((n_programs, max_length), np.int64), np.ones((n_programs, max_constants))
        return cls(library, tokens, np.zeros(n_programs, np.int64), constants)

    @classmethod
    def concatenate(cls, populations: Sequence[Population]) -> Population:
        """Join populations of one library, in arrays as wide as the widest."""
        widths = [(p.tokens.shape[1], p.constants.shape[1]) for p in populations]
        widest = max(w for w, _ in widths), max(n for _, n in widths)
        parts = [p if own == widest else p.of_width(*widest) for p, own in zip(populations, widths)]
        return cls(
            populations[0].library,
            np.concatenate([p.tokens for p in parts]),
            np.concatenate([p.lengths for p in parts]),
            np.concatenate([p.constants for p in parts]),
        )

    def of_width(self, width: int, n_constants: int | None = None) -> Population:
        """Return the programs that have room in arrays of such widths, in such arrays."""
        has_room = self.lengths <= width
        if n_constants is not None:
            has_room &= self.is_constant.sum(axis=1) <= n_constants
        kept = self[has_room]
        tokens = np.zeros((len(kept), width), dtype=np.int64)
        common = min(width, kept.tokens.shape[1])
        tokens[:, :common] = kept.tokens[:, :common]
        constants = kept.constants
        if n_constants is not None:
            constants = np.ones((len(kept), n_constants))
            common = min(n_constants, kept.constants.shape[1])
            constants[:, :common] = kept.constants[:, :common]
        return Population(kept.library, tokens, kept.lengths, constants)

    @property
    def is_constant(self) -> np.ndarray:
        """Where the tokens of the programs are ``const``, shape (n_programs, max_length)."""
        inside = np.arange(self.tokens.shape[1]) < self.lengths[:, None]
        return inside & (self.tokens == self.library.index.get("const", -1))

    @classmethod
    def from_expressions(cls, expressions: Sequence[Expression]) -> Population:
        """Return the programs of one or more expressions of one library, in arrays as wide as needed."""
        tokens = np.zeros((len(expressions), max(e.length for e in expressions)), dtype=np.int64)
        constants = np.ones((len(expressions), max(len(e.constants) for e in expressions)))
        for i, expression in enumerate(expressions):
            tokens[i, : expression.length] = expression.tokens
            constants[i, : len(expression.constants)] = expression.constants
        lengths = np.array([e.length for e in expressions], dtype=np.int64)
        return cls(expressions[0].library, tokens, lengths, constants)

    def complexities(self) -> np.ndarray:
        """Return C(f) of every program (paper, appendix "Evaluation Metrics"), shape (n_programs,), int64."""
        per_token = self.library.table.complexity[self.tokens]
        return np.where(np.arange(self.tokens.shape[1]) < self.lengths[:, None], per_token, 0).sum(axis=1)

    def nmse(self, X: np.ndarray | DataSet, y: np.ndarray | None = None) -> np.ndarray:
        """Return the normalised mean squared error of every program, `inf` where a prediction is not finite.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), or DataSet
        y : ndarray of shape (n_samples,)
            Target, which must vary. It is left out when `X` is a DataSet.

        Returns
        -------
        ndarray of shape (n_programs,)
            Mean squared residual over the variance of `y`.

        Raises
        ------
        ValueError
            If `y` is missing.

        References
        ----------
        Holt, Qian, van der Schaar, ICLR 2023, equation 1 (there divided by the standard deviation).
        """
        if isinstance(X, DataSet):
            data = X
        elif y is None:
            raise ValueError("y is missing; give X and y, or one DataSet.")
        else:
            data = DataSet.from_arrays(X, y)
        errors = squared_errors(self.arrays, self.library.table, data)
        with np.errstate(over="ignore"):  # an NMSE beyond a float is inf
            return errors / (len(data.y) * data.variance)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the values of every program on `X` (n_samples, n_features): (n_programs, n_samples)."""
        columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        return predictions(self.arrays, self.library.table, columns)
