"""The digits of the constants by which a formula predicts; its description length counts fewer of them.

Snapping makes each constant the simplest number within two standard errors. That is right where formulas are
compared by their descriptions, since digits below a standard error describe the noise, and wrong for
predictions, which get worse with the distance from the fit. So once a formula is on the front, only numbers
that chance does not explain remain; the others are fitted again and rounded by at most half a standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.coordinates import are_origins
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.expressions.trees.simple_numbers import QUARTER_TURN, ROUNDING, cost, expected_by_chance
from dgsr.finishing.fits import Fits, OutOfTime, are_exponents, are_phases
from dgsr.finishing.programs import groups_of, with_value
from dgsr.finishing.snapping import rounded

# Distance from the fit, in standard errors, beyond which a number of one digit does not come from a fit.
_FARTHEST = 4.0


def with_measured_digits(
    expression: Expression,
    data: DataSet,
    tolerance: float,
    is_over: Callable[[], bool] = lambda: False,
    origins: np.ndarray | None = None,
) -> Expression:
    """Return a finished formula, whose constants are simple numbers, with the digits that the data determine.

    A simple number stays if it is more probably the true value than a result of chance. The odds are
    exp(-z**2/2) to m, where z is its distance from the fit in standard errors, and m is how many equally
    simple numbers an interval of two standard errors to both sides holds on average (`expected_by_chance`). A
    number of one digit more than four standard errors from the fit stays, too: it never was a fitted
    constant, like the 2 of 2*x1 for x1 + x1. The formula itself is returned if it does not fit better with
    other constants.

    Parameters
    ----------
    expression : Expression
    data : DataSet
        The rows to which its constants were fitted.
    tolerance : float
        NMSE that counts as exact; the constants of an exact formula stay.
    is_over : callable, optional
        Returns True once the time is over; the formula is then returned unchanged.
    origins : ndarray of shape (n_constants,), int64, optional
        Numbers of the constants of a form, in which equal ones stay equal; those of negative numbers stay.
    """
    fits = Fits(data, expression.library, tolerance, is_over, copies_are_tied=origins is not None)
    may_move = _may_move(expression, data)
    if origins is not None:
        may_move &= origins >= 0
    try:
        return _with_measured_digits(expression, may_move, fits)
    except OutOfTime:
        return expression


def _with_measured_digits(expression: Expression, may_move: np.ndarray, fits: Fits) -> Expression:
    simple = expression.constants.copy()
    program = FreeProgram(expression.tokens, simple, may_move)
    before = fits.nmse(program)
    if not program.free.any() or not fits.floor < before < math.inf or before <= fits.tolerance:
        return expression
    fit = fits.fitted(program)
    while groups := groups_of(fit.program):
        halves = fits.half_widths(fit, groups, with_early=False).tolist()
        odds = [
            _log_odds(float(simple[group[0]]), float(fit.program.constants[group[0]]), half)
            for group, half in zip(groups, halves, strict=True)
        ]
        surest = int(np.argmax(odds))
        if odds[surest] <= 0.0:
            break
        number = float(simple[groups[surest][0]])
        fit = fits.refitted(with_value(fit.program, groups[surest], number), copies=True)
    fit = rounded(fit, fits, largest=0.25)  # half a standard error
    return expression.with_constants(fit.program.constants) if fit.nmse < before else expression


def _may_move(expression: Expression, data: DataSet) -> np.ndarray:
    """Return a mask of the constants whose digits may change, shape (n_constants,), bool."""
    tokens, constants = expression.tokens, expression.constants
    is_phase, is_exponent = (of(tokens, expression.library) for of in (are_phases, are_exponents))
    turns = is_phase & (constants == QUARTER_TURN * np.round(constants / QUARTER_TURN))
    costs = np.array([cost(value) for value in constants.tolist()], dtype=np.float64)
    twelfths = 12.0 * constants
    is_simple = is_exponent & (np.abs(twelfths - np.round(twelfths)) <= ROUNDING)
    return ~(are_origins(expression, data.columns) | turns | is_simple | (costs <= 0.0))


def _log_odds(number: float, fitted: float, half: float) -> float:
    """Return the log odds that a number is the true value; `half` is two standard errors of the fit."""
    if not math.isfinite(half):
        return math.inf  # the rows do not determine the constant
    z = 2.0 * (number - fitted) / half
    if cost(number) <= 1.0 and abs(z) > _FARTHEST:
        return math.inf
    return -0.5 * z * z - math.log(expected_by_chance(number, half))
