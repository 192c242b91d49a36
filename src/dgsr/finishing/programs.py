"""Programs with free and exact constants, and their trees, in which only the free constants are floats."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram, tree_of_tokens, write_program
from dgsr.expressions.trees.simple_numbers import QUARTER_TURN, cost, exact
from dgsr.expressions.trees.trees import Tree, is_number, rewritten


def free_programs(population: Population) -> Iterator[FreeProgram]:
    """Yield the programs of a population, all of whose constants are free."""
    for i, n in enumerate(population.is_constant.sum(axis=1).tolist()):
        tokens, constants = population.tokens[i, : population.lengths[i]], population.constants[i, :n]
        yield FreeProgram(tokens, constants, np.ones(n, dtype=bool))


def with_value(program: FreeProgram, group: np.ndarray, value: float) -> FreeProgram:
    """Return the program with an exact value for the constants at the positions in `group`."""
    constants, free = program.constants.copy(), program.free.copy()
    constants[group], free[group] = value, False
    return program._replace(constants=constants, free=free)


def groups_of(program: FreeProgram) -> list[np.ndarray]:
    """Return the positions of each free constant; equal numbers are copies of one constant."""
    places: dict[float, list[int]] = {}
    for i in np.flatnonzero(program.free):
        places.setdefault(float(program.constants[i]), []).append(int(i))
    return [np.array(group) for group in places.values()]


def are_equal(a: FreeProgram, b: FreeProgram, tolerance: float) -> bool:
    """Return whether two programs have the same tokens, and constants up to a relative difference."""
    same_tokens = np.array_equal(a.tokens, b.tokens)
    return same_tokens and np.allclose(a.constants, b.constants, rtol=tolerance, atol=0.0)


def complexity(program: FreeProgram | Expression, library: Library) -> int:
    """Return the sum of the complexities of the tokens."""
    return int(library.table.complexity[program.tokens].sum())


def score(program: FreeProgram | Expression, library: Library) -> float:
    """Return how hard a formula is to read: its complexity plus the cost of each number, in digits."""
    return complexity(program, library) + sum(map(cost, program.constants.tolist()))


def tree_of(program: FreeProgram, library: Library) -> Tree:
    """Return the tree of a program: its floats are the free constants, its other numbers are exact."""
    numbers = [
        float(value) if is_free else exact(float(value))
        for value, is_free in zip(program.constants, program.free, strict=True)
    ]
    return rewritten(tree_of_tokens(library, program.tokens, numbers), _with_exact_exponent)


def _with_exact_exponent(tree: Tree) -> Tree:
    """Make the exponent of a power exact if it is a multiple of 1/2; return other nodes unchanged."""
    match tree:
        case ("pow", base, float(exponent)) if 2 * exponent == round(2 * exponent):
            return ("pow", base, exact(exponent))
    return tree


def written(tree: Tree, library: Library) -> FreeProgram:
    """Write a tree as a program, in which the constants computed from floats of the tree are free."""
    return write_program(rewritten(tree, partial(_in_terms_of, library)), library)


def _as_power(exponent: Tree) -> Tree:
    """Return b**f for exp(c*f)."""
    if isinstance(exponent, tuple) and exponent[0] == "mul" and is_number(exponent[1]):
        base = math.exp(exponent[1])
        return ("pow", base if isinstance(exponent[1], float) else Fraction(base), exponent[2])
    return ("pow", Fraction(math.e), exponent)


# Functions of the normal form, written in terms of other functions.
_INSTEAD: dict[str, Callable[[Tree], Tree]] = {
    "abs": lambda f: ("sqrt", ("pow", f, 2)),
    "exp": _as_power,
    "sin": lambda f: ("cos", ("sub", f, Fraction(QUARTER_TURN))),
    "cos": lambda f: ("sin", ("add", f, Fraction(QUARTER_TURN))),
}


def _in_terms_of(library: Library, tree: Tree) -> Tree:
    """Write a function that the library lacks in terms of others; return any other node unchanged."""
    is_missing = tree[0] in _INSTEAD and tree[0] not in library.index
    return _INSTEAD[tree[0]](tree[1]) if is_missing else tree
