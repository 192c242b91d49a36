"""The equation prior p(f) and the domains inputs are drawn from, as settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import OPERATORS, Library
from dgsr.kernels.prior import PriorTable, draw_datasets
from dgsr.population import Population

_POWERS = ("pow2", "pow3", "pow4", "pow5")

#: Table "unnormalized weighted distribution" of the paper, appendix "Dataset Generation and Training".
PAPER_WEIGHTS: Mapping[str, float] = {
    "add": 10, "mul": 10, "sub": 5, "div": 5,
    "pow2": 4, "pow3": 2, "pow4": 1, "pow5": 1,
    "log": 4, "exp": 4, "sin": 4, "cos": 4,
}  # fmt: skip

#: Intervals of the paper's benchmark tables, (low, high, weight).
DEFAULT_DOMAINS = ((1.0, 5.0, 3.0), (-1.0, 1.0, 2.0), (0.0, 1.0, 2.0), (1.0, 3.0, 1.0), (0.0, 2.0, 1.0),
                   (0.0, 4.0, 0.5), (-10.0, 10.0, 0.5))  # fmt: skip


# Values a function must have among those it is compared by.
_MIN_COMPARED = 2


def comparison_points(n_variables: int) -> np.ndarray:
    """Return the fixed points functions are compared on: shape (n_variables, 6), within (1, 3)."""
    return np.random.default_rng(20230501).uniform(1.0, 3.0, (n_variables, 6))


def comparable(values: np.ndarray) -> np.ndarray:
    """Return the rows of `values` (n_functions, n_points) functions can be told by, each once.

    Values that are not finite become NaN, which is not compared.
    """
    values = np.where(np.isfinite(values), values, np.inf)  # not NaN, which is not equal to itself
    rows = np.unique(values[np.isfinite(values).sum(axis=1) >= _MIN_COMPARED], axis=0)
    return np.where(np.isfinite(rows), rows, np.nan)


class DrawnDataSets(NamedTuple):
    """Equations of the prior with a data set each."""

    programs: Population
    X: np.ndarray  # (n_datasets, n_samples, n_columns), float64, zero in unused columns
    y: np.ndarray  # (n_datasets, n_samples), float64


@dataclass(frozen=True)
class Prior:
    """The distribution equations and their data sets are drawn from.

    Parameters
    ----------
    min_leaves, max_leaves : int
        Number of leaves of a tree, uniform between the two.
    weights : mapping of str to float
        Unnormalised probability of each operator; ``pow2`` to ``pow5`` are written as products.
        Names that are not in the library are ignored.
    variable_probability : float
        Chance that a leaf is a variable and not a number.
    max_integer : int
        Integer leaves are 1 .. max_integer, n with a weight of 1/n. In a library with constants
        every such leaf is a ``const`` drawn uniformly from `constant_range`.
    constant_range : tuple of float
    domains : tuple of (low, high, weight)
        Intervals that inputs are drawn from.

    Raises
    ------
    ValueError
        If the numbers of leaves are not ``1 <= min_leaves <= max_leaves``; on drawing, if no operator
        of two children has a weight.
    """

    min_leaves: int = 3
    max_leaves: int = 5
    weights: Mapping[str, float] = field(default_factory=lambda: dict(PAPER_WEIGHTS))
    variable_probability: float = 0.8
    max_integer: int = 5
    constant_range: tuple[float, float] = (-1.0, 1.0)
    domains: tuple[tuple[float, float, float], ...] = DEFAULT_DOMAINS

    def __post_init__(self) -> None:
        if not 1 <= self.min_leaves <= self.max_leaves:
            raise ValueError(
                f"min_leaves={self.min_leaves} and max_leaves={self.max_leaves} "
                "must satisfy 1 <= min_leaves <= max_leaves."
            )

    def table(self, library: Library) -> PriorTable:
        """Return the prior over the tokens of `library`, as arrays."""
        operators = library.operators
        if not any(self.weights.get(name, 0.0) > 0.0 for name in operators if OPERATORS[name].arity == 2):
            raise ValueError(
                f"weights gives none to an operator of two children of library {library.name!r}; "
                f"give one to any of {', '.join(name for name in OPERATORS if OPERATORS[name].arity == 2)}."
            )
        powers = [self.weights.get(name, 0.0) if "mul" in operators else 0.0 for name in _POWERS]
        return PriorTable(
            weights=np.array([self.weights.get(name, 0.0) for name in operators] + powers, dtype=np.float64),
            n_operators=len(operators),
            add=library.index.get("add", -1),
            mul=library.index.get("mul", -1),
            div=library.index.get("div", -1),
            commutative=np.array([token.name in ("add", "mul") for token in library.tokens]),
            variable_probability=self.variable_probability,
            integer_weights=1.0 / np.arange(1, self.max_integer + 1),
            min_leaves=self.min_leaves,
            max_leaves=self.max_leaves,
            constant_low=self.constant_range[0],
            constant_high=self.constant_range[1],
            has_constants=library.has_constants,
            first_variable=library.first_variable,
        )

    def draw(
        self,
        n_datasets: int,
        n_samples: int,
        n_variables: int,
        library: Library,
        constraints: Constraints,
        state: np.ndarray,
        excluded: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> DrawnDataSets:
        """Draw equations and evaluate each on random points.

        Parameters
        ----------
        n_datasets, n_samples : int
        n_variables : int
            Variables the equations may use, at most those of `library`.
        library : Library
        constraints : Constraints
        state : ndarray of 4 uint64
            From `dgsr.kernels.random.new_state`; advanced by the call.
        excluded : tuple of ndarray of shape (n_variables of library, n_points) and (n_functions, n_points)
            Points, and the values there of functions that must not be drawn; NaN where one is not
            to be compared.

        Returns
        -------
        DrawnDataSets

        Raises
        ------
        ValueError
            If (next to) no equation of the prior meets the constraints.
        """
        if excluded is None:
            points = comparison_points(library.n_variables)
            excluded = points, np.empty((0, points.shape[1]))
        table = library.table
        tokens, lengths, constants, X, y = draw_datasets(
            n_datasets,
            n_samples,
            n_variables,
            table.opcode,
            table.argument,
            constraints.grammar(library, n_variables),
            self.table(library),
            np.array(self.domains, dtype=np.float64),
            excluded[0],
            excluded[1],
            state,
        )
        if not lengths.all():
            raise ValueError(
                f"The prior has no equations of {constraints.min_length} to {constraints.max_length} tokens "
                f"over {n_variables} variables of library {library.name!r}; change min_leaves="
                f"{self.min_leaves}, max_leaves={self.max_leaves}, the weights or the lengths."
            )
        return DrawnDataSets(Population(library, tokens, lengths, constants), X, y)
