"""The table of a fit, checked: inputs, target, and weights of its rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Table(NamedTuple):
    """The data of a fit as arrays of finite numbers."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,), or with several targets (n_samples, n_outputs), float64
    weights: np.ndarray | None = None  # (n_samples,), not negative; of an integer type if they are counts

    @property
    def weighted(self) -> Table:
        """The rows with a positive weight; the table itself, and no copy, where rows have no weights."""
        return self if self.weights is None else self.at(self.used)

    def at(self, rows: np.ndarray) -> Table:
        """Return the table of some rows, given by their numbers."""
        return Table(self.X[rows], self.y[rows], None if self.weights is None else self.weights[rows])

    @property
    def used(self) -> np.ndarray:
        """The numbers of the rows with a positive weight."""
        return np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights > 0)
