"""Products of smooth functions: Gaussian processes of different columns that are multiplied.

Given all factors but one, the target is linear in that one, so that it has a Gaussian process whose error on
rows left out is known; the factors take turns. Unlike a sum for the logarithm, this allows for factors that
change their sign, and for noise as large as the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from dgsr.finders.fewer_columns.gaussian_process import LINEAR, NOISE, Surrogate, left_out, squared_distances

# Turns that each factor has, lengths that are tried in the first one, relative to that of the surrogate, and
# lengths and noise in later ones, relative to those found before.
_TURNS, _LENGTHS, _NEAR, _NEAR_NOISE = 4, (0.5, 1.0, 2.0, 4.0), (0.5, 1.0, 2.0), (1e-2, 1.0)
# Steps that find the largest singular value of a matrix.
_STEPS = 12


class Parts(NamedTuple):
    """Functions of groups of columns whose sum or product is the target.

    Parameters
    ----------
    parts : ndarray of shape (n_groups, n_rows)
        The functions at the rows, but for a number that is added to each, or by which each is multiplied.
    constant : float
        The number that makes them the target: what is added to the sum, or a factor of the product.
    error, followed : float
        Errors on rows left out, and on the rows themselves, in standard deviations of the target.
    """

    parts: np.ndarray
    constant: float
    error: float
    followed: float


def fit_product(y: np.ndarray, surrogate: Surrogate, groups: Sequence[Sequence[int]]) -> Parts | None:
    """Return smooth functions of groups of columns whose product predicts rows left out best.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        The target.
    surrogate : Surrogate
        That of the target, without groups, which the factors begin with: with functions of the groups whose
        product is nearest to it on the grid of their rows.
    groups : sequence of sequence of int
        The columns of each factor.

    Returns
    -------
    Parts or None
        None if a covariance cannot be factorised. The error is the mean of those of the factors in their last
        turn, with the degrees of freedom of the other factors added to those of their own.
    """
    n_rows, scale = len(y), float(np.sqrt(np.mean(y**2)))
    parts = [_normal(nearest_product(surrogate.on_grid(np.asarray(group)))[0]) for group in groups]
    lines, distances = [], []
    for group in groups:
        Z = surrogate.Z[:, group]
        lines.append(LINEAR * (1.0 + Z @ Z.T))
        distances.append(squared_distances(Z) / len(group))
    tried = [[(surrogate.length * ratio, noise) for ratio in _LENGTHS for noise in NOISE]] * len(groups)
    n_free, errors = [0.0] * len(groups), [np.inf] * len(groups)
    for _ in range(_TURNS):
        for i in range(len(groups)):
            others = _normal(np.prod([part for k, part in enumerate(parts) if k != i], axis=0))
            best = None
            for length, noise in tried[i]:
                kernel = np.exp(distances[i] / (-2.0 * length**2)) + lines[i]
                fit = left_out(np.outer(others, others) * kernel, y / scale, noise)
                if fit is not None and (best is None or fit[0] < best[0]):
                    best = *fit, kernel, (length, noise)
            if best is None:
                return None
            errors[i], factor, n_free[i], kernel, (length, noise) = best
            parts[i] = _normal(kernel @ (others * lapack.dpotrs(factor, y / scale, lower=1)[0]))
            tried[i] = [(length * a, max(noise * b, NOISE[0])) for a in _NEAR for b in _NEAR_NOISE]
    product = np.prod(parts, axis=0)
    # The errors of a factor do not count the numbers that the others are free to choose.
    whole = [own * n_rows / max(n_rows - sum(n_free) + free, 1.0) for own, free in zip(errors, n_free)]
    error = float(np.mean(whole) * scale / y.std())
    constant = float(product @ y / (product @ product))
    followed = float(np.sqrt(np.mean((y - constant * product) ** 2)) / y.std())
    return Parts(np.array(parts), constant, error, followed)


def nearest_product(grid: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a left singular vector of the largest singular value, times that, and the square of that value.

    Power iteration converges at once where a matrix is nearly of rank one, and is a lower bound elsewhere.

    Parameters
    ----------
    grid : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    vector : ndarray of shape (n_rows,)
    square : float
    """
    right = grid[np.abs(grid).sum(axis=1).argmax()]
    for _ in range(_STEPS):
        right = grid.T @ (grid @ (right / np.linalg.norm(right)))
    left = grid @ (right / np.linalg.norm(right))
    return left, float(left @ left)


def _normal(values: np.ndarray) -> np.ndarray:
    """Return values with a root mean square of 1."""
    return values / np.sqrt(np.mean(values**2))
