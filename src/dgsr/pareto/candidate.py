"""A formula of a front, with its loss, its uncertainty and its description length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import Uncertainty
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.formulas.parts import parts_of
from dgsr.expressions.programs.form import Form


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
        None in a fit saved by a version without uncertainties.
    units : tuple of str
        Units of the constants (`dgsr.expressions.formulas.units_of_constants`); empty in a fit without units.
    handicap : float
        Factor of the loss in comparisons of formulas, for violations of units.
    bits : float, optional
        Description length by which the formula was compared, if it differs from the length of `expression`:
        it excludes the origins of columns and may be that of constants with fewer digits.
    form : Form, optional
        The form whose functions and constants `parts` names.
    """

    complexity: int
    loss: float
    expression: Expression
    uncertainty: Uncertainty | None = None
    units: tuple[str, ...] = ()
    handicap: float = 1.0
    bits: float | None = None
    form: Form | None = None

    def __repr__(self) -> str:
        return (
            f"{self.expression}  (complexity {self.complexity}, {self.description_length:.1f} bits, "
            f"loss {self.loss:.4g}, leave-one-out {self.leave_one_out:.4g})"
        )

    @property
    def description_length(self) -> float:
        """The bits of the formula; see `dgsr.expressions.formulas.description_length.description_length`."""
        return description_length(self.expression) if self.bits is None else self.bits

    @property
    def leave_one_out(self) -> float:
        """NMSE when each row is predicted with constants fitted to the others; nan if unknown."""
        return np.nan if self.uncertainty is None else self.uncertainty.leave_one_out

    @property
    def error(self) -> float:
        """The larger NMSE of loss and leave-one-out error; the loss where that is unknown or infinite."""
        left_out = self.leave_one_out
        return max(self.loss, left_out) if np.isfinite(left_out) else self.loss

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the constants, shape (n_constants,); nan if unknown, inf if undetermined."""
        if self.uncertainty is None:
            return np.full(len(self.expression.constants), np.nan)
        return self.uncertainty.standard_errors

    @property
    def n_constants(self) -> int:
        """Number of values of constants, with those of every group."""
        own = self.expression.by_group.values.size if isinstance(self.expression, GroupedExpression) else 0
        return len(self.expression.constants) + own

    @property
    def n_fitted(self) -> int:
        """Number of fitted values; origins of columns are not fitted, so their standard error is 0."""
        return int(np.count_nonzero(self.standard_errors)) + self.n_constants - len(self.expression.constants)

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the constants, as far as their errors are known.

        The standard error of a constant c must be below abs(c), or below abs(c*log(c)) where that is larger:
        of Arrhenius's factor only the order of magnitude may be known. A formula that is a mere number is
        always determined, since it may be 0.
        """
        sizes = np.abs(self.expression.constants)
        with np.errstate(all="ignore"):
            limits = np.where(sizes > 0.0, sizes * np.maximum(1.0, np.abs(np.log(sizes))), 0.0)
        is_number = len(sizes) == len(self.expression.tokens)
        # Numbers that columns are measured from are not fitted, and have no error.
        errors = self.standard_errors
        return is_number or not ((errors > 0.0) & (errors >= limits)).any()

    @property
    def parts(self) -> dict[str, str]:
        """The functions and constants of the form as texts, such as ``{"f(T)": "exp(-0.1*T)", "k": "2.5"}``.

        A function stands with the arguments of its first use. It is empty in a fit without a form.
        """
        return {} if self.form is None else parts_of(self.expression, self.form)

    def parts_text(self) -> str:
        """Return the parts for a line of the front, or the empty string without a form."""
        parts = ", ".join(f"{name} = {text}" for name, text in self.parts.items())
        return f"  [{parts}]" if parts else ""

    def constants_text(self, indices: Sequence[int] | None = None) -> str:
        """Return the fitted constants with standard errors and units, all or some, or the empty string."""
        constants = self.expression.constants.tolist()
        units = self.units or ("",) * len(constants)
        each = enumerate(zip(constants, self.standard_errors.tolist(), units))
        return ", ".join(
            f"{value!r} ± {error:.2g} {unit}".rstrip()
            for i, (value, error, unit) in each
            if error > 0.0 and (indices is None or i in indices)
        )

    def units_text(self) -> str:
        """Return the constants with five digits and their units, or the empty string without units."""
        each = zip(self.expression.constants.tolist(), self.units)
        return ", ".join(f"{value:.5g} {unit}".rstrip() for value, unit in each)
