"""The test whether programs satisfy the rules of required and forbidden tokens, nesting, units and shape."""

from __future__ import annotations

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library

# Factor a by which n violations of units raise the NMSE in selection, to 1 + a n, where none is allowed.
_BREEDING_PENALTY = 9.0
# Largest violation of shape constraints that counts in selection, in standard deviations of y.
_MOST_OF_SHAPE = 1.0


class Validity:
    """Tests of the tokens, units and shape of programs, one for each use of a program.

    `tried`, `whole`, `scaled` and `terms` return masks of shape (n_programs,).
    """

    def __init__(self, constraints: Constraints, library: Library) -> None:
        self._constraints, self._library = constraints, library

    def tried(self, programs: Population) -> np.ndarray:
        """Return which programs satisfy the constraints on tokens."""
        return self._constraints.satisfy_user_rules(programs.tokens, programs.lengths, self._library)

    def whole(self, programs: Population) -> np.ndarray:
        """Return which programs satisfy all constraints as complete formulas."""
        return self.tried(programs) & np.isfinite(self.factors(programs))

    def scaled(self, programs: Population) -> np.ndarray:
        """Return which programs satisfy all constraints with a scale and an offset."""
        return self.tried(programs) & np.isfinite(self.factors_in_rounds(programs)[0])

    def terms(self, programs: Population) -> np.ndarray:
        """Return which programs satisfy the rules of units as parts of formulas."""
        return np.isfinite(self.factors(programs, of_whole=False))

    def factors(self, programs: Population, of_whole: bool = True) -> np.ndarray:
        """Return factors of the NMSE for violations by formulas or parts; inf if invalid.

        Parts of formulas have no shape.
        """
        units, factors = self._constraints.units, np.ones(len(programs))
        if units is not None:
            factors = units.handicaps(units.violations(*programs.arrays, self._library, of_whole=of_whole))
        return np.where(self.shape_factors(programs) > 1.0, np.inf, factors) if of_whole else factors

    def shape_factors(
        self, programs: Population, slope: np.ndarray | None = None, intercept: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the factors of the NMSE in selection for the shape of slope*f + intercept, (n_programs,)."""
        shape = self._constraints.shape
        if shape is None:
            return np.ones(len(programs))
        violations = shape.violations(*programs.arrays, self._library, slope, intercept)
        return 1.0 + _BREEDING_PENALTY * np.minimum(violations, _MOST_OF_SHAPE)

    def violations(self, programs: Population) -> np.ndarray:
        """Return the number of violations of units in programs of the rounds, shape (n_programs,)."""
        units = self._constraints.units
        if units is None:
            return np.zeros(len(programs), dtype=np.int64)
        # A scale with a unit of its own can give a program any dimension, and a form has none around it.
        has_scale = self._library.has_constants and self._constraints.form is None
        of_whole = units.unitless_constants or not has_scale
        return units.violations(*programs.arrays, self._library, of_whole=of_whole)

    def factors_in_rounds(self, programs: Population) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of the NMSE for units in the rounds, for the archive and for selection."""
        units = self._constraints.units
        if units is None:
            return np.ones(len(programs)), np.ones(len(programs))
        violations = self.violations(programs)
        factors = units.handicaps(violations)
        return factors, factors if units.penalty is not None else 1.0 + _BREEDING_PENALTY * violations
