"""Fit the ``const`` tokens of programs to a data set: compiled Levenberg-Marquardt and linear scaling."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.constants.levenberg_marquardt import fit_programs
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.kernels.random import new_state

# Number of evenly spaced rows on which candidates for second starts are compared.
_FEW = 24


class Fit(NamedTuple):
    """Results of fits, with one entry per program."""

    nmse: np.ndarray  # (n_programs,): NMSE of slope * f + intercept; inf if f is not finite
    slope: np.ndarray  # (n_programs,)
    intercept: np.ndarray  # (n_programs,)


def fit_constants(
    population: Population,
    data: DataSet,
    *,
    scaled: bool = True,
    free: np.ndarray | None = None,
    ties: np.ndarray | None = None,
    n_iterations: int = 20,
    second_start: bool = False,
    precision: float = 1e-6,
    state: np.ndarray | None = None,
) -> Fit:
    """Fit the constants of every program, and write them into `population`.

    Parameters
    ----------
    population : Population
        Its `constants` are the starting points, and receive the result if that is better.
    data : DataSet
    scaled : bool
        Whether ``slope * f(x) + intercept`` is fitted around each program f, in closed form; otherwise f
        itself. In data with groups every group has its own slope and intercept, which are not returned.
    free : ndarray of shape (n_programs, max_constants), bool, optional
        Which constants are fitted; all by default.
    ties : ndarray of shape (n_programs, max_constants), int64, optional
        Free constants of a program with the same number are one constant, and begin at the same value; those
        with a negative number are not fitted. By default every constant is one of its own.
    n_iterations : int
        Most steps from a starting point; with 0 the constants are not changed.
    second_start : bool
        Whether each program is also fitted from a second starting point: the best, on a few rows, of the
        paper's 1.0 for every constant and of 32 random points of either sign between 0.1 and 10.
    precision : float
        Share of the NMSE; a fit stops when a step lowers the NMSE by less.
    state : ndarray of 4 uint64, optional
        State of the random generator for second starts; by default the same for every call.

    References
    ----------
    Keijzer, EuroGP 2003 (linear scaling); Holt, Qian, van der Schaar, ICLR 2023, appendix "Local Optima" (the
    start at 1.0).
    """
    shape = population.constants.shape
    few = data.evenly_spaced(_FEW) if second_start else data
    result = np.empty((len(population), 3))
    fit_programs(
        population.arrays,
        _slots(np.ones(shape, dtype=np.bool_) if free is None else np.asarray(free, dtype=np.bool_), ties),
        population.library.table,
        *(_centred(part) if scaled else part for part in (data, few)),
        scaled,
        n_iterations,
        second_start,
        precision,
        new_state(0) if state is None else state,
        result,
    )
    intercept = result[:, 2] + data.mean if scaled else result[:, 2]
    with np.errstate(over="ignore"):
        return Fit(result[:, 0] / (len(data.y) * data.variance), result[:, 1], intercept)


def _centred(data: DataSet) -> DataSet:
    """Return the data with y measured from its mean, or from that of its group."""
    if len(data.groups) == 0:
        return data._replace(y=data.y - data.mean, mean=0.0)
    sums, totals = (np.bincount(data.groups, w) for w in (data.weights * data.y, data.weights))
    means = sums / np.where(totals > 0.0, totals, 1.0)
    return data._replace(y=data.y - means[data.groups], mean=0.0)


def _slots(free: np.ndarray, ties: np.ndarray | None) -> np.ndarray:
    """Return the number of the unknown that each constant is, counted in their order, or -1 if it is fixed.

    The shapes are (n_programs, max_constants).
    """
    if ties is None:
        return np.where(free, np.cumsum(free, axis=1) - 1, -1)
    slots = np.full(free.shape, -1, dtype=np.int64)
    n_unknowns = np.zeros(len(free), dtype=np.int64)
    for p in range(free.shape[1]):
        is_new = free[:, p] & (ties[:, p] >= 0)
        for q in range(p):
            is_copy = is_new & (ties[:, q] == ties[:, p]) & (slots[:, q] >= 0)
            slots[is_copy, p] = slots[is_copy, q]
            is_new &= ~is_copy
        slots[is_new, p] = n_unknowns[is_new]
        n_unknowns += is_new
    return slots
