"""A fit of one target: its searches, and the attributes that they give the estimator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.constants.scaling import check_can_scale
from dgsr.data.checks import check_spread, first_of
from dgsr.data.table import Table
from dgsr.estimator.fitted import FittedRegressor
from dgsr.estimator.parameters import flat
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import library_over
from dgsr.finders import Budget
from dgsr.finishing.by_group import Grouping
from dgsr.fitting.beginning import Beginning, Last, LastFit
from dgsr.fitting.demands import demanded
from dgsr.fitting.losses import WITHOUT_OUTLIERS, check_loss
from dgsr.fitting.outcome import Outcome
from dgsr.fitting.outliers import outlying_rows
from dgsr.fitting.plan import planned
from dgsr.fitting.run import FitDriver
from dgsr.fitting.shape import check_number
from dgsr.pareto import ParetoFront
from dgsr.reporting.facts import sampled_rows
from dgsr.reporting.progress import SearchCallback, print_result, search_shown
from dgsr.reporting.warning import warn_caller, warnings_wait

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator


def fit_one(estimator: FittedRegressor, table: Table, last: Last, started: float, n_targets: int = 1) -> None:
    """Search for the formula of one target, of `n_targets` in a fit, and set the attributes of the fit.

    The clock of the budget began at `started`. The search goes on from the last fit, if there is one. After
    an exception the attributes have the best formulas so far.
    """
    names = estimator._feature_names()
    settings = flat(estimator.get_params(deep=False))
    library = library_over(settings["library"], table.X.shape[1])
    grouping, column = None, estimator.group_column_
    if estimator.groups_ is not None and column is not None:
        grouping = Grouping(column, estimator.groups_)
    estimator.library_, constraints = demanded(settings, library, names, column)
    check_can_scale(estimator.library_)
    used = table.used
    shown = used[sampled_rows(len(used))]
    estimator._rows = *table.at(shown), shown
    targets = table.y[used]
    if targets.min() == targets.max():
        _take_number(estimator, float(targets[0]), settings, table)
        return
    check_spread(targets)
    check_loss(settings["loss"], targets)
    begin = Beginning.of(settings, estimator.library_, last)
    estimator.random_state_ = begin.random_state
    budget = Budget(int(settings["max_evaluations"]), settings["max_time"], started, n_targets)
    with search_shown(bool(settings["verbose"]), settings["callback"]) as show:
        choose_generator = partial(_generator, estimator, settings)
        searches = planned(
            settings, table, names, estimator.library_, constraints, begin, budget, grouping, choose_generator
        )
        with budget.interrupts:
            try:
                _run(estimator, searches, begin.search, table, show)
            finally:
                if settings["warm_start"] and searches.outcome is not None:
                    estimator._last_fit = _last_fit(estimator, searches, begin)
    if settings["verbose"]:
        print_result(estimator)


def _run(
    estimator: FittedRegressor,
    searches: FitDriver,
    state: dict[str, Any] | None,
    table: Table,
    callback: SearchCallback | None,
) -> None:
    """Run the searches, and set the attributes of the fit also after an exception."""
    with warnings_wait():
        try:
            outcome = searches.run(state, callback)
        finally:
            if searches.outcome is not None:
                _take(estimator, searches, searches.outcome, table)
    if n := len(estimator.outliers_):
        warn_caller(
            f"loss='auto' left out {n} of {len(table.y)} rows (counted from 0: "
            f"{first_of(estimator.outliers_)}), which lie far from what fits the others. Look at them; "
            "loss='squared' fits all rows."
        )
    if estimator.stop_reason_ == "interrupted":
        warn_caller("The search was interrupted; the best formulas so far are kept.")
    for caveat in searches.caveats(outcome):
        warn_caller(caveat)


def _take(estimator: FittedRegressor, searches: FitDriver, outcome: Outcome, table: Table) -> None:
    """Set the attributes of a fit."""
    estimator.pareto_front_ = outcome.front
    estimator.loss_ = outcome.loss if isinstance(outcome.loss, str) else "callable"
    estimator.outliers_ = np.zeros(0, dtype=np.int64)
    if estimator.loss_ == WITHOUT_OUTLIERS:
        estimator.outliers_ = outlying_rows(outcome.chosen.expression, table)
    estimator.n_evaluations_ = searches.search.n_evaluations
    estimator.n_examined_ = searches.search.budget.n_examined
    estimator.history_ = searches.history
    estimator.stop_reason_ = "interrupted" if searches.budget.interrupts.n else searches.stop_reason


def _last_fit(estimator: FittedRegressor, searches: FitDriver, begin: Beginning) -> LastFit:
    """Return what the next fit of a warm start goes on from."""
    state, coordinates = searches.search.state_dict(), searches.prepared.coordinates
    state.pop("islands", None)  # the next search begins with their common programs
    return LastFit(begin.n_fits + 1, begin.held_out_seed, estimator.library_, coordinates, state)


def _take_number(estimator: FittedRegressor, value: float, settings: Mapping[str, Any], table: Table) -> None:
    """Set the attributes of a fit whose target is the same number in every row."""
    required = [] if settings["required"] is None else [*settings["required"]]
    if required:
        raise ValueError(
            f"y is {value:g} in every row, and {required=} asks for more than a number; require nothing, "
            "or give targets that vary."
        )
    names, n = estimator._feature_names(), estimator.library_.n_variables
    check_number(value, settings, estimator.library_.variable_names if names is None else names, table)
    warn_caller(f"y is {value:g} in every row; the formula is that number.")
    estimator.pareto_front_ = ParetoFront.of_number(value, n, names, settings["tolerance"])
    estimator.n_evaluations_, estimator.n_examined_, estimator.history_ = 0, 0, []
    estimator.outliers_ = np.zeros(0, dtype=np.int64)
    estimator.loss_, estimator.stop_reason_, estimator.generator_ = "squared", "constant target", "none"
    estimator.random_state_ = None


def _generator(
    estimator: FittedRegressor, settings: Mapping[str, Any], constraints: Constraints, seed: int
) -> Generator | None:
    """Return the generator of a fit, and set `generator_` to its name."""
    given, refine = settings["generator"], estimator.get_params(deep=False)["refine"]
    if given is None or constraints.form is not None:  # it samples whole formulas
        if refine not in (False, "auto"):
            why = "a form" if given is not None else "generator=None"
            warn_caller(f"refine={refine!r} has no effect with {why}, since there is no decoder.")
        estimator.generator_ = "none"
        return None
    # Imported here since it imports torch, which takes more than a second.
    from dgsr.generator.choice import choose_generator

    estimator.generator_, generator = choose_generator(given, estimator.library_, constraints, seed)
    return estimator._as_used(generator, seed)
