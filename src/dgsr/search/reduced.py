"""Searches among the fewer columns that symmetries of a table leave, and their formulas of all columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dgsr.expressions.library import Library
from dgsr.expressions.programs import to_program
from dgsr.expressions.trees import Tree
from dgsr.finishing.merging import merge
from dgsr.population import DataSet, Population
from dgsr.search.reduction import Reduction
from dgsr.search.symmetries import reductions_of
from dgsr.search.terms import Term, population_of

if TYPE_CHECKING:
    from dgsr.search.search import Search

# Share of the seconds in which symmetries are looked for, and shares of the budget for the searches among
# what they leave, the first of two and the last one.
_LOOKING, _SEARCHING = 0.1, (0.3, 0.6)


def search_reduced(search: Search) -> None:
    """Search among the fewer columns that symmetries of the table leave, and enter what is found.

    The searches end early, with an exact fit, or with their share of what is left of the budget.
    """
    budget, constraints = search.budget, search.evaluation.constraints
    limits = budget.max_evaluations, budget.max_time
    until = search.seconds + _LOOKING * (budget.max_time - search.seconds)
    columns = [i for i in range(search.library.n_variables) if i not in constraints.forbidden_columns]
    tables = _reduced_tables(search.data, columns, lambda: search.seconds > until)
    for share, (reduction, data) in zip(_SEARCHING[-len(tables) :], tables):
        if search.stop_reason() is not None:
            return
        budget.allow(int(share * budget.n_left), share * (budget.max_time - search.seconds))
        try:
            found = search.of_other_columns(data)
        finally:
            budget.max_evaluations, budget.max_time = limits
        search.enter(lifted(found, reduction, search.library))


def _reduced_tables(
    data: DataSet, columns: list[int], is_over: Callable[[], bool]
) -> list[tuple[Reduction, DataSet]]:
    """Return tables of fewer columns that tell the target as well, and their data.

    Parameters
    ----------
    data : DataSet
    columns : list of int
        The columns that may be used.
    is_over : callable
        A function that is asked before each step whether to make no more.
    """
    rows = np.flatnonzero(data.is_usual & (data.weights > 0.0))
    X, y = data.columns[columns][:, rows].T, data.y[rows]
    tables = []
    for reduction in reductions_of(X, y, [f"x{i + 1}" for i in columns], is_over):
        with np.errstate(all="ignore"):
            factor = y / reduction.y
        is_finite = np.isfinite(np.column_stack([reduction.X, reduction.y, factor])).all()
        if is_finite and np.ptp(reduction.y) > 0.0:
            # Noise of the old target is that of the new one times its factor.
            weights = data.weights[rows] * (1.0 if reduction.is_exact else factor**2)
            new = DataSet.from_arrays(reduction.X, reduction.y, weights, data.counts[rows])
            tables.append((reduction, new._replace(n_effective=data.n_effective)))
    return tables


def lifted(found: Population, reduction: Reduction, library: Library) -> Population:
    """Return formulas of a table of fewer columns as programs of all columns.

    Those that the library cannot write are left out.
    """
    terms = list[Term]()
    for i in range(len(found)):
        tree = reduction.lifted(found[i].tree)
        written = [term for term in (_term(tree, library), _merged(tree, library)) if term is not None]
        terms += sorted(written, key=lambda term: len(term[0]))[:1]
    return population_of(library, list(dict.fromkeys(terms)))


def _merged(tree: Tree, library: Library) -> Term | None:
    try:
        return _term(merge(tree), library)
    except ArithmeticError:  # a part is undefined
        return None


def _term(tree: Tree, library: Library) -> Term | None:
    try:
        tokens, constants = to_program(tree, library)
    except ValueError:  # the library lacks an operator
        return None
    return tuple(int(token) for token in tokens), tuple(float(number) for number in constants)
