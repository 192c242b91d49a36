"""The functions that pre-training must never see: the benchmark problems, as values and as skeletons."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations

import numpy as np

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
from dgsr.expressions.programs import to_program
from dgsr.expressions.trees import Tree, rename
from dgsr.kernels.canonical import skeletons
from dgsr.pretraining.prior import Exclusions, comparable, comparison_points, rewriting
from dgsr.problems import list_sets, load_set
from dgsr.problems.problem import Problem

# Of the variables of one problem to those of a generator.
_MAX_ASSIGNMENTS = 5040


def benchmark_exclusions(library: Library, constraints: Constraints | None = None) -> Exclusions:
    """Return what training on equations of `library` must leave out.

    Parameters
    ----------
    library : Library
    constraints : Constraints, optional
        Limits of the programs that the generator may write.

    Returns
    -------
    Exclusions
        Every benchmark problem with at most as many variables: its values, and in a library with
        constants also its skeleton, by which it is left out whatever its constants. With linear
        scaling values are compared but for scale and offset.
    """
    grammar = (constraints or Constraints()).grammar(library)
    points, values = _problem_values(library.n_variables)
    known = problem_skeletons(library, grammar.linear_scaling) if library.has_constants else ()
    return Exclusions(
        points, comparable(values, grammar.linear_scaling), np.array(sorted(known), dtype=np.uint64)
    )


def _problems(n_variables: int) -> list[Problem]:
    problems = [problem for name in list_sets() for problem in load_set(name)]
    return [problem for problem in problems if problem.n_variables <= n_variables]


def _problem_values(n_variables: int) -> tuple[np.ndarray, np.ndarray]:
    """Points where functions are compared, and the values there of every benchmark problem that fits.

    Under every assignment of its variables; where these are too many, under every order of the first
    variables, which are those the prior uses; of more than 7 variables, at the last points, which have
    all coordinates equal so that their order does not matter, and NaN elsewhere.
    """
    points = comparison_points(n_variables)
    n_apart = points.shape[1]
    if math.factorial(n_variables) > _MAX_ASSIGNMENTS:
        points = np.hstack([points, np.repeat(points[:1], n_variables, axis=0)])
    rows = []
    for problem in _problems(n_variables):
        d = problem.n_variables
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
            # What divides by a difference of variables is undefined where all are equal.
            values[slice(n_apart) if on_diagonal else slice(n_apart, None)] = np.nan
            rows.append(values)
    return points, np.array(rows).reshape(len(rows), points.shape[1])


def problem_skeletons(library: Library, linear_scaling: bool) -> set[int]:
    """Hashes of the benchmark problems that `library`, which has constants, can write.

    Each under every order of its variables, which the prior takes to be the first ones; of more than
    7 variables, under the order it is stated in. Powers are written with and without the tokens
    ``square``, ``cube`` and ``sqrt``.
    """
    found: set[int] = set()
    for problem in _problems(library.n_variables):
        d = problem.n_variables
        truth = rename(problem.truth, {name: f"x{i + 1}" for i, name in enumerate(problem.variable_names)})
        orders = [tuple(range(d))]
        if math.factorial(d) <= _MAX_ASSIGNMENTS:
            orders = list(permutations(range(d)))
        for tree in (truth, _with_power_tokens(truth, library)):
            try:
                tokens, constants = to_program(tree, library)
            except ValueError:  # the library lacks an operator of it
                continue
            found |= _skeletons(tokens, constants, np.array(orders), library, linear_scaling)
    return found


def _skeletons(
    tokens: np.ndarray, constants: np.ndarray, orders: np.ndarray, library: Library, linear_scaling: bool
) -> set[int]:
    """Hashes of one program under every order of its variables."""
    n = len(orders)
    first = library.first_variable
    renamed = np.hstack([np.tile(np.arange(first), (n, 1)), first + orders])  # token by token, by order
    rows = np.ascontiguousarray(renamed[:, tokens])
    values = np.tile(np.append(constants, 1.0), (n, 1))
    lengths = np.full(n, len(tokens))
    arity = library.table.arity
    return set(skeletons(rows, lengths, values, arity, rewriting(library), linear_scaling).tolist())


def _with_power_tokens(tree: Tree, library: Library) -> Tree:
    """Write whole powers and roots with ``square``, ``cube`` and ``sqrt`` where the library has them."""
    if not isinstance(tree, tuple):
        return tree
    name, *rest = tree
    children = [_with_power_tokens(child, library) for child in rest]
    if name != "pow":
        return (name, *children)
    base, exponent = children
    half = exponent in (("div", 1, 2), 0.5)
    if half and "sqrt" in library.index:
        return ("sqrt", base)
    if exponent == 3 and "cube" in library.index:
        return ("cube", base)
    if "square" in library.index and exponent in (2, 4, 5):
        power = ("square", base)
        if exponent == 2:
            return power
        return ("square", power) if exponent == 4 else ("mul", base, ("square", power))
    return (name, *children)
