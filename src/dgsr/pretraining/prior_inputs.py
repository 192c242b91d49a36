"""Inputs of data sets of the prior, in compiled code: uniform ones, and tables like those of users."""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.random import choice, integer, log_uniform, normal, uniform

# Fractions of the kinds of varied columns: uniform in a domain, uniform and positive, log-uniform, normal.
_KINDS = np.array([0.40, 0.25, 0.25, 0.10])


@allocation_free
def draw_inputs(X, n_variables, prior, state):
    """Draw the first columns of X (n_samples, n_columns), each uniform in an interval."""
    domains = prior.domains
    shared = uniform(state) < prior.shared_domain
    domain = choice(state, domains[:, 2])
    for c in range(n_variables):
        if not shared:
            domain = choice(state, domains[:, 2])
        low, high = domains[domain, 0], domains[domain, 1]
        for j in range(len(X)):
            X[j, c] = low + (high - low) * uniform(state)


@compiled()
def draw_varied_inputs(X, n_variables, prior, state):
    """Draw the first columns of X (n_samples, n_columns), like the columns of users' tables.

    A column is uniform in a domain, uniform between a and a*b, log-uniform over one to three decades, or
    normal; in half of the tables all columns are of one kind. Some columns have few different values, and
    some are correlated with the column before them, except for normal columns.
    """
    n, domains = len(X), prior.domains
    place = np.empty(n)  # position of each row in the range of the column, from 0 to 1
    shared = uniform(state) < 0.5
    kind = choice(state, _KINDS)
    domain = choice(state, domains[:, 2])
    for c in range(n_variables):
        if not shared:
            kind = choice(state, _KINDS)
            domain = choice(state, domains[:, 2])
        follows = c > 0 and uniform(state) < prior.correlated
        share = 0.3 + 0.6 * uniform(state) if follows else 0.0
        levels = 4 + integer(state, 17) if uniform(state) < prior.gridded else 0
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
def change_units(X, n_variables, units, prior, state):
    """Convert the variables of some laws to other units, which multiplies the law by a constant.

    `units` (n_columns, n_units) are the exponents of the base units of the columns.
    """
    if not np.any(units) or uniform(state) >= prior.other_units:
        return
    n_units = units.shape[1]
    powers = np.empty(n_units)
    for k in range(n_units):
        powers[k] = prior.power_of_ten * (2.0 * uniform(state) - 1.0)
    for c in range(n_variables):
        power = 0.0
        for k in range(n_units):
            power += powers[k] * units[c, k]
        factor = 10.0**power
        for j in range(len(X)):
            X[j, c] *= factor
