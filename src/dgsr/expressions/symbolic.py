"""Syntax trees to sympy and back, node by node: no text is read on the way."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from dgsr.expressions.syntax import ALIASES, FUNCTIONS, SHORT_NAMES, Tree

if TYPE_CHECKING:
    import sympy

    from dgsr.expressions.user import UserOperator


def to_sympy(
    tree: Tree,
    symbols: Mapping[str, sympy.Symbol] | None = None,
    functions: Mapping[str, UserOperator] | None = None,
) -> sympy.Expr:
    """Build the sympy expression of a tree: node by node, no text is read.

    Parameters
    ----------
    tree : tree
    symbols : mapping of str to sympy.Symbol, optional
        Plain symbols of the variables' names by default.
    functions : mapping of str to UserOperator, optional
        Operators of the user's own; those that are not given become undefined functions.

    Returns
    -------
    sympy.Expr
        With sympy's automatic evaluation, so x1/x1 is 1. Integers and fractions stay exact.
    """
    import sympy

    if isinstance(tree, str):
        return sympy.Symbol(tree) if symbols is None else symbols[tree]
    if not isinstance(tree, tuple):
        if isinstance(tree, Fraction):
            return sympy.Rational(tree.numerator, tree.denominator)
        return sympy.Integer(tree) if isinstance(tree, int) else sympy.Float(tree)
    name = tree[0]
    if name == "pi":
        return sympy.pi
    a, *rest = [to_sympy(child, symbols, functions) for child in tree[1:]]
    if name in _SYMPY_BINARY:
        return _SYMPY_BINARY[name](a, rest[0])
    if name == "pow":
        return _sympy_power(a, rest[0])
    if name == "neg":
        return -a
    if name in ("square", "cube"):
        return _sympy_power(a, sympy.Integer(2 if name == "square" else 3))
    if name not in FUNCTIONS:
        operator = (functions or {}).get(name)
        return sympy.Function(name)(a, *rest) if operator is None else operator.to_sympy(a, *rest)
    function = getattr(sympy, "Abs" if name == "abs" else SHORT_NAMES.get(str(name), str(name)))
    if name in ("exp", "sinh", "cosh") and a.is_Float and abs(a) > _LARGEST_ARGUMENT:
        # What float64 makes of it: the exponential of exp(exp(9.5)) would fill the memory with digits.
        return function(sympy.oo if a > 0 else -sympy.oo)
    return function(a)


_LARGEST_ARGUMENT = 1e5
_SYMPY_BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def _sympy_power(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
    import sympy

    # 10**10**10 must not be multiplied out.
    are_numbers = base.is_Rational and exponent.is_Rational
    is_huge = are_numbers and abs(exponent) * max(abs(base.p), base.q).bit_length() > 2**14
    return sympy.Pow(base, exponent, evaluate=not is_huge)


def from_sympy(expression: sympy.Expr) -> Tree:
    """Return the tree of a sympy expression of our functions.

    Raises
    ------
    ValueError
        If a part has no place in the grammar, such as the imaginary unit.
    """
    import sympy

    if expression.is_Symbol:
        return expression.name
    if expression.is_Rational:
        return expression.p if expression.q == 1 else Fraction(expression.p, expression.q)
    if expression.is_Float:
        return float(expression)
    if expression is sympy.pi:
        return ("pi",)
    if expression is sympy.E:
        return ("exp", 1)
    if expression.is_Add or expression.is_Mul:
        name = "add" if expression.is_Add else "mul"
        first, *rest = [from_sympy(argument) for argument in expression.args]
        for child in rest:
            first = (name, first, child)
        return first
    if expression.is_Pow:
        return ("pow", from_sympy(expression.base), from_sympy(expression.exp))
    name = type(expression).__name__.lower()
    name = ALIASES.get(name, name)
    if name not in FUNCTIONS:
        raise ValueError(f"{expression} cannot be written; use the functions {', '.join(FUNCTIONS)}.")
    return (name, from_sympy(expression.args[0]))
