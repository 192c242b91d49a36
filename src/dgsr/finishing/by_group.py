"""Finish programs in data with groups: which constants have a value for each group, and which are shared.

The search fits a scale and an offset for each group. Here every constant of a formula, scale and offset
included, is given a value for each group or one for all, whichever describes the data in fewer bits. The
values by group then count as columns, so that the shared constants become simple numbers as in any formula.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.constants.by_group import GroupedProgram, assessed, noise_of
from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import Coordinates, unscaled
from dgsr.expressions.formulas.description_length import BITS_OF_CONSTANT
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import ByGroup, GroupedExpression, with_columns_for_constants
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram, flags_of_constants
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.digits import with_measured_digits
from dgsr.finishing.fits import OutOfTime
from dgsr.finishing.programs import groups_of, tree_of, written

# Most steps of a fit while it is decided which constants are shared.
_STEPS = 20
# Operators below which a constant is a scale or an offset of the formula or of one of its terms.
_LINEAR = ("add", "sub", "mul", "div", "neg")


class Grouping(NamedTuple):
    """The groups of the rows of a fit."""

    column: int  # of the numbers of the groups
    labels: tuple[Hashable, ...]


class _Shared(NamedTuple):
    """One way to share the constants of a program among the groups."""

    is_own: np.ndarray  # (k,) bool: which have a value for each group
    constants: np.ndarray  # (k, n_groups)
    bits: float  # of these constants and of the residuals


def finish_by_group(
    programs: Population,
    coordinates: Coordinates,
    data: DataSet,
    library: Library,
    grouping: Grouping,
    finish_one: Callable[[Population, DataSet, Library], Sequence[Expression]],
    is_over: Callable[[], bool],
) -> list[Expression]:
    """Return programs as formulas with constants by group, or without where all constants are shared.

    Parameters
    ----------
    programs : Population
        Programs of the search, without scales and offsets.
    coordinates : Coordinates
        Those of the programs.
    data : DataSet
        All rows with their groups, with columns measured from their origins.
    library : Library
    grouping : Grouping
    finish_one : callable
        Finishes a population of one whole formula, given data and library, which have further columns.
    is_over : callable
        Returns True once the time is over; the remaining programs are then left out.
    """
    found: list[Expression] = []
    for i, n in enumerate(programs.is_constant.sum(axis=1).tolist()):
        if is_over():
            break
        tokens, constants = programs.tokens[i, : programs.lengths[i]], programs.constants[i, :n]
        tree = tree_of(FreeProgram(tokens, constants, np.ones(n, dtype=bool)), library)
        try:
            whole = _whole(unscaled(tree, coordinates.scales), data, library)
            found.append(_finished(whole, coordinates, data, library, grouping, finish_one, is_over))
        except (ValueError, ArithmeticError, OutOfTime):
            continue
    return found


def _whole(tree: Tree, data: DataSet, library: Library) -> list[FreeProgram]:
    """Return a tree with a scale and with or without an offset, fitted to all rows together, as programs."""
    formula = Expression.from_tree(tree, library)
    fit = fit_constants(
        Population.from_expressions([formula]), data._replace(groups=data.groups[:0]), n_iterations=0
    )
    scaled = ("mul", float(fit.slope[0]) or 1.0, tree)
    trees = ("add", float(fit.intercept[0]), scaled), scaled
    return [written(merge(each, "leading"), library) for each in trees]


def _finished(
    programs: Sequence[FreeProgram],
    coordinates: Coordinates,
    data: DataSet,
    library: Library,
    grouping: Grouping,
    finish_one: Callable[[Population, DataSet, Library], Sequence[Expression]],
    is_over: Callable[[], bool],
) -> Expression:
    """Return the best of some whole formulas with its constants shared and finished."""
    n_groups, ways = len(grouping.labels), list[tuple[_Shared, FreeProgram, list[np.ndarray]]]()
    for program in programs:
        parts = groups_of(program)
        fits = GroupedProgram(library, *program[:2], parts, data, n_groups)
        start = (
            np.array([program.constants[part[0]] for part in parts]).reshape(-1, 1).repeat(n_groups, axis=1)
        )
        shared = _shortest(fits, start, _linear(program, parts, library), is_over)
        ways.append((shared, program, parts))
    shared, program, parts = min(ways, key=lambda way: way[0].bits)
    part_of = np.full(len(program.constants), -1)
    for number, index in enumerate(np.flatnonzero(shared.is_own).tolist()):
        part_of[parts[index]] = number
    constants = program.constants.copy()
    for index, part in enumerate(parts):
        constants[part] = shared.constants[index].mean()
    wider, tokens, numbers = with_columns_for_constants(library, program.tokens, constants, part_of)
    values = shared.constants[shared.is_own]
    (formula,) = finish_one(
        Population.of_one(wider, tokens, numbers[None]), _with_columns(data, values), wider
    )
    raw = data._replace(columns=data.columns + coordinates.origins[:, None])
    return _with_groups(coordinates.with_origins(formula), values, raw, library, grouping)


def _linear(program: FreeProgram, parts: Sequence[np.ndarray], library: Library) -> np.ndarray:
    """Return which constants are scales and offsets of the formula or of its terms, (k,) bool."""
    flags = flags_of_constants(
        library, program.tokens, True, lambda name, is_linear, _: is_linear and name in _LINEAR
    )
    return np.array([bool(flags[part[0]]) for part in parts], dtype=bool)


def _shortest(
    fits: GroupedProgram, start: np.ndarray, is_linear: np.ndarray, is_over: Callable[[], bool]
) -> _Shared:
    """Return the shortest description among those reached by sharing or freeing one constant at a time.

    It begins with scales and offsets by group, and with all constants shared.
    """
    none = np.zeros(len(start), dtype=bool)
    pooled = _described(fits, fits.fit(start, none, _STEPS), none)
    best = min(pooled, _described(fits, fits.fit(pooled.constants, is_linear, _STEPS), is_linear), key=_bits)
    tried = {none.tobytes(), is_linear.tobytes()}
    while True:
        others = list[_Shared]()
        for i in range(len(start)):
            if is_over():
                raise OutOfTime
            is_own = best.is_own.copy()
            is_own[i] = not is_own[i]
            if is_own.tobytes() not in tried:
                tried.add(is_own.tobytes())
                constants = np.where(
                    is_own[:, None], best.constants, best.constants.mean(axis=1, keepdims=True)
                )
                others.append(_described(fits, fits.fit(constants, is_own, _STEPS), is_own))
        better = min(others, key=_bits, default=best)
        if not better.bits < best.bits:
            return best
        best = better


def _bits(shared: _Shared) -> float:
    return shared.bits


def _described(fits: GroupedProgram, constants: np.ndarray, is_own: np.ndarray) -> _Shared:
    """Return constants (k, n_groups) with the bits of residuals of rows left out, and of their values."""
    apart, data = fits.directions(constants, is_own), fits.data
    loss = fits.nmse(fits.residuals(constants))
    left_out = max(loss, fits.leave_one_out(constants, apart), data.rounding_nmse)
    if not np.isfinite(left_out):
        return _Shared(is_own, constants, np.inf)
    bits = float(data.bits_of_residuals(np.array(left_out))) + BITS_OF_CONSTANT * len(is_own)
    bits += fits.bits_of_values(constants, is_own, noise_of(loss, apart.n_constants, data))
    return _Shared(is_own, constants, bits)


def with_digits_by_group(
    formula: GroupedExpression, data: DataSet, tolerance: float, is_over: Callable[[], bool]
) -> Expression:
    """Return a finished formula with the digits of its shared constants that the data determine.

    See `dgsr.finishing.digits.with_measured_digits`; `data` have the groups of their rows.
    """
    finer = with_measured_digits(
        formula.symbolic, _with_columns(data, formula.by_group.values), tolerance, is_over
    )
    if finer is formula.symbolic:
        return formula
    grouping = Grouping(formula.by_group.column, formula.by_group.labels)
    return _with_groups(finer, formula.by_group.values, data, formula.library, grouping)


def _with_columns(data: DataSet, values: np.ndarray) -> DataSet:
    """Return data with further columns, of the constants by group (q, n_groups), and without groups."""
    columns = np.concatenate([data.columns, values[:, data.groups]])
    return data._replace(columns=columns, groups=data.groups[:0])


def _with_groups(
    formula: Expression, values: np.ndarray, data: DataSet, library: Library, grouping: Grouping
) -> Expression:
    """Return a formula with columns of constants by group as one with such constants, fitted to the data.

    The last columns of the formula are those of `values` (q, n_groups), where the fit begins. Its other
    constants stay.
    """
    first = library.first_variable + library.n_variables
    used = np.unique(formula.tokens[formula.tokens >= first])
    tokens = np.where(formula.tokens >= first, library.index["const"], formula.tokens)
    own_tokens = formula.tokens[tokens == library.index["const"]]
    part_of = np.where(own_tokens >= first, np.searchsorted(used, own_tokens), -1)
    constants = np.ones(len(part_of))
    constants[part_of < 0] = formula.constants
    if not len(used):
        return Expression(library, tokens, constants)
    by_group = ByGroup.of_values(grouping.column, grouping.labels, part_of, values[used - first])
    fits = GroupedProgram(library, tokens, constants, by_group.parts[: len(used)], data, len(grouping.labels))
    fitted = fits.fit(by_group.values, np.ones(len(used), dtype=bool), _STEPS)
    return assessed(GroupedExpression(library, tokens, constants, by_group._replace(values=fitted)), data)[0]
