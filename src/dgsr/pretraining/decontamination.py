"""Decontamination: functions excluded from pre-training, which are benchmark problems and held-out equations.

A function is identified by its values at fixed points, and in a library with constants also by its skeleton:
the tokens of its canonical form without the values of constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice, permutations
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.trees import Tree, rename, rewritten
from dgsr.kernels.canonical import skeletons
from dgsr.pretraining.prior_kernel import scale_away
from dgsr.pretraining.rewriting import rewriting
from dgsr.problems import list_sets, load_set
from dgsr.problems.problem import Problem

# Most assignments of the variables of a problem to those of a generator that are compared: 7 factorial.
_MAX_ASSIGNMENTS = 5040


def comparison_points(n_variables: int) -> np.ndarray:
    """Return the fixed points at which functions are compared, shape (n_variables, 6), between 1 and 3."""
    return np.random.default_rng(20230501).uniform(1.0, 3.0, (n_variables, 6))


def comparable(values: np.ndarray, linear_scaling: bool = False) -> np.ndarray:
    """Return the distinct rows of `values` (n_functions, n_points) that identify a function.

    Values that are not finite become NaN, which is not compared; two others must remain. With
    `linear_scaling`, functions that differ only in scale and offset are treated as the same: the first two
    values become 0 and 1.
    """
    if linear_scaling:
        values = np.array(values, dtype=np.float64)
        for row in values:
            scale_away(row)
    least = 4 if linear_scaling else 2
    values = np.where(np.isfinite(values), values, np.inf)  # inf, since NaN does not equal itself
    rows = np.unique(values[np.isfinite(values).sum(axis=1) >= least], axis=0)
    return np.where(np.isfinite(rows), rows, np.nan)


class Decontamination(NamedTuple):
    """Functions that must not be drawn, sorted by `leave_out` for a binary search."""

    points: np.ndarray  # (n_variables, n_points): points at which functions are compared
    values: np.ndarray  # (n_functions, n_points): values in the form of `comparable`
    skeletons: np.ndarray  # ascending hashes
    key: int  # index of the point whose values sort the first `n_ordered` rows; other rows have NaN there
    n_ordered: int


def leave_out(points: np.ndarray, values: np.ndarray, skeletons: Iterable[int] = ()) -> Decontamination:
    """Return functions that must not be drawn.

    `points` (n_variables, n_points) are those at which functions are compared, `values` (n_functions,
    n_points) the values there in the form of `comparable`, and `skeletons` hashes of skeletons that must not
    be drawn either, none by default; both in any order.
    """
    # The key is the point with the most distinct values; with linear scaling the first two have one each.
    n_values = [len(np.unique(column[np.isfinite(column)])) for column in values.T]
    key = int(np.argmax(n_values))
    ordered = values[np.argsort(values[:, key], kind="stable")]  # NaN come last
    hashes = np.array(sorted(skeletons), dtype=np.uint64)
    return Decontamination(points, ordered, hashes, key, int(np.isfinite(ordered[:, key]).sum()))


def nothing_held_out(n_variables: int) -> Decontamination:
    """Return a `Decontamination` without functions."""
    points = comparison_points(n_variables)
    return leave_out(points, np.empty((0, points.shape[1])))


def benchmark_decontamination(
    library: Library, constraints: Constraints | None = None, sets: Sequence[str] | None = None
) -> Decontamination:
    """Return the benchmark problems, as functions that equations of `library` must not be.

    These are the values of every problem with at most as many variables as `library`, and in a library with
    constants its skeleton. With linear scaling values are compared up to scale and offset.

    Parameters
    ----------
    library : Library
    constraints : Constraints, optional
        Constraints of the generator's programs.
    sets : sequence of str, optional
        Problem sets to exclude; all by default. The card of a generator lists those of its training.
    """
    grammar = (constraints or Constraints()).grammar(library)
    points, values = _problem_values(library.n_variables, sets)
    known = problem_skeletons(library, grammar.linear_scaling, sets) if library.has_constants else ()
    return leave_out(points, comparable(values, grammar.linear_scaling), known)


def _problems(n_variables: int, sets: Sequence[str] | None) -> list[Problem]:
    """Return the problems of at most `n_variables` variables in the given sets, or in all."""
    names = list_sets() if sets is None else sets
    problems = [problem for name in names for problem in load_set(name)]
    return [problem for problem in problems if problem.n_variables <= n_variables]


def _problem_values(n_variables: int, sets: Sequence[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return points, and the values at them of all benchmark problems with at most `n_variables` variables.

    A problem has a row for every assignment of its variables to the `n_variables`; where these are too many,
    for every order of the first variables, which the prior uses. A problem of more than 7 variables has one
    row, which is NaN except at the last points: all coordinates of these are equal, so that the order of
    variables does not matter.
    """
    points = comparison_points(n_variables)
    n_apart = points.shape[1]
    if math.factorial(n_variables) > _MAX_ASSIGNMENTS:
        points = np.hstack([points, np.repeat(points[:1], n_variables, axis=0)])
    rows = []
    for problem in _problems(n_variables, sets):
        d = problem.n_variables
        on_diagonal = math.factorial(d) > _MAX_ASSIGNMENTS
        among = n_variables if math.perm(n_variables, d) <= _MAX_ASSIGNMENTS else d
        for columns in islice(permutations(range(among), d), 1 if on_diagonal else None):
            with np.errstate(all="ignore"):
                values = problem.target(points[list(columns)].T)
            # A quotient by a difference of variables is undefined where all are equal.
            values[slice(n_apart) if on_diagonal else slice(n_apart, None)] = np.nan
            rows.append(values)
    return points, np.array(rows).reshape(len(rows), points.shape[1])


