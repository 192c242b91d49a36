"""How well a program fits the data, and how precisely the data determine its constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.constants.uncertainty import SIGNIFICANT_DEVIANCE, Directions, derivatives
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram, flags_of_constants
from dgsr.expressions.trees.trees import SUMS
from dgsr.finishing.programs import groups_of

# NMSE below which all fits are equally good, since rounding in the evaluation causes as much. Any constant
# may change the predictions by this.
_ROUNDING_NMSE = 1e-20


class OutOfTime(Exception):
    """Raised when the time for finishing formulas is over."""


class FittedProgram(NamedTuple):
    """A program and its NMSE."""

    program: FreeProgram
    nmse: float


class Fits:
    """Fits of programs of a library to one data set.

    `tolerance` is the NMSE that counts as exact. `is_over` is called before each fit; if it returns True, the
    fit raises `OutOfTime`. If `copies_are_tied`, equal constants stay equal in every fit, as those of a
    function that a form has twice.
    """

    def __init__(
        self,
        data: DataSet,
        library: Library,
        tolerance: float,
        is_over: Callable[[], bool] = lambda: False,
        copies_are_tied: bool = False,
    ) -> None:
        self._is_over, self._copies_are_tied = is_over, copies_are_tied
        self.data = data
        self.library = library
        self.variables = {f"x{i + 1}": column for i, column in enumerate(data.columns)}
        self.tolerance = tolerance
        self.n_rows = data.n_effective
        self.n_refits = 0
        # The squares of the residuals times these weights add up to the NMSE.
        self.row_weights = np.sqrt(data.weights / (len(data.y) * data.variance))
        # `floor` is the NMSE below which fits are equally good; it is positive, since its logarithm is taken.
        self.rounding = data.rounding_nmse
        self.floor = max(min(_ROUNDING_NMSE, tolerance), self.rounding, np.finfo(np.float64).tiny)

    @cached_property
    def indicators(self) -> frozenset[str]:
        """The columns that are 0 in some rows and 1 in the others."""
        names = self.variables.items()
        return frozenset(name for name, x in names if np.ptp(x) > 0.0 and np.all((x == 0.0) | (x == 1.0)))

    def residuals(self, program: FreeProgram | Expression) -> np.ndarray:
        """Return the weighted residuals of a program, (n_rows,); their squares add up to the NMSE."""
        # The constants are copied, since the kernels would be compiled again for a read-only array.
        single = Population.of_one(self.library, program.tokens, program.constants[None].copy())
        with np.errstate(all="ignore"):
            return (single.predict(self.data.columns.T)[0] - self.data.y) * self.row_weights

    def nmse(self, program: FreeProgram | Expression) -> float:
        """Return the weighted NMSE of a program; inf where a prediction is not finite."""
        residuals = self.residuals(program)
        with np.errstate(all="ignore"):
            nmse = float(residuals @ residuals)
        return nmse if math.isfinite(nmse) else math.inf

    def least_squares(self, program: FreeProgram, copies: bool) -> np.ndarray:
        """Return the constants fitted from their present values; with `copies`, equal ones stay equal."""
        single = Population.of_one(self.library, program.tokens, program.constants[None].copy())
        free = program.free[None]
        ties = None
        if copies:  # equal constants have the same number
            ties = np.unique(program.constants, return_inverse=True)[1][None]
        fit_constants(single, self.data, scaled=False, free=free, ties=ties, n_iterations=50, precision=1e-9)
        return single.constants[0]

    def refitted(self, program: FreeProgram, copies: bool = False) -> FittedProgram:
        """Return the program with its free constants fitted; with `copies`, equal constants stay equal."""
        if self._is_over():
            raise OutOfTime
        nmse = self.nmse(program)
        if not program.free.any():
            return FittedProgram(program, nmse)
        self.n_refits += 1
        copies = copies or self._copies_are_tied
        constants = np.where(program.free, self.least_squares(program, copies), program.constants)
        is_phase = are_phases(program.tokens, self.library) & program.free
        for group in groups_of(program) if copies else ():  # a copy elsewhere would no longer be equal
            is_phase[group] = is_phase[group].all()
        constants[is_phase] -= 2 * math.pi * np.round(constants[is_phase] / (2 * math.pi))
        fitted = program._replace(constants=constants)
        new = FittedProgram(fitted, self.nmse(fitted))
        return new if new.nmse < nmse else FittedProgram(program, nmse)

    def fitted(self, program: FreeProgram) -> FittedProgram:
        """Return the program with its constants fitted; equal ones stay equal if that fits as well."""
        apart = self.refitted(program)
        if self._copies_are_tied or len(groups_of(program)) == program.free.sum():
            return apart
        equal = self.refitted(program, copies=True)
        return equal if self.is_as_good(equal.nmse, apart.nmse) else apart

    def _directions(self, program: FreeProgram, groups: list[np.ndarray]) -> Directions:
        """Return the directions in which groups of constants change the weighted values of a program."""
        slopes = derivatives(self.library, program.tokens, program.constants, groups, self.data.columns)
        with np.errstate(all="ignore"):
            return Directions.of((slopes * self.row_weights).T)

    def is_as_good(self, nmse: float, limit: float, allowed: float = SIGNIFICANT_DEVIANCE) -> bool:
        """Return whether n log(NMSE) has grown by less than `allowed`."""
        if not (math.isfinite(nmse) and math.isfinite(limit)):
            return math.isfinite(nmse)
        return self.n_rows * math.log(max(nmse, self.floor) / max(limit, self.floor)) < allowed

    def half_widths(
        self, fit: FittedProgram, groups: list[np.ndarray], with_early: bool = True
    ) -> np.ndarray:
        """Return two standard errors of each group of constants; inf where the data do not determine it.

        Directions in the space of the constants without effect on the fit are left out of the covariance, and
        constants involved in one get inf. The residuals count as at least as large as the rounding of the
        targets. With `with_early`, the widths also allow for a fit that stopped early.
        """
        apart = self._directions(fit.program, groups)
        with np.errstate(all="ignore"):
            n_rows, nmse = max(self.n_rows - len(groups), 1), max(fit.nmse, self.rounding)
            half = 2.0 * np.sqrt((apart.inverse**2).sum(axis=1) * nmse / n_rows)
            if with_early:
                # Where the fit stopped early, as at 1.0000000002*x, one constant may cause all residuals.
                early = 3.0 * math.sqrt(nmse) if nmse <= self.tolerance else 0.0
                half = np.maximum(half, max(math.sqrt(_ROUNDING_NMSE), early) / apart.norms)
        spacing = np.spacing([abs(fit.program.constants[group[0]]) for group in groups])
        return np.where(apart.is_lost, np.inf, np.maximum(half, spacing))


def are_phases(tokens: np.ndarray, library: Library) -> np.ndarray:
    """Return, for each constant, whether it is a term of the argument of a sine or cosine, (n_constants,)."""

    def of_argument(name: str, is_phase: bool, _: int) -> bool:
        return name in ("sin", "cos") or (is_phase and name in SUMS)

    return flags_of_constants(library, tokens, False, of_argument)


def are_exponents(tokens: np.ndarray, library: Library) -> np.ndarray:
    """Return, for each constant, whether it is the exponent of a power, shape (n_constants,), bool."""
    return flags_of_constants(library, tokens, False, lambda name, _, number: name == "pow" and number == 1)
