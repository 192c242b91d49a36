"""Quotients of polynomials of several columns with whole coefficients, found on exact data by linear algebra.

p - y*q = 0 is linear in the coefficients of p and q, so that those of a law are the one vector that a matrix
of products of columns, and of the same times y, maps to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from dgsr.exact_search.polynomials import exponents_of, whole
from dgsr.expressions.polynomials import Polynomial

# Degrees of numerator and denominator, degrees of the polynomials beside a single product of columns, and the
# highest degree of that product.
_DEGREES, _BESIDE_PRODUCT, _OF_PRODUCT = ((1, 1), (1, 2), (2, 1), (2, 2)), (1, 2), 3
# Most terms, and rows that must be left to check the coefficients by.
_MOST_TERMS, _SPARE_ROWS = 120, 4
# Singular values, relative to the largest, up to which one counts as 0, and above which the next must be: two
# that are 0 are a quotient of lower degrees, with factors that cancel.
_ZERO, _NOT_ZERO = 1e-12, 1e-10
# Share of a product that combinations of other terms may leave over if it belongs to a quotient with them.
_LEFT_OVER = 1e-18
# Largest error of y*q = p, by which the whole coefficients are checked at all rows.
_ERROR = 1e-9


def relation(matrix: np.ndarray) -> np.ndarray | None:
    """Return the one vector that a matrix (n_rows, n_terms) maps to 0 but for rounding, or None."""
    norms = np.sqrt((matrix**2).sum(axis=0))
    if not norms.all() or not np.isfinite(norms).all():
        return None
    _, singular, directions = np.linalg.svd(matrix / norms, full_matrices=False)
    if singular[-1] > _ZERO * singular[0] or singular[-2] <= _NOT_ZERO * singular[0]:
        return None
    return directions[-1] / norms


def as_rational(columns: np.ndarray, y: np.ndarray) -> tuple[Polynomial, Polynomial] | None:
    """Return two polynomials with whole coefficients and few terms whose quotient is y, or None.

    Parameters
    ----------
    columns : ndarray of shape (n_columns, n_rows)
    y : ndarray of shape (n_rows,)
    """
    sizes = np.abs(columns).max(axis=1)
    if not (np.isfinite(sizes).all() and sizes.all() and np.isfinite(y).all() and y.any()):
        return None
    scaled = columns / sizes[:, None]
    n = len(columns)
    factors = [of for d in range(_OF_PRODUCT + 1) for of in combinations_with_replacement(range(n), d)]
    values = np.array([np.prod(scaled[list(of)], axis=0) for of in factors])
    units = np.array([np.prod(sizes[list(of)]) for of in factors])  # of the values
    for above, below in _kinds(np.array([len(of) for of in factors]), values, y):
        found = relation(np.vstack([values[above], -y * values[below]]).T)
        if found is None:
            continue
        free = found / units[np.append(above, below)]
        kept = np.abs(found) > 1e-6 * np.abs(found).max()
        coefficients, _ = whole(np.where(kept, free, 0.0) / np.abs(free[kept]).min())
        if coefficients is None:
            continue
        p, q = np.split(coefficients.astype(int), [len(above)])
        numerator, denominator = (
            p @ (values[above] * units[above, None]),
            q @ (values[below] * units[below, None]),
        )
        if np.abs(y * denominator - numerator).max() <= _ERROR * np.abs(numerator).max():
            return _polynomial(p, above, factors, n), _polynomial(q, below, factors, n)
    return None


def _kinds(degrees: np.ndarray, values: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the terms that numerator and denominator may have, the kinds with the fewest terms first."""
    up_to = [np.flatnonzero(degrees <= degree) for degree in range(_OF_PRODUCT + 1)]
    kinds = [(up_to[above], up_to[below]) for above, below in _DEGREES]
    for degree in _BESIDE_PRODUCT:
        beside, products = up_to[degree], up_to[-1][1:]
        if len(beside) + 1 > len(y) - _SPARE_ROWS:
            continue
        of_law = products[_are_combinations(values[products], y * values[beside])]
        kinds += [(of_law[[i]], beside) for i in range(len(of_law))]
        of_law = products[_are_combinations(y * values[products], values[beside])]
        kinds += [(beside, of_law[[i]]) for i in range(len(of_law))]
    most = min(_MOST_TERMS, len(y) - _SPARE_ROWS)
    kinds = [kind for kind in kinds if sum(map(len, kind)) <= most]
    yield from sorted(kinds, key=lambda kind: sum(map(len, kind)))


def _are_combinations(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return which of some vectors, (n_vectors, n_rows), are combinations of others, shape (n_vectors,)."""
    inside = np.linalg.qr(basis.T)[0]
    left = vectors - (vectors @ inside) @ inside.T
    return (left**2).sum(axis=1) <= _LEFT_OVER * (vectors**2).sum(axis=1)


def _polynomial(
    coefficients: np.ndarray, terms: np.ndarray, factors: list[tuple[int, ...]], n_columns: int
) -> Polynomial:
    return {exponents_of(factors[i], n_columns): int(c) for i, c in zip(terms, coefficients) if c != 0}
