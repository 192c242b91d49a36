"""The making of a front: which formulas it has, and with how many digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT_DEVIANCE, Uncertainty, uncertainty_of
from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.formulas.parts import with_names_in
from dgsr.expressions.formulas.units_of_constants import units_of_constants
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.shape import ShapeConstraints
from dgsr.expressions.programs.units import Units
from dgsr.pareto.archive import LEAST_GAIN
from dgsr.pareto.candidate import Candidate
from dgsr.pareto.choosing import errors_left_out
from dgsr.pareto.judging import (
    are_supported,
    judged,
    length_on,
    n_weak_points,
    undominated,
    without_long_exact_fits,
)


def candidates_of(
    expressions: Sequence[Expression],
    data: DataSet,
    feature_names: Sequence[str] | None,
    tolerance: float,
    assess: Callable[[Expression], Uncertainty | None] | None,
    units: Units | None,
    with_digits: Callable[[Expression], Expression] | None,
    nmse: np.ndarray | None,
    shape: ShapeConstraints | None = None,
    form: Form | None = None,
) -> tuple[list[Candidate], int]:
    """Return the candidates of the front of some expressions, and how many were excluded for weak points.

    The parameters are those of `ParetoFront.from_expressions`.
    """
    if not expressions:
        return [], 0
    assess = assess or partial(uncertainty_of, data=data)
    expressions = list(expressions)
    losses, handicaps = judged(expressions, data, units, nmse, shape)
    bits = np.array([length_on(e, data) for e in expressions])
    losses = without_long_exact_fits(losses, bits, data, tolerance)
    supported = are_supported(expressions, losses, bits, data, tolerance)
    eligible = np.flatnonzero(losses <= _largest_losses(expressions, losses, supported, data, tolerance))

    for i in eligible[supported[eligible]].tolist():
        finer = expressions[i] if with_digits is None else with_digits(expressions[i])
        if finer is expressions[i]:
            continue
        its_losses, (handicap,) = judged([finer], data, units, shape=shape)
        (loss,) = without_long_exact_fits(its_losses, bits[i], data, tolerance)
        if loss < losses[i] and n_weak_points(finer, data) <= n_weak_points(expressions[i], data):
            expressions[i], losses[i], handicaps[i] = finer, loss, handicap
    order = eligible[np.lexsort((losses[eligible], bits[eligible]))].tolist()
    n_left_off = sum(not supported[i] for i in undominated(order, losses, tolerance))

    @cache
    def assessed(i: int) -> Candidate:
        named = expressions[i].with_feature_names(feature_names)
        named = named if form is None else with_names_in(form, named)
        own_loss, handicap = float(losses[i] / handicaps[i]), float(handicaps[i])
        plain = named.typical if isinstance(named, GroupedExpression) else named
        texts = () if units is None else units_of_constants(plain, units)
        own = None if bits[i] == description_length(named) else float(bits[i])
        return Candidate(named.complexity, own_loss, named, assess(named), texts, handicap, own, form)

    left = [i for i in order if supported[i]]

    def left_out(i: int) -> float:
        # The first one tells whether time was over before any such error was known.
        return float(errors_left_out([assessed(left[0]), assessed(i)], data.n_effective)[1])

    def best_of_every_length() -> list[int]:
        # With fewer rows than constants no formula has such an error.
        return undominated(left, losses, tolerance, left_out) or undominated(left, losses, tolerance)

    on_front = of_all = best_of_every_length()
    while undetermined := {i for i in on_front if not assessed(i).is_determined and losses[i] > tolerance}:
        left = [i for i in left if i not in undetermined]
        on_front = best_of_every_length()
    # Where no formula has constants that are all determined, none is left off for that.
    return [assessed(i) for i in on_front or of_all], n_left_off


def _largest_losses(
    expressions: Sequence[Expression],
    losses: np.ndarray,
    supported: np.ndarray,
    data: DataSet,
    tolerance: float,
) -> np.ndarray:
    """Return the loss up to which each formula may be on the front, shape (n_expressions,).

    It is that of the mean of the targets, for a formula that is a mere number that of a number within two
    standard errors of the mean, and any finite loss if all supported formulas are worse.
    """
    is_number = np.array([len(e.tokens) == len(e.constants) for e in expressions])
    of_numbers = max(1.01 * SIGNIFICANT_DEVIANCE / data.n_effective, LEAST_GAIN, tolerance)
    limits = 1.0 + np.where(is_number, of_numbers, max(LEAST_GAIN, tolerance))
    if not (losses <= limits)[supported].any():
        limits[:] = np.finfo(np.float64).max
    return limits
