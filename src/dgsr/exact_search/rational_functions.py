"""Quotients of polynomials of several columns with whole coefficients, found on exact data by linear algebra.

p - y*q = 0 is linear in the coefficients of p and q. So the coefficients of a law are the null vector of a
matrix of products of columns, and of such products times y.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from dgsr.exact_search.polynomials import ERROR, MOST_MONOMIALS, SPARE_ROWS, whole
from dgsr.expressions.rewriting.polynomials import Polynomial, exponents_of, products_of

# Pairs of degrees of numerator and denominator that are tried.
_DEGREES = ((1, 1), (1, 2), (2, 1), (2, 2))
# Degrees of the polynomial where the other one is a single product of columns.
_BESIDE_PRODUCT = (1, 2)
# Highest degree of that product.
_OF_PRODUCT = 3
# Most terms of numerator and denominator together.
_MOST_TERMS = 120
# Largest singular value, relative to the largest of the matrix, that counts as 0.
_ZERO = 1e-12
# Relative size above which the second smallest must be. Two that are 0 mean factors that cancel.
_NOT_ZERO = 1e-10
# Largest squared residual of a product, as a share of its squares, that is a combination of other terms.
_LEFT_OVER = 1e-18
# Largest norm of a term's residual, relative to the term, at which it is a combination of earlier terms.
_SAME = 1e-10


def relation(matrix: np.ndarray) -> np.ndarray | None:
    """Return the null vector of a matrix (n_rows, n_terms) up to rounding, or None if it is not unique."""
    norms = np.sqrt((matrix**2).sum(axis=0))
    if not norms.all() or not np.isfinite(norms).all():
        return None
    _, singular, directions = np.linalg.svd(matrix / norms, full_matrices=False)
    if singular[-1] > _ZERO * singular[0] or singular[-2] <= _NOT_ZERO * singular[0]:
        return None
    return directions[-1] / norms


def as_rational(columns: np.ndarray, y: np.ndarray) -> tuple[Polynomial, Polynomial] | None:
    """Return two polynomials with whole coefficients and few terms whose quotient is y, or None.

    `columns`, of shape (n_columns, n_rows), must have at most 2,000 products of up to three factors.
    """
    n = len(columns)
    sizes = np.abs(columns).max(axis=1)
    is_finite = np.isfinite(sizes).all() and np.isfinite(y).all() and y.any()
    if not is_finite or comb(n + _OF_PRODUCT, _OF_PRODUCT) > MOST_MONOMIALS:
        return None
    sizes[sizes == 0.0] = 1.0
    scaled, factors = columns / sizes[:, None], products_of(n, _OF_PRODUCT)
    values = np.array([np.prod(scaled[list(of)], axis=0) for of in factors])
    units = np.array([np.prod(sizes[list(of)]) for of in factors])  # of the values
    degrees = np.array([len(of) for of in factors])
    for above, below in _kinds(degrees, values, y):
        found = relation(np.vstack([values[above], -y * values[below]]).T)
        if found is None:
            continue
        is_term = np.abs(found) > 1e-6 * np.abs(found).max()
        free = np.where(is_term, found, 0.0) / units[np.append(above, below)]
        coefficients, _ = whole(free / np.abs(free[is_term]).min())
        if coefficients is None:
            continue
        p, q = np.split(coefficients.astype(int), [len(above)])
        numerator, denominator = ((c * units[of]) @ values[of] for c, of in ((p, above), (q, below)))
        is_exact = np.abs(y * denominator - numerator).max() <= ERROR * np.abs(numerator).max()
        if is_exact and numerator.any() and denominator.any():
            return _polynomial(p, above, factors, n), _polynomial(q, below, factors, n)
    return None


def _kinds(degrees: np.ndarray, values: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of the terms of numerator and denominator, those with the fewest terms first."""
    independent = _independent(values[degrees <= max(_BESIDE_PRODUCT)])
    up_to = [independent[degrees[independent] <= degree] for degree in range(max(_BESIDE_PRODUCT) + 1)]
    kinds = [(up_to[above], up_to[below]) for above, below in _DEGREES]
    products = np.flatnonzero(degrees)
    for beside in (up_to[degree] for degree in _BESIDE_PRODUCT):
        if len(beside) + 1 <= len(y) - SPARE_ROWS:
            of_law = products[_are_combinations(values[products], y * values[beside])]
            kinds += [(of_law[[i]], beside) for i in range(len(of_law))]
            of_law = products[_are_combinations(y * values[products], values[beside])]
            kinds += [(beside, of_law[[i]]) for i in range(len(of_law))]
    most = min(_MOST_TERMS, len(y) - SPARE_ROWS)
    kinds = [kind for kind in kinds if sum(map(len, kind)) <= most]
    yield from sorted(kinds, key=lambda kind: sum(map(len, kind)))


def _independent(values: np.ndarray) -> np.ndarray:
    """Return the indices of the terms, of (n_terms, n_rows), that are linearly independent of earlier ones.

    Terms may depend on each other: the square of a column of zeros and ones is the column itself, and the sum
    of two columns may be a third.
    """
    kept, directions = [], np.zeros((0, values.shape[1]))
    for number, term in enumerate(values):
        left = term - (directions @ term) @ directions
        left -= (directions @ left) @ directions  # repeated, since the first projection is rounded
        norm = np.linalg.norm(left)
        if norm > _SAME * np.linalg.norm(term):
            kept.append(number)
            directions = np.vstack([directions, left / norm])
    return np.array(kept, dtype=np.int64)


def _are_combinations(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return which vectors, (n_vectors, n_rows), are linear combinations of a basis, shape (n_vectors,)."""
    inside = np.linalg.qr(basis.T)[0]
    left = vectors - (vectors @ inside) @ inside.T
    return (left**2).sum(axis=1) <= _LEFT_OVER * (vectors**2).sum(axis=1)


def _polynomial(
    coefficients: np.ndarray, terms: np.ndarray, factors: list[tuple[int, ...]], n_columns: int
) -> Polynomial:
    return {exponents_of(factors[i], n_columns): int(c) for i, c in zip(terms, coefficients) if c != 0}
