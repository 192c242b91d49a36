"""Finish programs in data with groups: which constants have a value for each group, and which are shared.

The search fits a scale and an offset for each group. Here every constant of a formula, scale and offset
included, is given a value for each group or one for all, whichever describes the data in fewer bits. The
values by group then count as columns, so that the shared constants become simple numbers as in any formula.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from dgsr.constants.by_group import GroupedProgram, assessed, noise_of, numbers_of
from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import Coordinates, unscaled
from dgsr.expressions.formulas.description_length import BITS_OF_CONSTANT
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import (
    NOT_FITTED,
    ByGroup,
    GroupedExpression,
    with_columns_for_constants,
)
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram, flags_of_constants
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.trees import Tree
from dgsr.finishing.digits import with_measured_digits
from dgsr.finishing.fits import Fits, OutOfTime
from dgsr.finishing.programs import free_programs, groups_of, tree_of, written
from dgsr.finishing.snapping import with_simple_numbers

# Most steps of a fit while it is decided which constants are shared.
_STEPS = 20
# Ways to write scale and offset of which the constants are shared one by one.
_MOST_WAYS = 2
# Share of the offset with which the fit of a further one begins.
_SMALL = 0.1
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


class _Whole(NamedTuple):
    """A whole formula, and the shortest description known of its constants."""

    program: FreeProgram
    parts: list[np.ndarray]  # indices of the constants that are equal to each other
    fits: GroupedProgram
    shared: _Shared


def finish_by_group(
    programs: Population,
    coordinates: Coordinates,
    data: DataSet,
    grouping: Grouping,
    finish_one: Callable[[FreeProgram, Library, DataSet], Sequence[Expression]],
    is_over: Callable[[], bool],
    form: Form | None = None,
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
    grouping : Grouping
    finish_one : callable
        Finishes a whole formula, given its library and data, which have further columns.
    is_over : callable
        Returns True once the time is over; the remaining programs are then left out.
    form : Form, optional
        The form of the programs, which are then whole formulas and remain as they are.
    """
    library, begun, found = programs.library, list[list[_Whole]](), list[Expression]()
    for program in free_programs(programs):
        if is_over():
            break
        with suppress(ValueError, ArithmeticError):
            if form is None:
                tree = unscaled(tree_of(program, library), coordinates.scales)
                each = [(whole, groups_of(whole)) for whole in _whole(tree, data, library)]
            else:
                parts = form.read(program.tokens, program.constants)
                each = [] if parts is None else [(program, parts.groups)]
            ways = [_begun(*one, data, library, len(grouping.labels)) for one in each]
            begun.append(sorted(ways, key=attrgetter("shared.bits"))[:_MOST_WAYS])
    raw = data._replace(columns=data.columns + coordinates.origins[:, None])
    for ways in sorted(filter(None, begun), key=lambda ways: ways[0].shared.bits):
        with suppress(ValueError, ArithmeticError, OutOfTime):
            shortest = min((_improved(way, is_over) for way in ways), key=attrgetter("shared.bits"))
            whole, wider, values = _with_symbols(shortest, library)
            (formula,) = finish_one(whole, wider, _with_columns(data, values))
            formula = coordinates.with_origins(formula)
            origins = None if form is None else numbers_of(shortest.parts, len(shortest.program.constants))
            found.append(_with_groups(formula, values, raw, library, grouping, origins))
    return found


def _whole(tree: Tree, data: DataSet, library: Library) -> list[FreeProgram]:
    """Return the whole formulas of a tree f, with constants that are fitted to all rows together.

    They are a*f + b, a*f, and for a scale by group beside a level that groups share a*(f + c) and
    a*(f + c) + b.
    """
    program = Population.from_expressions([Expression.from_tree(tree, library)])
    fit = fit_constants(program, data._replace(groups=data.groups[:0]), n_iterations=0)
    slope, intercept = float(fit.slope[0]) or 1.0, float(fit.intercept[0])
    scaled = ("mul", slope, tree)
    merged = [merge(each, "leading") for each in (("add", intercept, scaled), scaled)]
    match merged[1]:
        case ("mul", float(scale), rest):
            raised = ("mul", scale, ("add", intercept / scale, rest))
            merged += [raised, ("add", _SMALL * intercept, raised)]
    return [written(each, library) for each in merged]


def _begun(
    program: FreeProgram, parts: list[np.ndarray], data: DataSet, library: Library, n_groups: int
) -> _Whole:
    """Return a formula with all constants shared, or with scales and offsets by group if that is shorter."""
    fits = GroupedProgram(library, *program[:2], parts, data, n_groups)
    start = np.array([program.constants[part[0]] for part in parts]).reshape(-1, 1).repeat(n_groups, axis=1)
    none = np.zeros(len(parts), dtype=bool)
    flags = flags_of_constants(
        library, program.tokens, True, lambda name, is_linear, _: is_linear and name in _LINEAR
    )
    is_linear = np.array([flags[part[0]] for part in parts], dtype=bool)
    pooled = _described(fits, start, none)
    by_group = _described(fits, pooled.constants, is_linear)
    return _Whole(program, parts, fits, min(pooled, by_group, key=attrgetter("bits")))


