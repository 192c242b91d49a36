"""The test whether a table has outliers, by the formulas that a search has found so far.

It has some if the description of formula and residuals is much shorter with a narrow and a wide normal
distribution than with a single one (`dgsr.fitting.outliers`), and a few rows have large residuals. A wrong
formula has large residuals, too, but in rows that lie together: at an end of a column or of the values of the
formula, or next to rows with residuals of the same sign.
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
from dgsr.fitting.outliers import (
    LARGEST_RESIDUAL,
    MOST_OUTLIERS,
    InlierModel,
    Mixture,
    left_out_of_fit,
    small_steps,
)
from dgsr.pareto import ParetoArchive
from dgsr.search import Search

# Shares of the budget at which a search is tested for outliers.
_CHECKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
#: Share of the budget from which on no test is made and no pass with relative errors begins, since too little
#: would remain.
TOO_LATE = 0.9
# Smallest residual of an outlier, in standard deviations of the other rows.
_OUTLYING = 6.0
# Bits by which two distributions must shorten the description. Outliers gain 90 and more; with 20 bits three
# of 160 tables without outliers had some.
_LEAST_GAIN = 40.0
# Fewest rows of a table with outliers. With fewer, accepted laws gain 7 to 9 bits or none.
_FEWEST_ROWS = 20
# Probability that far rows lie at one end of a column by chance, below which they are no outliers but a lack
# of fit.
_TOGETHER = 0.1
# Number of nearest rows by which a far row is compared with its surroundings.
_NEAREST = 3
# Residual from which a nearest row counts as off in the same direction, in standard deviations.
_OFF = 1.5
# Probability that as many of the nearest rows are off by chance, below which the far rows belong to the law.
_COMPANY = 0.02


class Watch:
    """Test for outliers at several times of a search by squares."""

    def __init__(self, rows: Prepared) -> None:
        self._is_on, self._rows, self._due = False, rows, _CHECKS[0]
        self._suspected: Population | None = None
        # The rows that are no outliers, by the best formula that shows some.
        self.inliers: InlierModel | None = None
        self.program: Population | None = None  # the first program of the search that showed outliers

    def begin(self, search: Search, is_on: bool) -> None:
        """Begin to test a search, which may have been resumed, if `is_on` and no outliers are known yet."""
        self._is_on = is_on and self.inliers is None
        self._plan(search)

    def _plan(self, search: Search) -> None:
        self._due = next((share for share in _CHECKS if share > search.budget.share), np.inf)

    def is_due(self, search: Search) -> bool:
        """Return whether the next test is due."""
        return self._is_on and (search.budget.share >= self._due or self._suspected is not None)

    def suspect(self, search: Search) -> None:
        """Test a search by squares that ends before it is known whether errors grow with the targets.

        When the search goes on, its formulas may bend towards the outliers, or it may have one round only.
        """
        self._suspected = with_outliers(search.archive, self._rows.measured)

    def sees_outliers(self, search: Search, is_over: bool = False) -> bool:
        """Test for outliers, unless it is too late, and return whether there are any.

        It is never too late for a search that `is_over`, and that others followed.
        """
        self._plan(search)
        if not self._is_on or (search.budget.share >= TOO_LATE and not is_over):
            return False
        self.program = self._suspected or with_outliers(search.archive, self._rows.measured)
        if self.program is not None:
            self._is_on = False
            self.take(self._rows.coordinates.written(self.program[0]))
        return self.program is not None

    def take(self, formula: Expression) -> None:
        """Determine the outliers by another formula."""
        self.inliers = InlierModel(formula, self._rows.data)


def with_outliers(archive: ParetoArchive, data: DataSet) -> Population | None:
    """Return the program by which a table has outliers, as a population of one, or None.

    The constants of the programs were fitted to the data.
    """
    programs = archive.population()
    values, places = programs.predict(data.columns.T), archive.places(programs)
    able = np.flatnonzero((np.abs(values) < LARGEST_RESIDUAL).all(axis=1)).tolist()
    if len(data.y) < _FEWEST_ROWS or not able:
        return None
    with np.errstate(all="ignore"):
        steps = small_steps(data.columns)
        left_out = {i: left_out_of_fit(programs[i], values[i], data, steps) for i in able}
    left_out = {i: each for i, each in left_out.items() if (np.abs(each[0]) < LARGEST_RESIDUAL).all()}
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
        if not 0.0 < np.mean(is_far) <= MOST_OUTLIERS or np.ptp(data.y[~is_far]) == 0.0:
            continue
        columns = [*data.columns] if are_own[is_far].any() else [*data.columns, values[i]]
        if not _cluster_at_column_end(is_far, columns) and not _neighbours_share_sign(is_far, sizes, data):
            return programs[i : i + 1]
    return None


def _cluster_at_column_end(is_far: np.ndarray, columns: Sequence[np.ndarray]) -> bool:
    """Return whether far rows lie at one end of a column, more than by chance."""
    varying = [column for column in columns if np.ptp(column) > 0.0]
    n, n_far, n_ends = len(is_far), int(is_far.sum()), 2 * len(varying)
    # Rows of equal values share a rank.
    ranks = [rankdata(column)[is_far] for column in varying]
    least = min((min(own.max(), n + 1 - own.min()) for own in ranks), default=n)
    return bool(n_ends * (least / n) ** n_far < _TOGETHER)


def _neighbours_share_sign(is_far: np.ndarray, residuals: np.ndarray, data: DataSet) -> bool:
    """Return whether the rows next to far rows are off in the same direction, more than by chance.

    The residuals, (n_rows,), are in standard deviations of the rows that are not far.
    """
    ranks = ranks_of(data.columns)
    _, nearest = cKDTree(ranks[~is_far]).query(ranks[is_far], k=_NEAREST)
    are_off = np.sign(residuals[is_far])[:, None] * residuals[~is_far][nearest] > _OFF
    return bool(binom.sf(are_off.sum() - 1, are_off.size, norm.sf(_OFF)) < _COMPANY)
