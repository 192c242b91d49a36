"""The parameters of `DGSRRegressor`, whose docstring explains them: their defaults and allowed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.trees import MAX_LEVELS
from dgsr.fitting.losses import Loss
from dgsr.pareto import SELECTIONS
from dgsr.reporting.progress import SearchCallback
from dgsr.search import OBJECTIVES

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Largest number of evaluations, which are counted in 64 bits, also over several processes.
_MOST_EVALUATIONS = 1e18
# Largest number of seconds, 30 years.
_MOST_SECONDS = 1e9
# Largest number of tokens of a program, which may have as many levels; a sum of such programs may have 30
# more.
_MOST_TOKENS = MAX_LEVELS - 30
# Largest number of programs of a round; with the longest programs their arrays take a gigabyte.
_MOST_PROGRAMS = 100_000
# Largest number of processes of a search, each of which takes a third of a gigabyte.
_MOST_JOBS = 1_000
# Largest tolerance, as an NMSE: the mean of the targets has 1 and needs no search.
_MOST_TOLERANCE = 1.0
# Largest penalty of a violation of units, which no fit can outweigh.
_MOST_PENALTY = 1e12


class _Range(Interval):
    """An interval that rejects values that numpy cannot compare, such as a Fraction or a huge integer."""

    def is_satisfied_by(self, val: Any) -> bool:
        try:
            return bool(super().is_satisfied_by(val))
        except (TypeError, OverflowError):
            return False


class Parameters:
    """The constructor and the constraints of the parameters, which scikit-learn reads."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "library": [str, Library],
        "generator": [str, Path, HasMethods(["encode_dataset", "refinable_copy"]), None],
        "max_evaluations": [_Range(Real, 1, _MOST_EVALUATIONS, closed="both")],
        "max_time": [_Range(Real, 0, _MOST_SECONDS, closed="right"), None],
        "batch_size": [Interval(Integral, 2, _MOST_PROGRAMS, closed="both")],
        "objective": [StrOptions(set(OBJECTIVES))],
        "refine": ["boolean", StrOptions({"auto"})],
        "look_up": ["boolean"],
        "gp": [StrOptions({"compiled", "deap"}), HasMethods("evolve")],
        "gp_generations": [Interval(Integral, 0, None, closed="left")],
        "min_length": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 2, _MOST_TOKENS, closed="both")],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
        "loss": [str, callable],
        "selection": [StrOptions(set(SELECTIONS))],
        "tolerance": [_Range(Real, 0, _MOST_TOLERANCE, closed="both")],
        "random_state": ["random_state"],
        "initial_formulas": ["array-like", None],
        "required": ["array-like", None],
        "forbidden": ["array-like", None],
        "complexity": [Mapping, None],
        "nested": [Mapping, None],
        "units": [dict, None],
        "y_units": [str, "array-like", None],
        "unitless_constants": ["boolean"],
        "unit_penalty": [_Range(Real, 0, _MOST_PENALTY, closed="both"), None],
        "warm_start": ["boolean"],
        "checkpoint": [str, Path, None],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, _MOST_JOBS, closed="both"),
            None,
        ],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        library: str | Library = "auto",
        generator: str | Path | Generator | None = "auto",
        *,
        max_evaluations: float = 2_000_000,
        max_time: float | None = None,
        batch_size: int = 500,
        objective: str = "pqt",
        refine: bool | str = "auto",
        look_up: bool = True,
        gp: Any = "compiled",
        gp_generations: int = 25,
        min_length: int = 1,
        max_length: int = 30,
        max_rows: int | None = 200,
        loss: str | Loss = "auto",
        selection: str = "mdl",
        tolerance: float = 1e-20,
        random_state: int | np.random.RandomState | None = None,
        initial_formulas: Sequence[str | Expression] | None = None,
        required: Sequence[str] | None = None,
        forbidden: Sequence[str] | None = None,
        complexity: Mapping[str, int] | None = None,
        nested: Mapping[str, Mapping[str, int | None]] | None = None,
        units: dict[str, str | None] | None = None,
        y_units: str | Sequence[str | None] | None = None,
        unitless_constants: bool = False,
        unit_penalty: float | None = None,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: SearchCallback | None = None,
    ) -> None:
        self.library = library
        self.generator = generator
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.batch_size = batch_size
        self.objective = objective
        self.refine = refine
        self.look_up = look_up
        self.gp = gp
        self.gp_generations = gp_generations
        self.min_length = min_length
        self.max_length = max_length
        self.max_rows = max_rows
        self.loss = loss
        self.selection = selection
        self.tolerance = tolerance
        self.random_state = random_state
        self.initial_formulas = initial_formulas
        self.required = required
        self.forbidden = forbidden
        self.complexity = complexity
        self.nested = nested
        self.units = units
        self.y_units = y_units
        self.unitless_constants = unitless_constants
        self.unit_penalty = unit_penalty
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback
