"""A law as a text with ranges of its columns."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse


class Law(NamedTuple):
    """A law, and where its columns are."""

    name: str
    text: str
    columns: dict[str, tuple[float, float]]
    outline: str = ""  # what a person knows of it, as a form of `DGSRRegressor`

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the target of rows."""
        return np.broadcast_to(evaluate(parse(self.text), dict(zip(self.columns, X.T))), len(X))

    @property
    def n_numbers(self) -> int:
        """How many numbers it has that are no integers, and a scale."""
        return len(re.findall(r"\d\.\d", self.text)) + 1
