"""Polynomials of several columns, and the shortest trees that they are written as."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from typing import NamedTuple

import numpy as np
import sympy

from dgsr.expressions.trees import Tree

#: The exponents of the columns, and the coefficient.
Term = tuple[tuple[int, ...], int | float]
#: A polynomial: its coefficients by the exponents of the columns. All are whole numbers, or all are floats.
Polynomial = Mapping[tuple[int, ...], int | float]


class _Signed(NamedTuple):
    """A tree and the sign that it has in a sum."""

    n_tokens: int
    tree: Tree
    sign: int


def polynomial_tree(polynomial: Polynomial, divisor: int = 1) -> Tree:
    """Return a tree of a polynomial over x1 .. xd, divided by a number.

    Parts that share no column are written one by one, with whole coefficients as products of their factors:
    a**2 - 2*a*b + b**2 + c**2 is (a - b)*(a - b) + c*c. Of the columns that several terms of a factor share,
    that one is taken out first which leaves the fewest tokens. Whole coefficients are counted as sums of
    columns, 2*x as x + x, and floats as one number each.
    """
    _, tree, sign = _written(polynomial)
    tree = tree if sign > 0 else ("neg", tree)
    return tree if divisor == 1 else ("div", tree, divisor)


def quotient_tree(numerator: Polynomial, denominator: Polynomial) -> Tree:
    """Return a tree of a quotient of two polynomials, each written as `polynomial_tree` does."""
    above, below = _written(numerator), _written(denominator)
    tree = above.tree if below.tree == 1.0 else ("div", above.tree, below.tree)
    return tree if above.sign == below.sign else ("neg", tree)


def _written(polynomial: Polynomial) -> _Signed:
    terms = tuple(sorted(polynomial.items()))
    common, left = _without_common_factor(terms)
    parts = list(_unconnected(left))
    # A number shares no column with anything, but (a + 1)**2 has one.
    number = next((part for part in parts if not any(part[0][0])), ())
    others = [part for part in parts if part != number]
    ways = [parts, *([*others[:i], (*number, *others[i]), *others[i + 1 :]] for i in range(len(others)))]
    sums = [reduce(_added, map(_factored, way)) for way in (ways if number else [parts])]
    whole = min(sums, key=lambda each: each.n_tokens)
    if not any(common):
        return whole
    factor = _monomial(common, 1)
    return _Signed(factor.n_tokens + whole.n_tokens + 1, ("mul", factor.tree, whole.tree), whole.sign)


def _factored(terms: tuple[Term, ...]) -> _Signed:
    """Return a sum as it stands, or as the product of its factors if that is shorter."""
    shortest = _Sums().shortest
    found = shortest(terms)
    if len(terms) < 3 or any(isinstance(c, float) for _, c in terms):
        return found
    columns = sympy.symbols(f"x1:{len(terms[0][0]) + 1}")
    number, factors = sympy.Poly(dict(terms), *columns).factor_list()
    if int(number) not in (-1, 1) or sum(power for _, power in factors) < 2:
        return found
    each = [
        shortest(tuple(sorted((term, int(c)) for term, c in factor.terms())))
        for factor, power in factors
        for _ in range(power)
    ]
    n_tokens = sum(factor.n_tokens for factor in each) + len(each) - 1
    if n_tokens >= found.n_tokens:
        return found
    sign = int(number) * int(np.prod([factor.sign for factor in each]))
    tree = reduce(lambda left, right: ("mul", left, right), [factor.tree for factor in each])
    return _Signed(n_tokens, tree, sign)


def _unconnected(terms: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """Yield the parts of a sum that share no column, in the order of their first terms."""
    left = list(terms)
    while left:
        part, columns = [left.pop(0)], set[int]()
        n_before = 0
        while len(part) > n_before:
            n_before = len(part)
            columns = {i for term, _ in part for i, power in enumerate(term) if power}
            near = [each for each in left if columns.intersection(np.flatnonzero(each[0]).tolist())]
            left = [each for each in left if each not in near]
            part += near
        yield tuple(sorted(part))


def _without_common_factor(terms: tuple[Term, ...]) -> tuple[tuple[int, ...], tuple[Term, ...]]:
    """Return the exponents that all terms share, and the terms without them; a single term has none."""
    exponents = np.array([term for term, _ in terms])
    if len(terms) == 1:
        return (0,) * exponents.shape[1], terms
    common = exponents.min(axis=0)
    left = tuple((tuple(term), c) for term, (_, c) in zip((exponents - common).tolist(), terms))
    return tuple(common.tolist()), left


class _Sums:
    """Writes sums of terms, each sum once."""

    def __init__(self) -> None:
        self.shortest = cache(self._shortest)

    def _shortest(self, terms: tuple[Term, ...]) -> _Signed:
        if len(terms) == 1:
            return _monomial(*terms[0])
        common, left = _without_common_factor(terms)
        if any(common):
            factor, rest = _monomial(common, 1), self.shortest(left)
            tree = ("mul", factor.tree, rest.tree)
            return _Signed(factor.n_tokens + rest.n_tokens + 1, tree, rest.sign)
        exponents = np.array([term for term, _ in terms])
        n_with = (exponents > 0).sum(axis=0)
        shared = np.flatnonzero((n_with > 1) & (n_with < len(terms)))
        splits = [exponents[:, column] == 0 for column in shared] or [np.arange(len(terms)) == 0]
        found = []
        for is_first in splits:
            parts = [tuple(t for t, own in zip(terms, is_first) if own == side) for side in (True, False)]
            found.append(_added(*map(self.shortest, parts)))
        return min(found, key=lambda each: each.n_tokens)


def _added(first: _Signed, second: _Signed) -> _Signed:
    """Return the sum of two signed trees."""
    n = first.n_tokens + second.n_tokens + 1
    if first.sign == second.sign:
        return _Signed(n, ("add", first.tree, second.tree), first.sign)
    if first.sign < 0:
        first, second = second, first
    return _Signed(n, ("sub", first.tree, second.tree), 1)


def _monomial(exponents: tuple[int, ...], coefficient: int | float) -> _Signed:
    """Return a product of columns and a number; a library without constants writes whole ones as sums."""
    names = [f"x{i + 1}" for i, power in enumerate(exponents) for _ in range(power)]
    size, sign = abs(coefficient), 1 if coefficient > 0 else -1
    if not names:
        return _Signed(1 if isinstance(size, float) else 2 * size + 1, size, sign)
    n_tokens = 2 * len(names) - 1
    tree: Tree = names[-1]
    if size != 1:
        tree = ("mul", size, tree)
        n_tokens += 2 if isinstance(size, float) else 2 * size - 2
    for name in reversed(names[:-1]):
        tree = ("mul", name, tree)
    return _Signed(n_tokens, tree, sign)
