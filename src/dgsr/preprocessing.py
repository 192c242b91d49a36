"""Check the data of a fit and prepare them for its search: equal rows joined, many sampled, scales undone."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from dgsr.expressions.coordinates import Coordinates
from dgsr.population import DataSet

# Most rows that the constants of the front are fitted on. More say little more about a constant, and
# finishing a front takes a hundred fits.
_FITTED_ROWS = 2_000

# Where whole numbers exceed this on average, they may be no counts of equal rows but sizes, or the numbers of
# measurements behind a mean.
_MANY_TIMES = 10

# How often rows to hold out are drawn until the target varies among them and among the others.
_DRAWS = 20

# Kinds of dtypes of numbers, and types of times.
_NUMBERS = "biufc"
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# Types of pandas, by their names, of a span of the calendar and of a missing value in a column of objects.
_PERIOD, _MISSING = "Period", "NAType"

# Between these spreads of y, squares of its differences, summed over any number of rows, are normal floats.
_SMALLEST_SPREAD, _LARGEST_SPREAD = 1e-140, 1e140


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

    def with_effective_number(self, n: float) -> Prepared:
        """Return the same rows with another effective number of measurements, which samples keep."""
        fitted = self.fitted
        if len(fitted.y) == len(self.data.y):
            fitted = fitted._replace(n_effective=n)
        return self._replace(data=self.data._replace(n_effective=n), fitted=fitted)


def checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the data of a fit as arrays of floats, and set the estimator's attributes of the columns.

    Parameters
    ----------
    estimator : estimator
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,) or None

    Returns
    -------
    tuple of (X, y, sample_weight)
        Float64 arrays; `y` is of shape (n_samples,) where it has one column. The weights may be None, those
        of an integer type stay whole numbers, and next to nothing beside the largest is 0.

    Raises
    ------
    ValueError
        If the data cannot be fitted; the message says what to change.
    """
    check_numbers(X, "X")
    check_numbers(y, "y")
    for_X = {"dtype": np.float64, "ensure_min_samples": 2}
    for_y = {"dtype": np.float64, "ensure_2d": False}
    X, y = validate_data(estimator, X, y, validate_separately=(for_X, for_y))
    check_consistent_length(X, y)
    if y.ndim != 2 or y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if sample_weight is not None:
        given = np.asarray(sample_weight)
        sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if not sample_weight.any():
            raise ValueError("sample_weight is 0 in every row; give some row a weight above 0.")
        # Shares that are no normal floats would be divided by 0 later.
        is_none = sample_weight < np.finfo(np.float64).tiny * sample_weight.max()
        sample_weight = np.where(is_none, 0.0, sample_weight)
        if given.ndim == 1 and are_counts(given):
            sample_weight = given
    names = list(getattr(estimator, "feature_names_in_", ()))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"X has several columns named {repeated[0]!r}; give each its own name.")
    return X, y, sample_weight


def check_numbers(table: Any, name: str) -> None:
    """Raise ValueError if a table has text, dates, times or pandas' missing values, and name their column.

    Anything else that is no number is left to scikit-learn's validation.

    Parameters
    ----------
    table : array-like of shape (n_samples,) or (n_samples, n_columns)
    name : {"X", "y"}
        What the message calls the table.
    """
    for label, column in _columns(table):
        cell = _first_that_is_no_number(np.asarray(column))
        where = name if label in (None, "") else f"Column {label!r} of {name}"
        if isinstance(cell, str | bytes):
            mend = "leave it out, or encode it by numbers, with scikit-learn's OneHotEncoder for example."
            mend = mend if name == "X" else "give numbers, which a formula can be fitted to."
            raise ValueError(f"{where} has text, such as {cell[:40]!r}; {mend}")
        if type(cell).__name__ == _MISSING:
            raise ValueError(f"{where} has no value in some row; leave such rows out, or fill them in.")
        if cell is not None:
            dates = "dates of them, t.dt.to_timestamp(), and " if type(cell).__name__ == _PERIOD else ""
            raise ValueError(
                f"{where} has dates or times, such as {cell}; make {dates}numbers of them, such as days: "
                "(t - t.min()) / np.timedelta64(1, 'D')."
            )


