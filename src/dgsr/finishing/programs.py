"""Programs whose constants are free or exact, and their trees: floats are free, other numbers exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dgsr.expressions.library import Library
from dgsr.expressions.programs import to_program
from dgsr.expressions.simple_numbers import cost, exact
from dgsr.expressions.syntax import Tree, is_number, map_leaves

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
    stack: list[Tree] = []
    for token in program.tokens[::-1]:
        entry = library.tokens[token]
        if entry.name == "const":
            stack.append(numbers.pop())
        elif entry.arity == 0:
            stack.append(entry.name)
        else:
            stack.append((entry.name, *(stack.pop() for _ in range(entry.arity))))
    return _with_exact_exponents(stack[0])


def _with_exact_exponents(tree: Tree) -> Tree:
    """Return the tree with exponents that are whole or a half as exact numbers."""
    if not isinstance(tree, tuple):
        return tree
    name, *children = tree
    children = [_with_exact_exponents(child) for child in children]
    if name == "pow" and isinstance(children[1], float) and 2 * children[1] == round(2 * children[1]):
        children[1] = exact(children[1])
    return (name, *children)


def written(tree: Tree, library: Library) -> FreeProgram:
    """Write a tree as a program; a constant is free where a change of the floats changes it."""
    tree = _with_own_tokens(tree, library)
    tokens, constants = to_program(tree, library)
    moved = map_leaves(tree, lambda leaf: 1.37 * leaf + 0.1 if isinstance(leaf, float) else leaf)
    try:
        _, changed = to_program(moved, library)
    except ValueError:  # a part of numbers alone that has no value there
        changed = constants
    if len(changed) != len(constants):
        raise ValueError("The program's constants depend on their values.")
    return FreeProgram(tokens, constants, changed != constants)


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


def _with_own_tokens(tree: Tree, library: Library) -> Tree:
    """Use the library's tokens for a square, a cube, a root and an inverse, and none that it lacks."""
    if not isinstance(tree, tuple):
        return tree
    name, *children = tree
    children = [_with_own_tokens(child, library) for child in children]
    if name in _INSTEAD and name not in library.index:
        return _INSTEAD[name](children[0])
    if name == "pow" and is_number(children[1]):
        short = {2: "square", 3: "cube", Fraction(1, 2): "sqrt"}.get(children[1])
        if short in library.index:
            return (short, children[0])
    if name == "div" and isinstance(children[0], int) and children[0] == 1 and "inv" in library.index:
        return ("inv", children[1])
    return (name, *children)
