"""A formula of a front, with what the data say of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import Uncertainty
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.formulas.expression import Expression


class Candidate(NamedTuple):
    """One formula of the front.

    Parameters
    ----------
    complexity : int
        C(f) of the paper; see `dgsr.expressions.OPERATORS`.
    loss : float
        NMSE on the data of the fit.
    expression : Expression
    uncertainty : Uncertainty, optional
        None in a fit that a version without uncertainties saved; `leave_one_out` and `standard_errors` are
        nan then.
    units : tuple of str
        Units of the constants (`dgsr.expressions.formulas.units_of_constants`); empty in a fit without units.
    handicap : float
        What the loss is multiplied by where formulas are compared, for violations of units.
    bits : float, optional
        Description length by which the formula was compared, where it is not that of `expression`: without
        the numbers that columns are measured from, and with constants of fewer digits.
    """

    complexity: int
    loss: float
    expression: Expression
    uncertainty: Uncertainty | None = None
    units: tuple[str, ...] = ()
    handicap: float = 1.0
    bits: float | None = None

    @property
    def description_length(self) -> float:
        """The bits of the formula; see `dgsr.expressions.formulas.description_length.description_length`."""
        return description_length(self.expression) if self.bits is None else self.bits

    @property
    def leave_one_out(self) -> float:
        """NMSE of every row predicted by the formula with constants fitted to the others; nan if unknown."""
        return np.nan if self.uncertainty is None else self.uncertainty.leave_one_out

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the constants, shape (n_constants,); nan if unknown, inf if undetermined."""
        if self.uncertainty is None:
            return np.full(len(self.expression.constants), np.nan)
        return self.uncertainty.standard_errors

    @property
    def is_determined(self) -> bool:
        """Whether the data determine its constants, as far as their errors are known.

        The standard error of each is smaller than it, or than it times its natural logarithm: Arrhenius's
        factor is often known by its order of magnitude alone. A number alone may be 0.
        """
        sizes = np.abs(self.expression.constants)
        with np.errstate(all="ignore"):
            limits = sizes * np.maximum(1.0, np.abs(np.log(sizes)))
        is_number = len(sizes) == len(self.expression.tokens)
        return is_number or not (self.standard_errors >= limits).any()

    def constants_text(self) -> str:
        """Return the constants of the fit with standard errors and units, or the empty string."""
        constants = self.expression.constants.tolist()
        units = self.units or ("",) * len(constants)
        each = zip(constants, self.standard_errors.tolist(), units)
        return ", ".join(
            f"{value!r} ± {error:.2g} {unit}".rstrip() for value, error, unit in each if error > 0.0
        )

    def units_text(self) -> str:
        """Return the constants of the formula in short with their units, or the empty string."""
        each = zip(self.expression.constants.tolist(), self.units)
        return ", ".join(f"{value:.5g} {unit}".rstrip() for value, unit in each)
