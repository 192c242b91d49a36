"""Quotients of polynomials fitted to noisy data by backward elimination, from all terms of a kind to two.

The coefficients of y = p(x)/q(x) follow from linear least squares. A step minimises the sum of squares of
(p - y q)/q0, where q0 is the denominator of the previous step, so that the sum converges to the sum of
squares of p/q - y. The terms whose removal raises it the least are left out, again and again, down to a
quotient of two terms. On exact data the terms of the law remain longest; on noisy data the description length
of formula and residuals determines at which number of terms to stop.

References
----------
Sanathanan, Koerner, IEEE Transactions on Automatic Control 8, 1963: the reweighted linear problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrf, dtrtri

#: The numbers of the terms that are allowed in numerator and denominator.
Kind = tuple[np.ndarray, np.ndarray]

# Reweighted steps of the fit with all terms, and after terms were left out.
_FIRST_STEPS, _STEPS = 3, 2
# Up to 13 terms are left out one by one; of more, their number divided by 6 at once.
_ONE_BY_ONE, _LEFT_OUT = 13, 6
# Smallest absolute value of a denominator by which residuals are divided, as a share of the median one.
_SMALLEST = 1e-3
# Root of the weight of the sum of squared coefficients, which selects one of several exact solutions.
_RIDGE = 1e-9


class RationalFit(NamedTuple):
    """A fitted quotient of two polynomials."""

    above: np.ndarray  # (n_above,) int, numbers of the terms of the numerator
    below: np.ndarray  # (n_below,) int, numbers of the terms of the denominator
    coefficients: np.ndarray  # (n_above + n_below,), those of the numerator first

    def values(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of numerator and denominator from the values of all terms, (n_rows, n_terms)."""
        above, below = np.split(self.coefficients, [len(self.above)])
        return terms[:, self.above] @ above, terms[:, self.below] @ below


class _Step(NamedTuple):
    """The fit that minimises the sum S of squares of (p - y q)/q0 with a mean of q/q0 of 1.

    A is the matrix of the terms, with columns scaled to length 1, and m the vector of their contributions to
    the mean of q/q0. The coefficients are S B m with B = (A' A)^-1 and S = 1/(m' B m).
    """

    coefficients: np.ndarray
    inverse: np.ndarray  # B
    means: np.ndarray  # m


def eliminated(
    terms: np.ndarray, y: np.ndarray, root: np.ndarray, above: np.ndarray, below: np.ndarray, few: int = 0
) -> Iterator[RationalFit]:
    """Yield the fit with all terms, then the fit after each removal of terms, down to two terms.

    Parameters
    ----------
    terms : ndarray of shape (n_rows, n_terms)
        The values of all terms, of a size near 1.
    y, root : ndarray of shape (n_rows,)
        The target, of a size near 1, and the square roots of the weights of the rows.
    above, below : ndarray of int
        Numbers of the terms that are allowed in numerator and denominator.
    few : int
        Number of terms that remain after the first removal; with 0 terms are removed in small steps.
    """
    denominator, n_steps = np.ones(len(y)), _FIRST_STEPS
    while len(above) > 0 and len(below) > 0:
        steps = []
        for _ in range(n_steps):
            step = _step(terms, y, root, above, below, denominator)
            fit = RationalFit(above, below, step.coefficients)
            numerator, denominator = fit.values(terms)
            sizes = np.abs(denominator)
            smallest = _SMALLEST * np.partition(sizes, len(sizes) // 2)[len(sizes) // 2]
            is_small = sizes < smallest
            denominator[is_small] = np.copysign(smallest, denominator[is_small])
            error = float(np.sum((root * (numerator / denominator - y)) ** 2))
            steps.append((error, step, fit, denominator))
        _, step, fit, denominator = min(steps, key=lambda each: each[0])
        yield fit
        n = len(step.means)
        if n == 2:
            return
        fewer = n - (1 if n <= _ONE_BY_ONE else n // _LEFT_OUT)
        remaining = _most_needed(step, min(few or n, fewer))
        is_above, n_steps = remaining < len(above), _STEPS
        above, below = above[remaining[is_above]], below[remaining[~is_above] - len(above)]


def _step(
    terms: np.ndarray, y: np.ndarray, root: np.ndarray, above: np.ndarray, below: np.ndarray, q0: np.ndarray
) -> _Step:
    """Return the fit of one reweighted step."""
    n_rows, n_above, n = len(y), len(above), len(above) + len(below)
    weights, denominators = root / q0, terms[:, below]
    # LAPACK is called directly, since the checks of numpy's functions take longer than these small problems.
    design = np.empty((n_rows + n, n), order="F")
    design[:n_rows, :n_above] = terms[:, above] * weights[:, None]
    design[:n_rows, n_above:] = denominators * (-y * weights)[:, None]
    norms = np.sqrt(np.einsum("ij,ij->j", design[:n_rows], design[:n_rows]))
    norms[norms == 0.0] = 1.0
    design[:n_rows] /= norms
    design[n_rows:] = 0.0
    design[n_rows + np.arange(n), np.arange(n)] = _RIDGE
    means = np.zeros(n)
    means[n_above:] = (root * weights) @ denominators / (root @ root)
    means /= norms
    triangle = np.triu(dgeqrf(design, overwrite_a=True)[0][:n])
    inverse = dtrtri(triangle)[0]
    inverse = inverse @ inverse.T
    solution = inverse @ means
    return _Step(solution / (means @ solution) / norms, inverse, means)


def _most_needed(step: _Step, n: int) -> np.ndarray:
    """Return the numbers of the n terms that remain when the least needed term is removed each time.

    Removing term i lowers 1/S by (B m)_i**2/B_ii.
    """
    inverse, means, left = step.inverse.copy(), step.means.copy(), np.arange(len(step.means))
    while len(left) > n:
        losses = (inverse @ means)[left] ** 2 / inverse.diagonal()[left]
        least = left[int(np.argmin(losses))]
        row = inverse[least].copy()
        inverse -= np.multiply.outer(row, row) / row[least]
        inverse[least] = inverse[:, least] = means[least] = 0.0
        left = left[left != least]
    return left
