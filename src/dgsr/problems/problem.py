"""A benchmark problem: a true formula, and the data that are drawn from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from typing import NamedTuple

import numpy as np

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import Tree


class Variable(NamedTuple):
    """An input variable and the interval from which its values are drawn."""

    name: str
    low: float
    high: float


class Sample(NamedTuple):
    """Training and test data of a problem."""

    X_train: np.ndarray  # (n_train, n_variables)
    y_train: np.ndarray  # (n_train,)
    X_test: np.ndarray  # (n_test, n_variables)
    y_test: np.ndarray  # (n_test,)


@dataclass(frozen=True)
class Problem:
    """A benchmark problem.

    Parameters
    ----------
    name : str
    set : str
        One of `dgsr.problems.list_sets()`.
    expression : str
        The true formula, as text in the grammar of `dgsr.expressions.trees.syntax`.
    variables : tuple of Variable
        The variables in the order of the columns of X.
    n_samples : int
        Number of rows of the training set, and of the test set; for ``split`` and ``table`` the number of
        rows before the split.
    sampling : {"uniform", "log-uniform", "even", "split", "table"}
        ``uniform``: training and test rows are drawn independently; ``log-uniform``: the same, but the
        logarithm is uniform for a variable whose interval is positive and spans more than a factor of 3;
        ``even``: both are the same evenly spaced points; ``split``: uniform rows, split 75/25; ``table``: the
        rows of `data_file`, split 75/25.
    library : str
        Preset of the library for the problem.
    max_length : int
        Most tokens of an equation.
    paper_recovery : mapping of str to float
        Recovery in % that the DGSR paper reports, by method.
    data_file : str
        File in the package's data, for ``table``.
    n_test : int, optional
        Number of rows of the test set, for ``uniform`` and ``log-uniform``; `n_samples` by default.
    """

    name: str
    set: str
    expression: str
    variables: tuple[Variable, ...]
    n_samples: int
    sampling: str
    library: str
    max_length: int = 30
    paper_recovery: Mapping[str, float] = field(default_factory=dict, compare=False, hash=False)
    data_file: str = ""
    n_test: int | None = None

    @property
    def n_variables(self) -> int:
        return len(self.variables)

    @property
    def variable_names(self) -> tuple[str, ...]:
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def truth(self) -> Tree:
        """The syntax tree of the true formula."""
        return parse(self.expression, self.variable_names)

    def target(self, X: np.ndarray) -> np.ndarray:
        """Return the values, of shape (n_samples,), of the true formula on `X` (n_samples, n_variables)."""
        values = evaluate(self.truth, dict(zip(self.variable_names, X.T)))
        return np.array(np.broadcast_to(values, len(X)), dtype=np.float64)

    def sample(self, random_state: int | np.random.SeedSequence = 0, noise: float = 0.0) -> Sample:
        """Draw training and test data.

        Parameters
        ----------
        random_state : int or SeedSequence
            The same seed gives the same data.
        noise : float
            Standard deviation of the Gaussian noise on `y_train`, as a multiple of its root mean square, as
            in SRBench. The test data have no noise.
        """
        if not isinstance(random_state, np.random.SeedSequence):
            random_state = np.random.SeedSequence(random_state)
        # A new sequence of the same entropy and key, since spawning depends on earlier spawns.
        fresh = np.random.SeedSequence(random_state.entropy, spawn_key=random_state.spawn_key)
        train, test, noisy = map(np.random.default_rng, fresh.spawn(3))
        if self.sampling in ("split", "table"):
            X, y = self._all_rows(train)
            order, n_train = test.permutation(len(X)), round(0.75 * len(X))
            (X_train, X_test), (y_train, y_test) = (np.split(part[order], [n_train]) for part in (X, y))
        else:
            X_train = self._draw(train, self.n_samples)
            X_test = self._draw(test, self.n_test or self.n_samples)
            y_train, y_test = self.target(X_train), self.target(X_test)
        if noise > 0.0:
            scale = noise * np.sqrt(np.mean(y_train**2))
            y_train = y_train + noisy.normal(0.0, scale, len(y_train))
        return Sample(X_train, y_train, X_test, y_test)

    def _all_rows(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that are split into training and test rows."""
        if self.sampling == "table":
            table = read_table(self.data_file)
            return table[:, :-1], table[:, -1]
        X = self._draw(rng, self.n_samples)
        return X, self.target(X)

    def _draw(self, rng: np.random.Generator, n_rows: int) -> np.ndarray:
        low, high = np.array([variable[1:] for variable in self.variables]).T
        if self.sampling == "even":
            return np.linspace(low, high, n_rows)
        if self.sampling != "log-uniform":
            return rng.uniform(low, high, (n_rows, self.n_variables))
        wide = (low > 0.0) & (high > 3.0 * low)
        low[wide], high[wide] = np.log(low[wide]), np.log(high[wide])
        X = rng.uniform(low, high, (n_rows, self.n_variables))
        X[:, wide] = np.exp(X[:, wide])
        return X


def read_table(data_file: str) -> np.ndarray:
    """Return a CSV file of the package's data as an array, whose last column is the target."""
    with (resources.files("dgsr.problems") / "data" / data_file).open(encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)
