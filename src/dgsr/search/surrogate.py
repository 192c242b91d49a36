"""A smooth function through a table: a Gaussian process, its error on rows left out, and its gradient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

# Variance of the mean and of the slopes, in that of the target: much, so that a straight line costs nothing.
_LINEAR = 100.0
# Length scales, in root mean squares of the distances from the middle; variances of the noise, in that of y.
_LENGTHS = (1.5, 3.0, 6.0, 12.0)
_NOISE = (1e-10, 1e-6, 1e-3, 1e-1)
# Neighbours of a length that are tried once one is known, and of a variance.
_NEAR, _NEAR_NOISE = (0.5, 1.0, 2.0), (1e-3, 1.0, 1e3)
# Least relevance of a column, relative to the one in which the function bends the most.
_LEAST_RELEVANCE = 0.03


class Surrogate(NamedTuple):
    """The mean of a Gaussian process given a table; see `fit_surrogate`."""

    error: float  # root mean square of the errors on rows left out, in standard deviations of the target
    gradient: np.ndarray  # (n_rows, n_columns) of the target, at the rows
    length: float
    noise: float


def fit_surrogate(U: np.ndarray, target: np.ndarray, near: Surrogate | None = None) -> Surrogate | None:
    """Return the Gaussian process that predicts rows left out best.

    The kernel is a squared exponential, whose length scale differs by column, and a straight line.

    Parameters
    ----------
    U : ndarray of shape (n_rows, n_columns)
        Columns that vary.
    target : ndarray of shape (n_rows,)
        What varies with them.
    near : Surrogate, optional
        One of a similar table, to look for lengths and noise near its own.

    Returns
    -------
    Surrogate or None
        None if no covariance can be factorised.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 2.23 and 5.12.
    """
    spread, size = U.std(axis=0), float(target.std())
    Z, values = (U - U.mean(axis=0)) / spread, (target - target.mean()) / size
    lengths, noises = list(_LENGTHS), list(_NOISE)
    if near is not None:
        lengths = [near.length * ratio for ratio in _NEAR]
        noises = sorted({float(np.clip(near.noise * r, _NOISE[0], _NOISE[-1])) for r in _NEAR_NOISE})
    alike = _best(Z, values, np.ones(Z.shape[1]), lengths, noises)
    if alike is None:
        return None
    bends = np.sqrt(np.mean((alike.gradient - alike.gradient.mean(axis=0)) ** 2, axis=0))
    relevance = np.maximum(bends / max(bends.max(), 1e-300), _LEAST_RELEVANCE)
    lengths = [alike.length * ratio for ratio in _NEAR]
    own = _best(Z, values, relevance / np.sqrt(np.mean(relevance**2)), lengths, noises)
    best = alike if own is None or alike.error < own.error else own
    return best._replace(gradient=best.gradient * (size / spread))


def _best(
    Z: np.ndarray,
    values: np.ndarray,
    relevance: np.ndarray,
    lengths: list[float],
    noises: list[float],
) -> Surrogate | None:
    """Return the best process with columns of given relevance, its gradient that of `values` by Z."""
    n, n_columns = Z.shape
    scaled = Z * relevance
    squares = np.sum(scaled**2, axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * scaled @ scaled.T, 0.0)
    linear = _LINEAR * (1.0 + Z @ Z.T)
    found = None
    for length in lengths:
        kernel = np.exp(distances / (-2.0 * n_columns * length**2))
        for noise in noises:
            factor, failed = lapack.dpotrf(kernel + linear + noise * np.eye(n), lower=1)
            if failed:
                continue
            inverse = np.tril(lapack.dpotri(factor, lower=1)[0])
            inverse += np.tril(inverse, -1).T
            weights = inverse @ values
            error = float(np.sqrt(np.mean((weights / np.diag(inverse)) ** 2)))
            if np.isfinite(error) and (found is None or error < found[0]):
                found = error, length, noise, kernel * weights, weights
    if found is None:
        return None
    error, length, noise, weighted, weights = found
    differences = weighted @ Z - Z * weighted.sum(axis=1)[:, None]
    gradient = differences * relevance**2 / (n_columns * length**2) + _LINEAR * (Z.T @ weights)
    return Surrogate(error, gradient, length, noise)
