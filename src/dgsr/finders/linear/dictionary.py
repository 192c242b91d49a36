"""The terms of quotients of polynomials, and the functions of the target that these are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.polynomials import exponents_of, products_of
from dgsr.expressions.trees.trees import Tree

# Highest degree of a term, by the number of columns, and the one for any other number.
_HIGHEST_DEGREES, _USUAL_DEGREE = {1: 6, 2: 5, 3: 4, 4: 3, 5: 3}, 2
# Smallest size of a target, as a share of the largest, by which the errors of its square are judged.
_SMALLEST = 1e-3
# Functions of a column that may stand in its place.
_FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": np.sqrt, "log": np.log, "exp": np.exp, "sin": np.sin, "cos": np.cos,
}  # fmt: skip
# Most columns of which functions are tried; most terms by which they are compared, and rows for each; largest
# share of the residual variance of plain terms that a function may leave; and most functions that are kept.
_MOST_COLUMNS, _MOST_COMPARED, _ROWS_PER_TERM, _LEFT_OVER, _BEST = 6, 35, 3, 0.3, 2


class Terms(NamedTuple):
    """Products of columns, which were brought to sizes near 1, up to a degree."""

    columns: tuple[Tree, ...]  # the trees of the columns
    sizes: np.ndarray  # (n_columns,), by which the columns were divided
    exponents: np.ndarray  # (n_terms, n_columns), lower degrees first
    values: np.ndarray  # (n_rows, n_terms)

    @classmethod
    def of(
        cls, columns: Mapping[Tree, np.ndarray], factors: Sequence[tuple[int, ...]] | None = None
    ) -> Terms:
        """Return the terms of columns, given by their trees.

        They are all products up to a degree unless `factors` gives the numbers of the columns of each.
        """
        values, n = np.array(list(columns.values())), len(columns)
        sizes = np.abs(values).max(axis=1)
        sizes[sizes == 0.0] = 1.0
        if factors is None:
            factors = products_of(n, _HIGHEST_DEGREES.get(n, _USUAL_DEGREE))
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


class _Function(NamedTuple):
    """A function h of the size of the target."""

    forward: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]  # derivative of h, which an error of y is multiplied by
    backward: Callable[[np.ndarray], np.ndarray]


# By the operator that is its inverse.
_OF_TARGET: dict[str | None, _Function] = {
    None: _Function(lambda y: y, np.ones_like, lambda h: h),
    "sqrt": _Function(np.square, lambda y: 2.0 * np.maximum(y, _SMALLEST * y.max()), np.sqrt),
    "exp": _Function(np.log, lambda y: 1.0 / y, np.exp),
}


class Target(NamedTuple):
    """A function of the target that a quotient is fitted to."""

    inverse: str | None  # the operator that gives the target again, None for the target itself
    h: np.ndarray  # (n_rows,), of a size near 1
    root: np.ndarray  # (n_rows,), square roots of the weights with which errors of h count
    size: float  # by which h was divided
    sign: float  # of the target, 1 for the target itself

    @property
    def n_varying(self) -> float:
        """How many rows make up the variance: (sum d**2)**2 / sum d**4 for differences d from the mean."""
        weights = self.root**2
        squares = weights * (self.h - np.average(self.h, weights=weights)) ** 2
        return float(squares.sum() ** 2 / (squares**2).sum())

    def predicted(self, h: np.ndarray) -> np.ndarray:
        """Return the target from values of h."""
        return self.sign * _OF_TARGET[self.inverse].backward(self.size * h)


def targets_of(y: np.ndarray, weights: np.ndarray, library: Library) -> Iterator[Target]:
    """Yield y, and y**2 and log|y| if y has one sign and the library their inverse.

    Parameters
    ----------
    y, weights : ndarray of shape (n_rows,)
    library : Library
    """
    signs = np.unique(np.sign(y))
    for inverse, function in _OF_TARGET.items():
        if inverse is not None and (inverse not in library.index or len(signs) > 1):
            continue
        sign = 1.0 if inverse is None else float(signs[0])
        h, root = function.forward(sign * y), np.sqrt(weights) / function.slope(sign * y)
        size = float(np.abs(h).max())
        if np.isfinite(size) and size > 0.0 and np.isfinite(root).all():
            yield Target(inverse, h / size, root, size, sign)


def with_functions(columns: Mapping[Tree, np.ndarray], library: Library) -> list[Terms]:
    """Return the terms that have a function in the place of a column, for each function and column.

    Parameters
    ----------
    columns : mapping of tree to ndarray of shape (n_rows,)
        More than six are too many.
    library : Library
    """
    found = []
    functions = {name: function for name, function in _FUNCTIONS.items() if name in library.index}
    for column, values in columns.items() if len(columns) <= _MOST_COLUMNS else ():
        for name, function in functions.items():
            own = function(values)
            if np.isfinite(own).all() and np.ptp(own) > 0.0:
                pairs = (((name, c), own) if c == column else (c, v) for c, v in columns.items())
                found.append(Terms.of(dict(pairs)))
    return found


def most_explaining(others: Sequence[Terms], plain: Terms, target: Target) -> list[Terms]:
    """Return at most two of other terms, the best ones first, if they explain much more than plain ones."""
    most = _LEFT_OVER * _variance(plain, target)
    variances = [_variance(terms, target) for terms in others]
    order = np.argsort(variances, kind="stable")[:_BEST]
    return [others[i] for i in order if variances[i] <= most]


def _variance(terms: Terms, target: Target) -> float:
    """Return the residual variance of a fit of the polynomial with as many terms as are compared."""
    n_rows = len(target.h)
    most = min(_MOST_COMPARED, n_rows // _ROWS_PER_TERM)
    chosen = [of for of in terms.up_to if len(of) <= most][-1]
    design, h = terms.values[:, chosen] * target.root[:, None], target.h * target.root
    basis = np.linalg.qr(design)[0]
    residuals = h - basis @ (basis.T @ h)
    return float(residuals @ residuals) / (n_rows - len(chosen))
