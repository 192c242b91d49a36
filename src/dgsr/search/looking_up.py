"""What is looked up before the rounds of a search with constants, where ``look_up`` asks for it.

Laws of two simple terms and of one with a number inside are compared exhaustively, the common forms are
fitted to every column and quotients of polynomials to all of them, and a search of its own looks among the
fewer columns that symmetries of the table leave. All but the first look are left out once a fit is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library
from dgsr.population import DataSet, Population
from dgsr.search.curves import curve_formulas, fitted_curves
from dgsr.search.lines import linear_models
from dgsr.search.rationals import rational_programs
from dgsr.search.reduced import search_reduced
from dgsr.search.scaled_terms import scaled_term_programs
from dgsr.search.terms import Judge, columns_of
from dgsr.search.two_terms import two_term_programs

if TYPE_CHECKING:
    from dgsr.search.search import Search


def compare_pairs(search: Search) -> None:
    """Evaluate the best formulas of two terms; they are compared after an exact fit, too, if it is long."""
    if _is_asked(search) and search.budget.spent() is None:
        _evaluate(search, two_term_programs(*_table_of(search)))


def compare_scaled(search: Search) -> None:
    """Evaluate the best formulas of one term with a number inside."""
    if _is_asked(search) and search.stop_reason() is None:
        _evaluate(search, scaled_term_programs(*_table_of(search)))


def compare_curves(search: Search) -> None:
    """Evaluate the common forms of a column that explain most of the target."""
    if _is_asked(search) and search.stop_reason() is None:
        search.curves = fitted_curves(*_table_of(search))
        _evaluate(search, search.curves.close())


def fit_rationals(search: Search) -> None:
    """Enter the best quotients of two polynomials of the columns."""
    if _is_asked(search) and search.stop_reason() is None:
        table = search.data, search.library, search.grammar
        programs = rational_programs(*table, _is_late(search))[: search.budget.n_left]
        # Their errors follow when they enter; to compute these here would compile another kernel.
        are_finite = np.isfinite(programs.predict(search.data.columns.T)).all(axis=1)
        search.budget.count(np.where(are_finite, 0.0, np.inf))
        search.enter(programs)
        if len(programs):
            search.record(np.array([search.best_nmse]))


def search_fewer_columns(search: Search) -> None:
    """Search among the fewer columns that symmetries of the table leave."""
    if _is_asked(search) and search.config.symmetries and search.stop_reason() is None:
        before = search.n_evaluations
        search_reduced(search)
        if search.n_evaluations > before:
            search.record(np.array([search.best_nmse]))


#: The looks, in their order.
LOOKS: tuple[Callable[[Search], None], ...] = (
    compare_pairs,
    compare_scaled,
    compare_curves,
    fit_rationals,
    search_fewer_columns,
)


def curves_of(search: Search, data: DataSet, is_over: Callable[[], bool]) -> Population:
    """Return the best common forms of a column, fitted to data that may be more than those of the search.

    They are named, and so described more shortly than the archive of the search knows. None are fitted once
    `is_over` says that the seconds are spent, nor to several columns after an exact fit; one of a single
    column may be the named form in disguise.
    """
    is_exact = search.archive.best_nmse() <= search.archive.tolerance
    if not _is_asked(search) or (is_exact and len(columns_of(search.grammar)) > 1):
        return search.archive.population()[:0]
    curves, of_search = search.curves, search.data
    same = all(np.array_equal(own, others) for own, others in zip(data[:3], of_search[:3]))
    if curves is None or not same:
        curves = fitted_curves(data, *_table_of(search)[1:-1], is_over)
    return curve_formulas(curves, data, search.evaluation.may_be_kept, is_over)


def lines_of(search: Search, data: DataSet, is_over: Callable[[], bool]) -> Population:
    """Return the linear models of data that may be more than those of the search, unless time is over."""
    if is_over() or not search.evaluation.fits_constants:
        return search.archive.population()[:0]
    return linear_models(data, search.library, search.grammar, search.evaluation.may_be_kept)


def _is_asked(search: Search) -> bool:
    return search.config.look_up and search.evaluation.fits_constants


def _table_of(search: Search) -> tuple[DataSet, Library, Grammar, Judge, Callable[[], bool]]:
    """Return what every comparison is given."""
    return search.data, search.library, search.grammar, search.evaluation.may_be_term, _is_late(search)


def _is_late(search: Search) -> Callable[[], bool]:
    """Return the function by which a comparison asks whether the seconds are spent."""
    return lambda: search.budget.is_late


def _evaluate(search: Search, programs: Population) -> None:
    """Evaluate the programs that a comparison returns."""
    grammar, evaluation = search.grammar, search.evaluation
    programs = programs.of_width(grammar.max_length, evaluation.n_constants)
    # The rest of the grammar is not looked at, for which a kernel would have to be compiled: evolution does
    # not begin with these programs.
    is_usable = (programs.lengths >= grammar.min_length) & evaluation.may_be_scaled(programs)
    programs = programs[np.flatnonzero(is_usable)]
    nmse = search.evaluate(programs, len(programs))
    if len(nmse):
        search.record(nmse)
