"""The arithmetic of formulas: exact numbers, and sums and products of trees.

A number is an int, a Fraction or a float. Floats are fitted constants; operations on exact numbers alone are
exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

from dgsr.expressions.trees.simple_numbers import ROUNDING
from dgsr.expressions.trees.trees import LARGEST_POWER, Tree, is_number

#: Functions with f(-x) = -f(x).
ODD = ("sin", "tan", "cot", "sinh", "tanh", "arcsin", "arctan")

#: A number is an int, a Fraction or a float.
Number = Any
#: Pairs of a sign and a tree, which represent the sum of sign * tree.
SignedTerms = Sequence[tuple[int, Tree]]


def simplified(value: Number) -> Number:
    """Return a whole fraction as int, and other numbers unchanged."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def clean(value: Number) -> Number:
    """Return whole fractions as int, and a float that is 1, -1 or 0 up to rounding as that int.

    OverflowError if the float is not finite.
    """
    if not isinstance(value, float):
        return simplified(value)
    if not math.isfinite(value):
        raise OverflowError("A constant is beyond the largest float.")
    if abs(abs(value) - 1) < ROUNDING:
        return 1 if value > 0 else -1
    return value if value != 0 else 0


def over(a: Number, b: Number) -> Number:
    """Return a/b, exact if both are."""
    if isinstance(a, float) or isinstance(b, float):
        return clean(float(a) / float(b))
    return clean(Fraction(a) / b)


def to_power(value: Number, power: Number) -> Number:
    """Return value**power, exact for small whole powers and for square roots that are fractions."""
    if isinstance(power, int) and not isinstance(value, float) and abs(power) <= LARGEST_POWER:
        return clean(Fraction(value) ** power)
    if power == Fraction(1, 2) and not isinstance(value, float) and value >= 0:
        value = Fraction(value)
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return clean(root)
    return clean(float(value) ** float(power))


def signed_terms(tree: Tree, sign: int = 1) -> list[tuple[int, Tree]]:
    """Return the terms of a sum, left to right, with their signs; of any other tree, the tree itself.

    Examples
    --------
    >>> signed_terms(("sub", "x1", ("sub", 2, "x2")))
    [(1, 'x1'), (-1, 2), (1, 'x2')]
    """
    if isinstance(tree, tuple) and tree[0] in ("add", "sub"):
        return signed_terms(tree[1], sign) + signed_terms(tree[2], sign if tree[0] == "add" else -sign)
    if isinstance(tree, tuple) and tree[0] == "neg":
        return signed_terms(tree[1], -sign)
    return [(sign, tree)]


def added(terms: SignedTerms) -> Tree:
    """Return the sum of one or more terms, beginning with a positive term if any: b - a for -a + b."""
    first = next((i for i, (sign, _) in enumerate(terms) if sign > 0), 0)
    sign, result = terms[first]
    result = result if sign > 0 else negative(result)
    for sign, tree in [*terms[:first], *terms[first + 1 :]]:
        result = ("add" if sign > 0 else "sub", result, tree)
    return result


def multiplied(factors: Sequence[Tree]) -> Tree:
    """Return the product of one or more trees, in their order."""
    return reduce(lambda left, right: ("mul", left, right), factors)


def divided(above: Sequence[Tree], below: Sequence[Tree]) -> Tree:
    """Return the quotient of two products; the product of `above` where nothing is below it."""
    return ("div", multiplied(above), multiplied(below)) if below else multiplied(above)


def powered(base: Tree, power: int) -> Tree:
    """Return the tree of a power, without an exponent of 1."""
    return base if power == 1 else ("pow", base, power)


def negative(tree: Tree) -> Tree:
    """Return -f, with the minus inside f where that adds no token: 2*(b - a) for -2*(a - b)."""
    for with_numbers in (False, True):
        turned = _turned(tree, with_numbers)
        if turned is not None:
            return turned
    return ("neg", tree)


def _turned(tree: Tree, with_numbers: bool) -> Tree | None:
    """Return -f in no more tokens than f, or None; numbers change their signs only `with_numbers`."""
    match tree:
        case ("sub", left, right):
            return ("sub", right, left)
        case ("log", ("div", above, below)):
            return ("log", below if above == 1 else ("div", below, above))
        case (name, ("sub", _, _) as inside) if name in ODD:
            return (name, negative(inside))
        case ("mul" | "div" as name, left, right):
            if (turned := _turned(left, with_numbers)) is not None:
                return (name, turned, right)
            turned = _turned(right, with_numbers)
            return None if turned is None else (name, left, turned)
    return -tree if with_numbers and is_number(tree) else None
