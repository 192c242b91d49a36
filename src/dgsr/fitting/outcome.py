"""The result of a pass, and the caveats that a user should know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT_DEVIANCE, linear_leave_one_out
from dgsr.data import Prepared
from dgsr.data.dataset import LARGEST_ROUNDING
from dgsr.expressions.programs.constraints import Constraints
from dgsr.fitting.losses import Loss
from dgsr.pareto import Candidate, ParetoFront

# NMSE from which on a formula fits no better than the mean of y, whose digits are rounded.
_LOSS_OF_MEAN = 0.999


class Outcome(NamedTuple):
    """The front of a pass, and the formula that was chosen from it."""

    front: ParetoFront
    chosen: Candidate
    loss: str | Loss
    rows: Prepared  # with the weights of the pass
    bits: float  # description length of the chosen formula and its residuals; -inf for an exact fit

    def caveats(self, constraints: Constraints, stop_reason: str) -> Iterator[str]:
        """Yield the reasons why the chosen formula of a search may not be the law."""
        n_rows, n_searched = len(self.rows.data.y), len(self.rows.search.y)
        if n_rows < 3:
            yield (
                f"So few rows ({n_rows}) cannot tell formulas apart, because nearly every one can be "
                "fitted to them; give more."
            )
        elif self._hangs_on_single_rows:
            is_square = self.loss in ("squared", "relative")
            against_outliers = ", or set loss='huber' against outliers" if is_square else ""
            yield (
                "The chosen formula has constants that single rows determine: its loss is "
                f"{self.chosen.loss:.3g}, and its leave-one-out error {self.chosen.leave_one_out:.3g}. Give "
                f"more rows, or choose a shorter formula of the front{against_outliers}."
            )
        if constraints.shape is not None and self.chosen.loss >= _LOSS_OF_MEAN:
            yield (
                "No formula that keeps all that is given of lower, upper, monotone and at fits the rows "
                "better than the mean of y; check these constraints against the data."
            )
        if self.chosen.loss <= max(self.front.tolerance, LARGEST_ROUNDING):
            return
        if stop_reason == "exact fit" and n_searched < n_rows:
            yield (
                f"The search ended with a formula that fits its {n_searched} rows exactly, but the NMSE of "
                f"the chosen one on all {n_rows} rows is {self.chosen.loss:.3g}: some rows may be outliers, "
                "or follow another law. Raise max_rows in config to search on more of them."
            )
        elif not (constraints.units or constraints.shape or constraints.form or self._hangs_on_single_rows):
            yield from self._linear_is_better(constraints)

    @property
    def _hangs_on_single_rows(self) -> bool:
        return self.chosen.leave_one_out > max(1.0, 2.0 * self.chosen.loss)

    def _linear_is_better(self, constraints: Constraints) -> Iterator[str]:
        fitted = self.rows.fitted
        usable = np.delete(fitted.columns, constraints.forbidden_columns, axis=0)
        linear = linear_leave_one_out(fitted._replace(columns=usable))
        # Rounding its constants may raise the error of a linear law by exp(rounding) (`dgsr.finishing`).
        rounding = SIGNIFICANT_DEVIANCE * (1 + len(self.chosen.expression.constants)) / fitted.n_effective
        if linear < min(self.chosen.leave_one_out * np.exp(-rounding), 1.0):
            yield (
                f"A linear model of all columns predicts rows left out better than the chosen formula (NMSE "
                f"{linear:.3g}, formula {self.chosen.leave_one_out:.3g}); the data may have no shorter law, "
                "or the search may need more time."
            )
