"""Groups of rows, such as subjects or materials: their labels become numbers in a column of the table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from dgsr.data.checks import first_of

#: What `new_groups` in the `config` of a fit may be.
NEW_GROUPS = ("mean", "raise")


def n_columns(X: Any) -> int:
    """Return the number of columns of a table; ValueError if it has not two dimensions."""
    if len(shape := np.shape(X)) != 2:
        raise ValueError(f"X has the shape {shape}; with groups it must be a table, (n_samples, n_features).")
    return shape[1]


def column_of(groups: str | int, X: Any) -> int:
    """Return the position of the column of groups in X; ValueError if there is no such column."""
    names, n = [*map(str, getattr(X, "columns", ()))], n_columns(X)
    if isinstance(groups, str) and groups in names:
        return names.index(groups)
    if not isinstance(groups, str) and -n <= groups < n:
        return int(groups) % n
    known = ", ".join(names[:60]) if names else f"the numbers 0 to {n - 1}"
    raise ValueError(f"groups={groups!r} is no column of X; choose from {known}.")


def labels_of(values: Any, name: str) -> tuple[Hashable, ...]:
    """Return the different labels of groups, sorted; ValueError if one is missing, or there is only one."""
    found = _listed(values)
    missing = np.flatnonzero([_is_missing(label) for label in found])
    if len(missing):
        raise ValueError(
            f"{name} has no label in {len(missing)} of {len(found)} rows (counted from 0: "
            f"{first_of(missing)}). Leave these rows out, or give them a label."
        )
    labels: list[Any] = [*dict.fromkeys(found)]  # in an order that does not depend on the hashes of texts
    if len(labels) < 2:
        raise ValueError(f"{name} has the same label in every row; leave the groups out, or give several.")
    try:
        return tuple(sorted(labels))
    except TypeError:  # labels of several types
        return tuple(sorted(labels, key=str))


def numbers_of(values: Any, labels: Sequence[Hashable]) -> np.ndarray:
    """Return the numbers of groups by their labels, (n_rows,) float64, -1 for one that is not in `labels`."""
    known = {label: number for number, label in enumerate(labels)}
    return np.array([known.get(one, -1) for one in _listed(values)], dtype=np.float64)


def _listed(values: Any) -> list[Hashable]:
    """Return the labels of the rows, numbers of numpy as those of Python."""
    # An array of a list of tuples would have an entry for each of their parts.
    are_tuples = isinstance(values, list) and any(isinstance(label, tuple) for label in values)
    labels = values if are_tuples else np.asarray(values, dtype=object).ravel().tolist()
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def _is_missing(label: Hashable) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # the missing value of pandas is neither equal to itself nor different
        return True


def values_of(X: Any, column: int) -> Any:
    """Return a column of a DataFrame or an array."""
    if hasattr(X, "iloc"):
        return X.iloc[:, column]
    return X[X.columns[column]] if hasattr(X, "columns") else np.asarray(X, dtype=object)[:, column]


def with_numbers(X: Any, column: int, numbers: np.ndarray) -> Any:
    """Return the table with a column replaced by numbers (n_rows,)."""
    if hasattr(X, "iloc"):
        X = X.copy()
        X.isetitem(column, numbers)
        return X
    if hasattr(X, "with_columns"):  # of polars
        series = X[X.columns[column]]
        return X.with_columns(type(series)(series.name, numbers))
    X = np.array(X, dtype=object, subok=True)  # a masked array keeps its mask
    X[:, column] = numbers
    return X
