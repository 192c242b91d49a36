"""Shape constraints: bounds, monotonicity and known points of a formula on the box of the data.

Programs are tested on points of the box here. Whether a formula keeps a rule between them is decided in
`dgsr.expressions.formulas.shape_proof`.

References
----------
Kronberger, de Franca, Burlacu, Haider and Kommenda, "Shape-constrained symbolic regression: improving
extrapolation with prior knowledge", Evolutionary Computation 30, 2022; McKay, Beckman and Conover,
Technometrics 21, 1979 (Latin hypercubes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library

#: How far a formula may be beyond a bound, or fall where it must rise, as a share of the standard deviation
#: of y. It is above the rounding of predictions, and below what anyone would notice.
TOLERANCE = 1e-6
#: How far a formula may be from the value at a known point, in the same unit. Constants with the digits that
#: the rows determine seldom meet an equation better, but for those that become exact.
TOLERANCE_AT_POINTS = 1e-3
# Points of the box on which the programs of a search are tested, besides corners and rows.
_N_POINTS = 64


class Known(NamedTuple):
    """What is known at some values of columns: the value of the formula, whatever the other columns are."""

    columns: tuple[tuple[int, float], ...]  # indices and values of columns
    value: float


class _Points(NamedTuple):
    """Points on which shape constraints are tested, one behind the other."""

    columns: np.ndarray  # (n_features, n_points)
    n_values: int  # the first ones, on which bounds are tested
    n_lines: int  # lines along each monotone column, which follow; at the end those of known points
    n_steps: int  # points of a line


@dataclass(frozen=True, eq=False)
class ShapeConstraints:
    """Rules of shape that every formula keeps on a box.

    Parameters
    ----------
    low, high : ndarray of shape (n_features,)
        The corners of the box, least and largest values of the columns.
    rows : ndarray of shape (n_features, n_rows)
        Some rows of the table, which are among the points of the tests.
    spread : float
        Standard deviation of y, the unit of violations.
    lower, upper : float
        Bounds of the values, infinite where there are none.
    monotone : tuple of (int, int)
        Columns by their indices, with 1 if no formula may fall along them and -1 if none may rise.
    known : tuple of Known
        Points that every formula passes.
    """

    low: np.ndarray
    high: np.ndarray
    rows: np.ndarray
    spread: float
    lower: float = -math.inf
    upper: float = math.inf
    monotone: tuple[tuple[int, int], ...] = ()
    known: tuple[Known, ...] = ()

    def in_coordinates(self, origins: np.ndarray, scales: np.ndarray) -> ShapeConstraints:
        """Return the rules for formulas of z = (x - origins)/scales, with positive scales (n_features,)."""
        known = tuple(
            Known(tuple((i, (x - float(origins[i])) / float(scales[i])) for i, x in one.columns), one.value)
            for one in self.known
        )
        low, high, rows = (((part.T - origins) / scales).T for part in (self.low, self.high, self.rows))
        return replace(self, low=low, high=high, rows=rows, known=known)

    @property
    def columns(self) -> set[int]:
        """Indices of the columns that `monotone` and `known` have."""
        return {i for i, _ in self.monotone} | {i for one in self.known for i, _ in one.columns}

    @property
    def anchors(self) -> tuple[np.ndarray, np.ndarray]:
        """Points that a formula is fitted to: columns (n_features, n_anchors) and values (n_anchors,)."""
        values = np.array([one.value for one in self.known for _ in range(self._n_at(one, self.few.n_lines))])
        return self.few.columns[:, self.few.columns.shape[1] - len(values) :], values

    @cached_property
    def few(self) -> _Points:
        """The points on which programs of a search are tested."""
        return self._points(_N_POINTS)

    @cached_property
    def dense(self) -> _Points:
        """The points, 32 times as many, on which a formula is tested that intervals do not decide."""
        return self._points(32 * _N_POINTS)

    def violations(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        constants: np.ndarray,
        library: Library,
        slope: np.ndarray | None = None,
        intercept: np.ndarray | None = None,
        points: _Points | None = None,
    ) -> np.ndarray:
        """Return how far programs break the rules on points, in standard deviations of y, (n_programs,).

        It is the sum, over the rules, of the largest violations above the tolerances, and infinite where a
        program is undefined. The program f stands for slope*f + intercept, which have the shape
        (n_programs,). The arrays are those of a `Population` over `library`, the points by default `few`.
        """
        # These are imported here, so that formulas can be read and written without loading numba.
        from dgsr.kernels.evaluate import predictions
        from dgsr.kernels.programs import Programs

        points = self.few if points is None else points
        with np.errstate(all="ignore"):
            values = predictions(Programs(tokens, lengths, constants), library.table, points.columns)
            if slope is not None and intercept is not None:
                values = slope[:, None] * values + intercept[:, None]
            return self._violations(values, points)

    def _violations(self, values: np.ndarray, points: _Points) -> np.ndarray:
        """Return the violations of values at points, of shape (n_programs, n_points)."""
        total = np.where(np.isfinite(values).all(axis=1), 0.0, np.inf)
        of_box = values[:, : points.n_values]
        if of_box.shape[1]:
            total += self._above(self.lower - of_box.min(axis=1), TOLERANCE)
            total += self._above(of_box.max(axis=1) - self.upper, TOLERANCE)
        at, n = points.n_values, points.n_lines * points.n_steps
        for _, sign in self.monotone:
            lines = sign * values[:, at : at + n].reshape(len(values), points.n_lines, points.n_steps)
            falls = np.maximum.accumulate(lines, axis=2) - lines
            total += self._above(falls.max(axis=(1, 2)), TOLERANCE)
            at += n
        for one in self.known:
            n = self._n_at(one, points.n_lines)
            total += self._above(np.abs(values[:, at : at + n] - one.value).max(axis=1), TOLERANCE_AT_POINTS)
            at += n
        return np.where(np.isnan(total), np.inf, total)

    def _above(self, distances: np.ndarray, tolerance: float) -> np.ndarray:
        """Return distances in standard deviations, 0 up to a tolerance."""
        return np.where(distances <= tolerance * self.spread, 0.0, distances / (self.spread or 1.0))

    def _points(self, n: int) -> _Points:
        """Return points of the box, of which about n are for each rule."""
        n_lines = 1 if len(self.low) == 1 else int(math.sqrt(n))
        n_steps = 2 * n // n_lines
        spread = self._spread_out(n)
        shares = np.linspace(0.0, 1.0, n_steps)
        parts = [spread] if np.isfinite([self.lower, self.upper]).any() else []
        n_values = sum(part.shape[1] for part in parts)
        for column, _ in self.monotone:
            lines = np.repeat(evenly(spread, n_lines), n_steps, axis=1)
            along = (1.0 - shares) * self.low[column] + shares * self.high[column]
            lines[column] = np.tile(along, n_lines)
            parts.append(lines)
        for one in self.known:
            points = evenly(spread, self._n_at(one, n_lines))
            for column, value in one.columns:
                points[column] = value
            parts.append(points)
        return _Points(np.ascontiguousarray(np.hstack(parts)), n_values, n_lines, n_steps)

    def _spread_out(self, n: int) -> np.ndarray:
        """Return n points of the box, at most 16 corners and 32 rows, (n_features, n_points)."""
        order = np.argsort(np.random.default_rng(0).random((len(self.low), n)), axis=1)
        shares = (order + 0.5) / n  # a Latin hypercube
        corners = evenly(np.unique(np.round(shares), axis=1), _N_POINTS // 4)
        share = np.hstack([shares, corners])
        # A mean of the ends, so that 1 gives the upper one exactly.
        points = (1.0 - share) * self.low[:, None] + share * self.high[:, None]
        return np.hstack([points, evenly(self.rows, _N_POINTS // 2)])

    def _n_at(self, known: Known, n: int) -> int:
        return 1 if len(known.columns) == len(self.low) else n


def evenly(points: np.ndarray, n: int) -> np.ndarray:
    """Return at most n of some points, evenly spaced; n of them where there are as many."""
    return points[:, np.linspace(0, points.shape[1] - 1, min(n, points.shape[1])).astype(np.int64)]
