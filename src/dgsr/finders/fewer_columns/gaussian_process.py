"""A smooth function through a table: a Gaussian process, its leave-one-out error, and its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

# Prior variance of mean and slopes, in variances of the target: large, so that linear trends cost little.
LINEAR = 100.0
#: Variances of the noise that are tried, in variances of the target.
NOISE = (1e-10, 1e-6, 1e-3, 1e-1)
# Length scales that are tried, in root mean square distances of the rows from their mean.
_LENGTHS = (1.5, 3.0, 6.0, 12.0)
#: Length scales that are tried near a known one, relative to it.
NEAR = (0.5, 1.0, 2.0)
# Variances of the noise that are tried near a known one, relative to it.
_NEAR_NOISE = (1e-3, 1.0, 1e3)
# Smallest relevance of a column, relative to the column in which the function is most curved.
_LEAST_RELEVANCE = 0.03


@dataclass(frozen=True, eq=False)
class Surrogate:
    """The mean of a Gaussian process given a table; see `fit_surrogate`."""

    Z: np.ndarray  # (n_rows, n_columns), columns standardised to a mean of 0 and a variance of 1
    spread: np.ndarray  # (n_columns,), standard deviations of the columns
    middle: float  # mean of the target
    size: float  # standard deviation of the target
    groups: tuple[np.ndarray, ...]  # the columns of each squared exponential
    relevance: np.ndarray  # (n_columns,), factors of the columns in distances
    error: float  # root mean square of the leave-one-out errors, in standard deviations of the target
    length: float  # length scale
    noise: float  # variance of the noise, in variances of the target
    kernels: tuple[np.ndarray, ...]  # (n_rows, n_rows), the squared exponential of each group
    weights: np.ndarray  # (n_rows,), coefficients of the covariances with the rows in the posterior mean

    @property
    def followed(self) -> float:
        """Root mean square of the residuals at the rows, in standard deviations of the target."""
        return self.noise * float(np.sqrt(np.mean(self.weights**2)))

    @cached_property
    def gradient(self) -> np.ndarray:
        """The gradient of the target at the rows, shape (n_rows, n_columns)."""
        slopes = np.empty_like(self.Z)  # of the standardised target, by the standardised columns
        for group, weighted in zip(self.groups, self._weighted):
            Z = self.Z[:, group]
            slopes[:, group] = (
                weighted @ Z - Z * weighted.sum(axis=1)[:, None]
            ) * self._inverse_squared_lengthscales(group)
        return (slopes + self._line) * (self.size / self.spread)

    @cached_property
    def parts(self) -> np.ndarray:
        """The functions of the groups at the rows, each with a mean of 0, shape (n_groups, n_rows)."""
        parts = [
            weighted.sum(axis=1) + self.Z[:, group] @ self._line[group]
            for group, weighted in zip(self.groups, self._weighted)
        ]
        return self.size * np.array([part - part.mean() for part in parts])

    def on_grid(self, group: np.ndarray) -> np.ndarray:
        """Return the function where some columns have the values of one row, and the others of another.

        The surrogate must be one without groups. The first index of the result, (n_rows, n_rows), is the row
        of the given columns.
        """
        others = np.setdiff1d(np.arange(self.Z.shape[1]), group)
        scaled = self.Z * np.sqrt(self._inverse_squared_lengthscales(self.groups[0]))
        own, rest = (np.exp(-0.5 * squared_distances(scaled[:, part])) for part in (group, others))
        grid = (own * self.weights) @ rest.T + LINEAR * self.weights.sum()
        grid += (self.Z[:, group] @ self._line[group])[:, None] + self.Z[:, others] @ self._line[others]
        return self.middle + self.size * grid

    @cached_property
    def _weighted(self) -> list[np.ndarray]:
        return [kernel * self.weights for kernel in self.kernels]

    @cached_property
    def _line(self) -> np.ndarray:
        """Slopes of the linear trend."""
        return LINEAR * (self.Z.T @ self.weights)

    def _inverse_squared_lengthscales(self, group: np.ndarray) -> np.ndarray:
        """Return the second derivatives, without the sign, of the exponent of a group's kernel."""
        return self.relevance[group] ** 2 / (len(group) * self.length**2)


