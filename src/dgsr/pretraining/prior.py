"""The prior of equations p(f) and the domains of their inputs, as settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.pretraining.decontamination import Decontamination, nothing_held_out
from dgsr.pretraining.law_forms import law_table
from dgsr.pretraining.prior_kernel import canonicalise_all, draw_datasets, draw_orders
from dgsr.pretraining.prior_trees import PriorTable
from dgsr.pretraining.rewriting import rewriting

_POWERS = ("pow2", "pow3", "pow4", "pow5")

#: Table "unnormalized weighted distribution" of the paper, appendix "Dataset Generation and Training".
PAPER_WEIGHTS: Mapping[str, float] = {
    "add": 10, "mul": 10, "sub": 5, "div": 5,
    "pow2": 4, "pow3": 2, "pow4": 1, "pow5": 1,
    "log": 4, "exp": 4, "sin": 4, "cos": 4,
}  # fmt: skip

#: The paper's weights, and weights of operators that the paper does not have; ``square`` and ``cube`` replace
#: ``pow2`` and ``pow3`` where a library has them.
DEFAULT_WEIGHTS: Mapping[str, float] = {
    **PAPER_WEIGHTS,
    "sqrt": 3, "square": 4, "cube": 1, "pow": 0.5, "neg": 0.5, "inv": 2,
    "tanh": 0.5, "abs": 0.3, "arcsin": 0.3, "arccos": 0.3,
}  # fmt: skip

#: Exponents of ``pow``.
_EXPONENTS = (-3, -2, -1.5, -0.5, 0.25, 1 / 3, 2 / 3, 0.75, 1.5, 2.5)

#: Version of the prior. It is increased when a seed draws other equations than before, since only the same
#: version can reproduce the equations of a training or resume it.
PRIOR_VERSION = 2

# Bounds and probability of a noise that is never added.
_NO_NOISE = 1.0, 1.0, 0.0

CONSTANTS = ("uniform", "log-uniform")
INPUTS = ("uniform", "varied")

#: Intervals of the paper's benchmark tables, (low, high, weight).
DEFAULT_DOMAINS = ((1.0, 5.0, 3.0), (-1.0, 1.0, 2.0), (0.0, 1.0, 2.0), (1.0, 3.0, 1.0), (0.0, 2.0, 1.0),
                   (0.0, 4.0, 0.5), (-10.0, 10.0, 0.5))  # fmt: skip


def _lacking_for_laws(library: Library) -> list[str]:
    """Return the operators that a library needs for laws and does not have."""
    return [name for name in ("add", "sub", "mul", "div") if name not in library.operators]


class DrawnDataSets(NamedTuple):
    """Equations of the prior, each with a data set."""

    programs: Population
    X: np.ndarray  # (n_datasets, n_samples, n_columns), float64, zero in unused columns
    y: np.ndarray  # (n_datasets, n_samples), float64

    def reordered(self, orders: np.ndarray) -> DrawnDataSets:
        """Return the same equations with their columns in another order.

        `orders` (n_datasets, n_variables) are the columns that come first, second, ... in each data set;
        those from `n_variables` on stay.
        """
        library, n_variables = self.programs.library, orders.shape[1]
        first = library.first_variable
        X = self.X.copy()
        X[:, :, :n_variables] = np.take_along_axis(X, orders[:, None, :], axis=2)
        renamed = np.tile(np.arange(first + library.n_variables), (len(X), 1))
        renamed[:, first : first + n_variables] = first + np.argsort(orders, axis=1)
        tokens = np.take_along_axis(renamed, self.programs.tokens, axis=1)
        return DrawnDataSets(replace(self.programs, tokens=tokens), X, self.y)


@dataclass(frozen=True)
class Prior:
    """The distribution of equations and of their data sets.

    Parameters
    ----------
    min_leaves, max_leaves : int
        Number of leaves of a tree, uniform between the two.
    weights : mapping of str to float
        Unnormalised probability of each operator. ``pow2`` to ``pow5`` are powers, written as products or
        with ``square`` and ``cube`` where the library has them; if it has these and they have their own
        weights, the weights of ``pow2`` and ``pow3`` are ignored, as are names that are not in the library.
        ``pow`` is drawn with a number as exponent, and therefore only in libraries with constants.
    variable_probability : float
        Probability that a leaf is a variable and not a number.
    max_integer : int
        Numbers are integers from 1 to max_integer, n with a weight of 1/n. In a library with constants every
        number is a ``const``.
    constants : {"uniform", "log-uniform"}
        Values of ``const``. ``"uniform"``: uniform in `constant_range`. ``"log-uniform"``: three in ten are
        negative; seven in ten are log-uniform from 0.1 to 10, the others integers as above.
    constant_range : tuple of float
    noise : tuple of (low, high, probability), optional
        The probability that Gaussian noise is added to y of a data set, and the bounds of its standard
        deviation in standard deviations of y, between which it is log-uniform.
    laws : float
        Fraction of the equations that are laws (module ``dgsr.pretraining.prior_laws``): products of powers,
        sums of few terms and functions of dimensionless groups, over variables with units. `min_leaves` to
        `variable_probability` do not apply to them.
    inputs : {"uniform", "varied"}
        ``"uniform"``: uniform in an interval. ``"varied"``: like the tables of users
        (module ``dgsr.pretraining.prior_inputs``).
    transformed : float
        Probability that the target of a data set is a(y + b) instead of y, where constants are fitted and
        scale and offset are therefore free. ``abs(a)`` is log-uniform from 0.01 to 100, and half of the a are
        negative; half of the b are 0, the others are normal with 0.1 to 10 standard deviations of y.
    domains : tuple of (low, high, weight)
        Intervals of the inputs; in three of four data sets all variables share one.

    Raises
    ------
    ValueError
        If the numbers of leaves are not ``1 <= min_leaves <= max_leaves``, `constants` or `inputs` is
        unknown, or `noise`, `laws` or `transformed` is out of its range; on drawing, if no operator of two
        subtrees has a weight, or `laws` is positive and the library lacks one of add, sub, mul and div.
    """

    min_leaves: int = 3
    max_leaves: int = 5
    weights: Mapping[str, float] = field(default_factory=lambda: dict(PAPER_WEIGHTS))
    variable_probability: float = 0.8
    max_integer: int = 5
    constants: str = "uniform"
    constant_range: tuple[float, float] = (-1.0, 1.0)
    noise: tuple[float, float, float] | None = None
    laws: float = 0.0
    inputs: str = "uniform"
    transformed: float = 0.0
    domains: tuple[tuple[float, float, float], ...] = DEFAULT_DOMAINS

    def __post_init__(self) -> None:
        if not 1 <= self.min_leaves <= self.max_leaves:
            raise ValueError(
                f"min_leaves={self.min_leaves} and max_leaves={self.max_leaves} "
                "must satisfy 1 <= min_leaves <= max_leaves."
            )
        if self.constants not in CONSTANTS:
            raise ValueError(f"constants={self.constants!r} is unknown; choose from {', '.join(CONSTANTS)}.")
        if self.inputs not in INPUTS:
            raise ValueError(f"inputs={self.inputs!r} is unknown; choose from {', '.join(INPUTS)}.")
        for name, share in {"laws": self.laws, "transformed": self.transformed}.items():
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{name}={share} is a share: give a number from 0 to 1.")
        low, high, probability = self.noise or _NO_NOISE
        if not (0.0 < low <= high and 0.0 <= probability <= 1.0):
            raise ValueError(f"noise={self.noise} must be 0 < low <= high and a probability, or None.")

    @classmethod
    def default_for(cls, library: Library, n_variables: int) -> Prior:
        """Return the default prior of a library, which without constants is the paper's.

        With constants equations are long enough to have all of `n_variables`, the most of a data set.
        """
        if not library.has_constants:
            return cls()
        return cls(
            min_leaves=2,
            max_leaves=max(5, n_variables + 3),
            weights=dict(DEFAULT_WEIGHTS),
            variable_probability=0.7,
            constants="log-uniform",
            noise=(0.001, 0.1, 0.5),
        )

    @classmethod
    def varied_for(cls, library: Library, n_variables: int, laws: float | None = None) -> Prior:
        """Return the default prior of a library mixed with laws, over inputs like those of users.

        Equations are long enough to have five of at most `n_variables` of a data set. In a library with
        constants, four targets in ten have a scale and half of these an offset. `laws` is the fraction of
        laws, by default 0.5, or 0 for a library that lacks operators for them.
        """
        if laws is None:
            laws = 0.0 if _lacking_for_laws(library) else 0.5
        prior = replace(cls.default_for(library, min(n_variables, 5)), laws=laws, inputs="varied")
        return replace(prior, noise=(0.001, 0.2, 0.5), transformed=0.4) if library.has_constants else prior

    def table(self, library: Library) -> PriorTable:
        """Return the prior over the tokens of `library`, as arrays."""
        operators = library.operators
        weights = {name: self.weights.get(name, 0.0) for name in (*operators, *_POWERS)}
        binary = [token.name for token in library.tokens if token.arity == 2 and token.name != "pow"]
        if not any(weights[name] > 0.0 for name in binary):
            raise ValueError(
                f"weights gives none to an operator of two subtrees of library {library.name!r}; "
                f"give one to any of {', '.join(binary)}."
            )
        for name, power in (("square", "pow2"), ("cube", "pow3")):
            if name in operators and name in self.weights:
                weights[power] = 0.0
        lacking = _lacking_for_laws(library)
        if self.laws > 0.0 and lacking:
            raise ValueError(
                f"laws={self.laws} needs {', '.join(lacking)} in library {library.name!r}; set laws=0.0."
            )
        if "mul" not in operators:
            weights |= dict.fromkeys(_POWERS, 0.0)
        if not library.has_constants and "pow" in operators:
            weights["pow"] = 0.0
        return PriorTable(
            weights=np.array([weights[name] for name in (*operators, *_POWERS)], dtype=np.float64),
            n_operators=len(operators),
            exponents=np.array(_EXPONENTS, dtype=np.float64),
            rewriting=rewriting(library),
            variable_probability=self.variable_probability,
            integer_weights=1.0 / np.arange(1, self.max_integer + 1),
            min_leaves=self.min_leaves,
            max_leaves=self.max_leaves,
            constant_range=tuple(map(float, self.constant_range)),
            log_uniform=self.constants == "log-uniform",
            noise=tuple(map(float, self.noise or _NO_NOISE)),
            has_constants=library.has_constants,
            first_variable=library.first_variable,
            domains=np.array(self.domains, dtype=np.float64),
            varied=self.inputs == "varied",
            law_share=float(self.laws),
            transformed=float(self.transformed),
        )

    def draw(
        self,
        n_datasets: int,
        n_samples: int,
        n_variables: int,
        library: Library,
        constraints: Constraints,
        state: np.ndarray,
        excluded: Decontamination | None = None,
        in_any_order: bool = False,
    ) -> DrawnDataSets:
        """Draw equations and evaluate each on random inputs.

        Parameters
        ----------
        n_datasets, n_samples : int
        n_variables : int
            Number of variables that the equations may have, at most that of `library`.
        library : Library
        constraints : Constraints
        state : ndarray of 4 uint64
            State of the random number generator, which advances; see `dgsr.kernels.random.new_state`.
        excluded : Decontamination, optional
            Functions that must not be drawn, compared at points of as many variables as `library` has.
        in_any_order : bool
            Whether the columns are in a random order, like those of users' tables. Otherwise the columns of
            an equation are the first ones. With a fixed order the last of five columns occurred in only 3% of
            the equations.

        Raises
        ------
        ValueError
            If (almost) no equation of the prior satisfies the constraints.
        """
        if excluded is None:
            excluded = nothing_held_out(library.n_variables)
        grammar = constraints.grammar(library, n_variables)
        n_constants = grammar.max_constants if library.has_constants else 0
        programs = Population.empty(n_datasets, library, grammar.max_length, n_constants)
        X, y = np.zeros((n_datasets, n_samples, library.n_variables)), np.zeros((n_datasets, n_samples))
        tables = self.table(library), law_table(library)
        drawn = programs.arrays, X, y
        draw_datasets(n_variables, library.table, grammar, *tables, excluded, *drawn, state)
        if not programs.lengths.all():
            raise ValueError(
                f"The prior has no equations of {constraints.min_length} to {constraints.max_length} tokens "
                f"over {n_variables} variables of library {library.name!r}; change min_leaves="
                f"{self.min_leaves}, max_leaves={self.max_leaves}, the weights or the lengths."
            )
        data_sets = DrawnDataSets(programs, X, y)
        if in_any_order:
            data_sets = data_sets.reordered(draw_orders(n_datasets, n_variables, state))
            canonicalise_all(data_sets.programs.arrays, library.table.arity, tables[0].rewriting)
        return data_sets
