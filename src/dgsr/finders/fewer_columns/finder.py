"""The finder that searches in tables of fewer columns and returns formulas of all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from dgsr.data import redundant_columns
from dgsr.data.dataset import DataSet
from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.parts import SearchIn, search_parts
from dgsr.finders.fewer_columns.separation import Separation
from dgsr.finders.fewer_columns.symmetries import reductions_of, smallest_separation
from dgsr.finders.fewer_columns.tables import Reduction, product
from dgsr.finders.finder import Deadline, Found, Problem
from dgsr.finders.terms import Term, columns_of, population_of, term_of

# Largest share of the remaining seconds for the search for symmetries and separations.
_LOOKING = 0.2
# Share of the remaining budget for the search in the first of two tables, and for all searches for the parts
# of a target that separates, since another search may follow.
_SHARE = 0.3
# Share of the remaining budget for the search in the last or only table.
_LAST_SHARE = 0.6
# Most evaluations in a table, and for all parts together. A law of few columns is found quickly.
_MOST_EVALUATIONS = 1_000_000
# Fewest evaluations for each part with which the search for the parts begins.
_LEAST_OF_PART = 500


class FewerColumns:
    """Finder of formulas in the tables of fewer columns that follow from symmetries, by searches in these."""

    def __init__(self, search_in: SearchIn, budget: Budget) -> None:
        self._search_in, self._budget = search_in, budget

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Search in tables of fewer columns, and return their formulas as formulas of all columns.

        If the target separates, too, its parts are searched for before the last table. The searches end with
        an exact fit, or when their share of the remaining budget is spent.
        """
        data, library, budget = problem.data, problem.library, self._budget
        until = budget.seconds + _LOOKING * (budget.max_time - budget.seconds)
        rows = np.flatnonzero(data.has_ordinary_weight & (data.weights > 0.0))
        usable = [token - library.first_variable for (token,) in columns_of(problem.grammar)]
        # A column may be constant in these rows, or be usable only because of its unit.
        left_out = redundant_columns(data.columns[:, rows], usable, library.has_constants)
        columns = [i for i in usable if i not in left_out]
        X, y, names = data.columns[columns][:, rows].T, data.y[rows], [f"x{i + 1}" for i in columns]

        def is_over() -> bool:
            return budget.seconds > until or deadline()

        reductions = reductions_of(X, y, names, is_over)
        separation = smallest_separation(X, y, names, reductions, is_over)
        tables = [_data_of(reduction, data, rows) for reduction in reductions]
        searches: list[Callable[[], list[Term]]] = [
            partial(self._in_table, library, share, reduction, table)
            for share, reduction, table in zip((_SHARE, _LAST_SHARE)[-len(tables) :], reductions, tables)
            if table is not None
        ]
        if separation is not None and _SHARE * budget.n_left >= _LEAST_OF_PART * len(separation.groups):
            searches.insert(max(len(searches) - 1, 0), partial(self._for_parts, library, separation))
        found = list[Term]()
        for search in searches:
            if deadline() or (found and _is_exact(found, problem)):
                break
            found += search()
        return Found(population_of(library, list(dict.fromkeys(found))), are_complete=True)

    def _in_table(self, library: Library, share: float, reduction: Reduction, data: DataSet) -> list[Term]:
        """Search in a table of fewer columns, with a share of the remaining budget."""
        with self._budget.share_of_rest(share, _MOST_EVALUATIONS):
            front = self._search_in(data, False)
        return lifted([front[i].tree for i in range(len(front))], reduction, library)

    def _for_parts(self, library: Library, separation: Separation) -> list[Term]:
        """Search for the parts of a target that separates, and return their sums or products."""
        with self._budget.share_of_rest(_SHARE, _MOST_EVALUATIONS):
            trees = search_parts(separation, self._search_in, self._budget)
        return lifted(trees, separation.reduction, library)


def _is_exact(terms: Sequence[Term], problem: Problem) -> bool:
    """Return whether one of the formulas is an exact fit."""
    programs = population_of(problem.library, terms)
    programs = programs[problem.valid.whole(programs)]
    return bool(programs.nmse(problem.data).min(initial=np.inf) <= problem.tolerance)


def _data_of(reduction: Reduction, data: DataSet, rows: np.ndarray) -> DataSet | None:
    """Return the data of a table of fewer columns at some rows of `data`, None if they are not usable."""
    columns = {f"x{i + 1}": column[rows] for i, column in enumerate(data.columns)}
    factor = np.broadcast_to(evaluate(product(reduction.factor), columns), len(rows))
    # The noise of the old target is the noise of the new target times the factor.
    weights = data.weights[rows] * (1.0 if reduction.is_exact else factor**2)
    is_finite = np.isfinite(np.column_stack([reduction.X, reduction.y, factor, weights])).all()
    if not is_finite or np.ptp(reduction.y) == 0.0 or weights.max() == 0.0:
        return None
    new = DataSet.from_arrays(reduction.X, reduction.y, weights, data.counts[rows])
    return new._replace(n_effective=data.n_effective)


def lifted(trees: Iterable[Tree], reduction: Reduction, library: Library) -> list[Term]:
    """Return formulas of a table of fewer columns that the library can write as programs of all columns."""
    terms = list[Term]()
    for tree in trees:
        whole = reduction.lifted(tree)
        written = [term for term in (term_of(whole, library), _merged(whole, library)) if term is not None]
        terms += sorted(written, key=lambda term: len(term[0]))[:1]
    return list(dict.fromkeys(terms))


def _merged(tree: Tree, library: Library) -> Term | None:
    try:
        return term_of(merge(tree), library)
    except ArithmeticError:  # a part is undefined
        return None
