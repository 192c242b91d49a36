"""Rates of change of measured time series: smoothed states, their derivatives, and the errors of both.

Every state of every run is a Gaussian process of time, with a Matern kernel of order 5/2 and white noise. Its
amplitude, its length and the noise maximise the marginal likelihood; scikit-learn does this. The derivative
of such a process is Gaussian, too, so that its mean and its errors at the rows follow from derivatives of the
kernel (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 9.4).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular
from scipy.ndimage import maximum_filter1d
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.utils import check_array, column_or_1d

from dgsr.data.checks import check_finite, check_numbers

# Fewest different times of a run: the kernel has three parameters, and the process a mean.
_FEWEST_TIMES = 5
# Most rows of a run. Seconds grow with their cube: a state of 100 rows takes 0.02 s, and one of 1,000 3 s.
_MOST_ROWS = 1_000
# Standard errors that a row may be off from what the others predict, before its errors and those of its
# neighbours are enlarged: by the square of the ratio. The errors of the first rate of competition are then
# 0.8 times what they say, and 2.3 times without (root mean square; benchmarks/_noise/rates.py, noise of 1%).
_EXPECTED = 3.0
# Variances of the noise that are considered, in squares of the range of the state. The lower one is what
# keeps the matrix of a run without noise regular.
_NOISE = 1e-10, 1.0
# Variances of the process that are considered, in the same unit.
_AMPLITUDE = 1e-4, 1e4
# Length of the process in time that the search for it begins with, as a share of the span of the run. From
# 0.01 to 1 all lead to the same errors of the rates (benchmarks/_noise/rates.py, with noise of 1 and 5%).
_FIRST_LENGTH = 0.1
# Longest length that is considered, in the same unit: a run is then nearly a parabola.
_LONGEST = 10.0


class Rates(NamedTuple):
    """Smoothed states of a time series and their rates of change, by row.

    The first four are DataFrames with the index and the column names of the states given if these are one,
    and arrays otherwise. Rows are in the order given.

    Parameters
    ----------
    states : ndarray or DataFrame of shape (n_rows, n_states)
        The states without their noise.
    derivatives : ndarray or DataFrame of shape (n_rows, n_states)
        Their derivatives by time.
    state_errors, errors : ndarray or DataFrame of shape (n_rows, n_states)
        Standard errors of the states, and of the derivatives.
    sample_weight : ndarray of shape (n_rows,)
        Weights for a fit of all derivatives: 0 in most rows, since neighbours share their errors, and in the
        others one over the mean of the squared errors, each as a multiple of its mean over the rows.
    """

    states: Any
    derivatives: Any
    state_errors: Any
    errors: Any
    sample_weight: np.ndarray


def rates(t: Any, X: Any, *, groups: Any = None) -> Rates:
    """Return the smoothed states of a time series and their derivatives, with the errors of both.

    From these, ``fit(states, derivatives)`` looks for the functions f of a system dx/dt = f(x).

    Parameters
    ----------
    t : array-like of shape (n_rows,)
        Times. They may be uneven, in any order, and repeated.
    X : array-like of shape (n_rows, n_states)
        The states measured at these times. The names of a DataFrame are kept.
    groups : array-like of shape (n_rows,), optional
        The run that each row belongs to, by numbers or names; by default all rows are of one run. Each run is
        smoothed by itself.

    Returns
    -------
    Rates
        `states`, `derivatives`, `state_errors` and `errors`, in the order of the rows.

    Raises
    ------
    ValueError
        If a time or a state is missing or no number, if lengths differ, or if a run has fewer than 5
        different times or more than 1,000 rows.

    Notes
    -----
    A state is taken for a Gaussian process of time with a Matern kernel of order 5/2, measured with normal
    noise of the same size in every row of a run. The errors are the standard deviations of that process given
    the measurements; they are largest at the ends of a run, and where times are far apart. They are enlarged
    where a row is more than three standard errors from what the other rows predict, as in a change that is
    over within a few rows.

    References
    ----------
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, MIT Press, 2006: equations 2.23 to
    2.26 (mean and variance), 4.17 (the kernel), 5.12 (leave-one-out), section 9.4 (derivatives).

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 5, 40)
    >>> decay = rates(t, np.exp(-t)[:, None])
    >>> bool(np.allclose(decay.derivatives, -decay.states, atol=0.01))
    True
    """
    check_numbers(t, "t")
    check_numbers(X, "X")
    times = column_or_1d(t, dtype=np.float64)
    table = check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X")
    check_finite(times, "t")
    check_finite(table, "X", getattr(X, "columns", ()))
    if len(times) != len(table):
        raise ValueError(f"t has {len(times)} rows and X has {len(table)}; give a time for each row.")
    of_rows, is_apart = np.empty((4, *table.shape)), np.zeros(len(table), dtype=bool)
    for rows in _runs(times, groups):
        numbers = []
        for j in range(table.shape[1]):
            of_rows[:, rows, j], number = _smoothed(times[rows], table[rows, j])
            numbers.append(number)
        # A row has one weight for all states, so that the state with the fewest independent errors decides.
        is_apart[rows[_spread(times[rows], min(numbers))]] = True
    states, derivatives, state_errors, errors = (_like(X, values) for values in of_rows)
    return Rates(states, derivatives, state_errors, errors, _weights(of_rows[3], is_apart))


def _like(X: Any, values: np.ndarray) -> Any:
    """Return values as a DataFrame with the index and the names of `X` if that is one."""
    if isinstance(X, pd.DataFrame):
        return pd.DataFrame(values, index=X.index, columns=X.columns)
    return values


def _runs(times: np.ndarray, groups: Any) -> Iterator[np.ndarray]:
    """Yield the numbers of the rows of every run; raises ValueError if a run cannot be smoothed."""
    labels = np.zeros(len(times)) if groups is None else np.asarray(groups)
    if labels.shape != times.shape:
        raise ValueError(
            f"groups has the shape {labels.shape} for {len(times)} rows; give the run of every row, "
            "a number or a name."
        )
    codes, names = pd.factorize(labels)
    if (codes < 0).any():
        raise ValueError(
            f"groups has no value in row {int(np.argmin(codes))} (counted from 0); give every row a run."
        )
    for code, name in enumerate(names):
        rows = np.flatnonzero(codes == code)
        run = "t" if groups is None else f"Run {name!s} of groups"
        n_times = len(np.unique(times[rows]))
        if n_times < _FEWEST_TIMES:
            raise ValueError(
                f"{run} has {n_times} different times, and a rate of change needs {_FEWEST_TIMES}; leave "
                "the run out, or measure it more often."
            )
        if len(rows) > _MOST_ROWS:
            raise ValueError(
                f"{run} has {len(rows)} rows, and a run may have {_MOST_ROWS}; take means of neighbouring "
                "rows, or cut the run into several by groups."
            )
        yield rows


def _smoothed(t: np.ndarray, x: np.ndarray) -> tuple[tuple[np.ndarray, ...], float]:
    """Return what is known of one state at the times of one run, and how many rows that amounts to.

    These are state, derivative, and the standard deviations of their errors, each of shape (n_rows,), and the
    number of rows with errors of the derivative that are independent.
    """
    span, mean, scale = np.ptp(t), x.mean(), np.ptp(x) or 1.0
    u = (t - t.min()) / span
    process = _fitted(u, (x - mean) / scale)
    covariance, slopes, of_slopes = _matern(u, process.kernel_.k1)
    state, errors = _given(process, covariance, covariance)
    slope, slope_errors = _given(process, slopes, of_slopes)
    values = mean + scale * state, scale / span * slope
    surprise = _surprise(u, process)
    deviations = scale * surprise * _deviations(errors), scale / span * surprise * _deviations(slope_errors)
    return (*values, *deviations), _effective_number(slope_errors)


def _fitted(u: np.ndarray, z: np.ndarray) -> GaussianProcessRegressor:
    """Return the process of the largest marginal likelihood of values `z` at times `u` between 0 and 1."""
    shortest = 0.5 * np.median(np.diff(np.unique(u)))
    kernel = ConstantKernel(1.0, _AMPLITUDE) * Matern(_FIRST_LENGTH, (shortest, _LONGEST), nu=2.5)
    process = GaussianProcessRegressor(kernel + WhiteKernel(1e-3, _NOISE))
    # A parameter at its bound is no fault: a run without noise has the least noise that is considered.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return process.fit(u[:, None], z)


def _matern(u: np.ndarray, kernel: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the covariances of a process, of its derivative with it, and of its derivative.

    Each is of shape (n_rows, n_rows); row i of the second is the derivative at ``u[i]``.
    """
    variance, length = kernel.k1.constant_value, kernel.k2.length_scale
    distance = np.sqrt(5.0) * (u[:, None] - u) / length
    size = np.abs(distance)
    decay = variance * np.exp(-size)
    slopes = -np.sqrt(5.0) / (3.0 * length) * distance * (1.0 + size) * decay
    of_slopes = 5.0 / (3.0 * length**2) * (1.0 + size - size**2) * decay
    return (1.0 + size + size**2 / 3.0) * decay, slopes, of_slopes


