"""The digits that a formula predicts with, which are finer than those that its length counts.

Snapping makes each constant the simplest number in its interval, which may be two standard errors from the
fit. That is right where formulas are compared by their descriptions, since digits below a standard error
describe the noise. It is wrong for predictions: in an interval from 0.38 to 0.4 there is always some number
of two digits, and the formula predicts the worse the farther it is from the fit. So once a formula is on the
front, only the numbers that are there by more than chance stay. The others are fitted again and rounded by
half a standard error at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.coordinates import are_origins
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.expressions.trees.simple_numbers import cost, expected_by_chance
from dgsr.finishing.fits import Fits, OutOfTime, are_exponents, are_phases
from dgsr.finishing.programs import QUARTER_TURN, groups_of, with_value
from dgsr.finishing.snapping import rounded

# Exponents that are multiples of 1/3 or 1/4, up to rounding, stay.
_ROUNDING = 1e-12
# Standard errors from the fit beyond which a number of one digit was never fitted.
_FARTHEST = 4.0
# Shares of two standard errors that a constant may be rounded by, tried one after the other.
_SHARES = (0.25, 0.05, 0.005, 5e-4, 5e-5)


def with_measured_digits(
    expression: Expression,
    data: DataSet,
    tolerance: float,
    is_over: Callable[[], bool] = lambda: False,
) -> Expression:
    """Return a finished formula with the digits that the data determine.

    A number other than 1 stays if it is rather meant than one of the many near the fit: with as many
    constants of its cost as of any value, the odds are those of a normal distribution of the width of the
    interval to the density of such numbers, exp(-z**2/2) to the number of them that an interval of two
    standard errors to both sides holds (`dgsr.expressions.trees.simple_numbers.expected_by_chance`), where z
    is its distance from the fit in standard errors. So does one of one digit that is farther than four: it
    was never fitted, as 2 in 2*x1 for x1 + x1. The others are fitted and rounded.

    Parameters
    ----------
    expression : Expression
        A formula whose constants are simple numbers.
    data : DataSet
        The rows that these were fitted to.
    tolerance : float
        NMSE that counts as exact; the constants of an exact formula stay.
    is_over : callable, optional
        A function that says whether the seconds are over, after which formulas stay as they are.

    Returns
    -------
    Expression
        The formula itself if it does not fit better with other constants.
    """
    try:
        return _with_measured_digits(expression, data, Fits(data, expression.library, tolerance, is_over))
    except OutOfTime:
        return expression


def _with_measured_digits(expression: Expression, data: DataSet, fits: Fits) -> Expression:
    simple = np.array(expression.constants, dtype=np.float64)
    program = FreeProgram(np.asarray(expression.tokens, dtype=np.int64), simple, _may_move(expression, data))
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
    fit = rounded(fit, fits, _SHARES)
    return expression.with_constants(fit.program.constants) if fit.nmse < before else expression


def _may_move(expression: Expression, data: DataSet) -> np.ndarray:
    """Return which constants may get other digits, shape (n_constants,), bool."""
    tokens, constants = np.asarray(expression.tokens), expression.constants
    is_phase, is_exponent = (of(tokens, expression.library) for of in (are_phases, are_exponents))
    turns = is_phase & (constants == QUARTER_TURN * np.round(constants / QUARTER_TURN))
    costs = np.array([cost(value) for value in constants.tolist()], dtype=np.float64)
    twelfths = 12.0 * constants
    is_usual = is_exponent & (np.abs(twelfths - np.round(twelfths)) <= _ROUNDING)
    return ~(are_origins(expression, data.columns) | turns | is_usual | (costs <= 0.0))


def _log_odds(number: float, fitted: float, half: float) -> float:
    """Return the logarithm of the odds that a number is meant, where two standard errors are `half`."""
    if not math.isfinite(half):
        return math.inf  # the rows do not determine it
    z = 2.0 * (number - fitted) / half
    if cost(number) <= 1.0 and abs(z) > _FARTHEST:
        return math.inf
    return -0.5 * z * z - math.log(expected_by_chance(number, half))
