"""Preparation of data for a search: equal rows are joined, many are sampled, and columns are rescaled."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.data.dataset import ROWS_OF_A_GROUP, DataSet
from dgsr.data.rows import Rows
from dgsr.data.table import Table
from dgsr.expressions.formulas.coordinates import Coordinates

# Most rows on which the constants of the front are fitted. More rows determine a constant hardly better, and
# finishing a front takes a hundred fits.
_FITTED_ROWS = 2_000
# Most draws of the rows to hold out, until the target varies both among them and among the others.
_DRAWS = 20


class Prepared(NamedTuple):
    """The data of a fit."""

    data: DataSet  # the different rows, in the user's units; the losses of the front are computed on them
    fitted: DataSet  # the rows on which the constants of the front are fitted
    search: DataSet  # the rows of the search, in `coordinates`; its effective number is that of measurements
    coordinates: Coordinates
    held_out: DataSet | None  # the rows held out of search and fit, by which ``selection="holdout"`` chooses
    group_column: int | None = None  # the column with the numbers of the groups

    def by_group(self) -> Prepared:
        """Return the same rows with their groups, which then have scales and offsets of their own."""
        column = self.group_column

        def grouped(data: DataSet) -> DataSet:
            return data._replace(groups=data.columns[column].astype(np.int64))

        return self._replace(
            data=grouped(self.data), fitted=grouped(self.fitted), search=grouped(self.search)
        )

    @property
    def measured(self) -> DataSet:
        """The rows of `fitted` in the coordinates of the search."""
        return self.fitted._replace(columns=self.coordinates.measured(self.fitted.columns))

    def with_precision(self, precision_of: Callable[[DataSet], np.ndarray]) -> Prepared:
        """Return the same rows, with weights times a precision, a function of rows in the user's units."""

        def weighted(data: DataSet) -> DataSet:
            return data.with_precision(precision_of(data))

        raw = self.search._replace(columns=self.coordinates.raw(self.search.columns))
        return self._replace(
            data=weighted(self.data),
            fitted=weighted(self.fitted),
            search=self.search.with_precision(precision_of(raw)),
            held_out=None if self.held_out is None else weighted(self.held_out),
        )

    def with_numbers_of(self, other: Prepared) -> Prepared:
        """Return the same rows with the effective numbers of measurements of `other`."""
        return self._replace(
            data=self.data._replace(n_effective=other.data.n_effective),
            fitted=self.fitted._replace(n_effective=other.fitted.n_effective),
        )


def prepare(
    table: Table,
    *,
    with_scales: bool,
    with_origins: bool,
    max_rows: int | None,
    held_out: float = 0.0,
    held_out_seed: int | None = None,
    coordinates: Coordinates | None = None,
    group_column: int | None = None,
    seed: int,
) -> Prepared:
    """Return the data of a fit, prepared for a search.

    The weights must not all be 0; of those that are counts a row of weight 2 is exactly the same as two equal
    rows. A share `held_out` of the rows is held out, by `held_out_seed`, which is the same for
    successive fits, or by `seed`. The search has at most `max_rows`, drawn at random, those with large
    weights more often. Columns of extreme scale are rescaled if `with_scales`, and those whose range is small
    beside their values are measured from a number near them if `with_origins`, unless the `coordinates` of an
    earlier search are given. If a column has the numbers of groups, the rows of the search are drawn from
    some of the groups, and constants are fitted on rows of all of them.
    """
    rows = Rows.joined(table)
    held_out_data = None
    n_out = int(held_out * len(rows.table))
    rng = np.random.default_rng(seed if held_out_seed is None else held_out_seed)
    for _ in range(_DRAWS if n_out > 1 else 0):
        order = rng.permutation(len(rows.table))
        out, kept = rows.at(order[:n_out]), rows.at(np.sort(order[n_out:]))
        if np.ptp(out.table[:, -1]) > 0.0 and np.ptp(kept.table[:, -1]) > 0.0:
            held_out_data, rows = out.data, kept
            break
    data, rng = rows.data, np.random.default_rng(seed)
    if coordinates is None:
        coordinates = Coordinates.of(data.columns.T, with_scales, with_origins)
    if group_column is not None:
        coordinates.origins[group_column], coordinates.scales[group_column] = 0.0, 1.0
    n_groups = 0 if group_column is None else len(np.unique(rows.table[:, group_column]))
    rows = rows.sample(max(_FITTED_ROWS, ROWS_OF_A_GROUP * n_groups), rng, group_column)
    fitted = rows.data
    searched = rows.sample(max_rows, rng, group_column).data
    columns = np.ascontiguousarray(coordinates.measured(searched.columns))
    searched = searched._replace(columns=columns, n_effective=float(searched.counts.sum()))
    return Prepared(data, fitted, searched, coordinates, held_out_data, group_column)


def redundant_columns(
    columns: np.ndarray, candidates: Sequence[int], with_constants: bool
) -> tuple[int, ...]:
    """Return the columns that other columns, or constants, can replace in every formula.

    Of the candidates, in their order, these are copies of earlier columns and, in a library with constants,
    columns with the same value in every row. If all candidates are such columns, none is returned. `columns`
    is of shape (n_features, n_rows).
    """
    known, idle = set[bytes](), list[int]()
    for i in candidates:
        digest = hashlib.sha256(columns[i] + 0.0).digest()  # -0.0 becomes 0.0
        if digest in known or (with_constants and columns[i].min() == columns[i].max()):
            idle.append(i)
        known.add(digest)
    return tuple(idle) if len(idle) < len(candidates) else ()
