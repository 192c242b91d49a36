"""Views of a table, in which columns or target may be logarithms, and their smooth functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dgsr.finders.fewer_columns.gaussian_process import Surrogate, fit_surrogate
from dgsr.finders.fewer_columns.tables import Reduction

# Leave-one-out error, in standard deviations of y, below which an error is small and may grow more.
SMALL = 3e-3
# Largest ratio of the errors after and before a step, or of finer and coarser groups, if they are not small.
TIMES_LARGE = 1.02
# Error that is accepted in any case.
NEGLIGIBLE = 1e-5
# Largest leave-one-out error of a usable smooth function, in standard deviations of y.
_LARGEST_ERROR = 0.5
# Bounds of the relative violation up to which a symmetry is tried; between them it is this many errors of the
# surrogate.
_LEAST_BROKEN, _MOST_BROKEN = 0.05, 0.4
_BROKEN_PER_ERROR = 3.0
# Smallest standard deviation of a column or of the target, relative to its largest absolute value.
_LEAST_VARIED = 1e-9


class Logarithms(NamedTuple):
    """Whether the logarithms of positive columns and of the target take their places."""

    columns: bool
    target: bool


@dataclass(frozen=True, eq=False)
class View:
    """A table, whose columns or target may be logarithms, and the smooth function through its rows."""

    reduction: Reduction
    logarithms: Logarithms
    surrogate: Surrogate
    gradient: np.ndarray  # (n_rows, n_columns), of the target of the view, by the original columns
    columns: np.ndarray  # (n_rows, n_columns), logarithms or the original columns
    target: np.ndarray  # (n_rows,), logarithms or the original target
    y: np.ndarray  # (n_rows,), the original target

    @classmethod
    def of(
        cls, reduction: Reduction, rows: np.ndarray, as_logarithm: Sequence[bool] = (False, True)
    ) -> View | None:
        """Return the view whose smooth function predicts y best, None if none predicts it.

        `as_logarithm` lists whether to try the target or its logarithm, which needs a target of one sign.
        """
        X, y = reduction.X[rows], reduction.y[rows]
        has_sign = bool((y > 0.0).all() or (y < 0.0).all())
        has_positive = bool((X > 0.0).all(axis=0).any())
        targets = [target for target in as_logarithm if has_sign or not target]
        kinds = [Logarithms(each, of) for each in (False, True)[: 1 + has_positive] for of in targets]
        fitted = [view for kind in kinds if (view := cls.fitted(reduction, rows, kind)) is not None]
        best = min(fitted, key=lambda view: view.error_of_y, default=None)
        return None if best is None or best.error_of_y > _LARGEST_ERROR else best

    @classmethod
    def fitted(
        cls, reduction: Reduction, rows: np.ndarray, logarithms: Logarithms, near: Surrogate | None = None
    ) -> View | None:
        """Return a table with or without logarithms, None if no smooth function can be fitted."""
        X, y = reduction.X[rows], reduction.y[rows]
        with np.errstate(all="ignore"):
            is_log = (X > 0.0).all(axis=0) & logarithms.columns
            U = np.where(is_log, np.log(np.abs(X)), X)
            target = np.log(np.abs(y)) if logarithms.target else y
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
        return cls(reduction, logarithms, surrogate, gradient, U, target, y)

    @property
    def error_of_y(self) -> float:
        """Leave-one-out error in standard deviations of y."""
        return self.as_error_of_y(self.surrogate.error)

    def as_error_of_y(self, error: float) -> float:
        """Convert an error of the target of the view to an error of y, each in its standard deviations.

        An error of the logarithm is a relative error of y, and is multiplied by the root mean square of y.
        """
        if not self.logarithms.target:
            return error
        return float(error * self.target.std() * np.sqrt(np.mean(self.y**2)) / self.y.std())

    @property
    def error(self) -> float:
        """Leave-one-out error by which steps are accepted; for a logarithm it is the relative error of y."""
        return self.surrogate.error * (self.target.std() if self.logarithms.target else 1.0)

    @property
    def allowed(self) -> float:
        """Largest relative violation of a symmetry that the error of the surrogate may explain."""
        return float(np.clip(_BROKEN_PER_ERROR * self.surrogate.error, _LEAST_BROKEN, _MOST_BROKEN))
