"""Shorter formulas for printing, in microseconds where sympy would take seconds.

Programs without constants write 2 as (x1 + x1)/x1 and cubes as products. Here like terms and like factors are
collected and numbers computed. The order of terms stays, nothing is expanded, no constants are merged, and
the formula has the program's value wherever the program has one. Floats that are 1/3 or 2*pi up to rounding
are printed as such.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from dgsr.expressions.rewriting.algebra import Number, added, divided, powered, signed_terms, simplified
from dgsr.expressions.trees.simple_numbers import recognised
from dgsr.expressions.trees.trees import LARGEST_POWER, SUMS, WHOLE_POWERS, Tree, is_number, rewritten

# Largest numerator or denominator of a power of a number.
_MAX_INTEGER = 10**15
# Values of functions that are whole numbers.
_VALUES = {("exp", 0): 1, ("log", 1): 0, ("sin", 0): 0, ("cos", 0): 1, ("sqrt", 0): 0, ("sqrt", 1): 1}


def tidy(tree: Tree, keeps_domain: bool = False) -> Tree:
    """Return a shorter tree of the same values.

    With `keeps_domain` it is undefined wherever the tree is, so that x1/x1 stays, which is undefined at 0. In
    a library without constants it cannot stay, since its programs write 1 as x1/x1.

    Examples
    --------
    >>> tidy(("mul", ("div", ("add", "x1", "x1"), "x1"), ("mul", "x1", "x2")))
    ('mul', ('mul', 2, 'x1'), 'x2')
    >>> tidy(("mul", 0.3333333333333333, "x1"))
    ('div', 'x1', 3)
    """
    return rewritten(recognised(tree), _Tidying(keeps_domain).node)


class _Tidying:
    """Shortens a node whose children are shortened already; see `tidy` for `keeps_domain`."""

    def __init__(self, keeps_domain: bool) -> None:
        self.keeps_domain = keeps_domain

    def node(self, tree: Tree) -> Tree:
        name = tree[0]
        if name in SUMS:
            terms = self._terms(tree)
            cancels = any(coefficient == 0 and rest != 1 for rest, coefficient in terms.items())
            if self.keeps_domain and cancels:
                return tree  # log(x1) - log(x1) has no value at 0
            return self._sum(terms)
        if name == "pow" and tree[2] == 0.5:
            tree = ("sqrt", tree[1])
        elif name in ("mul", "div", "pow", *WHOLE_POWERS):
            factors: dict[Tree, int] = {}
            coefficient = self._collect(tree, 1, factors)
            return tree if coefficient is None else _product(coefficient, factors)
        if name == "exp" and not self.keeps_domain:
            return self._exponential(tree)
        if name == "sqrt":
            return _root(tree)
        return _VALUES.get(tree, tree)

    def _terms(self, tree: Tree) -> dict[Tree, Number]:
        """Return the coefficient of every term of a sum; the coefficient of the term 1 is its number."""
        terms: dict[Tree, Number] = {}
        for sign, part in signed_terms(tree):
            factors: dict[Tree, int] = {}
            own = self._collect(part, 1, factors)
            coefficient, rest = (1, part) if own is None else (own, _product(1, factors))
            signed = sign * coefficient
            terms[rest] = _plus(terms[rest], signed) if rest in terms else signed
        return terms

    def _sum(self, terms: dict[Tree, Number]) -> Tree:
        kept = [(rest, simplified(coefficient)) for rest, coefficient in terms.items() if coefficient != 0]
        if not kept:
            return 0
        if any(coefficient > 0 for _, coefficient in kept):
            return added([(1 if c > 0 else -1, self._scaled(rest, abs(c))) for rest, c in kept])
        (first, own), *others = kept
        return added([(1, self._scaled(first, own)), *((-1, self._scaled(rest, -c)) for rest, c in others)])

    def _scaled(self, rest: Tree, coefficient: Number) -> Tree:
        factors: dict[Tree, int] = {}
        own = self._collect(rest, 1, factors)
        product = None if own is None else _times(own, coefficient)
        if product is None:
            return rest if coefficient == 1 else ("mul", coefficient, rest)
        return _product(product, factors)

    def _collect(self, tree: Tree, power: int, factors: dict[Tree, int]) -> Number | None:
        """Add the factors of tree**power and their powers to `factors`; return the coefficient.

        The coefficient is None where a part is divided by 0 or a number is too large to be written out; with
        `keeps_domain`, also where a factor would cancel.
        """
        if is_number(tree):
            return _number_to_power(tree, power)
        if isinstance(tree, tuple):
            name = tree[0]
            # f/(g/h) is undefined where h is 0, and f*h/g is not.
            if name == "mul" or (name == "div" and not (self.keeps_domain and power < 0)):
                left = self._collect(tree[1], power, factors)
                right = self._collect(tree[2], power if name == "mul" else -power, factors)
                product = None if left is None or right is None else _times(left, right)
                return None if self.keeps_domain and product == 0 else product
            if name == "neg":
                inner = self._collect(tree[1], power, factors)
                return inner if inner is None or power % 2 == 0 else -inner
            exponent = WHOLE_POWERS.get(name) or (tree[2] if name == "pow" else None)
            if isinstance(exponent, int) and not (
                self.keeps_domain and (exponent == 0 or (exponent < 0 and power < 0))
            ):
                return self._collect(tree[1], power * exponent, factors)
        known = factors.get(tree, 0)
        if self.keeps_domain and known * power < 0:
            return None
        factors[tree] = known + power
        return 1

    def _exponential(self, tree: Tree) -> Tree:
        """Return f**g for exp(g*log(f)), unless g is an integer: f**2 is defined where f is negative."""
        factors: dict[Tree, int] = {}
        coefficient = self._collect(tree[1], 1, factors)
        logarithms = [base for base in factors if isinstance(base, tuple) and base[0] == "log"]
        if coefficient is None or len(logarithms) != 1 or factors[logarithms[0]] != 1:
            return _VALUES.get(tree, tree)
        base = logarithms[0][1]
        del factors[logarithms[0]]
        exponent = _product(coefficient, factors)
        if isinstance(exponent, tuple) and exponent[0] == "div" and all(map(is_number, exponent[1:])):
            exponent = Fraction(exponent[1], exponent[2])
        if exponent == Fraction(1, 2):
            return ("sqrt", base)
        if is_number(exponent) and exponent == int(exponent):
            is_positive = isinstance(base, tuple) and base[0] == "exp"
            return base if exponent == 1 and is_positive else tree
        return ("pow", base, exponent)


def _root(tree: Tree) -> Tree:
    """Return f**(3/2) for sqrt(f**3), and the same for every odd power: both need a non-negative f."""
    match tree[1]:
        case ("cube", base):
            return ("pow", base, Fraction(3, 2))
        case ("pow", base, int(power)) if power % 2 == 1:
            return ("pow", base, Fraction(power, 2))
    return _VALUES.get(tree, tree)


def _plus(left: Number, right: Number) -> Number:
    total = left + right
    if isinstance(total, float) and math.isfinite(total):
        return _shorter(total, _as_written(left) + _as_written(right))
    return total


def _times(left: Number, right: Number) -> Number | None:
    """Return the product of two numbers, or None where it overflows or underflows to 0."""
    product = left * right
    if isinstance(product, float) and math.isfinite(product):
        product = _shorter(product, _as_written(left) * _as_written(right))
    vanishes = product == 0 and left != 0 and right != 0
    return None if vanishes or not math.isfinite(product) else product


def _as_written(value: Number) -> Decimal:
    return Decimal(repr(float(value)))


def _shorter(result: float, of_digits: Decimal) -> float:
    """Return a result of floats, or that of their digits if it is shorter, as 0.046656 for 0.36**3."""
    return min(result, float(of_digits), key=lambda value: len(repr(value)))


def _number_to_power(value: Number, power: int) -> Number | None:
    """Return value**power; None where it is undefined or too large to be written out."""
    if abs(power) > LARGEST_POWER:
        return None
    try:
        result = value**power if isinstance(value, float) else simplified(Fraction(value) ** power)
    except (ZeroDivisionError, OverflowError):
        return None
    if isinstance(result, float):
        if value == 0.0 or not math.isfinite(result):
            return result if math.isfinite(result) else None
        return _shorter(result, _as_written(value) ** power)
    return result if max(abs(result.numerator), result.denominator) <= _MAX_INTEGER else None


def _product(coefficient: Number, factors: dict[Tree, int]) -> Tree:
    """Return the tree of a product; negative powers and the coefficient's denominator form a denominator."""
    coefficient = simplified(coefficient)
    if coefficient == 0:
        return 0
    above = [powered(base, power) for base, power in factors.items() if power > 0]
    below = [powered(base, -power) for base, power in factors.items() if power < 0]
    if isinstance(coefficient, Fraction):
        below.insert(0, coefficient.denominator)
        coefficient = coefficient.numerator
    is_negative = coefficient == -1 and len(above) > 0
    if not above or coefficient not in (1, -1):
        above.insert(0, coefficient)
    result = divided(above, below)
    return ("neg", result) if is_negative else result
