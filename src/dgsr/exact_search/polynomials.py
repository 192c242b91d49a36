"""Polynomials of several columns with whole coefficients, found on exact data by linear algebra.

The values of a polynomial are a linear combination of few monomials of the columns. Where there are more rows
than monomials, least squares finds it; where there are fewer, orthogonal matching pursuit does, which on
exact data ends with a residual of rounding errors.
"""

from __future__ import annotations

from math import comb

import numpy as np

from dgsr.expressions.rewriting.polynomials import Polynomial, exponents_of, products_of

# Largest total degree of a polynomial.
_LARGEST_DEGREE = 3
#: Most monomials of all columns up to the degree.
MOST_MONOMIALS = 2_000
#: Rows beyond the number of unknown coefficients that a fit needs, so that they can refute it.
SPARE_ROWS = 4
# Most terms that matching pursuit selects. Many are wrong, but once all terms of the law are selected, the
# coefficients of the wrong ones vanish and the others are whole.
_MOST_TERMS = 40
# Fewest rows for each selected term.
_ROWS_PER_TERM = 2
#: Largest residual, as a share of the largest absolute target, that counts as rounding.
ERROR = 1e-9
# Largest whole coefficient, and largest factor by which coefficients become whole.
_LARGEST_COEFFICIENT = 24
# Largest distance of a whole coefficient from a whole number.
_NOT_WHOLE = 1e-4


def as_polynomial(columns: np.ndarray, y: np.ndarray) -> tuple[Polynomial, int] | None:
    """Return a polynomial with whole coefficients and a whole divisor, whose quotient is y, or None.

    `columns` has the shape (n_columns, n_rows), and `y` the shape (n_rows,).

    References
    ----------
    Pati, Rezaiifar, Krishnaprasad, 1993 (orthogonal matching pursuit).
    """
    if not (np.isfinite(columns).all() and np.isfinite(y).all() and y.any()):
        return None
    for degree in range(1, _LARGEST_DEGREE + 1):
        if comb(len(columns) + degree, degree) > MOST_MONOMIALS:
            break
        found = _of_degree(columns, y, degree)
        if found is not None:
            return found
    return None


def _of_degree(columns: np.ndarray, y: np.ndarray, degree: int) -> tuple[Polynomial, int] | None:
    """Return the result of `as_polynomial` for monomials up to one degree."""
    factors = products_of(len(columns), degree)
    values = np.array([np.prod(columns[list(of)], axis=0) for of in factors])
    norms = np.sqrt((values**2).sum(axis=1))
    used = np.flatnonzero(np.isfinite(norms) & (norms > 0.0))
    scaled = values[used] / norms[used, None]
    if len(used) <= len(y) - SPARE_ROWS:
        chosen = np.arange(len(used))
    else:
        chosen = _pursued(scaled, y, min(_MOST_TERMS, len(y) // _ROWS_PER_TERM))
    if not len(chosen):
        return None
    fit, *_ = np.linalg.lstsq(scaled[chosen].T, y, rcond=None)
    coefficients, divisor = whole(fit / norms[used[chosen]])
    if coefficients is None:
        return None
    if np.abs(coefficients @ values[used[chosen]] / divisor - y).max() > ERROR * np.abs(y).max():
        return None
    found = {factors[used[i]]: int(c) for i, c in zip(chosen, coefficients) if c != 0}
    return {exponents_of(of, len(columns)): c for of, c in found.items()}, divisor


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
