"""From the data of a fit to those of its search: equal rows once, a sample of many, scales near 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.population import DataSet

# Columns whose root mean square lies between these are searched as they are, so that sin(x1) stays
# what it is; others are divided by a power of ten.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-3, 1e3

# More rows than these say little more about a constant, and finishing a front takes a hundred fits.
_FITTED_ROWS = 2_000


class Prepared(NamedTuple):
    """The data of a fit."""

    data: DataSet  # every row the front is judged on, each once, as given
    fitted: DataSet  # the rows its constants are fitted on
    search: DataSet  # the rows of the search, columns divided by `column_scales`
    column_scales: np.ndarray  # (n_features,) float64, powers of ten
    held_out: DataSet | None  # rows kept from search and fit, to choose by


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
        Not negative, not all 0. A row with weight 2 is the same as two equal rows, exactly.
    rescale : bool
        Whether columns far from 1 are rescaled; for libraries whose constants can undo it.
    max_rows : int or None
        Rows of the search at most, drawn at random.
    held_out : float
        Share of the rows that are held out.
    scales : ndarray of shape (n_features,), optional
        Of an earlier search that is to go on, instead of those of these data.
    seed : int
        Seed of both samples of rows.

    Returns
    -------
    Prepared
    """
    table = np.column_stack([X, y])
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = np.flatnonzero(weights > 0.0)
    table, weights = table[used], weights[used]
    # By a power of two, which is exact: the largest weight is below 1, and no sum of them overflows.
    weights = np.ldexp(weights, -np.frexp(weights.max())[1])
    table, row_of = np.unique(table, axis=0, return_inverse=True)
    weights = np.bincount(row_of.ravel(), weights).astype(np.float64)
    rng = np.random.default_rng(seed)
    kept_out = None
    n_out = int(held_out * len(table))
    if n_out > 1:
        order = rng.permutation(len(table))
        kept_out = _data(table[order[:n_out]], weights[order[:n_out]])
        kept = np.sort(order[n_out:])
        table, weights = table[kept], weights[kept]
    if scales is None:
        scales = _column_scales(table[:, :-1]) if rescale else np.ones(table.shape[1] - 1)
    data = _data(table, weights)
    table, weights = _sample(table, weights, _FITTED_ROWS, rng)
    fitted = _data(table, weights)
    table, weights = _sample(table, weights, max_rows, rng)
    search = _data(table / np.append(scales, 1.0), weights)
    return Prepared(data, fitted, search, scales, kept_out)


def _sample(
    table: np.ndarray, weights: np.ndarray, n: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return `n` rows at random; all of them where the target does not vary within the sample."""
    if n is None or len(table) <= n:
        return table, weights
    rows = np.sort(rng.choice(len(table), n, replace=False))
    if np.ptp(table[rows, -1]) == 0.0:
        return table, weights
    return table[rows], weights[rows]


def _data(table: np.ndarray, weights: np.ndarray) -> DataSet:
    return DataSet.from_arrays(table[:, :-1], table[:, -1], weights)


def _column_scales(X: np.ndarray) -> np.ndarray:
    """Return 1, or the power of ten below the root mean square of a column."""
    largest = np.abs(X).max(axis=0)
    largest[largest == 0.0] = 1.0
    size = largest * np.sqrt(np.mean((X / largest) ** 2, axis=0))  # no overflow
    size[size == 0.0] = 1.0
    scales = 10.0 ** np.clip(np.floor(np.log10(size)), -300, 300)  # their inverses are floats too
    return np.where((size < _SMALLEST_SCALE) | (size > _LARGEST_SCALE), scales, 1.0)
