"""Polynomials of several columns with whole coefficients, found on exact data by linear algebra.

The values of a polynomial are a sum of few of the monomials of the columns. Where there are more rows than
monomials, least squares says which; where there are fewer, orthogonal matching pursuit does, which on exact
data ends with a residual of nothing but rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np

from dgsr.expressions.trees import Tree

#: The exponents of the columns, and the coefficient.
Term = tuple[tuple[int, ...], int]
#: A polynomial: whole coefficients by the exponents of the columns.
Polynomial = Mapping[tuple[int, ...], int]

# Largest degree, most monomials, and rows that must be left to check least squares by.
_LARGEST_DEGREE, _MOST_MONOMIALS, _SPARE_ROWS = 3, 2_000, 4
# Most terms that are pursued, and rows for each of them. Many are wrong: what is right is that their
# coefficients vanish once all that belong to the law are there, and that the others are whole.
_MOST_TERMS, _ROWS_PER_TERM = 40, 2
# Largest residual, in units of the target, that is rounding.
_ERROR = 1e-9
# Largest coefficient, and largest distance of a coefficient from a whole number.
_LARGEST_COEFFICIENT, _NOT_WHOLE = 24, 1e-4


def as_polynomial(columns: np.ndarray, y: np.ndarray) -> tuple[Polynomial, int] | None:
    """Return a polynomial with whole coefficients and a whole number, whose quotient is y, or None.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
    y : ndarray of shape (n_rows,)

    References
    ----------
    Pati, Rezaiifar, Krishnaprasad, 1993 (orthogonal matching pursuit).
    """
    if not (np.isfinite(columns).all() and np.isfinite(y).all() and y.any()):
        return None
    for degree in range(1, _LARGEST_DEGREE + 1):
        if comb(len(columns) + degree, degree) > _MOST_MONOMIALS:
            break
        found = _of_degree(columns, y, degree)
        if found is not None:
            return found
    return None


def _of_degree(columns: np.ndarray, y: np.ndarray, degree: int) -> tuple[Polynomial, int] | None:
    """Return what `as_polynomial` does, with the monomials up to a degree."""
    factors = _factors(len(columns), degree)
    values = np.array([np.prod(columns[list(of)], axis=0) for of in factors])
    norms = np.sqrt((values**2).sum(axis=1))
    used = np.flatnonzero(np.isfinite(norms) & (norms > 0.0))
    scaled = values[used] / norms[used, None]
    if len(used) <= len(y) - _SPARE_ROWS:
        chosen = np.arange(len(used))
    else:
        chosen = _pursued(scaled, y, min(_MOST_TERMS, len(y) // _ROWS_PER_TERM))
    if not len(chosen):
        return None
    fit, *_ = np.linalg.lstsq(scaled[chosen].T, y, rcond=None)
    coefficients, divisor = whole(fit / norms[used[chosen]])
    if coefficients is None:
        return None
    if np.abs(coefficients @ values[used[chosen]] / divisor - y).max() > _ERROR * np.abs(y).max():
        return None
    found = {factors[used[i]]: int(c) for i, c in zip(chosen, coefficients) if c != 0}
    return {_exponents(of, len(columns)): c for of, c in found.items()}, divisor


def _factors(n_columns: int, degree: int) -> list[tuple[int, ...]]:
    """Return the columns that all monomials up to a degree are products of, in rising order of it."""
    return [
        of for total in range(degree + 1) for of in combinations_with_replacement(range(n_columns), total)
    ]


def _exponents(factors: tuple[int, ...], n_columns: int) -> tuple[int, ...]:
    """Return how often each column is among the factors of a monomial."""
    return tuple(np.bincount(np.array(factors, dtype=int), minlength=n_columns).tolist())


def _pursued(values: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the numbers of the rows of `values` that orthogonal matching pursuit takes one by one."""
    chosen: list[int] = []
    residual = y
    while len(chosen) < most and np.abs(residual).max() > _ERROR * np.abs(y).max():
        chosen.append(int(np.argmax(np.abs(values @ residual))))
        fit, *_ = np.linalg.lstsq(values[chosen].T, y, rcond=None)
        residual = y - fit @ values[chosen]
    return np.array(chosen, dtype=np.int64)


def whole(numbers: np.ndarray) -> tuple[np.ndarray | None, int]:
    """Return the smallest multiples of some numbers that are whole, and the factor; None if there are none.

    Numbers below a millionth of the largest count as 0.
    """
    sizes = np.abs(numbers)
    kept = np.where(sizes <= 1e-6 * sizes.max(), 0.0, numbers)
    for factor in range(1, _LARGEST_COEFFICIENT + 1):
        near = np.round(kept * factor)
        if np.abs(near).max() > _LARGEST_COEFFICIENT:
            break
        if near.any() and np.abs(kept * factor - near).max() <= _NOT_WHOLE:
            return near, factor
    return None, 1


class _Signed(NamedTuple):
    """A tree and the sign that it has in a sum."""

    n_tokens: int
    tree: Tree
    sign: int


def polynomial_tree(polynomial: Polynomial, divisor: int = 1) -> Tree:
    """Return a tree of a polynomial over x1 .. xd, divided by a number, with common factors taken out.

    Of the columns that several terms share, that one is taken out first which leaves the fewest tokens.
    """
    _, tree, sign = _Sums().shortest(tuple(sorted(polynomial.items())))
    tree = tree if sign > 0 else ("neg", tree)
    return tree if divisor == 1 else ("div", tree, divisor)


class _Sums:
    """Writes sums of terms, each sum once."""

    def __init__(self) -> None:
        self.shortest = cache(self._shortest)

    def _shortest(self, terms: tuple[Term, ...]) -> _Signed:
        exponents = np.array([term for term, _ in terms])
        if len(terms) == 1:
            return _monomial(exponents[0], terms[0][1])
        common = exponents.min(axis=0)
        if common.any():
            left = tuple((tuple(term), c) for term, (_, c) in zip((exponents - common).tolist(), terms))
            factor, rest = _monomial(common, 1), self.shortest(left)
            tree = ("mul", factor.tree, rest.tree)
            return _Signed(factor.n_tokens + rest.n_tokens + 1, tree, rest.sign)
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


def _monomial(exponents: np.ndarray, coefficient: int) -> _Signed:
    """Return a product of columns and a whole number, which a library without constants writes as sums."""
    names = [f"x{i + 1}" for i, power in enumerate(exponents) for _ in range(power)]
    size, sign = abs(coefficient), 1 if coefficient > 0 else -1
    if not names:
        return _Signed(2 * size + 1, size, sign)
    tree: Tree = names[-1] if size == 1 else ("mul", size, names[-1])
    for name in reversed(names[:-1]):
        tree = ("mul", name, tree)
    return _Signed(2 * (len(names) + size) - 3, tree, sign)
