"""Polynomials with whole coefficients and quotients of two, found on exact data by linear algebra.

The values of a polynomial are a linear combination of few monomials of the columns. Where there are more rows
than monomials, least squares finds it; where there are fewer, orthogonal matching pursuit does (Pati,
Rezaiifar and Krishnaprasad, 1993), which on exact data ends with a residual of rounding errors. For a
quotient p - y*q = 0 is linear in the coefficients of p and q, which are the null vector of a matrix of
products of columns, and of such products times y.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb

import numpy as np

from dgsr.expressions.rewriting.polynomials import Polynomial, exponents_of, products_of

# Largest total degree of a polynomial, and of a product that is numerator or denominator alone.
_LARGEST_DEGREE = 3
# Most monomials of all columns up to the degree.
_MOST_MONOMIALS = 2_000
#: Rows beyond the number of unknown coefficients that a fit needs, so that they can refute it.
SPARE_ROWS = 4
# Most terms that matching pursuit selects. Many are wrong, but once all terms of the law are selected, the
# coefficients of the wrong ones vanish and the others are whole.
_MOST_PURSUED = 40
# Fewest rows for each selected term.
_ROWS_PER_TERM = 2
#: Largest residual, as a share of the largest absolute value that it is left of, that counts as rounding.
ERROR = 1e-9
# Largest whole coefficient, and largest factor by which coefficients become whole.
_LARGEST_COEFFICIENT = 24
# Largest distance of a whole coefficient from a whole number.
_NOT_WHOLE = 1e-4
# Largest degree of numerator and denominator of a quotient of one column, and of several.
_OF_ONE_COLUMN, _OF_SEVERAL = 6, 2
# Most terms of numerator and denominator together.
_MOST_TERMS = 120
# Largest singular value, relative to the largest of the matrix, that counts as 0.
_ZERO = 1e-12
# Relative size above which the second smallest must be, since two that are 0 mean factors that cancel, and
# norm of a term's residual, relative to the term, above which it is no combination of earlier terms.
_NOT_ZERO = 1e-10


def as_polynomial(columns: np.ndarray, y: np.ndarray) -> tuple[Polynomial, int] | None:
    """Return a polynomial with whole coefficients and a whole divisor, whose quotient is y, or None.

    `columns` has the shape (n_columns, n_rows), and `y` the shape (n_rows,).
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
    """Return the result of `as_polynomial` for monomials up to one degree."""
    factors, values = _products(columns, degree)
    norms = np.sqrt((values**2).sum(axis=1))
    used = np.flatnonzero(np.isfinite(norms) & (norms > 0.0))
    scaled = values[used] / norms[used, None]
    if len(used) <= len(y) - SPARE_ROWS:
        chosen = np.arange(len(used))
    else:
        chosen = _pursued(scaled, y, min(_MOST_PURSUED, len(y) // _ROWS_PER_TERM))
    fit, *_ = np.linalg.lstsq(scaled[chosen].T, y, rcond=None)
    coefficients, divisor = whole(fit / norms[used[chosen]])
    if coefficients is None:
        return None
    if np.abs(coefficients @ values[used[chosen]] / divisor - y).max() > ERROR * np.abs(y).max():
        return None
    return _polynomial(coefficients, used[chosen], factors, len(columns)), divisor


def _products(columns: np.ndarray, degree: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the factors of all products of columns up to a degree, and their values."""
    factors = products_of(len(columns), degree)
    return factors, np.array([np.prod(columns[list(of)], axis=0) for of in factors])


def _pursued(values: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Return the indices of the rows of `values` that orthogonal matching pursuit selects."""
    chosen: list[int] = []
    residual = y
    while len(chosen) < most and np.abs(residual).max() > ERROR * np.abs(y).max():
        chosen.append(int(np.argmax(np.abs(values @ residual))))
        fit, *_ = np.linalg.lstsq(values[chosen].T, y, rcond=None)
        residual = y - fit @ values[chosen]
    return np.array(chosen, dtype=np.int64)


def whole(numbers: np.ndarray) -> tuple[np.ndarray | None, int]:
    """Return the smallest whole multiples of numbers, and the factor; None and 1 if there are none.

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

    `columns`, of shape (n_columns, n_rows), must have at most 2,000 products of up to three factors. The
    degrees of the polynomials are at most 6 for one column; for several they are 2, or 3 if one of the
    polynomials is a single product.
    """
    n = len(columns)
    sizes = np.abs(columns).max(axis=1)
    is_finite = np.isfinite(sizes).all() and np.isfinite(y).all() and y.any()
    if not is_finite or comb(n + _LARGEST_DEGREE, _LARGEST_DEGREE) > _MOST_MONOMIALS:
        return None
    # Terms below a millionth are rounding errors, of the coefficients of one column, which are whole numbers,
    # and of several columns scaled to one size, since their units may differ.
    sizes[(sizes == 0.0) | (n == 1)] = 1.0
    factors, values = _products(columns / sizes[:, None], _LARGEST_DEGREE if n > 1 else _OF_ONE_COLUMN)
    units = np.array([np.prod(sizes[list(of)]) for of in factors])  # of the values
    degrees = np.array([len(of) for of in factors])
    for above, below in _kinds(degrees, values, y, _OF_SEVERAL if n > 1 else _OF_ONE_COLUMN):
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


def _kinds(
    degrees: np.ndarray, values: np.ndarray, y: np.ndarray, largest: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of the terms of numerator and denominator, those with the fewest terms first.

    `largest` is the largest degree of a polynomial beside another one.
    """
    independent = _independent(values[degrees <= largest])
    up_to = [independent[degrees[independent] <= degree] for degree in range(largest + 1)]
    kinds = list(product(up_to[1:], repeat=2))
    products = np.flatnonzero(degrees)
    for beside in up_to[1 : _OF_SEVERAL + 1]:  # where the other one is a single product of columns
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
        if norm > _NOT_ZERO * np.linalg.norm(term):
            kept.append(number)
            directions = np.vstack([directions, left / norm])
    return np.array(kept, dtype=np.int64)


def _are_combinations(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return which vectors, (n_vectors, n_rows), are linear combinations of a basis, shape (n_vectors,)."""
    inside = np.linalg.qr(basis.T)[0]
    left = vectors - (vectors @ inside) @ inside.T
    return (left**2).sum(axis=1) <= ERROR**2 * (vectors**2).sum(axis=1)


def _polynomial(
    coefficients: np.ndarray, terms: np.ndarray, factors: list[tuple[int, ...]], n_columns: int
) -> Polynomial:
    """Return the polynomial with these coefficients of some terms, which are given by their numbers."""
    return {exponents_of(factors[i], n_columns): int(c) for i, c in zip(terms, coefficients) if c != 0}
