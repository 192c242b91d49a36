"""The constants of programs fitted as in the paper, by scipy's BFGS: the reference of the compiled fits."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import minimize


def fit_constants(population, data):
    """Write fitted constants into `population` and return the NMSE of every program.

    Each constant starts at 1.0, and BFGS minimises the NMSE with finite differences.

    References
    ----------
    Holt, Qian, van der Schaar, ICLR 2023, appendices "Benchmark Algorithms" and "Local Optima".
    """
    population.constants[:] = 1.0
    is_constant = population.is_constant
    for i in np.flatnonzero(is_constant.any(axis=1)):
        n_constants = int(is_constant[i].sum())
        program = population[i : i + 1]  # a view: writing to its constants writes to the population

        def loss(values, program=program, n=n_constants):
            program.constants[0, :n] = values
            return float(min(program.nmse(data)[0], 1e100))

        start = np.ones(n_constants)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = minimize(loss, start, method="BFGS")
        better = np.isfinite(found.x).all() and found.fun < loss(start)
        program.constants[0, :n_constants] = found.x if better else start
    return population.nmse(data)
