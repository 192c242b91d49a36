"""Fit the ``const`` tokens of programs to a data set as in the paper, by scipy's BFGS.

Each constant starts at 1.0, and BFGS minimises the NMSE with finite differences. This is slow, and serves as
the reference in tests of the compiled fits.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population

# Loss of a program whose NMSE is not finite, for the optimiser.
_INVALID = 1e100


def fit_constants(population: Population, data: DataSet) -> np.ndarray:
    """Write fitted constants into `population` and return the NMSE of every program.

    Parameters
    ----------
    population : Population
        Its `constants` are overwritten.
    data : DataSet

    Returns
    -------
    ndarray of shape (n_programs,)
        NMSE with the fitted constants.

    References
    ----------
    Holt, Qian, van der Schaar, ICLR 2023, appendices "Benchmark Algorithms" and "Local Optima".
    """
    population.constants[:] = 1.0
    is_constant = population.is_constant
    for i in np.flatnonzero(is_constant.any(axis=1)):
        n_constants = int(is_constant[i].sum())
        program = population[i : i + 1]  # a view: writing to its constants writes to the population

        def loss(values: np.ndarray, program: Population = program, n: int = n_constants) -> float:
            program.constants[0, :n] = values
            return float(min(program.nmse(data)[0], _INVALID))

        start = np.ones(n_constants)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = minimize(loss, start, method="BFGS")
        better = np.isfinite(found.x).all() and found.fun < loss(start)
        program.constants[0, :n_constants] = found.x if better else start
    return population.nmse(data)
