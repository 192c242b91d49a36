"""Prepare data for a search: equal rows joined, many sampled, scales undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.rows import Rows
from dgsr.expressions.formulas.coordinates import Coordinates

# Most rows that the constants of the front are fitted on. More say little more about a constant, and
# finishing a front takes a hundred fits.
_FITTED_ROWS = 2_000

# Rows by which columns are told apart before all of them are compared.
_FEW_ROWS = 1_000

# How often rows to hold out are drawn until the target varies among them and among the others.
_DRAWS = 20


class Prepared(NamedTuple):
    """The data of a fit."""

    data: DataSet  # the rows that the losses of the front are computed on, each once, as given
    fitted: DataSet  # the rows that the constants of the front are fitted on
    search: DataSet  # the rows of the search, in `coordinates`, each measurement of which counts as one
    coordinates: Coordinates
    held_out: DataSet | None  # the rows held out of search and fit, which ``selection="holdout"`` chooses by

    @property
    def measured(self) -> DataSet:
        """The rows of `fitted` in the coordinates of the search."""
        return self.fitted._replace(columns=self.coordinates.measured(self.fitted.columns))

    def with_precision(self, precision_of: Callable[[DataSet], np.ndarray]) -> Prepared:
        """Return the same rows, weighted by their precision too.

        Parameters
        ----------
        precision_of : callable
            A function of rows, as given, that returns the precision of each; see `DataSet.with_precision`.
        """

        def weighted(data: DataSet) -> DataSet:
            return data.with_precision(precision_of(data))

        raw = self.search._replace(columns=self.coordinates.raw(self.search.columns))

        return self._replace(
            data=weighted(self.data),
            fitted=weighted(self.fitted),
            search=weighted(raw)._replace(columns=self.search.columns),
            held_out=None if self.held_out is None else weighted(self.held_out),
        )

    def with_numbers_of(self, other: Prepared) -> Prepared:
        """Return the same rows with the effective numbers of measurements of others."""
        return self._replace(
            data=self.data._replace(n_effective=other.data.n_effective),
            fitted=self.fitted._replace(n_effective=other.fitted.n_effective),
        )


def prepare(
    X: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    *,
    with_scales: bool,
    with_origins: bool,
    max_rows: int | None,
    held_out: float = 0.0,
    held_out_seed: int | None = None,
    coordinates: Coordinates | None = None,
    seed: int,
) -> Prepared:
    """Prepare data for a search.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    sample_weight : ndarray of shape (n_samples,), optional
        The weights of the rows, which must not be negative, nor all 0. Whole numbers of an integer type say
        how often a row was measured: one with weight 2 is exactly the same as two equal rows.
    with_scales : bool
        Whether columns of extreme scale are rescaled, which a library with constants can undo.
    with_origins : bool
        Whether columns that vary by little beside their size are measured from a number near them.
    max_rows : int or None
        Most rows of the search, drawn at random, those with large weights more often.
    held_out : float
        Share of the rows that is held out.
    held_out_seed : int, optional
        Seed by which rows are held out; `seed` by default. Fits that go on from one another on the same data
        hold out the same rows, if this is the same.
    coordinates : Coordinates, optional
        Those of an earlier search that goes on, in place of those of these data.
    seed : int
        Seed of the samples of rows.

    Returns
    -------
    Prepared
    """
    rows = Rows.joined(X, y, sample_weight)
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
    rows = rows.sample(_FITTED_ROWS, rng)
    fitted = rows.data
    searched = rows.sample(max_rows, rng).data
    columns = np.ascontiguousarray(coordinates.measured(searched.columns))
    searched = searched._replace(columns=columns, n_effective=float(searched.counts.sum()))
    return Prepared(data, fitted, searched, coordinates, held_out_data)


def idle_columns(columns: np.ndarray, candidates: Iterable[int], with_constants: bool) -> tuple[int, ...]:
    """Return the columns that can do nothing in a formula which others, or its constants, cannot do.

    These are copies of earlier columns, and in a library with constants the columns with the same value in
    every row; none where there would be no other.

    Parameters
    ----------
    columns : ndarray of shape (n_features, n_rows)
    candidates : iterable of int
        The columns to choose from, in order.
    with_constants : bool
        Whether the library has constants.
    """
    known: dict[bytes, list[int]] = {}  # columns that begin alike
    idle, n_candidates = [], 0
    for i in candidates:
        n_candidates += 1
        alike = known.setdefault((columns[i, :_FEW_ROWS] + 0.0).tobytes(), [])  # -0.0 is 0.0
        is_known = any(np.array_equal(columns[i], columns[other]) for other in alike)
        if is_known or (with_constants and columns[i].min() == columns[i].max()):
            idle.append(i)
        alike.append(i)
    return tuple(idle) if len(idle) < n_candidates else ()
