"""Syntax trees, the intermediate form between text and program, and functions that walk over them.

A syntax tree is a nested tuple ``(name, child, ...)``: the binary ``add sub mul div pow``, the unary ``neg``
and the functions below, user-defined operators, and ``("pi",)``. A leaf is the name of a variable (str)
or a number: int, Fraction (a decimal of a text, exactly) or float (a fitted constant).
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

#: A nested tuple, a variable's name, or a number.
Tree = Any

#: Most levels of a formula; sympy takes six of Python's 1,000 frames to print one.
MAX_LEVELS = 130
#: Largest absolute whole exponent of a power that is computed, or written as a product.
LARGEST_POWER = 64
#: Largest absolute number in an exponent that becomes a factor, so that the factor is far from overflow.
LARGEST_EXPONENT = 300.0

#: Functions of one argument that a formula may have.
FUNCTIONS = (
    "exp", "log", "sin", "cos", "tan", "cot", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan",
    "sqrt", "abs", "square", "cube",
)  # fmt: skip
#: Functions that numpy, torch, mpmath and C have, too, some under their `SHORT_NAMES`.
COMMON_FUNCTIONS = tuple(name for name in FUNCTIONS if name not in ("cot", "square", "cube"))
ALIASES = {"ln": "log", "asin": "arcsin", "acos": "arccos", "atan": "arctan"}
#: Names by which C, sympy, mpmath and SRBench know the inverse functions; numpy and torch have ours too.
SHORT_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
#: Operators whose arguments are terms of one sum.
SUMS = ("add", "sub", "neg")
#: Exponents of the functions that are whole powers.
WHOLE_POWERS = {"square": 2, "cube": 3}
#: Tokens of a library that are powers, by their exponents.
POWER_TOKENS: dict[int | Fraction, str] = {2: "square", 3: "cube", Fraction(1, 2): "sqrt", -1: "inv"}
#: Names that no user-defined operator can have, in lower case.
RESERVED = frozenset(
    ("add", "sub", "mul", "div", "pow", "neg", "inv", "const", "pi", *FUNCTIONS, *ALIASES, *keyword.kwlist)
)


def is_number(tree: Tree) -> bool:
    """Return whether `tree` is a leaf that holds a number."""
    return not isinstance(tree, (tuple, str))


def as_float(value: int | float | Fraction) -> float:
    """Return the float64 nearest to a number; infinite for a number beyond the largest float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def leaves(tree: Tree) -> Iterator[Tree]:
    """Yield the variables and numbers of a tree, left to right."""
    if isinstance(tree, tuple):
        for child in tree[1:]:
            yield from leaves(child)
    else:
        yield tree


def variables_of(tree: Tree) -> set[str]:
    """Return the names of the variables of a tree."""
    return {leaf for leaf in leaves(tree) if isinstance(leaf, str)}


def nodes(tree: Tree) -> Iterator[Tree]:
    """Yield the inner nodes of a tree, each after the nodes below it."""
    if isinstance(tree, tuple):
        for child in tree[1:]:
            yield from nodes(child)
        yield tree


def rewritten(tree: Tree, rule: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with `rule` applied to every inner node, the nodes below it first."""
    if not isinstance(tree, tuple):
        return tree
    children = []
    for child in tree[1:]:  # no comprehension, which would double the frames of deep trees
        children.append(rewritten(child, rule))
    return rule((tree[0], *children))


def map_leaves(tree: Tree, function: Callable[[Tree], Tree]) -> Tree:
    """Return the tree with `function` applied to every variable name and number."""
    if isinstance(tree, tuple):
        return (tree[0], *(map_leaves(child, function) for child in tree[1:]))
    return function(tree)


def rename(tree: Tree, new: Mapping[str, Tree]) -> Tree:
    """Return the tree with other names, or whole trees, for its variables; those not in the mapping stay."""
    return map_leaves(tree, lambda leaf: new.get(leaf, leaf) if isinstance(leaf, str) else leaf)
