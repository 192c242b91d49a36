"""A law as a text with ranges of its columns, and how a fit of it is judged."""

from __future__ import annotations

import re
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse


class Law(NamedTuple):
    """A law, and where its columns are."""

    name: str
    text: str
    columns: dict[str, tuple[float, float]]

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the target of rows."""
        return np.broadcast_to(evaluate(parse(self.text), dict(zip(self.columns, X.T))), len(X))

    @property
    def n_numbers(self) -> int:
        """How many numbers it has that are no integers, and a scale."""
        return len(re.findall(r"\d\.\d", self.text)) + 1


def judged(
    regressor: Any, X: np.ndarray, y: np.ndarray, others: np.ndarray, truth: np.ndarray
) -> tuple[float, float]:
    """Fit a regressor, and return its seconds and the NMSE of its formula on other rows, without noise."""
    begun = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        regressor.fit(X, y)
        took = time.perf_counter() - begun
        return took, float(np.mean((regressor.predict(others) - truth) ** 2) / truth.var())
