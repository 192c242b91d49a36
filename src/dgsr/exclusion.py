"""The functions that pre-training must never see: the benchmark problems, as values at fixed points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations

import numpy as np

from dgsr.prior import comparable, comparison_points
from dgsr.problems import list_sets, load_set

# Of the variables of one problem to those of a generator.
_MAX_ASSIGNMENTS = 5040


def problem_values(n_variables: int) -> tuple[np.ndarray, np.ndarray]:
    """Where functions are compared, and the values there of every benchmark problem that fits.

    Parameters
    ----------
    n_variables : int

    Returns
    -------
    points : ndarray of shape (n_variables, n_points)
        With more than 7 variables the last ones have all coordinates equal.
    values : ndarray of shape (n_functions, n_points)
        Each problem with at most `n_variables` variables, NaN where it is not to be compared.
        Under every assignment of its variables; where these are too many, under every order of the
        first variables, which are those the prior uses; of more than 7 variables, at the points with
        equal coordinates, where their order does not matter.
    """
    points = comparison_points(n_variables)
    n_apart = points.shape[1]
    if math.factorial(n_variables) > _MAX_ASSIGNMENTS:
        points = np.hstack([points, np.repeat(points[:1], n_variables, axis=0)])
    rows = []
    for problem in [problem for name in list_sets() for problem in load_set(name)]:
        d = problem.n_variables
        if d > n_variables:
            continue
        on_diagonal = math.factorial(d) > _MAX_ASSIGNMENTS
        choices: Iterable[tuple[int, ...]]
        if on_diagonal:
            choices = [tuple(range(d))]
        else:
            among = n_variables if math.perm(n_variables, d) <= _MAX_ASSIGNMENTS else d
            choices = permutations(range(among), d)
        for columns in choices:
            with np.errstate(all="ignore"):
                values = problem.target(points[list(columns)].T)
            if on_diagonal:
                values[:n_apart] = np.nan
            rows.append(values)
    return points, comparable(np.array(rows).reshape(len(rows), points.shape[1]))
