"""Which programs are valid by required and forbidden tokens, limits of nesting, and units."""

from __future__ import annotations

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library

# Where no formula with a violation of units is valid, programs that have n of them may still breed, with an
# NMSE multiplied by 1 + 9n.
_BREEDING_PENALTY = 9.0


class Validity:
    """The filter of programs by their tokens and units, for each of their uses. Every method returns a mask.

    Parameters
    ----------
    constraints : Constraints
    library : Library
    """

    def __init__(self, constraints: Constraints, library: Library) -> None:
        self._constraints, self._library = constraints, library

    def tried(self, programs: Population) -> np.ndarray:
        """Return which programs have all that is required and nothing forbidden, shape (n_programs,)."""
        return self._constraints.are_kept(programs.tokens, programs.lengths, self._library)

    def whole(self, programs: Population) -> np.ndarray:
        """Return which formulas may be tried and break no rule of units as they stand, (n_programs,)."""
        return self.tried(programs) & np.isfinite(self.factors(programs))

    def scaled(self, programs: Population) -> np.ndarray:
        """Return which programs may be tried and, with a scale and an offset, break no rule of units."""
        return self.tried(programs) & np.isfinite(self.factors_in_rounds(programs)[0])

    def terms(self, programs: Population) -> np.ndarray:
        """Return which programs may be parts of formulas, by the rules of units, shape (n_programs,)."""
        return np.isfinite(self.factors(programs, of_whole=False))

    def factors(self, programs: Population, of_whole: bool = True) -> np.ndarray:
        """Return what the NMSE of programs is multiplied by for their units, infinite where none may stay.

        Parameters
        ----------
        programs : Population
        of_whole : bool
            Whether a program is the formula of the target, whose unit it must have.
        """
        units = self._constraints.units
        if units is None:
            return np.ones(len(programs))
        return units.handicaps(units.violations(*programs.arrays, self._library, of_whole=of_whole))

    def violations(self, programs: Population) -> np.ndarray:
        """Return how often programs of the rounds break the rules of units, shape (n_programs,)."""
        units = self._constraints.units
        if units is None:
            return np.zeros(len(programs), dtype=np.int64)
        # A scale that carries a unit gives a program any dimension.
        of_whole = units.unitless_constants or not self._library.has_constants
        return units.violations(*programs.arrays, self._library, of_whole=of_whole)

    def factors_in_rounds(self, programs: Population) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors of programs of the rounds, by which they stay and by which they breed."""
        units = self._constraints.units
        if units is None:
            return np.ones(len(programs)), np.ones(len(programs))
        violations = self.violations(programs)
        factors = units.handicaps(violations)
        return factors, factors if units.penalty is not None else 1.0 + _BREEDING_PENALTY * violations
