"""Programs whose constants are free or exact, and their trees: floats are free, other numbers exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dgsr.expressions.library import Library
from dgsr.expressions.programs import tree_of_tokens, write_program
from dgsr.expressions.simple_numbers import cost, exact
from dgsr.expressions.trees import POWER_TOKENS, Tree, is_number, rewritten

#: A quarter of a turn: sin(f + pi/2) is cos(f).
QUARTER_TURN = math.pi / 2


@dataclass(frozen=True)
class FreeProgram:
    """One program; `free` says which constants are fitted, the others are exact."""

    tokens: np.ndarray  # (length,) int64
    constants: np.ndarray  # (n_constants,) float64
    free: np.ndarray  # (n_constants,) bool


def with_value(program: FreeProgram, group: np.ndarray, value: float) -> FreeProgram:
    constants, free = program.constants.copy(), program.free.copy()
    constants[group], free[group] = value, False
    return replace(program, constants=constants, free=free)


def groups_of(program: FreeProgram) -> list[np.ndarray]:
    """Return the places of each free constant: copies of one number belong together."""
    places: dict[float, list[int]] = {}
    for i in np.flatnonzero(program.free):
        places.setdefault(float(program.constants[i]), []).append(int(i))
    return [np.array(group) for group in places.values()]


def complexity(program: FreeProgram, library: Library) -> int:
    return int(library.table.complexity[program.tokens].sum())


def score(program: FreeProgram, library: Library) -> float:
    """Return what a person has to read: the complexity, and the cost of each number."""
    return complexity(program, library) + sum(map(cost, program.constants.tolist()))


def tree_of(program: FreeProgram, library: Library) -> Tree:
    """Return the tree: its floats are the free constants, its other numbers are exact."""
    numbers = [
        float(value) if is_free else exact(float(value))
        for value, is_free in zip(program.constants, program.free, strict=True)
    ]
    return rewritten(tree_of_tokens(library, program.tokens, numbers), _with_exact_exponent)


def _with_exact_exponent(tree: Tree) -> Tree:
    """Return a power with an exponent that is whole or a half as an exact number, other nodes as they are."""
    if tree[0] == "pow" and isinstance(tree[2], float) and 2 * tree[2] == round(2 * tree[2]):
        return ("pow", tree[1], exact(tree[2]))
    return tree


def written(tree: Tree, library: Library) -> FreeProgram:
    """Write a tree as a program; the constants that come from its floats are free."""
    program = write_program(rewritten(tree, partial(_with_own_tokens, library)), library)
    return FreeProgram(*program)


def _as_power(exponent: Tree) -> Tree:
    """Return b**f for exp(c*f)."""
    if isinstance(exponent, tuple) and exponent[0] == "mul" and is_number(exponent[1]):
        base = math.exp(exponent[1])
        return ("pow", base if isinstance(exponent[1], float) else Fraction(base), exponent[2])
    return ("pow", Fraction(math.e), exponent)


# What merging writes and the library may lack, in terms of what it then has.
_INSTEAD: dict[str, Callable[[Tree], Tree]] = {
    "abs": lambda f: ("sqrt", ("pow", f, 2)),
    "exp": _as_power,
    "sin": lambda f: ("cos", ("sub", f, Fraction(QUARTER_TURN))),
    "cos": lambda f: ("sin", ("add", f, Fraction(QUARTER_TURN))),
}


def _with_own_tokens(library: Library, tree: Tree) -> Tree:
    """Return a node with the library's token for a square, a cube, a root or an inverse, and none it lacks."""
    name, *children = tree
    if name in _INSTEAD and name not in library.index:
        return _INSTEAD[name](children[0])
    if name == "pow" and is_number(children[1]):
        token = POWER_TOKENS.get(children[1])
        if token in library.index and token != "inv":
            return (token, children[0])
    if name == "div" and isinstance(children[0], int) and children[0] == 1 and "inv" in library.index:
        return ("inv", children[1])
    return tree
