"""Checks that the data of a fit are numbers, with messages that say where they are not and what to change."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence, Set
from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from dgsr.data.rows import are_counts
from dgsr.data.table import Table

# Mean of integer weights above which a warning is given: they may be sizes, or the numbers of measurements
# behind a mean, instead of counts of equal rows.
_MANY_TIMES = 10
# Fewest rows in which a column 1, 2, 3, ... counts as the index of the rows, and not as levels such as doses.
_FEWEST_NUMBERED = 8
# Most rows, or columns, that a message names.
_MOST_NAMED = 8
# Kinds of the dtypes of numbers.
_NUMBERS = "biufc"
# Types of dates, times and spans of time.
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
# Names of the types of pandas for a span of the calendar, and for a missing value in a column of objects.
_PERIOD, _MISSING = "Period", "NAType"


def checked(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Table:
    """Return the data of a fit as a table, and set the estimator's attributes of the columns.

    Weights of an integer type remain integers, and a weight whose ratio to the largest is no normal float
    becomes 0. Raises ValueError if the data cannot be fitted; the message says what to change.
    """
    check_numbers(X, "X")
    check_numbers(y, "y")
    if sample_weight is not None and np.ndim(np.asarray(sample_weight, dtype=object)) > 0:
        check_numbers(sample_weight, "sample_weight")
    for_X = {"dtype": np.float64, "ensure_min_samples": 2, "ensure_all_finite": False}
    for_y = {"dtype": np.float64, "ensure_2d": False, "ensure_all_finite": False}
    X, y = validate_data(estimator, X, y, validate_separately=(for_X, for_y))
    check_consistent_length(X, y)
    names = list(getattr(estimator, "feature_names_in_", ()))
    check_finite(X, "X", names)
    check_finite(y, "y")
    if y.ndim != 2 or y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if sample_weight is not None:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "f":
            check_finite(np.atleast_1d(given), "sample_weight")
        sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        if not sample_weight.any():
            raise ValueError("sample_weight is 0 in every row; give some row a weight above 0.")
        # Ratios that are no normal floats would later cause a division by 0.
        is_none = sample_weight < np.finfo(np.float64).tiny * sample_weight.max()
        sample_weight = np.where(is_none, 0.0, sample_weight)
        if given.ndim == 1 and are_counts(given):
            sample_weight = given
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"X has several columns named {repeated[0]!r}; give each its own name.")
    return Table(X, y, sample_weight)


def check_numbers(table: Any, name: str) -> None:
    """Raise ValueError if `table` is no table, or has cells that are no numbers or exceed a float.

    The message calls the table by `name`, and names the column. Missing and infinite numbers are left to
    `check_finite`.
    """
    has_shape = bool(getattr(table, "shape", ()))  # some sparse matrices are mappings, but have a shape
    if isinstance(table, Set | Mapping | Iterator | Number) and not has_shape:
        raise ValueError(
            f"{name} is a {type(table).__name__}; give an array or a DataFrame with a row for "
            "each measurement."
        )
    if isinstance(table, np.ma.MaskedArray):  # otherwise what lies below the mask would be fitted
        check_finite(np.where(np.ma.getmaskarray(table), np.nan, 0.0), name)
    for label, column in _columns(table, name):
        cell = _first_that_is_no_number(np.asarray(column))
        where = name if label in (None, "") else f"Column {label!r} of {name}"
        if isinstance(cell, str | bytes):
            mend = "leave it out, or encode it by numbers, with scikit-learn's OneHotEncoder for example."
            mend = mend if name == "X" else "give numbers, which a formula can be fitted to."
            raise ValueError(f"{where} has text, such as {cell[:40]!r}; {mend}")
        if type(cell).__name__ == _MISSING:
            is_missing = [
                type(one).__name__ == _MISSING or one is None or one != one for one in np.asarray(column)
            ]
            check_finite(np.where(is_missing, np.nan, 0.0), where)
        if cell is not None and not isinstance(cell, _TIMES) and type(cell).__name__ != _PERIOD:
            raise ValueError(
                f"{where} has {repr(cell)[:40]}..., which is beyond a float; rescale the numbers."
            )
        if cell is not None:
            dates = "dates of them, t.dt.to_timestamp(), and " if type(cell).__name__ == _PERIOD else ""
            raise ValueError(
                f"{where} has dates or times, such as {cell}; make {dates}numbers of them, such as days: "
                "(t - t.min()) / np.timedelta64(1, 'D')."
            )


def check_finite(values: np.ndarray, name: str, labels: Sequence[Any] = ()) -> None:
    """Raise ValueError if cells of a table or column are missing or infinite; the message says where."""
    cells = values.reshape(len(values), -1)
    for are_bad, what in ((np.isnan(cells), "no value (NaN)"), (np.isinf(cells), "an infinite value (inf)")):
        if not are_bad.any():
            continue
        rows, columns = (np.flatnonzero(are_bad.any(axis=axis)) for axis in (1, 0))
        named = first_of([repr(labels[i]) if len(labels) else i for i in columns.tolist()])
        of_columns = f" of column{'s' * (len(columns) > 1)} {named}" if values.ndim > 1 else ""
        fill = ", or fill in the cells with scikit-learn's SimpleImputer" if name.endswith("X") else ""
        raise ValueError(
            f"{name} has {what} in {len(rows)} of {len(cells)} rows{of_columns} (counted from 0: "
            f"{first_of(rows)}). Leave these rows out{fill}."
        )


def first_of(items: Sequence[Any] | np.ndarray) -> str:
    """Return the first few of some items as a list for a message."""
    return ", ".join(map(str, items[:_MOST_NAMED])) + ", ..." * (len(items) > _MOST_NAMED)


def _columns(table: Any, name: str) -> Iterator[tuple[Any, Any]]:
    """Yield label and values of every column that may hold other things than numbers; a label may be None."""
    if hasattr(table, "get_columns"):  # a DataFrame of polars
        yield from ((column.name, column) for column in table.get_columns())
    elif hasattr(table, "iloc") and table.ndim == 2:  # a DataFrame of pandas
        for i, (label, dtype) in enumerate(zip(table.columns, table.dtypes)):
            if dtype.kind not in _NUMBERS:
                yield label, table.iloc[:, i]
    elif hasattr(table, "to_numpy") and hasattr(table, "name"):  # a Series of either
        yield table.name, table
    elif isinstance(table, np.ndarray | list | tuple):
        try:
            values = np.asarray(table)
        except ValueError as error:
            raise ValueError(
                f"{name} has rows of several lengths; give each a value for every column."
            ) from error
        if values.dtype.kind not in _NUMBERS:
            yield from enumerate(values.T) if values.ndim == 2 else [(None, values)]


def _first_that_is_no_number(values: np.ndarray) -> Any:
    """Return the first text, time, missing value or number that exceeds a float; None if there is none."""
    if values.dtype.kind in "mM":
        return values.flat[0] if values.size else None
    if values.dtype.kind in _NUMBERS:
        return None
    try:
        values.astype(np.float64)
    except (TypeError, ValueError, ArithmeticError):
        return next((cell for cell in values.flat if _is_no_number(cell)), None)
    return None


def _is_no_number(cell: Any) -> bool:
    if isinstance(cell, _TIMES) or type(cell).__name__ in (_PERIOD, _MISSING):
        return True
    try:
        float(cell)
    except ArithmeticError:
        return True
    except (TypeError, ValueError):
        return isinstance(cell, str | bytes)
    return False


def check_spread(y: np.ndarray) -> None:
    """Raise ValueError if squares of the differences in `y` would overflow or vanish."""
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y))
    if not 1e-140 <= spread <= 1e140:  # otherwise squares vanish, or sums of squares overflow
        raise ValueError(
            f"The values of y spread over {spread:g}, and squares of that are beyond a float; rescale y, "
            "to a standard deviation of 1 for example."
        )


def numbers_the_rows(column: np.ndarray) -> bool:
    """Return whether a column is 0, 1, 2, ... or 1, 2, 3, ... from the first row to the last."""
    first = column[0] if len(column) else np.nan
    return first in (0.0, 1.0) and np.array_equal(column, first + np.arange(len(column)))


def is_index(column: np.ndarray) -> bool:
    """Return whether a named column may be the index of the rows instead of a measurement."""
    return len(column) >= _FEWEST_NUMBERED and numbers_the_rows(column)


def data_warnings(table: Table, names: Sequence[Any], group_column: int | None = None) -> Iterator[str]:
    """Yield warnings about data that may be misread: weights taken for counts, an index among the columns.

    The column of groups, which has their numbers, is no input.
    """
    X, _, sample_weight = table
    if sample_weight is not None and are_counts(sample_weight) and sample_weight.mean() > _MANY_TIMES:
        yield (
            f"sample_weight has whole numbers, {sample_weight.mean():.3g} on average, so that each row "
            "counts as so many equal measurements; if a row is the mean of several, or the weights only say "
            "how much it matters, give floats."
        )
    inputs = [pair for i, pair in enumerate(zip(names, X.T, strict=True)) if i != group_column]
    for name, column in inputs:
        if len(inputs) > 1 and is_index(column):
            yield (
                f"Column {name!r} of X is {column[0]:g}, {column[1]:g}, {column[2]:g} and so on in the order "
                "of the rows; if it is their index and no measurement, leave it out."
            )
