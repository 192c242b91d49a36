"""Separability: the test whether a target is a sum, or a product, of functions of different columns.

A smooth function is evaluated where some columns have the values of one row and the others of another row.
If the target is a sum of functions of both groups, this matrix is its row means plus its column means, up to
a constant; if it is a product, the matrix has rank one. The deviation from this form determines which groups
are tried; the sum or product of processes of these groups must then predict left-out rows as well.

References
----------
Udrescu and Tegmark, Science Advances 6, eaay2631, 2020 (AI Feynman); Duvenaud, Nickisch and Rasmussen,
Advances in Neural Information Processing Systems 24, 2011 (sums of processes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dgsr.finders.fewer_columns.gaussian_process import fit_surrogate
from dgsr.finders.fewer_columns.products import Parts, fit_product, nearest_product
from dgsr.finders.fewer_columns.tables import Reduction, Symmetry
from dgsr.finders.fewer_columns.views import NEGLIGIBLE, SMALL, TIMES_LARGE, View
from dgsr.finders.finder import Deadline, never

# Largest leave-one-out error of a separation, in standard deviations of y.
_LARGEST_ERROR = 0.3
# Leave-one-out error, in standard deviations of y, above which residuals must show that it is due to noise:
# their ratio to the error must have at least this size.
_LARGEST_UNRESOLVED = 0.03
_LEAST_FOLLOWED = 0.3
# Largest ratio of the errors of finer and coarser groups, if the error of the finer ones is small.
_TIMES_SMALL = 3.0
# Largest ratio of the errors of groups and of all columns, if the rows are too sparse for all columns.
_TIMES_UNRESOLVED = 0.45
# Most columns of which all groups are compared, and most columns of a group in wider tables.
_ALL_GROUPS, _FEW_COLUMNS = 6, 2
# Most splits that are tried.
_MOST_TRIED = 6


@dataclass(frozen=True, eq=False)
class Separation:
    """A table whose target is a sum or a product of functions of different columns."""

    reduction: Reduction  # the table
    groups: tuple[tuple[int, ...], ...]  # the columns of each function
    is_product: bool
    rows: np.ndarray  # (n_rows,), the rows of the table from which the separation was found
    parts: np.ndarray  # (n_groups, n_rows), see `Parts`
    constant: float
    error: float

    def symmetry(self, names: Mapping[str, str]) -> Symmetry:
        """Return what the table shows, with names as in `Reduction.symmetry`."""
        whole = self.reduction.symmetry(names)
        groups = tuple(tuple(whole.groups[0][i] for i in group) for group in self.groups)
        return Symmetry("product" if self.is_product else "sum", whole.target, groups)


def separation_of(reduction: Reduction, rows: np.ndarray, is_over: Deadline = never) -> Separation | None:
    """Return the sum or product with the smallest leave-one-out error, None if all columns do better."""
    fitted = [None if is_over() else View.of(reduction, rows, (target,)) for target in (False, True)]
    views = [view for view in fitted if view is not None]
    if not views:
        return None
    together = min(views, key=lambda each: each.error_of_y)
    error = together.error_of_y
    times = 1.0 if error < SMALL else TIMES_LARGE
    if not _is_resolved(error, together.as_error_of_y(together.surrogate.followed)):
        times = _TIMES_UNRESOLVED
    limit = min(max(times * error, NEGLIGIBLE), _LARGEST_ERROR)
    found = []
    for each in views:
        lacking = _lacking(each, is_over)
        for i, kind in enumerate(_KINDS[each.logarithms.target]):
            splits = [group for group, lacks in sorted(lacking.items(), key=lambda item: item[1][i])]
            separated = _separated(each, kind, splits[:_MOST_TRIED], limit, is_over)
            if separated is not None:
                groups, parts = separated
                found.append(Separation(reduction, groups, kind is not _sum, rows, *parts[:3]))
    return min(found, key=lambda separation: separation.error, default=None)


def _separated(
    view: View, kind: _Kind, splits: Sequence[_Group], limit: float, is_over: Deadline
) -> tuple[tuple[_Group, ...], Parts] | None:
    """Return the finest groups that splits produce within a limit of the error, and their functions."""
    groups: tuple[_Group, ...] = (tuple(range(view.columns.shape[1])),)
    best: Parts | None = None
    for split in splits:
        both = [[i for i in group if (i in split) is inside] for group in groups for inside in (True, False)]
        finer = tuple(sorted(tuple(group) for group in both if group))
        if len(finer) == len(groups) or is_over():
            continue
        parts = kind(view, finer)
        if parts is not None and parts.error <= limit and _is_resolved(parts.error, parts.followed):
            groups, best = finer, parts
            times = _TIMES_SMALL if parts.error < SMALL else TIMES_LARGE
            limit = min(limit, max(times * parts.error, NEGLIGIBLE))
    return None if best is None else (groups, best)


def _lacking(view: View, is_over: Deadline) -> dict[_Group, tuple[float, float]]:
    """Return how far the target is from a sum, and from a product, of functions of each group and the others.

    Both deviations are shares of the variance on the grid where the group and the other columns have the
    values of any two rows.
    """
    n_columns = view.columns.shape[1]
    most = n_columns // 2 if n_columns <= _ALL_GROUPS else _FEW_COLUMNS
    found: dict[_Group, tuple[float, float]] = {}
    for size in range(1, most + 1):
        for group in combinations(range(n_columns), size):
            if is_over():
                return found
            grid = view.surrogate.on_grid(np.array(group))
            added = grid.mean(axis=0) + grid.mean(axis=1)[:, None] - grid.mean()
            rest = np.mean(grid**2) - nearest_product(grid)[1] / grid.size
            found[group] = float(np.mean((grid - added) ** 2) / grid.var()), float(rest / grid.var())
    return found


def _is_resolved(error: float, followed: float) -> bool:
    """Return whether the rows are dense enough for a function, by its leave-one-out error and its residuals.

    If the residuals are much smaller than the leave-one-out error, the function varies too fast between rows.
    """
    return error <= _LARGEST_UNRESOLVED or followed >= _LEAST_FOLLOWED * error


_Group = tuple[int, ...]
_Kind = Callable[[View, Sequence[_Group]], Parts | None]


def _sum(view: View, groups: Sequence[_Group]) -> Parts | None:
    surrogate = fit_surrogate(view.columns, view.target, view.surrogate, groups)
    if surrogate is None:
        return None
    return Parts(surrogate.parts, surrogate.middle, surrogate.error, surrogate.followed)


def _product(view: View, groups: Sequence[_Group]) -> Parts | None:
    return fit_product(view.target, view.surrogate, groups)


def _sum_of_logarithms(view: View, groups: Sequence[_Group]) -> Parts | None:
    logarithms = _sum(view, groups)
    if logarithms is None:
        return None
    parts, constant, *errors = logarithms
    constant = float(np.exp(constant) * np.sign(view.y[0]))
    return Parts(np.exp(parts), constant, *map(view.as_error_of_y, errors))


#: The combinations of functions that are tried for the target, and for its logarithm.
_KINDS: tuple[tuple[_Kind, ...], ...] = (_sum, _product), (_sum_of_logarithms,)
