"""Searches for the terms or factors of a target that separates, one after the other.

Each part is a function of its own columns, and the surrogate has its approximate values. The formulas that
are found for the parts are combined, and their constants are fitted to the data afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import islice, product

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.separation import Separation
from dgsr.finders.terms import over_columns

#: A function that searches for the law of a table, with symmetries if its flag is set, and returns the front.
SearchIn = Callable[[DataSet, bool], Population]

# Most combinations of formulas for the parts.
_MOST_TOGETHER = 100
# Smallest NMSE of a part that counts, in squared errors of the separation, to which its values are exact.
_INEXACT = 0.3
# Most evaluations of the search for a part. Common forms often end it at once.
_MOST_EVALUATIONS = 200_000
# Effective numbers of rows that are tried in description lengths, as shares of the number of rows.
_COUNTED = (1.0, 0.25, 0.0625)


def search_parts(separation: Separation, search_in: SearchIn, budget: Budget) -> list[Tree]:
    """Return sums or products of the formulas that searches with equal budgets find for the parts."""
    n_parts = len(separation.groups)
    n_kept = max(int(_MOST_TOGETHER ** (1.0 / n_parts) + 1e-9), 2)
    X, found = separation.reduction.X[separation.rows], list[list[Tree]]()
    for i, (group, values) in enumerate(zip(separation.groups, separation.parts)):
        data = DataSet.from_arrays(X[:, group], values)
        with budget.share_of_rest(1.0 / (n_parts - i), _MOST_EVALUATIONS):
            front = search_in(data, len(group) > 1)
        columns = [f"x{column + 1}" for column in group]
        best = _shortest_descriptions(front, data, _INEXACT * separation.error**2, n_kept)
        found.append([over_columns(front[k].tree, columns) for k in best])
    joint = "mul" if separation.is_product else "add"
    constant: Tree = separation.constant
    combinations = islice(product(*found), _MOST_TOGETHER)  # two formulas for each of seven parts make more
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