def _columns(table: Any) -> Iterator[tuple[Any, Any]]:
    """Yield label and values of every column that may have no numbers; None is the label of a lone column."""
    if hasattr(table, "get_columns"):  # a DataFrame of polars
        yield from ((column.name, column) for column in table.get_columns())
    elif hasattr(table, "iloc") and table.ndim == 2:  # of pandas
        for i, (label, dtype) in enumerate(zip(table.columns, table.dtypes)):
            if dtype.kind not in _NUMBERS:
                yield label, table.iloc[:, i]
    elif hasattr(table, "to_numpy") and hasattr(table, "name"):  # a Series of either
        yield table.name, table
    elif isinstance(table, np.ndarray | list | tuple):
        try:
            values = np.asarray(table)
        except ValueError:  # rows of several lengths
            return
        if values.dtype.kind not in _NUMBERS:
            yield from enumerate(values.T) if values.ndim == 2 else [(None, values)]


def _first_that_is_no_number(values: np.ndarray) -> Any:
    """Return the first text, time or missing value that float() does not take; None if there is none."""
    if values.dtype.kind in "mM":
        return values.flat[0] if values.size else None
    if values.dtype.kind in _NUMBERS:
        return None
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return next((cell for cell in values.flat if _is_no_number(cell)), None)
    return None


def _is_no_number(cell: Any) -> bool:
    if isinstance(cell, _TIMES) or type(cell).__name__ in (_PERIOD, _MISSING):
        return True
    try:
        float(cell)
    except (TypeError, ValueError):
        return isinstance(cell, str | bytes)
    return False


