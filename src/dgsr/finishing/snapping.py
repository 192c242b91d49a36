"""Snapping: each constant becomes the simplest number in its 95% interval, and the others are fitted again.

A snap is rejected if the fit becomes worse than chance explains. Constants that become 0 or 1 drop out of the
formula, whose constants are then merged again. The remaining constants are rounded to the digits that the
data determine.
"""

from __future__ import annotations

import math
from bisect import insort
from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT_DEVIANCE
from dgsr.expressions.trees.simple_numbers import QUARTER_TURN, cost, shortest, simple_numbers
from dgsr.finishing.fits import Fits, FittedProgram, are_exponents, are_phases
from dgsr.finishing.forms import merged
from dgsr.finishing.programs import are_equal, groups_of, score, tree_of, with_value

# Most significant digits of a decimal that a constant may become; without noise, longer ones are chance.
_MAX_DIGITS = 9
# Cost, in digits, of an exponent that is a multiple of a third: 14 of 16 such exponents are found, else 6.
_COST_OF_THIRD = 1.1
# Increase of n log(NMSE) below which a rounding is accepted.
_ROUNDED = 1.0
# Most simple numbers that are tried for one constant.
_MAX_REFUSALS = 4
# Most fits, and most rounds of snapping and merging, for one formula.
_MAX_REFITS = 60


class _Proposal(NamedTuple):
    """A simple number that a constant may become."""

    group: np.ndarray  # the positions of the constant and its copies
    value: float
    cost: float


def snapped(fit: FittedProgram, limit: float, fits: Fits) -> FittedProgram:
    """Return the fit with its constants snapped and merged repeatedly until nothing changes.

    `limit` is the NMSE of the original program; each snap may raise n log(NMSE) above it by 4 more.
    """
    n_snapped, library = 0, fits.library
    fits.n_refits = 0
    for _ in range(_MAX_REFITS):
        fit, n_snapped = _snap_constants(fit, limit, n_snapped, fits)
        try:
            program = merged(tree_of(fit.program, library), fits)
        except (ValueError, ArithmeticError):
            break
        # exp(0*x1) becomes the longer 2.718..., since a column without effect is no part of a formula.
        is_longer = score(program, library) > score(fit.program, library) and 0.0 not in fit.program.constants
        if is_longer or are_equal(program, fit.program, 1e-14):
            break
        refitted = fits.refitted(program, copies=True)
        if not fits.is_as_good(refitted.nmse, max(limit, fit.nmse)):
            break
        fit = refitted
    return rounded(fit, fits)


def rounded(fit: FittedProgram, fits: Fits, largest: float = 0.5) -> FittedProgram:
    """Return the fit with its free constants rounded to the digits that the data determine.

    All are rounded by at most a share of two standard errors: `largest`, or the first smaller one that raises
    n log(NMSE) by less than 1. If none does, the fit is returned unchanged.
    """
    groups = groups_of(fit.program)
    if not groups:
        return fit
    halves = fits.half_widths(fit, groups, with_early=False)
    for share in (largest, 0.05, 0.005, 5e-4, 5e-5):
        constants = fit.program.constants.copy()
        for group, half in zip(groups, halves.tolist(), strict=True):
            value = float(constants[group[0]])
            constants[group] = shortest(value, share * min(half, abs(value)))
        program = fit.program._replace(constants=constants)
        nmse = fits.nmse(program)
        if fits.is_as_good(nmse, fit.nmse, allowed=_ROUNDED):
            return FittedProgram(program, nmse)
    return fit


def with_simple_numbers(fit: FittedProgram, limit: float, fits: Fits) -> FittedProgram:
    """Return the fit with its constants snapped and its form unchanged; `snapped` explains the parameters."""
    fits.n_refits = 0
    return _snap_constants(fit, limit, 0, fits)[0]


def _snap_constants(
    fit: FittedProgram, limit: float, n_snapped: int, fits: Fits
) -> tuple[FittedProgram, int]:
    """Snap the constants one by one, in each step the one with the simplest number in its interval."""
    refused: dict[int, set[float]] = {}
    while fits.n_refits < _MAX_REFITS:
        groups = [g for g in groups_of(fit.program) if len(refused.get(int(g[0]), ())) < _MAX_REFUSALS]
        if not groups:
            break
        proposals = _proposals(fit, groups, refused, fits)
        together = _all_at_once(fit, groups, proposals, limit, n_snapped, fits)
        if together is not None:
            return together, n_snapped + len(groups)
        if not proposals:
            break
        for proposal in sorted(proposals, key=lambda proposal: proposal.cost):
            trial = fits.refitted(with_value(fit.program, proposal.group, proposal.value), copies=True)
            if fits.is_as_good(trial.nmse, fit.nmse) and fits.is_as_good(
                trial.nmse, limit, SIGNIFICANT_DEVIANCE * (n_snapped + 1)
            ):
                fit, n_snapped = trial, n_snapped + 1
                if proposal.cost < 0:
                    # It is 0: a part of the formula drops out, perhaps with other constants.
                    return fit, n_snapped
                break
            refused.setdefault(int(proposal.group[0]), set()).add(proposal.value)
    return fit, n_snapped


def _proposals(
    fit: FittedProgram, groups: list[np.ndarray], refused: dict[int, set[float]], fits: Fits
) -> list[_Proposal]:
    """Return for each group the simplest number in its interval that was not rejected, where there is one.

    A phase that is a multiple of pi/2 is as simple as 0, since sin(f + pi/2) is cos(f). As exponents, thirds
    are simpler than other numbers of two digits, such as 0.34.
    """
    proposals = []
    is_phase, is_exponent = (of(fit.program.tokens, fits.library) for of in (are_phases, are_exponents))
    for group, half in zip(groups, fits.half_widths(fit, groups), strict=True):
        value = float(fit.program.constants[group[0]])
        numbers = [(number, cost(number)) for number in simple_numbers(value, half, _MAX_DIGITS)]
        turn = QUARTER_TURN * round(value / QUARTER_TURN)
        if is_phase[group].all() and turn != 0 and abs(turn - value) <= half:
            place = 1 if numbers and numbers[0][0] == 0 else 0  # after 0 itself
            numbers.insert(place, (turn, cost(0)))
        third = float(np.round(3.0 * value)) / 3.0  # infinite for the largest numbers
        if is_exponent[group].all() and third != np.round(third) and abs(third - value) <= half:
            insort(numbers, (third, _COST_OF_THIRD), key=lambda number: number[1])
        tried = refused.get(int(group[0]), set())
        number = next((number for number in numbers if number[0] not in tried), None)
        if number is not None:
            proposals.append(_Proposal(group, *number))
    return proposals


def _all_at_once(
    fit: FittedProgram,
    groups: list[np.ndarray],
    proposals: list[_Proposal],
    limit: float,
    n_snapped: int,
    fits: Fits,
) -> FittedProgram | None:
    """Return the fit with all proposals accepted, or None if its NMSE rises by more than chance explains."""
    if len(proposals) < len(groups) or len(groups) < 2:
        return None
    program = fit.program
    for proposal in proposals:
        program = with_value(program, proposal.group, proposal.value)
    nmse, k = fits.nmse(program), len(groups)
    # k + 2 sqrt(2 k) is about the 95% quantile of the chi-squared distribution with k degrees of freedom.
    is_good = fits.is_as_good(nmse, fit.nmse, k + 2 * math.sqrt(2 * k))
    is_good = is_good and fits.is_as_good(nmse, limit, SIGNIFICANT_DEVIANCE * (n_snapped + k))
    return FittedProgram(program, nmse) if is_good else None
