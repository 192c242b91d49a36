"""The uncertainty of a fitted formula: standard errors of constants and predictions, leave-one-out error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dgsr.data.dataset import DataSet, weighted_median
from dgsr.data.population import Population
from dgsr.data.rows import BLOCK
from dgsr.expressions.formulas.coordinates import are_origins
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import are_terms

#: Largest increase of n log(NMSE) for one constant that is made simpler: two standard deviations, squared.
SIGNIFICANT_DEVIANCE = 4.0
#: Residual, in robust standard deviations, beyond which Huber's loss is linear (Huber, 1964: 95% efficiency).
HUBER = 1.345
#: Robust standard deviation of normal noise, in median absolute residuals.
MAD_TO_SIGMA = 1.4826
#: Smallest value of 1 - leverage by which a residual is divided.
LEAST_LEFT = 1e-6
# Half the width of the kernel that estimates a density at 0, in standard deviations times n**(-1/5).
_KERNEL = 1.06
# Singular value, relative to the largest, below which a direction of constants has no effect on the fit.
_RANK = float(np.sqrt(np.finfo(np.float64).eps))
# Component of a constant in such a direction above which the constant counts as undetermined.
_PART = 1e-3
#: Step of the central differences, relative to the constant.
STEP = float(np.cbrt(np.finfo(np.float64).eps))
# Second difference in a step, as a share of the first, above which the step is made smaller.
_BEND = 0.03
# Factor by which such a step is divided.
_FINER = 16.0
# Most divisions of a step.
_MOST_FINER = 4


class Uncertainty(NamedTuple):
    """The uncertainty of a fitted formula, whose form is taken as certain."""

    noise: float  # standard deviation of y, or for relative errors of y/f; inf with fewer rows than constants
    covariance: np.ndarray  # (n_constants, n_constants) of the constants, by linearisation
    standard_errors: np.ndarray  # (n_constants,); inf if the data do not determine it, 0 if it is not fitted
    leave_one_out: float  # NMSE when every measurement is predicted from the others, by linearisation

    def of_predictions(self, expression: Expression, X: np.ndarray, relative: bool = False) -> np.ndarray:
        """Return the standard deviation of a new measurement around the formula's values, shape (n_rows,).

        It is the root of the variance of the noise plus that of the formula's value by its constants; inf
        with fewer rows than constants, nan where the formula is undefined. `X` has the shape (n_rows,
        n_features), and with `relative` the noise is in proportion to the formula.
        """
        X = np.asarray(X, dtype=np.float64)
        values = np.asarray(expression(X), dtype=np.float64)
        with np.errstate(all="ignore"):
            parts = [self._variances(expression, X[at : at + BLOCK]) for at in range(0, len(X), BLOCK)]
            variances = np.concatenate([np.zeros(0), *parts])
            noise = self.noise * (np.abs(values) if relative else 1.0)
            deviations = np.sqrt(noise**2 + np.maximum(variances, 0.0))
        deviations = np.where(np.isfinite(self.noise), deviations, np.inf)
        return np.where(np.isfinite(values), deviations, np.nan)

    def _variances(self, expression: Expression, X: np.ndarray) -> np.ndarray:
        """Return the variances of the formula's values by its constants, shape (n_rows,)."""
        groups = list(np.arange(len(expression.constants))[:, None])
        columns = np.ascontiguousarray(X.T)
        slopes = derivatives(expression.library, expression.tokens, expression.constants, groups, columns)
        return (slopes * (self.covariance @ slopes)).sum(axis=0)


def derivatives(
    library: Library,
    tokens: np.ndarray,
    constants: np.ndarray,
    groups: Sequence[np.ndarray],
    columns: np.ndarray,
) -> np.ndarray:
    """Return the derivatives of a program by groups of its constants, as central differences.

    Parameters
    ----------
    library : Library
    tokens : ndarray of shape (length,), int64
    constants : ndarray of shape (n_constants,)
    groups : sequence of ndarray
        Indices of the constants that change together.
    columns : ndarray of shape (n_features, n_rows)

    Returns
    -------
    ndarray of shape (n_groups, n_rows)
        0 where a value is not finite.
    """
    tokens = np.asarray(tokens, dtype=np.int64)
    steps = np.array([STEP * abs(constants[group[0]]) or STEP for group in groups])
    # Constant terms do not affect derivatives, but their rounding may exceed the change in a step.
    constants = np.where(are_terms(library, tokens), 0.0, constants)
    formula = Population.of_one(library, tokens, constants[None])
    slopes, bends = _differences(formula, groups, steps, columns)
    bent = np.flatnonzero(bends > _BEND)
    for _ in range(_MOST_FINER):
        if not len(bent):
            break
        steps[bent] /= _FINER
        finer, its_bends = _differences(formula, [groups[i] for i in bent.tolist()], steps[bent], columns)
        # In steps that are too small rounding dominates the second difference.
        is_better = its_bends < bends[bent]
        slopes[bent[is_better]], bends[bent[is_better]] = finer[is_better], its_bends[is_better]
        bent = bent[is_better & (its_bends > _BEND)]
    return slopes


