"""The end of a search: its programs become finished formulas, these a front, and one of them is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dgsr.constants.by_group import assessed
from dgsr.constants.fitting import fit_constants
from dgsr.constants.uncertainty import Uncertainty, robust_uncertainty_of, uncertainty_of
from dgsr.data import Prepared
from dgsr.data.dataset import MANY_ROWS, DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram
from dgsr.finders import Budget, by_total_bits, fitted_curves
from dgsr.finishing import finish, mean_formula, multiplied_out
from dgsr.finishing.by_group import Grouping, finish_by_group, with_digits_by_group, with_simple_constants
from dgsr.finishing.digits import with_measured_digits
from dgsr.finishing.in_form import finish_in_form
from dgsr.fitting.losses import Loss
from dgsr.pareto import Candidate, ParetoFront, promising
from dgsr.reporting.progress import begin_phase
from dgsr.search import Search

# Share of the seconds after a search in which formulas are finished. The others are for their front.
_SHARE_OF_FORMULAS = 0.75
# Share of the remaining seconds in which the formulas of a pass are finished that others follow; a search by
# group has twice as much, since the choice of what is shared takes a second or two. Without it a fit of 10 s
# with a front of long formulas evaluated 56,000 equations where it had time for 800,000.
_SHARE_BETWEEN = 0.15
# Most programs of searches whose constants are shared or by group, and most common forms beside them: each
# takes a twentieth of a second.
_MOST_BY_GROUP, _MOST_FORMS = 12, 8


class BegunSearch(NamedTuple):
    """A search, and the formulas into which its programs have been finished."""

    search: Search
    fresh: dict[str, Any]  # its state when it was made, if there is a checkpoint
    finished: dict[bytes, Expression]  # formulas by the bytes of their programs
    formulas: list[Expression]  # those of its last front and the others that were finished with them


class SelectionSettings(NamedTuple):
    """The rules for the formulas of a fit."""

    library: Library
    constraints: Constraints  # which every formula meets
    feature_names: Sequence[str] | None
    selection: str  # the rule that chooses from a front; see `ParetoFront.select`
    tolerance: float  # NMSE that counts as exact
    grouping: Grouping | None = None  # the groups of the rows


def front_and_choice(
    begun: BegunSearch,
    rules: SelectionSettings,
    loss: str | Loss,
    rows: Prepared,
    measured: DataSet,
    budget: Budget,
    is_last: bool,
    of_all: BegunSearch | None,
) -> tuple[ParetoFront, Candidate] | None:
    """Return the front of a search and the formula that is chosen from it, None if no formula is finite.

    Formulas that are not finished when the time is over, or after Ctrl-C, remain as the search wrote them.
    The `rows` are weighted for the loss, and `measured`, on which constants are fitted, has the weights of
    the measurements alone. If the pass is not the last one, some of the seconds are left to the others. A
    search by group follows one of a law of all rows, `of_all`, whose formulas compete.
    """
    begin_phase("finishing")
    shape, anchored = rules.constraints.shape, rows
    if shape is not None and of_all is None:
        anchored = rows._replace(fitted=rows.fitted.with_anchors(*shape.anchors))
    share, nmse, form = 1.0, None, rules.constraints.form
    if not is_last:
        share = _SHARE_BETWEEN if of_all is None else 2.0 * _SHARE_BETWEEN
    is_over = budget.finishing(share, is_last)
    formulas_are_over = budget.finishing(_SHARE_OF_FORMULAS * share, is_last)
    if of_all is None:
        formulas = begun.formulas[:] = _finished(begun, rules, anchored, formulas_are_over)
    else:
        formulas = [*of_all.formulas, *_finished_by_group(begun, of_all, rules, rows, formulas_are_over)]
    if formulas and len(rows.data.y) > MANY_ROWS:
        units = rules.constraints.units
        formulas, nmse = promising(formulas, rows.fitted, rows.data, units, is_over, shape)
    front = ParetoFront.from_expressions(
        formulas,
        rows.data,
        rules.feature_names,
        rules.tolerance,
        rows.held_out,
        partial(_uncertainty_of, loss=loss, rows=rows, measured=measured, form=form, is_over=is_over),
        rules.constraints.units,
        partial(_with_digits, data=anchored.fitted, tolerance=rules.tolerance, is_over=is_over, form=form),
        nmse,
        shape,
        form,
    )
    if len(front) == 0:  # no program is finite on the rows that were not in the search
        return None
    # If the rows are too few to hold some out, the formula with the lowest error is chosen.
    no_rows_held_out = rules.selection == "holdout" and front.held_out is None
    front.chosen = front.select("accuracy" if no_rows_held_out else rules.selection)
    return front, front[front.chosen]


def _finished(
    begun: BegunSearch, rules: SelectionSettings, rows: Prepared, is_over: Callable[[], bool]
) -> list[Expression]:
    """Return the formulas of a search, finished, in the user's units.

    Those of the archive, linear models and common forms are finished in the order of their descriptions,
    since time may be over before the others.
    """
    archive, library = begun.search.archive, rules.library
    of_search, finished = archive.population(), list[Expression]()
    if not library.has_constants:
        return [of_search[i] for i in range(len(of_search))]
    constraints, coordinates, tolerance = rules.constraints, rows.coordinates, rules.tolerance
    # Constants are rounded with columns measured from their origins, not with large numbers that differ
    # by little.
    fitted = rows.fitted._replace(columns=coordinates.from_origins(rows.fitted.columns))
    if constraints.shape is not None:
        shape = constraints.shape.in_coordinates(coordinates.origins, np.ones(len(coordinates.origins)))
        constraints = replace(constraints, shape=shape)

    for further in begun.search.at_the_end(rows.measured, is_over):
        begin_phase("finishing")
        found = Population.concatenate([of_search, further])
        scored, of_search = Scored(found, found.nmse(begun.search.data)), of_search[:0]
        found = found[by_total_bits(scored, archive, begun.search.data)]
        if constraints.form is not None:  # in a fit of which columns have no origins and scales
            is_valid = begun.search.evaluation.valid.whole
            finished += finish_in_form(
                found, fitted, constraints.form, tolerance, is_valid, is_over, begun.finished
            )
        else:
            finished += finish(
                found, coordinates.scales, fitted, tolerance, constraints, is_over, begun.finished
            )
        begin_phase("extending")
    begin_phase("finishing")
    if coordinates.origins.any():
        finished = [coordinates.with_origins(formula) for formula in finished]
        # The search writes x1*x2 as a sum of products of distances, which is short when multiplied out.
        finished += [multiplied_out(formula) for formula in finished]
    if not constraints.required and constraints.form is None:
        finished.append(mean_formula(rows.data, library))
    if not finished:
        return []
    # A required column without effect on the data may have been simplified away; such a formula is dropped.
    tokens, lengths, _ = Population.from_expressions(finished).arrays
    kept = constraints.satisfy_user_rules(tokens, lengths, library)
    return [formula for formula, is_kept in zip(finished, kept.tolist()) if is_kept]


def _finished_by_group(
    begun: BegunSearch,
    of_all: BegunSearch,
    rules: SelectionSettings,
    rows: Prepared,
    is_over: Callable[[], bool],
) -> list[Expression]:
    """Return the formulas of a search by group, finished, in the user's units.

    The programs of the search for a law of all rows may describe the groups better, too.
    """
    assert rules.grouping is not None
    form, of_tokens = rules.constraints.form, replace(rules.constraints, units=None, shape=None)

    def finish_one(program: FreeProgram, wider: Library, data: DataSet) -> list[Expression]:
        if form is not None:
            return [with_simple_constants(program, wider, data, rules.tolerance, is_over)]
        one = Population.of_one(wider, program.tokens, program.constants[None])
        return finish(one, np.ones(len(data.columns)), data, rules.tolerance, of_tokens, is_over)

    data, searched = rows.fitted, begun.search.data
    found = Population.concatenate([begun.search.archive.population(), of_all.search.archive.population()])
    scored = Scored(found, fit_constants(found, searched, n_iterations=0).nmse)
    found = found[by_total_bits(scored, begun.search.archive, searched)[:_MOST_BY_GROUP]]
    if form is None:
        forms = fitted_curves(begun.search.scheduler.problem, is_over).programs[:_MOST_FORMS]
        found = Population.concatenate([forms, found])
    data = data._replace(columns=rows.coordinates.from_origins(data.columns))
    return finish_by_group(found, rows.coordinates, data, rules.grouping, finish_one, is_over, form)


def _with_digits(
    expression: Expression, data: DataSet, tolerance: float, is_over: Callable[[], bool], form: Form | None
) -> Expression:
    """Return a formula with the digits that the data determine."""
    parts = None if form is None else form.read(expression.tokens, expression.constants)
    origins = None if parts is None else parts.origins
    if isinstance(expression, GroupedExpression):
        return with_digits_by_group(expression, data, tolerance, is_over, origins)
    return with_measured_digits(expression, data, tolerance, is_over, origins)


def _uncertainty_of(
    expression: Expression,
    loss: str | Loss,
    rows: Prepared,
    measured: DataSet,
    form: Form | None,
    is_over: Callable[[], bool],
) -> Uncertainty | None:
    """Return the uncertainty of a formula by the rows of a pass, weighted for its loss; None if too late."""
    if is_over():
        return None
    if isinstance(expression, GroupedExpression):
        return assessed(expression, rows.data, loss == "relative")[1]
    n, groups = rows.data.n_effective, None
    if form is not None and (parts := form.read(expression.tokens, expression.constants)) is not None:
        groups = parts.groups
    if loss == "absolute" or loss == "huber":
        return robust_uncertainty_of(expression, measured, rows.fitted, loss, n, groups)
    return uncertainty_of(expression, rows.fitted, n, loss == "relative", groups)
