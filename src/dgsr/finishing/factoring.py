"""Sums of products written as products of sums: (1 + 0.7*a + 0.3*b)**2 and not its six terms."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import sympy

from dgsr.expressions.expression import Expression
from dgsr.expressions.polynomials import tree_in_factors
from dgsr.expressions.programs import to_program
from dgsr.expressions.simple_numbers import cost, exact
from dgsr.expressions.tidy import tidy
from dgsr.expressions.trees import WHOLE_POWERS, Tree, is_number, map_leaves

# Largest whole power; most terms of a sum that is multiplied out, and of one that is brought into factors.
_LARGEST_POWER, _MOST_MULTIPLIED, _MOST_TERMS = 6, 100, 12
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
    """Return whether factors are found in milliseconds: degrees are low, and coefficients of like sizes."""
    sizes = [abs(float(c)) for _, c in terms]
    is_sized = 0.0 < max(sizes) < np.inf and min(sizes) > _SMALLEST_COEFFICIENT * max(sizes)
    return is_sized and max(sum(powers) for powers, _ in terms) <= _HIGHEST_DEGREE


def _decimal(number: Fraction) -> int | float:
    return int(number) if number == int(number) else float(number)


class _Atoms:
    """The parts of a tree that are variables of the polynomial that it is.

    Attributes
    ----------
    symbols : dict of tree to sympy.Symbol
    uses : Counter of tree
        How often each part stands in the polynomial, where a power counts twice.
    """

    def __init__(self) -> None:
        self.symbols: dict[Tree, sympy.Symbol] = {}
        self.uses = Counter[Tree]()

    def polynomial(self, tree: Tree) -> sympy.Expr:
        """Return a tree as a polynomial of the symbols."""
        return self._polynomial(tree, 1)[0]

    def _polynomial(self, tree: Tree, uses: int) -> tuple[sympy.Expr, int]:
        """Return the polynomial, and how many terms it has at the most when it is multiplied out."""
        if is_number(tree):
            number = exact(float(tree)) if isinstance(tree, float) else tree
            return sympy.Rational(number.numerator, number.denominator), 1
        found = None
        match tree:
            case ("neg", a):
                inside, n_terms = self._polynomial(a, uses)
                found = -inside, n_terms
            case ("add" | "sub" | "mul" as name, a, b):
                (left, n_left), (right, n_right) = (self._polynomial(each, uses) for each in (a, b))
                if name == "mul":
                    found = left * right, n_left * n_right
                else:
                    found = left + (right if name == "add" else -right), n_left + n_right
            case ("div", a, b) if is_number(b) and b != 0:
                inside, n_terms = self._polynomial(a, uses)
                found = inside / self._polynomial(b, uses)[0], n_terms
            case (name, a, *exponent) if (power := _whole_power(name, exponent)) is not None:
                inside, n_terms = self._polynomial(a, 2)
                found = inside**power, n_terms**power
        if found is not None and found[1] <= _MOST_MULTIPLIED:
            return found
        self.uses[tree] += uses
        return self.symbols.setdefault(tree, sympy.Symbol(f"atom{len(self.symbols)}")), 1

    def replaced(self, tree: Tree, inner: dict[str, Tree]) -> Tree:
        """Return a tree with other trees in the place of its parts, by the names of their symbols."""
        if tree in self.symbols:
            return inner[self.symbols[tree].name]
        if not isinstance(tree, tuple):
            return tree
        return (tree[0], *(self.replaced(child, inner) for child in tree[1:]))


def _whole_power(name: str, exponent: list[Tree]) -> int | None:
    """Return the exponent of a node that is a small whole power, else None."""
    power: Tree = exponent[0] if name == "pow" and exponent else WHOLE_POWERS.get(name, 0)
    is_whole = is_number(power) and 2 <= power <= _LARGEST_POWER and power == int(power)
    return int(power) if is_whole else None