def _differences(
    formula: Population, groups: Sequence[np.ndarray], steps: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of one formula, (n_groups, n_rows), and relative second differences, (n_groups,)."""
    moved = np.tile(formula.constants, (2 * len(groups) + 1, 1))
    for i, group in enumerate(groups):
        moved[2 * i, group] += steps[i]
        moved[2 * i + 1, group] -= steps[i]
    with np.errstate(all="ignore"):
        values = Population.of_one(formula.library, formula.tokens[0], moved).predict(columns.T)
        above, below = values[:-1:2], values[1::2]
        change, bend = above - below, above + below - 2.0 * values[-1]
        slopes = change / (2.0 * steps[:, None])
        for array in (change, bend, slopes):
            array[~np.isfinite(array)] = 0.0
        whole = np.abs(change).sum(axis=1)
        bends = np.abs(bend).sum(axis=1) / np.where(whole > 0.0, whole, np.inf)
    return slopes, bends


class Directions(NamedTuple):
    """The singular value decomposition of a Jacobian whose columns are first scaled to length 1."""

    norms: np.ndarray  # (k,): lengths of the columns; 0 for a constant without effect
    rows: np.ndarray  # (n_rows, rank): orthonormal basis of the changes of the values by the constants
    inverse: np.ndarray  # (k, rank): the covariance of the constants is inverse @ inverse.T
    is_lost: np.ndarray  # (k,) bool: whether the data do not determine the constant

    @classmethod
    def of(cls, jacobian: np.ndarray) -> Directions:
        """Decompose a Jacobian of shape (n_rows, k)."""
        jacobian, exponents = _without_overflow(jacobian)
        lengths = np.sqrt((jacobian**2).sum(axis=0))
        divisors = np.where(lengths > 0.0, lengths, 1.0)
        rows, singular, directions = np.linalg.svd(jacobian / divisors, full_matrices=False)
        is_seen = singular > _RANK * singular.max(initial=0.0)
        inverse = np.ldexp(directions[is_seen] / singular[is_seen, None] / divisors, -exponents).T
        is_lost = (np.abs(directions[~is_seen]) > _PART).any(axis=0) | (lengths == 0.0)
        return cls(np.ldexp(lengths, exponents), rows[:, is_seen], inverse, is_lost)

    @property
    def leverages(self) -> np.ndarray:
        """Leverages of the rows, to first order the share of a target in its fitted value, (n_rows,)."""
        return (self.rows**2).sum(axis=1)

    def leave_one_out(self, residuals: np.ndarray, data: DataSet) -> float:
        """Return the leave-one-out NMSE for weighted residuals of shape (n_rows,).

        The part of the residuals that is due to rounding constants after the fit does not depend on the row
        that is left out. The NMSE is infinite if some constant is not determined without a row.
        """
        others = 1.0 - self.leverages / data.counts  # of the other measurements
        others[others < len(others) * np.finfo(np.float64).eps] = 0.0
        of_rounding = self.rows @ (self.rows.T @ residuals)
        left_out = (residuals - of_rounding) / others + of_rounding
        nmse = float(np.mean(left_out**2) / data.variance)
        return nmse if np.isfinite(nmse) else np.inf


def _without_overflow(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return columns (n_rows, k) divided by powers of two so that squares are finite, and their exponents."""
    largest = np.finfo(np.float64).max
    columns = np.clip(columns, -largest, largest)  # a weighted slope may be infinite
    exponents = np.maximum(np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1], 0)
    return np.ldexp(columns, -exponents), exponents


