"""Prepare the data of a fit for its search: equal rows joined, many rows sampled, extreme scales undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dgsr.population import DataSet

# Columns whose root mean square lies between these are searched as they are, so that sin(x1) keeps
# its meaning; others are divided by a power of ten.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-3, 1e3

# Most rows that the constants of the front are fitted on. More say little more about a constant, and
# finishing a front takes a hundred fits.
_FITTED_ROWS = 2_000

# Between these spreads of y, squares of its differences, summed over any number of rows, are normal floats.
_SMALLEST_SPREAD, _LARGEST_SPREAD = 1e-140, 1e140


class Prepared(NamedTuple):
    """The data of a fit."""

    data: DataSet  # the rows that the losses of the front are computed on, each once, as given
    fitted: DataSet  # the rows that the constants of the front are fitted on
    search: DataSet  # the rows of the search, with columns divided by `column_scales`
    column_scales: np.ndarray  # (n_features,) float64, powers of ten
    held_out: DataSet | None  # the rows held out of search and fit, which ``selection="holdout"`` chooses by

    @property
    def scaled(self) -> DataSet:
        """The rows of `fitted` with columns divided by `column_scales`, as those of the search are."""
        return self.fitted._replace(columns=self.fitted.columns / self.column_scales[:, None])

    def with_precision(self, precision_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Prepared:
        """Return the same rows, weighted by their precision too.

        Parameters
        ----------
        precision_of : callable
            A function of inputs (n_rows, n_features), as given, and targets (n_rows,) that returns the
            precision of every row; see `DataSet.with_precision`.
        """

        def weighted(data: DataSet, scales: np.ndarray | float = 1.0) -> DataSet:
            return data.with_precision(precision_of(data.columns.T * scales, data.y))

        return self._replace(
            data=weighted(self.data),
            fitted=weighted(self.fitted),
            search=weighted(self.search, self.column_scales),
            held_out=None if self.held_out is None else weighted(self.held_out),
        )


def check_spread(y: np.ndarray) -> None:
    """Raise ValueError if squares of the differences in `y` would overflow or vanish."""
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y))
    if not _SMALLEST_SPREAD <= spread <= _LARGEST_SPREAD:
        raise ValueError(
            f"The values of y spread over {spread:g}, and squares of that are beyond a float; rescale y, "
            "to a standard deviation of 1 for example."
        )


def prepare(
    X: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    *,
    rescale: bool,
    max_rows: int | None,
    held_out: float = 0.0,
    scales: np.ndarray | None = None,
    seed: int,
) -> Prepared:
    """Prepare data for a search.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    sample_weight : ndarray of shape (n_samples,), optional
        The weights of the rows, which must not be negative, nor all 0. A row with weight 2 is exactly the
        same as two equal rows.
    rescale : bool
        Whether columns of extreme scale are rescaled, which a library with constants can undo.
    max_rows : int or None
        Most rows of the search, drawn at random.
    held_out : float
        Share of the rows that is held out.
    scales : ndarray of shape (n_features,), optional
        Column scales of an earlier search that goes on, in place of those of these data.
    seed : int
        Seed of all samples of rows.

    Returns
    -------
    Prepared
    """
    table = np.column_stack([X, y])
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = np.flatnonzero(weights > 0.0)
    table, weights = table[used], weights[used]
    # Divided by a power of two, which is exact, the weights are below 1, and no sum of them overflows.
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])
    _, first, row_of = np.unique(row_ranks(table), return_index=True, return_inverse=True)
    table, weights = table[first], np.bincount(row_of, weights).astype(np.float64)
    rng = np.random.default_rng(seed)
    held_out_data = None
    n_out = int(held_out * len(table))
    if n_out > 1:
        order = rng.permutation(len(table))
        held_out_data = _data(table[order[:n_out]], weights[order[:n_out]])
        kept = np.sort(order[n_out:])
        table, weights = table[kept], weights[kept]
    if scales is None:
        scales = _column_scales(table[:, :-1]) if rescale else np.ones(table.shape[1] - 1)
    data = _data(table, weights)
    table, weights = _sample(table, weights, _FITTED_ROWS, rng)
    fitted = _data(table, weights)
    table, weights = _sample(table, weights, max_rows, rng)
    search = _data(table / np.append(scales, 1.0), weights)
    return Prepared(data, fitted, search, scales, held_out_data)


def row_ranks(table: np.ndarray) -> np.ndarray:
    """Return the rank of every row in lexicographic order; equal rows, and they alone, have equal ranks.

    Columns are compared one by one, and only rows that tie so far: for wide tables that takes a tenth of the
    time of sorting whole rows.
    """
    ranks = np.zeros(len(table), dtype=np.int64)  # the number of rows that come before
    tied = np.arange(len(table))
    for column in table.T:
        values = column[tied]
        if len(tied) == 0 or values.min() == values.max():
            continue
        order = np.lexsort((values, ranks[tied]))
        tied, values = tied[order], values[order]
        before = ranks[tied]
        is_other = np.concatenate([[True], before[1:] != before[:-1]])
        is_new = is_other | np.concatenate([[True], values[1:] != values[:-1]])
        place = np.arange(len(tied))
        start, new_start = (np.maximum.accumulate(np.where(at, place, 0)) for at in (is_other, is_new))
        ranks[tied] = before + new_start - start
        has_equal = ~is_new | ~np.concatenate([is_new[1:], [True]])
        tied = tied[has_equal]
    return ranks


def _sample(
    table: np.ndarray, weights: np.ndarray, n: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return `n` random rows, or all rows if the target does not vary within the sample."""
    if n is None or len(table) <= n:
        return table, weights
    rows = np.sort(rng.choice(len(table), n, replace=False))
    if np.ptp(table[rows, -1]) == 0.0:
        return table, weights
    return table[rows], weights[rows]


def _data(table: np.ndarray, weights: np.ndarray) -> DataSet:
    return DataSet.from_arrays(table[:, :-1], table[:, -1], weights)


def _column_scales(X: np.ndarray) -> np.ndarray:
    """Return for each column 1, or the power of ten below its root mean square if that is extreme."""
    largest = np.abs(X).max(axis=0)
    largest[largest == 0.0] = 1.0
    size = largest * np.sqrt(np.mean((X / largest) ** 2, axis=0))  # no overflow
    size[size == 0.0] = 1.0
    scales = 10.0 ** np.clip(np.floor(np.log10(size)), -300, 300)  # their inverses are floats, too
    return np.where((size < _SMALLEST_SCALE) | (size > _LARGEST_SCALE), scales, 1.0)