def check_spread(y: np.ndarray) -> None:
    """Raise ValueError if squares of the differences in `y` would overflow or vanish."""
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y))
    if not _SMALLEST_SPREAD <= spread <= _LARGEST_SPREAD:
        raise ValueError(
            f"The values of y spread over {spread:g}, and squares of that are beyond a float; rescale y, "
            "to a standard deviation of 1 for example."
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
    rows = _Rows.joined(np.column_stack([X, y]), sample_weight)
    held_out_data = None
    n_out = int(held_out * len(rows.table))
    rng = np.random.default_rng(seed if held_out_seed is None else held_out_seed)
    for _ in range(_DRAWS if n_out > 1 else 0):
        order = rng.permutation(len(rows.table))
        out, kept = rows.at(order[:n_out]), rows.at(np.sort(order[n_out:]))
        if np.ptp(out.table[:, -1]) > 0.0 and np.ptp(kept.table[:, -1]) > 0.0:
            held_out_data, rows = out.data, kept
            break
    if coordinates is None:
        coordinates = Coordinates.of(rows.table[:, :-1], with_scales, with_origins)
    data, rng = rows.data, np.random.default_rng(seed)
    rows = rows.sample(_FITTED_ROWS, rng)
    fitted = rows.data
    searched = rows.sample(max_rows, rng).data
    columns = np.ascontiguousarray(coordinates.measured(searched.columns))
    searched = searched._replace(columns=columns, n_effective=float(searched.counts.sum()))
    return Prepared(data, fitted, searched, coordinates, held_out_data)


class _Rows(NamedTuple):
    """Different rows of inputs and target, and what the measurements that each stands for weigh."""

    table: np.ndarray  # (n_rows, n_features + 1)
    weights: np.ndarray  # (n_rows,): sums of the weights of the measurements
    counts: np.ndarray  # (n_rows,): numbers of the measurements, effective ones where their weights differ

    @classmethod
    def joined(cls, table: np.ndarray, sample_weight: np.ndarray | None) -> _Rows:
        """Return the different rows of a table that have a weight, in lexicographic order."""
        given = np.ones(len(table), dtype=np.int64) if sample_weight is None else np.asarray(sample_weight)
        used = np.flatnonzero(given > 0)
        table, weights = table[used], given[used].astype(np.float64)
        # Divided by a power of two, which is exact, the weights are below 1, and no sum of them overflows.
        exponent = -np.frexp(weights.max())[1]
        weights = np.ldexp(weights, exponent)
        _, first, row_of = np.unique(row_ranks(table), return_index=True, return_inverse=True)
        joined = np.bincount(row_of, weights)
        if are_counts(given):
            return cls(table[first], joined, np.ldexp(joined, -exponent))
        # The weights of a row are such that no square of them vanishes.
        own = np.ldexp(weights, -np.frexp(joined)[1][row_of])
        return cls(table[first], joined, np.bincount(row_of, own) ** 2 / np.bincount(row_of, own**2))

    @property
    def data(self) -> DataSet:
        return DataSet.from_arrays(self.table[:, :-1], self.table[:, -1], self.weights, self.counts)

    def at(self, rows: np.ndarray) -> _Rows:
        """Return some of the rows, by their numbers."""
        return _Rows(self.table[rows], self.weights[rows], self.counts[rows])

    def sample(self, n: int | None, rng: np.random.Generator) -> _Rows:
        """Return `n` random rows, of which the target varies in at least one.

        A row is drawn with a chance in proportion to its weight, as far as chances go, and its weight is
        divided by the chance. So sums over the sample are unbiased estimates of sums over all rows, and the
        rows that hardly count do not crowd out those that do.

        References
        ----------
        Horvitz & Thompson, 1952 (the weights); Madow, 1949 (systematic sampling).
        """
        if n is None or len(self.table) <= n:
            return self
        weights, is_certain, share = self.weights, np.zeros(len(self.table), dtype=bool), 0.0
        if weights.min() == weights.max():
            share = float(weights[0])
            chosen = rng.choice(len(weights), n, replace=False)
        else:
            n_drawn = n
            while n_drawn > 0:
                share = weights[~is_certain].sum() / n_drawn
                is_heavy = ~is_certain & (weights >= share)
                if not is_heavy.any():
                    break
                is_certain |= is_heavy
                n_drawn = n - np.count_nonzero(is_certain)
            others = rng.permutation(np.flatnonzero(~is_certain))
            reached = np.cumsum(weights[others])
            steps = (np.arange(n_drawn) + rng.random()) * (reached[-1] / max(n_drawn, 1))
            drawn = others[np.searchsorted(reached, steps, side="right")]
            chosen = np.concatenate([np.flatnonzero(is_certain), drawn])
        y = self.table[:, -1]
        if np.ptp(y[chosen]) == 0.0:
            chosen[-1] = rng.choice(np.flatnonzero(y != y[chosen[-1]]))
        sample = self.at(np.sort(chosen))
        return sample._replace(weights=np.where(is_certain[np.sort(chosen)], sample.weights, share))


def doubt_about(sample_weight: np.ndarray | None) -> str:
    """Return what to tell a person whose weights may not be the counts that they are taken for, or ""."""
    if sample_weight is None or not are_counts(sample_weight) or sample_weight.mean() <= _MANY_TIMES:
        return ""
    return (
        f"sample_weight has whole numbers, {sample_weight.mean():.3g} on average, so that each row counts as "
        "so many equal measurements; if a row is the mean of several, or the weights only say how much it "
        "matters, give floats."
    )


def are_counts(weights: np.ndarray) -> bool:
    """Return whether weights say how often rows were measured, as whole numbers of an integer type do."""
    return weights.dtype.kind in "biu"


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
    known: set[bytes] = set()
    idle, n_candidates = [], 0
    for i in candidates:
        n_candidates += 1
        values = (columns[i] + 0.0).tobytes()  # -0.0 is 0.0
        if values in known or (with_constants and columns[i].min() == columns[i].max()):
            idle.append(i)
        known.add(values)
    return tuple(idle) if len(idle) < n_candidates else ()


def row_ranks(table: np.ndarray) -> np.ndarray:
    """Return the rank of every row in lexicographic order; equal rows, and they alone, have equal ranks.

    Columns are compared one by one, and only rows that tie so far: for wide tables that takes a tenth of the
    time of sorting whole rows.
    """
    ranks = np.zeros(len(table), dtype=np.int64)  # the number of rows that come before
    tied = np.arange(len(table))
    for column in table.T:
        values = column[tied]
        if len(tied) == 0 or values.min() == values.max():
            continue
        order = np.lexsort((values, ranks[tied]))
        tied, values = tied[order], values[order]
        before = ranks[tied]
        is_other = np.concatenate([[True], before[1:] != before[:-1]])
        is_new = is_other | np.concatenate([[True], values[1:] != values[:-1]])
        place = np.arange(len(tied))
        start, new_start = (np.maximum.accumulate(np.where(at, place, 0)) for at in (is_other, is_new))
        ranks[tied] = before + new_start - start
        has_equal = ~is_new | ~np.concatenate([is_new[1:], [True]])
        tied = tied[has_equal]
    return ranks
