"""Searches for the terms or factors of a target that separates, one after the other.

Each is a function of its own columns, of which the surrogate gives approximate values. What the searches
find for them is put together again, and its constants are fitted to the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import islice, product

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import structure_bits
from dgsr.expressions.trees.trees import Tree, rename
from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.separation import Separation

#: Searches in a table for its law, after symmetries if the flag says so, and returns the front.
SearchIn = Callable[[DataSet, bool], Population]

# Most formulas that are put together, and the share of the squared error of the separation up to which the
# values of a part are not exact.
_MOST_TOGETHER, _INEXACT = 100, 0.3
# Most evaluations of the search for a part, which the forms that have names often end at once.
_MOST_EVALUATIONS = 200_000
# Shares of the rows that residuals count for.
_COUNTED = (1.0, 0.25, 0.0625)


def search_parts(separation: Separation, search_in: SearchIn, budget: Budget) -> list[Tree]:
    """Return sums or products of what is found for the parts, as trees of the columns of the separated table.

    Every search has the same share of the budget.
    """
    n_parts = len(separation.groups)
    n_kept = max(int(_MOST_TOGETHER ** (1.0 / n_parts) + 1e-9), 2)
    X, found = separation.reduction.X[separation.rows], list[list[Tree]]()
    for i, (group, values) in enumerate(zip(separation.groups, separation.parts)):
        data = DataSet.from_arrays(X[:, group], values)
        with budget.share_of_rest(1.0 / (n_parts - i), _MOST_EVALUATIONS):
            front = search_in(data, len(group) > 1)
        names = {f"x{k + 1}": f"x{column + 1}" for k, column in enumerate(group)}
        best = _shortest_descriptions(front, data, _INEXACT * separation.error**2, n_kept)
        found.append([rename(front[k].tree, names) for k in best])
    joint = "mul" if separation.is_product else "add"
    constant: Tree = separation.constant
    combinations = islice(product(*found), _MOST_TOGETHER)  # two of each of seven parts would be more
    return [reduce(lambda a, b: (joint, a, b), trees, constant) for trees in combinations]


def _shortest_descriptions(front: Population, data: DataSet, inexact: float, n: int) -> list[int]:
    """Return the n formulas with the shortest descriptions of formula and residuals.

    Residuals count as no less than inexact values leave: what follows these more closely follows the errors
    of the surrogate. As these are alike in neighbouring rows, nobody knows how many rows they count for, so
    that several numbers take turns.
    """
    with np.errstate(all="ignore"):
        logarithms = np.log2(np.maximum(np.nan_to_num(front.nmse(data), nan=np.inf), inexact))
    bits = structure_bits(front.library, front.tokens, front.lengths)
    orders = [np.argsort(bits + 0.5 * share * len(data.y) * logarithms, kind="stable") for share in _COUNTED]
    return list(dict.fromkeys(np.array(orders).T.ravel().tolist()))[:n]
