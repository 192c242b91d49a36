"""Shape constraints from the settings of a fit and its table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from dgsr.data.dataset import SOME_ROWS, evenly_spaced
from dgsr.data.table import Table
from dgsr.expressions.programs.shape import Known, ShapeConstraints
from dgsr.expressions.trees.syntax import suggestion

_DIRECTIONS = {"increasing": 1, "decreasing": -1}
# The key of `at` for the value of the target.
_VALUE = "value"


def shape_of(settings: Mapping[str, Any], names: Sequence[str], table: Table) -> ShapeConstraints | None:
    """Return the shape constraints of `lower`, `upper`, `monotone` and `at`; None if none is given.

    Their box is that of the rows with a positive weight, and their unit the standard deviation of the target
    there. Raises ValueError if a name is no column, a
    direction or number is none, or two rules exclude each other.
    """
    lower, upper = settings["lower"], settings["upper"]
    monotone = tuple(_monotone(settings["monotone"] or {}, names))
    known = tuple(_known(settings["at"], names))
    if lower is None and upper is None and not monotone and not known:
        return None
    bounds = -math.inf if lower is None else float(lower), math.inf if upper is None else float(upper)
    if bounds[0] > bounds[1]:
        raise ValueError(f"{lower=} is above {upper=}; exchange them, or leave one out.")
    X, y, _ = table.weighted
    for one in known:
        if not bounds[0] <= one.value <= bounds[1]:
            raise ValueError(
                f"at has the value {one.value:g}, which is not between {lower=} and {upper=}; change one."
            )
    rows = X[evenly_spaced(len(X), SOME_ROWS)].T
    return ShapeConstraints(X.min(axis=0), X.max(axis=0), rows, float(y.std()), *bounds, monotone, known)


def check_number(value: float, settings: Mapping[str, Any], names: Sequence[str], table: Table) -> None:
    """Raise ValueError as `shape_of`, or if a number, y in every row, breaks `lower`, `upper` or `at`."""
    shape, lower, upper = shape_of(settings, names, table), settings["lower"], settings["upper"]
    if shape is None:
        return
    if not shape.lower <= value <= shape.upper or any(one.value != value for one in shape.known):
        raise ValueError(
            f"y is {value:g} in every row, which {lower=}, {upper=} or at={settings['at']!r} excludes; "
            "change these, or give targets that vary."
        )


def _monotone(given: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the column and the sign of each entry of `monotone`."""
    for name, direction in given.items():
        column = _column(name, names, f"monotone[{name!r}]")
        if not isinstance(direction, str) or direction not in _DIRECTIONS:
            raise ValueError(
                f"monotone[{name!r}]={direction!r} must be 'increasing' or 'decreasing'; leave the column "
                "out if neither is known."
            )
        yield column, _DIRECTIONS[direction]


def _known(given: Any, names: Sequence[str]) -> Iterator[Known]:
    """Yield what each entry of `at` says."""
    given = () if given is None or len(given) == 0 else given
    for one in [given] if isinstance(given, Mapping) else given:
        if not isinstance(one, Mapping) or _VALUE not in one or len(one) < 2:
            raise ValueError(
                f"at={one!r} must have values of columns and the value of the target there, such as "
                "{'dose': 0, 'value': 0}; several such points are a list."
            )
        if _VALUE in names:
            raise ValueError(
                "at has the key 'value' for the target, and X has a column of this name; rename the column."
            )
        numbers = {key: _number(number, key) for key, number in one.items()}
        value = numbers.pop(_VALUE)
        yield Known(tuple((_column(key, names, "at"), x) for key, x in numbers.items()), value)


def _number(given: Any, key: str) -> float:
    """Return a finite number of `at`; ValueError for anything else."""
    if not isinstance(given, Real) or not math.isfinite(given):
        raise ValueError(f"at[{key!r}]={given!r} must be a finite number.")
    return float(given)


def _column(name: Any, names: Sequence[str], place: str) -> int:
    """Return the index of a column; ValueError if there is none of the name."""
    if name in names:
        return names.index(name)
    raise ValueError(f"{place} names {name!r}, which is no column; {suggestion(name, names)}")
