"""Products of smooth functions, whose factors are Gaussian processes of different columns.

If all factors but one are fixed, the target is linear in this factor, which is then fitted as a Gaussian
process with a leave-one-out error in closed form; the factors are fitted in turn. Unlike a sum of functions
for the logarithm, this allows factors that change sign, and noise as large as the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from dgsr.finders.fewer_columns.gaussian_process import (
    LINEAR,
    NEAR,
    NOISE,
    Surrogate,
    left_out,
    squared_distances,
)

# Number of times that each factor is fitted.
_TURNS = 4
# Length scales that are tried in the first fit, relative to the length scale of the surrogate.
_LENGTHS = (0.5, 1.0, 2.0, 4.0)
# Variances of the noise that are tried in later fits, relative to the previous best one.
_NEAR_NOISE = (1e-2, 1.0)
# Power iterations for the largest singular value of a matrix.
_STEPS = 12


class Parts(NamedTuple):
    """Functions of groups of columns whose sum or product is the target, with errors in its deviations."""

    parts: np.ndarray  # (n_groups, n_rows), each up to a constant, or up to a factor for products
    constant: float  # it is added to the sum, or multiplies the product, to give the target
    error: float  # leave-one-out error
    followed: float  # root mean square of the residuals


def fit_product(y: np.ndarray, surrogate: Surrogate, groups: Sequence[Sequence[int]]) -> Parts | None:
    """Return smooth functions of groups of columns whose product has the smallest leave-one-out error.

    The factors start from the functions of each group whose product is nearest, on the grid of the rows, to
    the surrogate of the target `y` without groups. The error is the mean of the errors of the factors in
    their last fits, each corrected for the degrees of freedom of the other factors. The result is None if a
    covariance cannot be factorised.
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
            tried[i] = [(length * a, max(noise * b, NOISE[0])) for a in NEAR for b in _NEAR_NOISE]
    product = np.prod(parts, axis=0)
    # The error of a factor does not include the degrees of freedom of the other factors.
    whole = [own * n_rows / max(n_rows - sum(n_free) + free, 1.0) for own, free in zip(errors, n_free)]
    error = float(np.mean(whole) * scale / y.std())
    constant = float(product @ y / (product @ product))
    followed = float(np.sqrt(np.mean((y - constant * product) ** 2)) / y.std())
    return Parts(np.array(parts), constant, error, followed)


def nearest_product(grid: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the left singular vector times the largest singular value, and the square of this value.

    Power iteration converges at once if a matrix is nearly of rank one; otherwise it gives a lower bound.
    """
    right = grid[np.abs(grid).sum(axis=1).argmax()]
    for _ in range(_STEPS):
        right = grid.T @ (grid @ (right / np.linalg.norm(right)))
    left = grid @ (right / np.linalg.norm(right))
    return left, float(left @ left)


def _normal(values: np.ndarray) -> np.ndarray:
    """Return values scaled to a root mean square of 1."""
    return values / np.sqrt(np.mean(values**2))
