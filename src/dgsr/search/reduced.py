"""Searches among the fewer columns that symmetries of a table leave, and their formulas of all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dgsr.expressions.evaluation import evaluate
from dgsr.expressions.library import Library
from dgsr.expressions.trees import Tree
from dgsr.finishing.merging import merge
from dgsr.population import DataSet, Population
from dgsr.preprocessing import idle_columns
from dgsr.search.parts import search_parts
from dgsr.search.reduction import Reduction, product
from dgsr.search.separation import Separation
from dgsr.search.symmetries import reductions_of, smallest_separation
from dgsr.search.terms import Term, population_of, term_of

if TYPE_CHECKING:
    from dgsr.search.search import Search

# Share of the seconds in which symmetries are looked for, and shares of the budget for the searches among
# what they leave: the first of two tables, the parts of one that separates, and the last table.
_LOOKING, _SEARCHING, _OF_PARTS = 0.2, (0.3, 0.6), 0.3
# Most evaluations of each of these searches: what is found among few columns is found soon. And the fewest
# with which a search for a part begins.
_MOST_EVALUATIONS, _LEAST_OF_PART = 1_000_000, 500


def search_reduced(search: Search) -> None:
    """Search among the fewer columns that symmetries of the table leave, and enter what is found.

    Where the target separates, too, its parts are searched before the last of the tables. The searches end
    early, with an exact fit, or with their share of what is left of the budget.
    """
    budget, constraints, data = search.budget, search.evaluation.constraints, search.data
    until = search.seconds + _LOOKING * (budget.max_time - search.seconds)
    rows = np.flatnonzero(data.is_usual & (data.weights > 0.0))
    usable = [i for i in range(search.library.n_variables) if i not in constraints.forbidden_columns]
    # A column may be constant in these rows, or be usable for its unit alone.
    left_out = idle_columns(data.columns[:, rows], usable, search.library.has_constants)
    columns = [i for i in usable if i not in left_out]
    X, y, names = data.columns[columns][:, rows].T, data.y[rows], [f"x{i + 1}" for i in columns]

    def is_over() -> bool:
        return search.seconds > until or budget.is_late

    reductions = reductions_of(X, y, names, is_over)
    separation = smallest_separation(X, y, names, reductions, is_over)
    tables = [_data_of(reduction, data, rows) for reduction in reductions]
    searches: list[Callable[[], None]] = [
        partial(_search_table, search, share, reduction, table)
        for share, reduction, table in zip(_SEARCHING[-len(tables) :], reductions, tables)
        if table is not None
    ]
    if separation is not None and _OF_PARTS * budget.n_left >= _LEAST_OF_PART * len(separation.groups):
        searches.insert(max(len(searches) - 1, 0), partial(_search_parts, search, separation))
    for each in searches:
        if search.stop_reason() is not None:
            return
        each()


def _search_table(search: Search, share: float, reduction: Reduction, data: DataSet) -> None:
    """Search in a table of fewer columns, with a share of what is left of the budget."""
    with search.budget.share_of_rest(share, _MOST_EVALUATIONS):
        found = search.of_other_columns(data)
    search.enter(lifted([found[i].tree for i in range(len(found))], reduction, search.library))


def _search_parts(search: Search, separation: Separation) -> None:
    """Search for the parts of a target that separates, and enter what they make together."""
    with search.budget.share_of_rest(_OF_PARTS, _MOST_EVALUATIONS):
        trees = search_parts(search, separation)
    search.enter(lifted(trees, separation.reduction, search.library))


def _data_of(reduction: Reduction, data: DataSet, rows: np.ndarray) -> DataSet | None:
    """Return the data of a table of fewer columns that has some rows of others, None if it is not usable."""
    columns = {f"x{i + 1}": column[rows] for i, column in enumerate(data.columns)}
    factor = np.broadcast_to(evaluate(product(reduction.factor), columns), len(rows))
    is_finite = np.isfinite(np.column_stack([reduction.X, reduction.y, factor])).all()
    if not is_finite or np.ptp(reduction.y) == 0.0:
        return None
    # Noise of the old target is that of the new one times its factor.
    weights = data.weights[rows] * (1.0 if reduction.is_exact else factor**2)
    new = DataSet.from_arrays(reduction.X, reduction.y, weights, data.counts[rows])
    return new._replace(n_effective=data.n_effective)


def lifted(trees: Iterable[Tree], reduction: Reduction, library: Library) -> Population:
    """Return formulas of a table of fewer columns as programs of all columns.

    Those that the library cannot write are left out.
    """
    terms = list[Term]()
    for tree in trees:
        whole = reduction.lifted(tree)
        written = [term for term in (term_of(whole, library), _merged(whole, library)) if term is not None]
        terms += sorted(written, key=lambda term: len(term[0]))[:1]
    return population_of(library, list(dict.fromkeys(terms)))


def _merged(tree: Tree, library: Library) -> Term | None:
    try:
        return term_of(merge(tree), library)
    except ArithmeticError:  # a part is undefined
        return None
