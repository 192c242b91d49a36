"""The terms of quotients of polynomials, and the functions of the target to which quotients are fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.polynomials import Polynomial, exponents_of, products_of
from dgsr.expressions.trees.trees import Tree

#: The values of columns by their trees.
Columns = Mapping[Tree, np.ndarray]

# Highest degree of a term for one column, two and so on; for more columns it is the last one.
_HIGHEST_DEGREES = (6, 5, 4, 3, 3, 2)
# Smallest target, as a share of the largest, from which the weights of errors of its square are computed. It
# bounds the weights of rows whose target is almost 0.
_SMALLEST = 1e-3
# Functions of a column that may stand in its place.
_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": np.sqrt, "log": np.log, "exp": np.exp, "sin": np.sin, "cos": np.cos,
}  # fmt: skip
#: Largest ratio of the squared residuals with and without such a function, or such a power.
LEFT_OVER = 0.3
#: Best functions in the place of a column, and single products of columns, that are tried in quotients.
BEST = 2


class Terms(NamedTuple):
    """Products of columns, which are scaled to a largest size of 1."""

    columns: tuple[Tree, ...]  # the trees of the columns
    sizes: np.ndarray  # (n_columns,), divisors of the columns
    exponents: np.ndarray  # (n_terms, n_columns), lower degrees first
    values: np.ndarray  # (n_rows, n_terms)

    @classmethod
    def of(cls, columns: Columns, factors: Sequence[tuple[int, ...]] = ()) -> Terms:
        """Return the terms of columns, which are given by their trees.

        By default these are all products up to a degree; `factors` has the columns of each term instead.
        """
        values, n = np.array(list(columns.values())), len(columns)
        sizes = np.abs(values).max(axis=1)
        sizes[sizes == 0.0] = 1.0
        factors = factors or products_of(n, _HIGHEST_DEGREES[min(n, len(_HIGHEST_DEGREES)) - 1])
        exponents = np.array([exponents_of(of, n) for of in factors])
        scaled = values / sizes[:, None]
        products = np.column_stack([np.prod(scaled[list(of)], axis=0) for of in factors])
        return cls(tuple(columns), sizes, exponents, products)

    @property
    def are_positive(self) -> np.ndarray:
        """Whether each column is positive on every row, shape (n_columns,)."""
        columns = self.values[:, self.exponents.sum(axis=1) == 1]
        return np.all(columns > 0.0, axis=0)

    @property
    def up_to(self) -> list[np.ndarray]:
        """The numbers of the terms up to each degree, from 0 on."""
        degrees = self.exponents.sum(axis=1)
        return [np.flatnonzero(degrees <= degree) for degree in range(degrees.max() + 1)]


def polynomial_of(exponents: np.ndarray, coefficients: np.ndarray) -> Polynomial:
    """Return the polynomial of terms with these exponents of the columns, (n_terms, n_columns)."""
    return dict(zip(map(tuple, exponents.tolist()), coefficients.tolist()))


class _Function(NamedTuple):
    """A function h of the absolute value of the target."""

    forward: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]  # derivative of h, by which errors of y are multiplied
    backward: Callable[[np.ndarray], np.ndarray]


# The functions of the target by the operators of their inverses.
_OF_TARGET: dict[str | None, _Function] = {
    None: _Function(lambda y: y, np.ones_like, lambda h: h),
    "sqrt": _Function(np.square, lambda y: 2.0 * np.maximum(y, _SMALLEST * y.max()), np.sqrt),
    "exp": _Function(np.log, lambda y: 1.0 / y, np.exp),
}


class Target(NamedTuple):
    """A function h of the target to which quotients are fitted."""

    inverse: str | None  # operator of the inverse of h, None for the target itself
    h: np.ndarray  # (n_rows,), scaled to a largest size of 1
    root: np.ndarray  # (n_rows,), square roots of the weights of errors of h
    size: float  # divisor of h
    sign: float  # sign of the target; 1 if h is the target itself

    @property
    def n_varying(self) -> float:
        """Effective number of rows that make up the variance.

        It is (sum d**2)**2 / sum d**4 for the weighted differences d from the mean.
        """
        weights = self.root**2
        squares = weights * (self.h - np.average(self.h, weights=weights)) ** 2
        return float(squares.sum() ** 2 / (squares**2).sum())

    def predicted(self, h: np.ndarray) -> np.ndarray:
        """Return the values of the target that belong to values of h."""
        return self.sign * _OF_TARGET[self.inverse].backward(self.size * h)


def targets_of(y: np.ndarray, weights: np.ndarray, library: Library) -> Iterator[Target]:
    """Yield y, and y**2 and log|y| if y has one sign and the library has the operator of the inverse."""
    signs = np.unique(np.sign(y))
    for inverse, function in _OF_TARGET.items():
        if inverse is not None and (inverse not in library.index or len(signs) > 1):
            continue
        sign = 1.0 if inverse is None else float(signs[0])
        h, root = function.forward(sign * y), np.sqrt(weights) / function.slope(sign * y)
        size = float(np.abs(h).max())
        if np.isfinite(size) and size > 0.0 and np.isfinite(root).all():
            yield Target(inverse, h / size, root, size, sign)


def with_functions(
    columns: Columns, plain: Terms, library: Library, targets: Sequence[Target], most: int
) -> Iterator[tuple[Terms, Target]]:
    """Yield the terms in which a function of a column stands in its place, for each target the two best.

    These are the terms whose polynomial, of at most half as many terms as `most`, has the smallest squared
    residuals, if these are far smaller than with the columns alone (`plain`).
    """
    found = []
    for column, values in columns.items():
        for name, function in _FUNCTIONS.items():
            own = function(values)
            if name in library.index and np.isfinite(own).all() and np.ptp(own) > 0.0:
                pairs = (((name, c), own) if c == column else (c, v) for c, v in columns.items())
                found.append(Terms.of(dict(pairs)))
    for target in targets:
        errors = np.array([_error(terms, target, most // 2) for terms in found])
        largest = LEFT_OVER * _error(plain, target, most // 2)
        best = np.argsort(errors, kind="stable")[:BEST]
        yield from ((found[i], target) for i in best.tolist() if errors[i] <= largest)


def _error(terms: Terms, target: Target, most: int) -> float:
    """Return the squared residuals of the polynomial of the highest degree with at most `most` terms."""
    chosen = [of for of in terms.up_to if len(of) <= max(most, 1)][-1]
    basis = np.linalg.qr(terms.values[:, chosen] * target.root[:, None])[0]
    h = target.h * target.root
    residuals = h - basis @ (basis.T @ h)
    return float(residuals @ residuals)
