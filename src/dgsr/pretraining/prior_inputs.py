"""Inputs of data sets of the prior, in compiled code: uniform ones, and tables as people have them."""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.random import choice, integer, log_uniform, normal, uniform

# Share of the data sets whose variables all have one domain.
_SHARED_DOMAIN = 0.75

# Shares of the kinds of columns: uniform in a domain, uniform and positive, log-uniform, normal.
_KINDS = np.array([0.40, 0.25, 0.25, 0.10])
# Shares of columns with few different values, and of those that follow the column before them.
_GRIDDED, _CORRELATED = 0.15, 0.10
# Share of the laws whose variables are measured in other units, and the largest power of ten of a base unit.
_OTHER_UNITS, _POWER_OF_TEN = 0.3, 4.0


@allocation_free
def draw_inputs(X, n_variables, domains, state):
    """Draw the first columns of X (n_samples, n_columns), each uniform in an interval."""
    shared = uniform(state) < _SHARED_DOMAIN
    domain = choice(state, domains[:, 2])
    for c in range(n_variables):
        if not shared:
            domain = choice(state, domains[:, 2])
        low, high = domains[domain, 0], domains[domain, 1]
        for j in range(len(X)):
            X[j, c] = low + (high - low) * uniform(state)


@compiled()
def draw_varied_inputs(X, n_variables, domains, state):
    """Draw the first columns of X (n_samples, n_columns), as the columns of people's tables are.

    A column is uniform in a domain, uniform between a and a*b, log-uniform over one to three decades, or
    normal; the columns of half of the tables are all of one kind. Some columns have few different values, and
    some follow the column before them; normal ones do neither.
    """
    n = len(X)
    place = np.empty(n)  # place of each row in the range of the column, from 0 to 1
    shared = uniform(state) < 0.5
    kind = choice(state, _KINDS)
    domain = choice(state, domains[:, 2])
    for c in range(n_variables):
        if not shared:
            kind = choice(state, _KINDS)
            domain = choice(state, domains[:, 2])
        follows = c > 0 and uniform(state) < _CORRELATED
        share = 0.3 + 0.6 * uniform(state) if follows else 0.0
        levels = 4 + integer(state, 17) if uniform(state) < _GRIDDED else 0
        for j in range(n):
            u = uniform(state)
            place[j] = share * place[j] + (1.0 - share) * u if follows else u
            if levels > 0:
                place[j] = math.floor(place[j] * levels) / (levels - 1.0)
        low, high = domains[domain, 0], domains[domain, 1]
        if kind == 1:
            low = log_uniform(state, 0.1, 10.0)
            high = low * log_uniform(state, 1.5, 10.0)
        elif kind == 2:
            low = log_uniform(state, 0.01, 3.0)
            high = low * log_uniform(state, 10.0, 1000.0)
        elif kind == 3:
            high = log_uniform(state, 0.3, 5.0)
        for j in range(n):
            if kind == 2:
                X[j, c] = low * math.exp(place[j] * math.log(high / low))
            elif kind == 3:
                X[j, c] = high * normal(state)
            else:
                X[j, c] = low + (high - low) * place[j]


@compiled()
def change_units(X, n_variables, units, state):
    """Measure the variables of some laws in other units, which only multiplies the law by a constant.

    `units` (n_columns, n_units) are the exponents of the base units of the columns.
    """
    if not np.any(units) or uniform(state) >= _OTHER_UNITS:
        return
    n_units = units.shape[1]
    powers = np.empty(n_units)
    for k in range(n_units):
        powers[k] = _POWER_OF_TEN * (2.0 * uniform(state) - 1.0)
    for c in range(n_variables):
        power = 0.0
        for k in range(n_units):
            power += powers[k] * units[c, k]
        factor = 10.0**power
        for j in range(len(X)):
            X[j, c] *= factor
