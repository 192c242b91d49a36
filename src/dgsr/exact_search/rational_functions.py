"""Quotients of polynomials of several columns with whole coefficients, found on exact data by linear algebra.

p - y*q = 0 is linear in the coefficients of p and q, so that those of a law are the one vector that a matrix
of products of columns, and of the same times y, maps to 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from dgsr.exact_search.polynomials import ERROR, MOST_MONOMIALS, SPARE_ROWS, whole
from dgsr.expressions.rewriting.polynomials import Polynomial, exponents_of, products_of

# Degrees of numerator and denominator, degrees of the polynomials beside a single product of columns, and the
# highest degree of that product.
_DEGREES, _BESIDE_PRODUCT, _OF_PRODUCT = ((1, 1), (1, 2), (2, 1), (2, 2)), (1, 2), 3
# Most terms of a kind.
_MOST_TERMS = 120
# Singular values, relative to the largest, up to which one counts as 0, and above which the next must be: two
# that are 0 are a quotient of lower degrees, with factors that cancel.
_ZERO, _NOT_ZERO = 1e-12, 1e-10
# Share of a product that combinations of other terms may leave over if it belongs to a quotient with them.
_LEFT_OVER = 1e-18
# Share of a term that earlier ones leave over if it is a combination of them.
_SAME = 1e-10


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
        Tables with more than 2,000 products of up to three columns are left alone.
    y : ndarray of shape (n_rows,)
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
    """Yield the terms that numerator and denominator may have, the kinds with the fewest terms first."""
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
    """Return the numbers of those terms, of (n_terms, n_rows), that are no combinations of earlier ones.

    The square of a column of zeros and ones is the column, and the sum of two columns may be a third.
    """
    kept, directions = [], np.zeros((0, values.shape[1]))
    for number, term in enumerate(values):
        left = term - (directions @ term) @ directions
        left -= (directions @ left) @ directions  # again, for what rounding left of the first time
        norm = np.linalg.norm(left)
        if norm > _SAME * np.linalg.norm(term):
            kept.append(number)
            directions = np.vstack([directions, left / norm])
    return np.array(kept, dtype=np.int64)


def _are_combinations(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return which of some vectors, (n_vectors, n_rows), are combinations of others, shape (n_vectors,)."""
    inside = np.linalg.qr(basis.T)[0]
    left = vectors - (vectors @ inside) @ inside.T
    return (left**2).sum(axis=1) <= _LEFT_OVER * (vectors**2).sum(axis=1)


def _polynomial(
    coefficients: np.ndarray, terms: np.ndarray, factors: list[tuple[int, ...]], n_columns: int
) -> Polynomial:
    return {exponents_of(factors[i], n_columns): int(c) for i, c in zip(terms, coefficients) if c != 0}
