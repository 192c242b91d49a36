"""Whether a table has outliers, by the formulas that a search has found so far.

It is taken to have some where a narrow and a wide normal distribution make the description of formula and
residuals much shorter than a single one does (`dgsr.fitting.outliers`), and a few rows are far off. Rows of a
law that the formula is not may be far off, too, but they stand together: where a column, or the formula, is
the largest or the smallest, or beside rows that are off as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import binom, norm, rankdata

from dgsr.data import Prepared
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.expression import Expression
from dgsr.fitting.losses import ranks_of
from dgsr.fitting.outliers import LARGEST, MOST, Mixture, Usual, left_out_of_fit, small_steps
from dgsr.pareto import ParetoArchive
from dgsr.search import Search

# Shares of the budget at which a search looks for outliers, and the share from which it is too late.
_LOOKS, _TOO_LATE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), 0.9
# Least size of the residuals of outliers, in standard deviations of the others, and bits by which the
# description must be shorter at least.
_OUTLYING, _LEAST_GAIN = 6.0, 40.0
# Fewest rows in which outliers are seen.
_FEWEST_ROWS = 20
# Probability at which rows that stand together are no outliers.
_TOGETHER = 0.1
# Nearest rows, the standard deviations from which these are off, and the probability at which rows are no
# outliers whose nearest ones are off.
_NEAREST, _OFF, _COMPANY = 3, 1.5, 0.02


class Watch:
    """Looks for outliers now and then, while a search of a fit judges by squares.

    Parameters
    ----------
    rows : Prepared

    Attributes
    ----------
    usual : Usual or None
        The other rows by the best formula so far that shows outliers; None if there are none.
    program : Population or None
        The program of the search that showed them first.
    """

    def __init__(self, rows: Prepared) -> None:
        self._is_on, self._rows, self._due = False, rows, _LOOKS[0]
        self._suspected: Population | None = None
        self.usual: Usual | None = None
        self.program: Population | None = None

    def begin(self, search: Search, is_on: bool) -> None:
        """Turn to a search, which may have been resumed, and look at it if `is_on` and none are known yet."""
        self._is_on = is_on and self.usual is None
        self._plan(search)

    def _plan(self, search: Search) -> None:
        self._due = next((share for share in _LOOKS if share > search.budget.share), np.inf)

    def is_due(self, search: Search) -> bool:
        """Return whether it is time for a look."""
        return self._is_on and (search.budget.share >= self._due or self._suspected is not None)

    def suspect(self, search: Search) -> None:
        """Look at a search by squares that ends before it is known whether errors grow.

        Later its formulas may bend towards the outliers, or have no more than a round.
        """
        self._suspected = with_outliers(search.archive, self._rows.measured)

    def sees_outliers(self, search: Search, is_over: bool = False) -> bool:
        """Look, unless it is too late, and return whether there are outliers.

        Parameters
        ----------
        search : Search
        is_over : bool
            Whether the search ended long ago, in time, since others followed it.
        """
        self._plan(search)
        if not self._is_on or (search.budget.share >= _TOO_LATE and not is_over):
            return False
        self.program = self._suspected or with_outliers(search.archive, self._rows.measured)
        if self.program is not None:
            self._is_on = False
            self.take(self._rows.coordinates.written(self.program[0]))
        return self.program is not None

    def take(self, formula: Expression) -> None:
        """Tell outliers by another formula."""
        self.usual = Usual(formula, self._rows.data)


def with_outliers(archive: ParetoArchive, data: DataSet) -> Population | None:
    """Return the program by which a table has outliers, alone, or None.

    Parameters
    ----------
    archive : ParetoArchive
        Programs whose constants were fitted to the data.
    data : DataSet
    """
    programs = archive.population()
    values, places = programs.predict(data.columns.T), archive.places(programs)
    able = np.flatnonzero((np.abs(values) < LARGEST).all(axis=1)).tolist()
    if len(data.y) < _FEWEST_ROWS or not able:
        return None
    with np.errstate(all="ignore"):
        steps = small_steps(data.columns)
        left_out = {i: left_out_of_fit(programs[i], values[i], data, steps) for i in able}
    left_out = {i: each for i, each in left_out.items() if (np.abs(each[0]) < LARGEST).all()}
    if not left_out:
        return None
    found = {i: Mixture.of(residuals, data) for i, (residuals, _) in left_out.items()}
    with_some = {i: places[i] + found[i].bits(residuals, data) for i, (residuals, _) in left_out.items()}
    without = (places[i] + Mixture.single(r, data).bits(r, data) for i, (r, _) in left_out.items())
    shortest = min(without)
    for i in sorted(with_some, key=with_some.__getitem__):
        if with_some[i] > shortest - _LEAST_GAIN:
            return None
        residuals, are_own = left_out[i]
        sizes = residuals / found[i].deviation
        is_far = (found[i].of_narrow(residuals) < 0.5) & (np.abs(sizes) > _OUTLYING)
        if not 0.0 < np.mean(is_far) <= MOST or np.ptp(data.y[~is_far]) == 0.0:
            continue
        columns = [*data.columns] if are_own[is_far].any() else [*data.columns, values[i]]
        if not _stand_together(is_far, columns) and not _have_company(is_far, sizes, data):
            return programs[i : i + 1]
    return None


def _stand_together(is_far: np.ndarray, columns: Sequence[np.ndarray]) -> bool:
    """Return whether some rows are those with the largest, or the smallest, values of a column."""
    varying = [column for column in columns if np.ptp(column) > 0.0]
    n, n_far, n_ends = len(is_far), int(is_far.sum()), 2 * len(varying)
    # Rows of equal values share a rank.
    ranks = [rankdata(column)[is_far] for column in varying]
    least = min((min(own.max(), n + 1 - own.min()) for own in ranks), default=n)
    return bool(n_ends * (least / n) ** n_far < _TOGETHER)


def _have_company(is_far: np.ndarray, residuals: np.ndarray, data: DataSet) -> bool:
    """Return whether the other rows nearest to some rows are off in the same direction, more than by chance.

    Parameters
    ----------
    is_far : ndarray of shape (n_rows,), bool
    residuals : ndarray of shape (n_rows,)
        In standard deviations of the rows that are not far off.
    data : DataSet
    """
    ranks = ranks_of(data.columns)
    _, nearest = cKDTree(ranks[~is_far]).query(ranks[is_far], k=_NEAREST)
    are_off = np.sign(residuals[is_far])[:, None] * residuals[~is_far][nearest] > _OFF
    return bool(binom.sf(are_off.sum() - 1, are_off.size, norm.sf(_OFF)) < _COMPANY)