def problem_skeletons(library: Library, linear_scaling: bool, sets: Sequence[str] | None = None) -> set[int]:
    """Return the skeletons of the benchmark problems that `library`, which has constants, can express.

    A problem has a skeleton for every order of its variables, which are the first ones as in the prior; with
    more than 7 variables, only for the order in which it is stated. Fourth and fifth powers are written with
    and without the token ``square``.
    """
    found: set[int] = set()
    for problem in _problems(library.n_variables, sets):
        d = problem.n_variables
        truth = rename(problem.truth, {name: f"x{i + 1}" for i, name in enumerate(problem.variable_names)})
        may_permute = math.factorial(d) <= _MAX_ASSIGNMENTS
        orders = list(permutations(range(d))) if may_permute else [tuple(range(d))]
        squared = rewritten(truth, _with_squares) if "square" in library.index else truth
        for tree in (truth, squared):
            try:
                tokens, constants = to_program(tree, library)
            except ValueError:  # the library lacks an operator of the problem
                continue
            found |= skeletons_of_orders(tokens, constants, np.array(orders), library, linear_scaling)
    return found


def skeletons_of_orders(
    tokens: np.ndarray, constants: np.ndarray, orders: np.ndarray, library: Library, linear_scaling: bool
) -> set[int]:
    """Return the skeletons of one program for some orders of its variables.

    `tokens` (length,) and `constants` (n_constants,) are a program whose variables are the first k of
    `library`; `orders` (n_orders, k) has the variable that replaces each of these. With `linear_scaling` a
    scale and an offset of the whole program are ignored.
    """
    n = len(orders)
    first = library.first_variable
    renamed = np.hstack([np.tile(np.arange(first), (n, 1)), first + orders])  # (n orders, n tokens)
    rows = np.ascontiguousarray(renamed[:, tokens])
    values = np.tile(np.append(constants, 1.0), (n, 1))
    lengths = np.full(n, len(tokens))
    arity = library.table.arity
    return set(skeletons(rows, lengths, values, arity, rewriting(library), linear_scaling).tolist())


def _with_squares(node: Tree) -> Tree:
    """Write a fourth or fifth power with ``square``; `to_program` writes lower ones with their tokens."""
    match node:
        case ("pow", base, 4):
            return ("square", ("square", base))
        case ("pow", base, 5):
            return ("mul", base, ("square", ("square", base)))
    return node
