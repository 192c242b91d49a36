"""Tables as a smooth function through their rows sees them: which columns as logarithms, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dgsr.finders.fewer_columns.gaussian_process import Surrogate, fit_surrogate
from dgsr.finders.fewer_columns.tables import Reduction

# Largest error on rows left out, in standard deviations, of a function that shows anything.
_LARGEST_ERROR = 0.5
# How far a symmetry may be broken, relative to what breaks it: between these, and in errors of the surrogate.
_LEAST_BROKEN, _MOST_BROKEN, _BROKEN_PER_ERROR = 0.05, 0.4, 3.0
# Least standard deviation of a column or of the target, relative to its size.
_LEAST_VARIED = 1e-9


class View(NamedTuple):
    """Whether columns that are positive, and the target, are seen as logarithms."""

    columns: bool
    target: bool


@dataclass(frozen=True, eq=False)
class Seen:
    """A table, and the smooth function through its rows."""

    reduction: Reduction
    view: View
    surrogate: Surrogate
    gradient: np.ndarray  # (n_rows, n_columns) of the target as it is seen, by the columns as they are
    columns: np.ndarray  # (n_rows, n_columns) as they are seen
    target: np.ndarray  # (n_rows,) as it is seen
    y: np.ndarray  # (n_rows,) the target as it is

    @classmethod
    def of(
        cls, reduction: Reduction, rows: np.ndarray, as_logarithm: Sequence[bool] = (False, True)
    ) -> Seen | None:
        """Return a table in the view in which the smooth function predicts y best, None if in none.

        The target is seen in the ways of `as_logarithm`, as a logarithm only where it has one sign.
        """
        X, y = reduction.X[rows], reduction.y[rows]
        has_sign = bool((y > 0.0).all() or (y < 0.0).all())
        has_positive = bool((X > 0.0).all(axis=0).any())
        best: tuple[float, Seen] | None = None
        for columns in (False, True)[: 1 + has_positive]:
            for target in as_logarithm:
                seen = cls.seen(reduction, rows, View(columns, target)) if has_sign or not target else None
                if seen is None:
                    continue
                if best is None or seen.error_of_y < best[0]:
                    best = seen.error_of_y, seen
        return None if best is None or best[0] > _LARGEST_ERROR else best[1]

    @classmethod
    def seen(
        cls, reduction: Reduction, rows: np.ndarray, view: View, near: Surrogate | None = None
    ) -> Seen | None:
        """Return a table in a view, None if it has no smooth function."""
        X, y = reduction.X[rows], reduction.y[rows]
        with np.errstate(all="ignore"):
            is_log = (X > 0.0).all(axis=0) & view.columns
            U = np.where(is_log, np.log(np.abs(X)), X)
            target = np.log(np.abs(y)) if view.target else y
        arrays = np.column_stack([U, target])
        sizes = np.abs(arrays).max(axis=0)
        if not np.isfinite(arrays).all() or (arrays.std(axis=0) <= _LEAST_VARIED * sizes).any():
            return None
        surrogate = fit_surrogate(U, target, near)
        if surrogate is None:
            return None
        gradient = surrogate.gradient / np.where(is_log, X, 1.0)
        if not np.isfinite(gradient).all():
            return None
        return cls(reduction, view, surrogate, gradient, U, target, y)

    @property
    def error_of_y(self) -> float:
        """Error on rows left out in standard deviations of y."""
        return self.as_error_of_y(self.surrogate.error)

    def as_error_of_y(self, error: float) -> float:
        """Return an error of the target as it is seen, in its standard deviations, as one of y in those of y.

        Errors of a logarithm are relative ones, so those of y are larger by the size of y.
        """
        if not self.view.target:
            return error
        return float(error * self.target.std() * np.sqrt(np.mean(self.y**2)) / self.y.std())

    @property
    def error(self) -> float:
        """Error on rows left out by which steps are judged; of a logarithm it is the relative error of y."""
        return self.surrogate.error * (self.target.std() if self.view.target else 1.0)

    @property
    def allowed(self) -> float:
        """How far a symmetry may be broken, which the surrogate cannot tell from its own error."""
        return float(np.clip(_BROKEN_PER_ERROR * self.surrogate.error, _LEAST_BROKEN, _MOST_BROKEN))