def uncertainty_of(
    expression: Expression,
    data: DataSet,
    n_effective: float | None = None,
    relative: bool = False,
    groups: Sequence[np.ndarray] | None = None,
) -> Uncertainty:
    """Return the uncertainty of a formula whose constants were fitted to `data`.

    Parameters
    ----------
    expression : Expression
    data : DataSet
    n_effective : float, optional
        Effective number of rows of the fit, if `data` are a sample of them; by default that of `data`.
    relative : bool
        Whether the weights of the rows are inverse squares of their targets.
    groups : sequence of ndarray, optional
        Indices of the constants that are one fitted constant each; others are not fitted. By default every
        constant is one.

    References
    ----------
    Seber and Wild, Nonlinear Regression, 1989, section 2.1 (linearisation); Allen, 1974 (the leave-one-out
    residual r / (1 - h), where h is the leverage).
    """
    constants = np.asarray(expression.constants, dtype=np.float64)
    n = data.n_effective
    if groups is None:
        groups = list(np.flatnonzero(~are_origins(expression, data.columns))[:, None])
    root = np.sqrt(data.weights)
    with np.errstate(all="ignore"):
        residuals = (expression(data.columns.T) - data.y) * root
        slopes = derivatives(expression.library, expression.tokens, constants, groups, data.columns)
        apart = Directions.of((slopes * root).T)
        # The 1 of a/(1 + b*exp(c*x)) is not fitted, since a and b can replace it.
        first = np.array([group[0] for group in groups], dtype=np.int64)
        while len(ones := np.flatnonzero(apart.is_lost & (constants[first] == 1.0))):
            groups = [*groups[: ones[0]], *groups[ones[0] + 1 :]]
            first, slopes = np.delete(first, ones[0]), np.delete(slopes, ones[0], axis=0)
            apart = Directions.of((slopes * root).T)
        k = len(groups)
        copies = np.zeros((len(constants), k))
        for i, group in enumerate(groups):
            copies[group, i] = 1.0
        leave_one_out = apart.leave_one_out(residuals, data) if data.n_independent > k else np.inf
        mean_square = max(float(np.mean(residuals**2)), data.rounding_nmse * data.variance)
        noise = mean_square * n / (n - k) if data.n_independent > k else np.inf
        # The information of `data` is scaled to the effective number of rows of the fit.
        information = (n_effective or n) / len(data.y)
        is_fitted = copies.any(axis=1)
        inverse = (copies @ apart.inverse)[is_fitted]
        covariance = np.zeros((len(constants), len(constants)))
        covariance[np.ix_(is_fitted, is_fitted)] = inverse @ inverse.T * (noise / information)
        if relative:  # relative to the target
            noise /= float(np.mean(data.weights * data.y**2))
    errors = np.sqrt(np.diag(covariance))
    errors[copies[:, apart.is_lost].any(axis=1)] = np.inf
    return Uncertainty(float(np.sqrt(noise)), covariance, errors, leave_one_out)


def robust_uncertainty_of(
    expression: Expression,
    data: DataSet,
    weighted: DataSet,
    loss: str,
    n_effective: float | None = None,
    groups: Sequence[np.ndarray] | None = None,
) -> Uncertainty:
    """Return the uncertainty of a formula whose constants minimise a loss that is robust to outliers.

    In the covariance of least squares the variance of the noise is replaced by mean(psi**2) / mean(psi')**2,
    where psi is the derivative of the loss (Huber, Robust Statistics, 1981, section 7.6). For absolute errors
    mean(psi') is twice the density of the residuals at 0, which is estimated from residuals near 0 (Powell,
    1991). `noise` is the standard deviation of normal noise with the same median absolute residual.

    Parameters
    ----------
    expression : Expression
    data : DataSet
        Rows with the weights of the measurements alone.
    weighted : DataSet
        The same rows, weighted for the loss, too; the leave-one-out error is that of these.
    loss : {"absolute", "huber"}
    n_effective : float, optional
        See `uncertainty_of`.
    groups : sequence of ndarray, optional
        See `uncertainty_of`.
    """
    found = uncertainty_of(expression, weighted, n_effective, groups=groups)
    by_squares = uncertainty_of(expression, data, n_effective, groups=groups)
    errors = by_squares.standard_errors
    n, k = data.n_effective, np.count_nonzero(errors if groups is None else errors[[g[0] for g in groups]])
    if not np.isfinite(by_squares.noise):
        return found
    with np.errstate(all="ignore"):
        sizes = np.abs(expression(data.columns.T) - data.y)
    # A fit of k constants can make k residuals 0, which do not measure the noise.
    order = np.argsort(sizes)
    sizes, upto = sizes[order], np.cumsum(data.weights[order])
    weights = np.diff(np.maximum(upto - upto[-1] * k / n, 0.0), prepend=0.0)
    least = np.sqrt(data.rounding_nmse * data.variance)
    deviation = max(MAD_TO_SIGMA * weighted_median(sizes, weights), least)
    if loss == "huber":
        limit = HUBER * deviation
        square = np.average(np.minimum(sizes, limit) ** 2, weights=weights)
        slope = np.average(sizes <= limit, weights=weights)
    else:
        width = _KERNEL * deviation * n**-0.2
        square, slope = 1.0, max(np.average(sizes <= width, weights=weights), 1.0 / n) / width
    scale = float(np.sqrt(square * n / (n - k)) / (slope * by_squares.noise))
    return Uncertainty(deviation, by_squares.covariance * scale**2, errors * scale, found.leave_one_out)


def linear_leave_one_out(data: DataSet) -> float:
    """Return the leave-one-out NMSE of a linear model of all columns, the baseline for formulas.

    It is `inf` if there are fewer than two rows for each constant.
    """
    n_constants = len(data.columns) + 1
    if data.n_effective < 2 * n_constants:
        return np.inf
    root = np.sqrt(data.weights)
    columns = _without_overflow(data.columns.T)[0].T  # (n_features, n_rows)
    with np.errstate(all="ignore"):
        centred = columns - np.mean(data.weights * columns, axis=1, keepdims=True)
        apart = Directions.of((np.vstack([centred, np.ones(len(data.y))]) * root).T)
        target = data.y * root
        return apart.leave_one_out(target - apart.rows @ (apart.rows.T @ target), data)