def _improved(way: _Whole, is_over: Callable[[], bool]) -> _Whole:
    """Return a formula with the shortest description reached by sharing or freeing one constant at a time."""
    fits, best = way.fits, way.shared
    tried = {best.is_own.tobytes()}
    while True:
        others = list[_Shared]()
        for i in range(len(best.is_own)):
            if is_over():
                raise OutOfTime
            is_own = best.is_own.copy()
            is_own[i] = not is_own[i]
            if is_own.tobytes() not in tried:
                tried.add(is_own.tobytes())
                means = best.constants.mean(axis=1, keepdims=True)
                start = np.where(is_own[:, None], best.constants, means)
                others.append(_described(fits, start, is_own))
        better = min(others, key=attrgetter("bits"), default=best)
        if not better.bits < best.bits:
            return way._replace(shared=best)
        best = better


def _with_symbols(way: _Whole, library: Library) -> tuple[FreeProgram, Library, np.ndarray]:
    """Return a formula with columns for constants by group, its library, and their values (q, n_groups)."""
    shared, constants = way.shared, way.program.constants.copy()
    for part, values in zip(way.parts, shared.constants):
        constants[part] = values.mean()
    own = [part for part, is_own in zip(way.parts, shared.is_own) if is_own]
    part_of = numbers_of(own, len(constants))
    is_free = numbers_of(way.parts, len(constants))[part_of < 0] >= 0
    wider, tokens, constants = with_columns_for_constants(library, way.program.tokens, constants, part_of)
    return FreeProgram(tokens, constants, is_free), wider, shared.constants[shared.is_own]


def _described(fits: GroupedProgram, start: np.ndarray, is_own: np.ndarray) -> _Shared:
    """Fit constants (k, n_groups), and count the bits of residuals of rows left out, and of their values."""
    constants = fits.fit(start, is_own, _STEPS)
    apart, data = fits.directions(constants, is_own), fits.data
    loss = fits.nmse(fits.residuals(constants))
    left_out = max(loss, fits.leave_one_out(constants, apart), data.rounding_nmse)
    if not np.isfinite(left_out):
        return _Shared(is_own, constants, np.inf)
    bits = float(data.bits_of_residuals(np.array(left_out))) + BITS_OF_CONSTANT * len(is_own)
    bits += fits.bits_of_values(constants, is_own, noise_of(loss, apart.n_constants, data))
    return _Shared(is_own, constants, bits)


def with_simple_constants(
    program: FreeProgram, library: Library, data: DataSet, tolerance: float, is_over: Callable[[], bool]
) -> Expression:
    """Return a formula with its free constants made simple numbers, equal ones alike, in the same form."""
    fits = Fits(data, library, tolerance, is_over, copies_are_tied=True)
    start = fits.refitted(program)
    simple = with_simple_numbers(start, start.nmse, fits).program
    return Expression(library, simple.tokens, simple.constants)


def with_digits_by_group(
    formula: GroupedExpression,
    data: DataSet,
    tolerance: float,
    is_over: Callable[[], bool],
    origins: np.ndarray | None = None,
) -> Expression:
    """Return a finished formula with the digits of its shared constants that the data determine.

    See `dgsr.finishing.digits.with_measured_digits`; `data` have the groups of their rows.
    """
    by_group, symbolic = formula.by_group, formula.symbolic
    of_shared = None if origins is None else origins[by_group.part_of < 0]
    columns = _with_columns(data, by_group.values)
    finer = with_measured_digits(symbolic, columns, tolerance, is_over, of_shared)
    if finer is symbolic:
        return formula
    grouping = Grouping(by_group.column, by_group.labels)
    return _with_groups(finer, by_group.values, data, formula.library, grouping, origins)


def _with_columns(data: DataSet, values: np.ndarray) -> DataSet:
    """Return data with further columns, of the constants by group (q, n_groups), and without groups."""
    columns = np.concatenate([data.columns, values[:, data.groups]])
    return data._replace(columns=columns, groups=data.groups[:0])


def _with_groups(
    formula: Expression,
    values: np.ndarray,
    data: DataSet,
    library: Library,
    grouping: Grouping,
    origins: np.ndarray | None,
) -> Expression:
    """Return a formula with columns of constants by group as one with such constants, fitted to the data.

    The last columns of the formula are those of `values` (q, n_groups), where the fit begins. Its other
    constants stay. In a formula of a form, constants of the same number in `origins` are one, and those of a
    negative number are none.
    """
    first = library.first_variable + library.n_variables
    used = np.unique(formula.tokens[formula.tokens >= first])
    tokens = np.where(formula.tokens >= first, library.index["const"], formula.tokens)
    own_tokens = formula.tokens[tokens == library.index["const"]]
    of_shared = -1 if origins is None else np.where(origins < 0, NOT_FITTED, NOT_FITTED - 1 - origins)
    part_of = np.where(own_tokens >= first, np.searchsorted(used, own_tokens), of_shared)
    constants = np.ones(len(part_of))
    constants[part_of < 0] = formula.constants
    if not len(used):
        return Expression(library, tokens, constants)
    by_group = ByGroup.of_values(grouping.column, grouping.labels, part_of, values[used - first])
    fits = GroupedProgram(library, tokens, constants, by_group.parts[: len(used)], data, len(grouping.labels))
    fitted = fits.fit(by_group.values, np.ones(len(used), dtype=bool), _STEPS)
    # A group without rows, such as one of weight 0 or one that is held out, is like a new one.
    fitted[:, ~fits.has_rows] = fitted[:, fits.has_rows].mean(axis=1, keepdims=True)
    return assessed(GroupedExpression(library, tokens, constants, by_group._replace(values=fitted)), data)[0]
