"""Linear models of the columns, with which formulas on every front can be compared."""

from __future__ import annotations

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.finders.finder import Deadline, Found, Problem, never
from dgsr.finders.terms import Term, columns_of, orthogonal, population_of, sample_for

# Most columns of a model.
_MOST_COLUMNS = 5
# Iterations of the fit of the coefficients to all rows.
_STEPS = 10
# Smallest share of the sum of squares of a column that the selected columns leave unexplained.
_LEAST_NEW = 1e-10


def linear_models(problem: Problem, deadline: Deadline = never) -> Found:
    """Find a linear model without and one with an offset, by forward selection of the columns.

    Each step adds the column with the smallest leave-one-out error, and the selection ends when this error
    no longer falls. A library without ``add``, ``mul`` or ``const`` has no linear model.
    """
    data, library = problem.data, problem.library
    index, models = library.index, list[Term]()
    if {"add", "mul", "const"} <= index.keys() and not deadline():
        tokens = [token for (token,) in columns_of(problem.grammar)]
        sample = sample_for(len(tokens), data)
        values = sample.columns[np.array(tokens, dtype=np.int64) - library.first_variable]
        for with_offset in (False, True):
            taken = _forward(values * np.sqrt(sample.weights), sample, with_offset)
            terms: list[tuple[int, ...]] = [(index["mul"], index["const"], tokens[i]) for i in taken]
            terms += [(index["const"],)] * with_offset
            if taken:
                models.append((sum(terms, (index["add"],) * (len(terms) - 1)), (1.0,) * len(terms)))
    found = population_of(library, models)
    if models:
        fit_constants(found, data, scaled=False, n_iterations=_STEPS)
        found = found[np.isfinite(found.constants).all(axis=1) & problem.valid.whole(found)]
    return Found(found, are_complete=True)


def _forward(values: np.ndarray, data: DataSet, with_offset: bool) -> list[int]:
    """Return the numbers of the columns of a linear model, in the order of their selection.

    The leave-one-out residual of a row is its residual divided by 1 minus its leverage (Allen, 1974).
    """
    with np.errstate(all="ignore"):
        columns = values / np.sqrt((values**2).sum(axis=1, keepdims=True))  # (n_columns, n_rows)
        residuals, leverages = data.y * np.sqrt(data.weights), np.zeros(len(data.y))
        taken, best = list[int](), np.inf
        new = np.sqrt(data.weights / data.weights.sum()) if with_offset else np.zeros(len(data.y))
        while True:
            columns, residuals = orthogonal(columns, new), orthogonal(residuals, new)
            leverages = leverages + new**2
            sizes = (columns**2).sum(axis=1)
            apart = columns / np.sqrt(sizes)[:, None]
            left = residuals - (apart @ residuals)[:, None] * apart
            errors = ((left / (1.0 - leverages - apart**2)) ** 2).sum(axis=1)
            errors[~(np.isfinite(errors) & (sizes > _LEAST_NEW))] = np.inf
            at = int(np.argmin(errors)) if len(errors) else 0
            if len(taken) == _MOST_COLUMNS or not errors[at : at + 1] < best:
                return taken
            taken, best, new = [*taken, at], float(errors[at]), apart[at]
