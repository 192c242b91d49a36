"""The finder that searches in tables of fewer columns and returns formulas of all columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce

import numpy as np

from dgsr.data import redundant_columns
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.merging import merge
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.separation import Separation
from dgsr.finders.fewer_columns.symmetries import reductions_of, smallest_separation
from dgsr.finders.fewer_columns.tables import Reduction, product
from dgsr.finders.finder import Deadline, Found, Problem
from dgsr.finders.terms import Term, columns_of, over_columns, population_of, term_of

#: A function that searches for the law of a table, with symmetries if its flag is set, and returns the front.
SearchIn = Callable[[DataSet, bool], Population]

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
# Most evaluations of the search for a part. Common forms often end it at once.
_MOST_OF_PART = 200_000
# Most combinations of formulas for the parts.
_MOST_TOGETHER = 100
# Smallest NMSE of a part that counts, in squared errors of the separation, to which its values are exact.
_INEXACT = 0.3
# Effective numbers of rows that are tried in description lengths, as shares of the number of rows.
_COUNTED = (1.0, 0.25, 0.0625)


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


def search_parts(separation: Separation, search_in: SearchIn, budget: Budget) -> list[Tree]:
    """Return sums or products of the formulas that searches with equal budgets find for the parts.

    Each part of the target is a function of its own columns, and the surrogate has its approximate values.
    The constants of the formulas are fitted to the data afterwards.
    """
    n_parts = len(separation.groups)
    n_kept = max(int(_MOST_TOGETHER ** (1.0 / n_parts) + 1e-9), 2)
    X, found = separation.reduction.X[separation.rows], list[list[Tree]]()
    for i, (group, values) in enumerate(zip(separation.groups, separation.parts)):
        data = DataSet.from_arrays(X[:, group], values)
        with budget.share_of_rest(1.0 / (n_parts - i), _MOST_OF_PART):
            front = search_in(data, len(group) > 1)
        columns = [f"x{column + 1}" for column in group]
        best = _shortest_descriptions(front, data, _INEXACT * separation.error**2, n_kept)
        found.append([over_columns(front[k].tree, columns) for k in best])
    joint = "mul" if separation.is_product else "add"
    constant: Tree = separation.constant
    # Two formulas for each of seven parts make more than the most.
    combinations = itertools.islice(itertools.product(*found), _MOST_TOGETHER)
    return [reduce(lambda a, b: (joint, a, b), trees, constant) for trees in combinations]


def _shortest_descriptions(front: Population, data: DataSet, inexact: float, n: int) -> list[int]:
    """Return the n formulas with the shortest descriptions of formula and residuals.

    An NMSE below `inexact` counts as `inexact`, since a formula that fits the values more closely fits the
    errors of the surrogate. These errors are correlated between neighbouring rows, so that the effective
    number of rows is unknown; the orders for several numbers are interleaved.
    """
    with np.errstate(all="ignore"):
        logarithms = np.log2(np.maximum(np.nan_to_num(front.nmse(data), nan=np.inf), inexact))
    bits = structure_bits(front.library, front.tokens, front.lengths)
    orders = [np.argsort(bits + 0.5 * share * len(data.y) * logarithms, kind="stable") for share in _COUNTED]
    return list(dict.fromkeys(np.array(orders).T.ravel().tolist()))[:n]


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