def _given(
    process: GaussianProcessRegressor, with_states: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance, given the measurements, of what has the covariances `own`.

    `with_states` are its covariances with the states at the rows.
    """
    half = solve_triangular(process.L_, with_states.T, lower=True)
    return with_states @ process.alpha_, own - half.T @ half


def _deviations(errors: np.ndarray) -> np.ndarray:
    """Return standard deviations from a covariance matrix."""
    variances = np.diag(errors)
    # Rounding may leave nothing of a variance, and a weight is one over it.
    return np.sqrt(np.maximum(variances, np.finfo(np.float64).eps * np.abs(variances).max()))


def _surprise(u: np.ndarray, process: GaussianProcessRegressor) -> np.ndarray:
    """Return what the errors of each row are multiplied by, 1 or more, shape (n_rows,).

    The process has one length for a whole run, so that its errors are too small where the state changes
    faster than elsewhere, or a measurement is wrong. There a row is far from what the others predict.

    Reference: Rasmussen and Williams, 2006, equation 5.12 (leave-one-out predictions).
    """
    inverse = solve_triangular(process.L_, np.eye(len(u)), lower=True)
    residuals = np.abs(process.alpha_) / np.sqrt(np.sum(inverse**2, axis=0))
    order, largest = np.argsort(u, kind="stable"), np.empty(len(u))
    largest[order] = maximum_filter1d(residuals[order], 3)
    return np.maximum(largest / _EXPECTED, 1.0) ** 2


def _effective_number(errors: np.ndarray) -> float:
    """Return how many independent errors have as large a sum of squares, with as much variation.

    Reference: Bretherton et al., 1999, "The effective number of spatial degrees of freedom of a time-varying
    field", Journal of Climate 12, equation 5.
    """
    return float(np.trace(errors) ** 2 / np.sum(errors**2))


def _spread(t: np.ndarray, number: float) -> np.ndarray:
    """Return the positions of every k-th row of a run in the order of time, about so many rows."""
    step = max(round(len(t) / max(number, _FEWEST_TIMES)), 1)
    return np.argsort(t, kind="stable")[(len(t) - 1) % step // 2 :: step]


def _weights(errors: np.ndarray, is_apart: np.ndarray) -> np.ndarray:
    """Return one over the mean of the squared errors of a row, each by its mean over rows; 0 if not apart."""
    squares = (errors / errors.max(axis=0)) ** 2  # of ratios, since squares of errors may exceed a float
    return np.where(is_apart, 1.0 / np.mean(squares / squares.mean(axis=0), axis=1), 0.0)