def fit_surrogate(
    U: np.ndarray,
    target: np.ndarray,
    near: Surrogate | None = None,
    groups: Sequence[Sequence[int]] | None = None,
) -> Surrogate | None:
    """Return the Gaussian process with the smallest leave-one-out error, None if none can be fitted.

    The kernel is the sum of a squared exponential with a length scale for each column and a linear kernel. No
    column of `U`, (n_rows, n_columns), and no target is constant. With the surrogate of a similar table
    (`near`), length scales and noise are tried near its own. Each group of columns has a squared exponential
    of its own, so that the process is a sum of functions of the groups (Duvenaud, Nickisch and Rasmussen,
    2011); by default all columns are one group.

    References
    ----------
    Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, equations 2.23 and 5.12.
    """
    n_columns = U.shape[1]
    together = (np.arange(n_columns),) if groups is None else tuple(map(np.asarray, groups))
    lengths, noises = list(_LENGTHS), list(NOISE)
    if near is not None:
        lengths = [near.length * ratio for ratio in NEAR]
        noises = sorted({float(np.clip(near.noise * r, NOISE[0], NOISE[-1])) for r in _NEAR_NOISE})
    alike = _best(U, target, np.ones(n_columns), together, lengths, noises)
    if alike is None:
        return None
    bends = (alike.gradient * alike.spread).std(axis=0)
    relevance = np.maximum(bends / max(bends.max(), 1e-300), _LEAST_RELEVANCE)
    lengths = [alike.length * ratio for ratio in NEAR]
    own = _best(U, target, relevance / np.sqrt(np.mean(relevance**2)), together, lengths, noises)
    return alike if own is None or alike.error < own.error else own


def _best(
    U: np.ndarray,
    target: np.ndarray,
    relevance: np.ndarray,
    groups: tuple[np.ndarray, ...],
    lengths: list[float],
    noises: list[float],
) -> Surrogate | None:
    """Return the best process for given relevances of the columns."""
    spread, middle, size = U.std(axis=0), float(target.mean()), float(target.std())
    Z, values = (U - U.mean(axis=0)) / spread, (target - middle) / size
    distances = [squared_distances(Z[:, group] * relevance[group]) for group in groups]
    linear = LINEAR * (1.0 + Z @ Z.T)
    best: Surrogate | None = None
    for length in lengths:
        kernels = tuple(
            np.exp(squared / (-2.0 * len(group) * length**2)) for group, squared in zip(groups, distances)
        )
        kernel = linear + (kernels[0] if len(kernels) == 1 else np.sum(kernels, axis=0))
        for noise in noises:
            fit = left_out(kernel, values, noise)
            if fit is not None and (best is None or fit[0] < best.error):
                # The weights by the inverse of `left_out` are too inexact for the functions of groups.
                weights = lapack.dpotrs(fit[1], values, lower=1)[0]
                found = fit[0], length, noise, kernels, weights
                best = Surrogate(Z, spread, middle, size, groups, relevance, *found)
    return best


def left_out(kernel: np.ndarray, values: np.ndarray, noise: float) -> tuple[float, np.ndarray, float] | None:
    """Return the leave-one-out error, a factor of the covariance and the degrees of freedom, if any."""
    covariance = kernel.copy()
    covariance.flat[:: len(values) + 1] += noise
    factor, failed = lapack.dpotrf(covariance.T, lower=1, overwrite_a=1)
    if failed:
        return None
    inverse = lapack.dpotri(factor, lower=1)[0]  # its lower half
    diagonal = inverse.diagonal()
    error = float(np.sqrt(np.mean((blas.dsymv(1.0, inverse, values, lower=1) / diagonal) ** 2)))
    n_free = len(values) - noise * float(diagonal.sum())
    return (error, factor, n_free) if np.isfinite(error) else None


def squared_distances(Z: np.ndarray) -> np.ndarray:
    """Return the squared distances of all pairs of rows, shape (n_rows, n_rows)."""
    squares = np.sum(Z**2, axis=1)
    return np.maximum(squares[:, None] + squares - 2.0 * Z @ Z.T, 0.0)
