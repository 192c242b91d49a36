"""Sums of products written as products of sums: (1 + 0.7*a + 0.3*b)**2 and not its six terms."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import sympy

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.rewriting.polynomials import tree_in_factors
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.simple_numbers import cost, exact
from dgsr.expressions.trees.trees import WHOLE_POWERS, Tree, is_number, map_leaves

# Largest whole power; most terms of a sum that is multiplied out, and most factors of one of these, numbers
# included; most terms of a sum that is brought into factors.
_LARGEST_POWER, _MOST_MULTIPLIED, _MOST_FACTORS, _MOST_TERMS = 6, 100, 40, 12
# Highest degree of a polynomial that is brought into factors, and its smallest coefficient, relative to the
# largest.
_HIGHEST_DEGREE, _SMALLEST_COEFFICIENT = 12, 1e-15
# Least complexity and digits, in sum, that factors must save.
_LEAST_SAVED = 1.0


def factored(formula: Expression) -> Expression:
    """Return a formula with its polynomials in factors, if it is easier to read so.

    Numbers are taken for the decimals that they are written as, so that the function stays the same. The
    formula keeps the names that it has.
    """
    try:
        tree = _factored(formula.tree)
        if tree == formula.tree:
            return formula
        tokens, constants = to_program(tidy(tree), formula.library)
    except (ValueError, ArithmeticError):  # it is too long, or a number in it beyond a float
        return formula
    other = Expression(formula.library, tokens, constants)
    keeps_names = set(formula.common_forms) <= set(other.common_forms)
    is_easier = _difficulty(other) <= _difficulty(formula) - _LEAST_SAVED
    return other if keeps_names and is_easier else formula


def _difficulty(formula: Expression) -> float:
    """Return how hard a formula is to read: its complexity and the cost of each number."""
    return formula.complexity + sum(map(cost, formula.constants.tolist()))


def _factored(tree: Tree) -> Tree:
    """Return a tree with every polynomial in it in factors, whatever its variables are."""
    if not isinstance(tree, tuple):
        return tree
    atoms = _Atoms()
    polynomial = atoms.polynomial(tree)
    symbols = [symbol for symbol in atoms.symbols.values() if polynomial.has(symbol)]
    if tree in atoms.symbols or not symbols:
        return (tree[0], *map(_factored, tree[1:]))
    inner = {symbol.name: _factored(atom) for atom, symbol in atoms.symbols.items()}
    terms = sympy.Poly(polynomial, *symbols).terms() if max(atoms.uses.values()) > 1 else []
    if not (3 <= len(terms) <= _MOST_TERMS and _is_usual(terms)):
        return atoms.replaced(tree, inner)
    in_factors = tree_in_factors({powers: Fraction(int(c.p), int(c.q)) for powers, c in terms})
    if in_factors is None:
        return atoms.replaced(tree, inner)
    names = {f"x{i + 1}": inner[symbol.name] for i, symbol in enumerate(symbols)}
    return map_leaves(in_factors, lambda leaf: names.get(leaf) or _decimal(leaf))


def _is_usual(terms: list[tuple[tuple[int, ...], sympy.Rational]]) -> bool:
    """Return whether degrees are low and coefficients of like sizes, so that factors are found soon."""
    sizes = [abs(float(c)) for _, c in terms]
    is_sized = 0.0 < max(sizes) < np.inf and min(sizes) > _SMALLEST_COEFFICIENT * max(sizes)
    return is_sized and max(sum(powers) for powers, _ in terms) <= _HIGHEST_DEGREE


def _decimal(number: Fraction) -> int | float:
    return int(number) if number == int(number) else float(number)


class _Bounded(NamedTuple):
    """A polynomial, with how many terms it has, multiplied out, and factors in one of them, at the most."""

    value: sympy.Expr
    n_terms: int
    n_factors: int


class _Atoms:
    """The parts of a tree that are variables of the polynomial that it is.

    Attributes
    ----------
    symbols : dict of tree to sympy.Symbol
    uses : Counter of tree
        How often each part stands in the polynomial, at least twice if it does in a power.
    """

    def __init__(self) -> None:
        self.symbols: dict[Tree, sympy.Symbol] = {}
        self.uses = Counter[Tree]()

    def polynomial(self, tree: Tree) -> sympy.Expr:
        """Return a tree as a polynomial of the symbols."""
        return self._polynomial(tree, 1).value

    def _polynomial(self, tree: Tree, uses: int) -> _Bounded:
        if is_number(tree):
            number = exact(float(tree)) if isinstance(tree, float) else tree
            return _Bounded(sympy.Rational(number.numerator, number.denominator), 1, 1)
        parts: list[_Bounded] = []
        match tree:
            case ("neg", a):
                parts = [self._polynomial(a, uses)]
            case ("add" | "sub" | "mul", a, b):
                parts = [self._polynomial(each, uses) for each in (a, b)]
            case ("div", a, b) if is_number(b) and b != 0:
                parts = [self._polynomial(each, uses) for each in (a, b)]
            case (name, a, *exponent) if (power := _whole_power(name, exponent)) is not None:
                parts = power * [self._polynomial(a, 2)]
        if parts and (found := _joined(tree[0], parts)) is not None:
            return found
        self.uses[tree] += uses
        return _Bounded(self.symbols.setdefault(tree, sympy.Symbol(f"atom{len(self.symbols)}")), 1, 1)

    def replaced(self, tree: Tree, inner: dict[str, Tree]) -> Tree:
        """Return a tree with other trees in the place of its parts, by the names of their symbols."""
        if tree in self.symbols:
            return inner[self.symbols[tree].name]
        if not isinstance(tree, tuple):
            return tree
        return (tree[0], *(self.replaced(child, inner) for child in tree[1:]))


def _joined(name: str, parts: list[_Bounded]) -> _Bounded | None:
    """Return polynomials joined by an operator, those of a power multiplied, or None if that is too much."""
    values, numbers, sizes = zip(*parts)
    if name == "neg":
        return _Bounded(-values[0], *parts[0][1:])
    if name in ("add", "sub"):
        second = values[1] if name == "add" else -values[1]
        found = _Bounded(values[0] + second, sum(numbers), max(sizes))
    else:
        found = _Bounded(
            values[0] / values[1] if name == "div" else sympy.Mul(*values), math.prod(numbers), sum(sizes)
        )
    return found if found.n_terms <= _MOST_MULTIPLIED and found.n_factors <= _MOST_FACTORS else None


def _whole_power(name: str, exponent: list[Tree]) -> int | None:
    """Return the exponent of a node that is a small whole power, else None."""
    power: Tree = exponent[0] if name == "pow" and exponent else WHOLE_POWERS.get(name, 0)
    is_whole = is_number(power) and 2 <= power <= _LARGEST_POWER and power == int(power)
    return int(power) if is_whole else None
