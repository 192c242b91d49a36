"""Sums of products written as products of sums: (1 + 0.7*a + 0.3*b)**2 instead of its six terms."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import sympy

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.rewriting.polynomials import FEW_TERMS, tree_in_factors
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.simple_numbers import exact
from dgsr.expressions.trees.trees import WHOLE_POWERS, Tree, is_number, map_leaves
from dgsr.finishing.programs import score

# Largest whole power that is treated as a part of a polynomial.
_LARGEST_POWER = 6
# Most terms of a polynomial that is multiplied out, and most factors of each, numbers included.
_MOST_MULTIPLIED = 100
# Smallest coefficient of a polynomial that is factored, as a share of its largest.
_SMALLEST_COEFFICIENT = 1e-15
# Smallest reduction of complexity plus digits for which factors are accepted: one token or one digit.
_LEAST_SAVED = 1.0


def factored(formula: Expression) -> Expression:
    """Return a formula with its polynomials factored, if that is easier to read and loses no name of a part.

    Numbers count as the exact decimals of their text, so that the function stays the same.
    """
    try:
        tree = _factored(formula.tree)
        if tree == formula.tree:
            return formula
        other = Expression.from_tree(tidy(tree), formula.library)
    except (ValueError, ArithmeticError):  # the result is too long, or one of its numbers beyond a float
        return formula
    keeps_names = set(formula.common_forms) <= set(other.common_forms)
    is_easier = score(other, formula.library) <= score(formula, formula.library) - _LEAST_SAVED
    return other if keeps_names and is_easier else formula


def _factored(tree: Tree) -> Tree:
    """Return a tree with every polynomial in it factored; its variables may be any subtrees."""
    if not isinstance(tree, tuple):
        return tree
    atoms = _Atoms()
    polynomial = atoms.polynomial(tree).value
    symbols = [symbol for symbol in atoms.symbols.values() if polynomial.has(symbol)]
    if tree in atoms.symbols or not symbols:
        return (tree[0], *map(_factored, tree[1:]))
    inner = {symbol.name: _factored(atom) for atom, symbol in atoms.symbols.items()}
    terms = sympy.Poly(polynomial, *symbols).terms() if max(atoms.uses.values()) > 1 else []
    in_factors = _in_factors(terms) if 3 <= len(terms) <= FEW_TERMS else None
    if in_factors is None:
        return atoms.replaced(tree, inner)
    names = {f"x{i + 1}": inner[symbol.name] for i, symbol in enumerate(symbols)}
    return map_leaves(in_factors, lambda leaf: names.get(leaf) or _decimal(leaf))


def _decimal(number: Fraction) -> int | float:
    return int(number) if number == int(number) else float(number)


def _in_factors(terms: list[tuple[tuple[int, ...], sympy.Rational]]) -> Tree | None:
    """Return a polynomial in factors if that is shorter, and degree and coefficients let it be found fast."""
    sizes = [abs(float(c)) for _, c in terms]
    is_sized = 0.0 < max(sizes) < np.inf and min(sizes) > _SMALLEST_COEFFICIENT * max(sizes)
    if not is_sized or max(sum(powers) for powers, _ in terms) > FEW_TERMS:
        return None
    return tree_in_factors({powers: Fraction(int(c.p), int(c.q)) for powers, c in terms})


class _Bounded(NamedTuple):
    """A polynomial with upper bounds of its terms when multiplied out and of the factors of one term."""

    value: sympy.Expr
    n_terms: int
    n_factors: int


class _Atoms:
    """The subtrees that are the variables when a tree is read as a polynomial."""

    def __init__(self) -> None:
        self.symbols: dict[Tree, sympy.Symbol] = {}
        self.uses = Counter[Tree]()  # occurrences of each in the polynomial; one in a power counts twice

    def polynomial(self, tree: Tree, uses: int = 1) -> _Bounded:
        """Return a tree as a polynomial of the symbols."""
        if is_number(tree):
            number = exact(float(tree)) if isinstance(tree, float) else tree
            return _Bounded(sympy.Rational(number.numerator, number.denominator), 1, 1)
        parts: list[_Bounded] = []
        match tree:
            case ("neg", a):
                parts = [self.polynomial(a, uses)]
            case ("add" | "sub" | "mul" | "div" as name, a, b) if name != "div" or (is_number(b) and b != 0):
                parts = [self.polynomial(each, uses) for each in (a, b)]
            case (name, a, *exponent) if (power := _whole_power(name, exponent)) is not None:
                parts = power * [self.polynomial(a, 2)]
        if parts and (found := _joined(tree[0], parts)) is not None:
            return found
        self.uses[tree] += uses
        return _Bounded(self.symbols.setdefault(tree, sympy.Symbol(f"atom{len(self.symbols)}")), 1, 1)

    def replaced(self, tree: Tree, inner: dict[str, Tree]) -> Tree:
        """Return a tree with its variables replaced by other trees, given by the names of their symbols."""
        if tree in self.symbols:
            return inner[self.symbols[tree].name]
        if not isinstance(tree, tuple):
            return tree
        return (tree[0], *(self.replaced(child, inner) for child in tree[1:]))


def _joined(name: str, parts: list[_Bounded]) -> _Bounded | None:
    """Return polynomials joined by an operator, or None if the result is too large.

    The parts of a power are multiplied.
    """
    values, numbers, sizes = zip(*parts)
    if name == "neg":
        return _Bounded(-values[0], *parts[0][1:])
    if name in ("add", "sub"):
        second = values[1] if name == "add" else -values[1]
        found = _Bounded(values[0] + second, sum(numbers), max(sizes))
    else:
        value = values[0] / values[1] if name == "div" else sympy.Mul(*values)
        found = _Bounded(value, math.prod(numbers), sum(sizes))
    return found if max(found[1:]) <= _MOST_MULTIPLIED else None


def _whole_power(name: str, exponent: list[Tree]) -> int | None:
    """Return the exponent of a node that is a power with a small whole exponent, else None."""
    power: Tree = exponent[0] if name == "pow" and exponent else WHOLE_POWERS.get(name, 0)
    is_whole = is_number(power) and 2 <= power <= _LARGEST_POWER and power == int(power)
    return int(power) if is_whole else None
