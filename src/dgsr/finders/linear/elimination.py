"""Quotients of polynomials fitted to data with noise: all terms of a kind at first, and fewer and fewer then.

The coefficients of y = p(x)/q(x) follow from linear least squares. What is made small is the sum of squares
of (p - y q)/q0, where q0 is the denominator of the step before, so that it becomes that of p/q - y. The terms
whose loss raises it the least are left out, then the next ones, down to a quotient of two terms. On exact
data the terms of the law are left in the end; on noisy data the description of formula and residuals tells
which step was the last good one.

References
----------
Sanathanan, Koerner, IEEE Transactions on Automatic Control 8, 1963: the reweighted linear problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dgeqrf, dtrtri

# Steps with all terms, and after terms were left out.
_FIRST_STEPS, _STEPS = 3, 2
# Terms that are left out one by one, and the share of more terms, as a divisor, that is left out at once.
_ONE_BY_ONE, _LEFT_OUT = 13, 6
# Smallest value of a denominator, as a share of its median one, that errors are divided by.
_SMALLEST = 1e-3
# Weight of the sum of squared coefficients, which chooses among solutions that are all exact.
_RIDGE = 1e-9


class RationalFit(NamedTuple):
    """A quotient of two polynomials that was fitted.

    Parameters
    ----------
    above, below : ndarray of shape (n_above,) and (n_below,), int
        Numbers of the terms of numerator and denominator.
    coefficients : ndarray of shape (n_above + n_below,)
        Those of the numerator first.
    """

    above: np.ndarray
    below: np.ndarray
    coefficients: np.ndarray

    def values(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of numerator and denominator, from those of all terms (n_rows, n_terms)."""
        n = len(self.above)
        above, below = terms[:, self.above], terms[:, self.below]
        return above @ self.coefficients[:n], below @ self.coefficients[n:]


class _Step(NamedTuple):
    """The fit that makes the sum S of squares of (p - y q)/q0 the smallest, where the mean of q/q0 is 1.

    With the matrix A of the terms, whose columns are brought to length 1, and the vector m of their means in
    q/q0, the coefficients are S B m with B = (A' A)^-1 and S = 1/(m' B m).
    """

    coefficients: np.ndarray
    inverse: np.ndarray  # B
    means: np.ndarray  # m


def eliminated(
    terms: np.ndarray,
    y: np.ndarray,
    root: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    few: int | None = None,
) -> Iterator[RationalFit]:
    """Yield a fit with all terms, and one each time that terms are left out, down to two terms.

    Parameters
    ----------
    terms : ndarray of shape (n_rows, n_terms)
        The values of all terms, of a size near 1.
    y, root : ndarray of shape (n_rows,)
        The target, of a size near 1, and the square roots of the weights of the rows.
    above, below : ndarray of int
        Numbers of the terms that numerator and denominator may have.
    few : int, optional
        Number of terms to which the first fit is brought at once, and not in several steps.
    """
    denominator, n_steps = np.ones(len(y)), _FIRST_STEPS
    while len(above) > 0 and len(below) > 0:
        best, least = None, np.inf
        for _ in range(n_steps):
            step = _step(terms, y, root, above, below, denominator)
            fit = RationalFit(above, below, step.coefficients)
            numerator, denominator = fit.values(terms)
            sizes = np.abs(denominator)
            smallest = _SMALLEST * np.partition(sizes, len(sizes) // 2)[len(sizes) // 2]
            is_small = sizes < smallest
            denominator[is_small] = np.copysign(smallest, denominator[is_small])
            error = float(np.sum((root * (numerator / denominator - y)) ** 2))
            if best is None or error < least:
                best, least = (step, fit, denominator), error
        assert best is not None
        step, fit, denominator = best
        yield fit
        n = len(step.means)
        if n == 2:
            return
        fewer = n - (1 if n <= _ONE_BY_ONE else max(n // _LEFT_OUT, 1))
        kept = _most_needed(step, fewer if few is None else min(few, fewer))
        above, below = above[kept[kept < len(above)]], below[kept[kept >= len(above)] - len(above)]
        n_steps = _STEPS


def _step(
    terms: np.ndarray,
    y: np.ndarray,
    root: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
    denominator: np.ndarray,
) -> _Step:
    """Return the fit of one step."""
    n_rows, n_above, n = len(y), len(above), len(above) + len(below)
    weights = root / denominator
    denominators = terms[:, below]
    # LAPACK is called as it is: what numpy's functions check takes longer than these few rows and terms.
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
    """Return the numbers of n terms, after the least needed of those left was left out each time.

    Without term i, 1/S is smaller by (B m)_i**2/B_ii.
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
