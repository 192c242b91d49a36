"""Origins and scales of the columns in a search: years are counted from 1990, billions in billions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import places_of_constants
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.simple_numbers import ROUNDING
from dgsr.expressions.trees.trees import Tree, rename

# Root mean square of a column above which, and below whose inverse, it is divided by a power of ten.
_LARGEST_SCALE = 1e3
# Range of a column, relative to its values, up to which it is measured from a round number near them. With
# 0.01, x1*x2 with temperatures of 300 to 302 became 301*x2.
_NARROW = 1e-3
# Fewest different values, in equal steps, of a column of years.
_FEWEST_YEARS = 20
# The same as `_NARROW` for years: laws depend on elapsed years and not on the calendar's origin.
_NARROW_OF_YEARS = 0.2


class Coordinates(NamedTuple):
    """The variables of a search, z_i = (x_i - origins_i) / scales_i."""

    origins: np.ndarray  # (n_features,) float64, numbers of few digits
    scales: np.ndarray  # (n_features,) float64, powers of ten

    @classmethod
    def of(cls, X: np.ndarray, with_scales: bool = True, with_origins: bool = True) -> Coordinates:
        """Return the coordinates in which the columns of `X` (n_rows, n_features) are of moderate size.

        Without `with_scales` all scales are 1, and without `with_origins` all origins are 0.
        """
        origins = np.array([_origin(column) if with_origins else 0.0 for column in X.T])
        measured = (column - origin if origin else column for column, origin in zip(X.T, origins))
        return cls(origins, np.array([_scale(column) if with_scales else 1.0 for column in measured]))

    def from_origins(self, columns: np.ndarray) -> np.ndarray:
        """Return x - origins for columns x of shape (n_features, n_rows)."""
        return columns - self.origins[:, None]

    def measured(self, columns: np.ndarray) -> np.ndarray:
        """Return z for columns x of shape (n_features, n_rows)."""
        return self.from_origins(columns) / self.scales[:, None]

    def raw(self, columns: np.ndarray) -> np.ndarray:
        """Return x for columns z of shape (n_features, n_rows)."""
        return columns * self.scales[:, None] + self.origins[:, None]

    def written(self, expression: Expression) -> Expression:
        """Return an expression of z as one of x, its form unchanged."""
        return self.with_origins(
            Expression.from_tree(unscaled(expression.tree, self.scales), expression.library)
        )

    def with_origins(self, expression: Expression) -> Expression:
        """Return an expression of x - origins as one of x, its form unchanged."""
        if not self.origins.any():
            return expression
        return Expression.from_tree(_shifted(expression.tree, self.origins), expression.library)

    def read(self, expression: Expression) -> Expression:
        """Return an expression of x as one of z; numbers next to an origin are merged with it."""
        tree = expression.tree
        if self.origins.any():
            tree = tidy(_shifted(tree, -self.origins))
        return Expression.from_tree(unscaled(tree, 1.0 / self.scales), expression.library)

    def suit(self, X: np.ndarray) -> bool:
        """Return whether the columns of `X` (n_rows, n_features) that have an origin lie near it."""
        return all(
            origin == 0.0 or np.abs(column - origin).max() <= _narrow(column) * abs(origin)
            for origin, column in zip(self.origins, X.T)
        )


def can_have_origins(library: Library) -> bool:
    """Return whether a library can write ``x1 - 2.5``."""
    return library.has_constants and "sub" in library.index


def are_origins(expression: Expression, columns: np.ndarray) -> np.ndarray:
    """Return which constants of an expression are origins of columns that hardly vary, (n_constants,), bool.

    `columns` has the shape (n_features, n_rows).
    """
    return np.array([is_origin for _, is_origin in _constants(expression, columns)], dtype=bool)


def origins_of(expression: Expression, columns: np.ndarray) -> np.ndarray:
    """Return the origin of each column in an expression, shape (n_features,), 0 where there is none."""
    found = np.zeros(len(columns))
    numbers = expression.constants.tolist()
    for (place, is_origin), number in zip(_constants(expression, columns), numbers):
        if is_origin:
            found[expression.tokens[place - 1] - expression.library.first_variable] = number
    return found


def without_origins(expression: Expression, columns: np.ndarray) -> Expression:
    """Return an expression with x in place of every x - o, where o is an origin; see `are_origins`."""
    constants = _constants(expression, columns)
    places = [place for place, is_origin in constants if is_origin]
    if not places:
        return expression
    left_out = [*places, *(place - 2 for place in places)]  # in prefix order: sub, column, number
    kept = [not is_origin for _, is_origin in constants]
    return Expression(expression.library, np.delete(expression.tokens, left_out), expression.constants[kept])


def _constants(expression: Expression, columns: np.ndarray) -> list[tuple[int, bool]]:
    """Return the position of every constant among the tokens, and whether it is an origin."""
    places = places_of_constants(expression.library, expression.tokens)
    return [
        (place, column >= 0 and _is_origin(number, columns[column]))
        for (place, column), number in zip(places, expression.constants.tolist())
    ]


def _is_origin(number: float, column: np.ndarray) -> bool:
    low, spread = float(column.min()), float(np.ptp(column))
    is_near = 0.0 <= low - number <= 2.0 * spread
    # The steps are not examined, since the rows may be a sample.
    is_year = _are_years(column) and number % 10.0 ** math.floor(math.log10(spread or 1.0)) == 0.0
    narrow = _NARROW_OF_YEARS if is_year else _NARROW
    return is_near and 0.0 < spread <= 2.0 * narrow * abs(number)


def unscaled(tree: Tree, scales: np.ndarray) -> Tree:
    """Return the tree with x_i / s_i in place of every x_i whose scale s_i is not 1."""
    return _replaced(tree, scales, 1.0, lambda x, scale: ("mul", 1 / scale, x))


def _shifted(tree: Tree, origins: np.ndarray) -> Tree:
    """Return the tree with x_i - o_i in place of every x_i whose origin o_i is not 0."""
    return _replaced(tree, origins, 0.0, lambda x, origin: ("sub", x, origin))


def _replaced(tree: Tree, numbers: np.ndarray, idle: float, write: Callable[[str, Fraction], Tree]) -> Tree:
    """Return the tree with every variable replaced by what `write` makes of it and its number."""
    new = {
        f"x{i + 1}": write(f"x{i + 1}", Fraction(repr(number)))
        for i, number in enumerate(numbers.tolist())
        if number != idle
    }
    return rename(tree, new)


def _are_years(column: np.ndarray) -> bool:
    """Return whether the values of a column may be years, which are those from 1500 to 2200."""
    return bool(column.min() >= 1500.0 and column.max() <= 2200.0)


def _narrow(column: np.ndarray) -> float:
    """Return the relative range up to which a column is measured from an origin."""
    if not _are_years(column):
        return _NARROW
    steps = np.diff(np.unique(column))
    is_even = len(steps) + 1 >= _FEWEST_YEARS and steps.max() <= 1.5 * steps.mean() <= 3.0 * steps.min()
    return _NARROW_OF_YEARS if is_even else _NARROW


def _origin(column: np.ndarray) -> float:
    """Return a number of few digits just below the values of a column if these hardly vary, else 0."""
    low, high = float(column.min()), float(column.max())
    spread, size = high - low, min(abs(low), abs(high))
    if low < 0.0 < high or not ROUNDING * size < spread <= _narrow(column) * size:
        return 0.0
    step = Fraction(10) ** math.floor(math.log10(spread))
    return float(math.floor(Fraction(low) / step) * step)


def _scale(column: np.ndarray) -> float:
    """Return the power of ten below the root mean square of a column if that is extreme, else 1."""
    largest = max(float(column.max()), -float(column.min())) or 1.0
    size = largest * math.sqrt(np.mean((column / largest) ** 2)) or 1.0  # no overflow
    if 1.0 / _LARGEST_SCALE <= size <= _LARGEST_SCALE:
        return 1.0
    return float(10.0 ** np.clip(np.floor(np.log10(size)), -300, 300))  # so that its inverse is finite, too
