"""Quotients of polynomials, which exact data determine; those of one column are written with few tokens.

A quotient of two polynomials with whole coefficients, such as (x**5 - 3*x**3 + 1)/(x**2 + 1), has too many
tokens to be found among subprograms, but linear algebra finds it (module ``polynomials``).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
import sympy

from dgsr.exact_search.polynomials import as_polynomial, as_rational
from dgsr.expressions.rewriting.algebra import multiplied
from dgsr.expressions.rewriting.polynomials import Polynomial, polynomial_tree, quotient_tree
from dgsr.expressions.trees.trees import Tree

# Coefficients of polynomials by which numerator and denominator are multiplied in search of fewer tokens:
# (x**4 + x**3 + x**2 + x + 1)*(x - 1) is x**5 - 1.
_FACTORS = ((1,), (-1, 1), (1, 1), (-1, 0, 1))


def rational_trees(columns: np.ndarray, y: np.ndarray) -> Iterator[Tree]:
    """Yield trees of the polynomial, or of the quotient of two, of the columns x1, x2 and so on that is y.

    `columns` has the shape (n_columns, n_rows), and `y` the shape (n_rows,).
    """
    polynomial = as_polynomial(columns, y)
    if polynomial is not None:
        yield polynomial_tree(*polynomial)
    elif (quotient := as_rational(columns, y)) is not None:
        if len(columns) == 1:
            yield from written(*map(_rising, quotient))
        else:
            yield quotient_tree(*quotient)


def _rising(polynomial: Polynomial) -> tuple[int, ...]:
    """Return the coefficients of a polynomial of one column, in the order of rising powers."""
    powers = range(max(power for (power,) in polynomial) + 1)
    return tuple(int(polynomial.get((power,), 0)) for power in powers)


def written(p: tuple[int, ...], q: tuple[int, ...]) -> Iterator[Tree]:
    """Yield trees of p(x)/q(x) with whole numbers only, the shortest first; x is the column x1."""
    found = []
    for factor, sign in product(_FACTORS, (1, -1)):
        above, below = (np.convolve(each, factor).astype(int) * sign for each in (p, q))
        writers = [_Product(above), _Product(below)]
        # Both are divided by a power of x: (x**5 - 1)/x**4 is x - 1/x**4.
        for shift in range(-1, max(len(p), len(q)) + 1):
            (n, numerator), (m, denominator) = (writer.shortest(shift) for writer in writers)
            found.append((1 + n + m, abs(shift), ("div", numerator, denominator)))
    yield from (tree for *_, tree in sorted(found, key=lambda each: each[:2]))


class _Product:
    """Writes a polynomial as a sum, or as a product of its factors if that is shorter."""

    def __init__(self, coefficients: np.ndarray) -> None:
        self._whole = _Sum(coefficients)
        content, factors = sympy.Poly(coefficients[::-1].tolist(), sympy.Symbol("x")).factor_list()
        each = [
            np.array(factor.all_coeffs()[::-1], dtype=int) for factor, power in factors for _ in range(power)
        ]
        each = [factor for factor in each if factor[0] != 0]  # the power of x is a shift
        self._n_powers = len(np.trim_zeros(coefficients, "b")) - 1 - sum(len(factor) - 1 for factor in each)
        if each:
            each[0] = each[0] * int(content)
        self._factors = [_Sum(factor) for factor in each]

    def shortest(self, shift: int) -> tuple[int, Tree]:
        """Return the number of tokens and the tree of the polynomial divided by x**shift."""
        found = [self._whole.shortest(shift)]
        for i in range(len(self._factors) if len(self._factors) > 1 else 0):
            shifts = [(shift - self._n_powers) * (j == i) for j in range(len(self._factors))]
            parts = [factor.shortest(own) for factor, own in zip(self._factors, shifts)]
            found.append((sum(n for n, _ in parts) + len(parts) - 1, multiplied([tree for _, tree in parts])))
        return min(found, key=lambda each: each[0])


class _Sum:
    """Writes a polynomial, and its quotients by powers of x, with the fewest tokens.

    A sum is split in two, and a power of x may be factored out of each half: x + 1 + (x + (x + 1)/x)/x**2. A
    library without constants writes 1 as x/x and 3*x as x + x + x.
    """

    def __init__(self, coefficients: np.ndarray) -> None:
        self._terms = [(power, c) for power, c in enumerate(coefficients.tolist()) if c != 0]
        self._best = cache(self._shortest)
        self._best_sum = cache(self._shortest_sum)

    def shortest(self, shift: int) -> tuple[int, Tree]:
        """Return the number of tokens and the tree of the polynomial divided by x**shift."""
        return self._best(0, len(self._terms), shift, 1)

    def _shortest(self, first: int, last: int, shift: int, sign: int) -> tuple[int, Tree]:
        """Return the shortest tree of sign * (terms from `first` to before `last`) / x**shift."""
        if last - first == 1:
            power, coefficient = self._terms[first]
            return self._monomial(sign * coefficient, power - shift)
        lowest, highest = self._terms[first][0], self._terms[last - 1][0]
        found = []
        for other in range(lowest - 1, highest + 1):
            n, tree = self._best_sum(first, last, other, sign)
            by = abs(other - shift)
            if by > 0:
                tree = ("mul" if other > shift else "div", tree, _power(by))
            found.append((n + 2 * by, tree))
        return min(found, key=lambda each: each[0])

    def _shortest_sum(self, first: int, last: int, shift: int, sign: int) -> tuple[int, Tree]:
        """Return the shortest sum or difference of two trees for the same terms."""
        found = []
        for middle in range(first + 1, last):
            left = {s: self._best(first, middle, shift, s) for s in (sign, -sign)}
            right = {s: self._best(middle, last, shift, s) for s in (sign, -sign)}
            for name, a, b in (
                ("add", left[sign], right[sign]),
                ("sub", left[sign], right[-sign]),
                ("sub", right[sign], left[-sign]),
            ):
                found.append((1 + a[0] + b[0], (name, a[1], b[1])))
        return min(found, key=lambda each: each[0])

    def _monomial(self, coefficient: int, power: int) -> tuple[int, Tree]:
        """Return the number of tokens and the tree of coefficient * x**power."""
        if coefficient < 0:
            n, tree = self._monomial(-coefficient, power)
            return n + 4, ("sub", ("sub", "x1", "x1"), tree)
        some = ("mul", coefficient, "x1") if coefficient > 1 else "x1"
        if power > 1:
            if coefficient == 1:
                return 2 * power - 1, _power(power)
            return 2 * power + 2 * coefficient - 3, ("mul", _power(power - 1), some)
        if power == 1:
            return 2 * coefficient - 1, some
        return 2 * coefficient + 1 - 2 * power, ("div", some, _power(1 - power))


def _power(power: int) -> Tree:
    tree: Tree = "x1"
    for _ in range(power - 1):
        tree = ("mul", "x1", tree)
    return tree
