"""Read a table of numbers from a CSV file, for the command line."""

from __future__ import annotations

import csv
import difflib
import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

#: A cell that holds one of these has no value.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}


class TableError(ValueError):
    """A file that can't be fitted as it is; the message says where it fails and what to do."""


class Table(NamedTuple):
    """The columns of a CSV file, split into inputs and target."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) float64
    feature_names: tuple[str, ...]
    target: str


def read_table(path: Path | str, target: str) -> Table:
    """Read the CSV file at `path`; the column `target` is what to predict, every other one an input.

    The first line names the columns. Cells are separated by commas, semicolons or tabs; lines that
    hold nothing are passed over.

    Raises
    ------
    TableError
        If there is no such file, it isn't a table of finite numbers with at least two rows and two
        columns, or it has no column `target`.
    """
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a CSV file.")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(file, str(path), target)
    except UnicodeDecodeError:
        raise TableError(f"{path} is not text in UTF-8; save the table as CSV (UTF-8).") from None
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file: {error}.") from None
    except OSError as error:
        raise TableError(f"{path} can't be read: {error.strerror}.") from None


def _read(file: TextIO, path: str, target: str) -> Table:
    lines = iter(file)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise TableError(
            f"{path} is empty; its first line must name the columns, and rows of numbers follow."
        )
    cells = csv.reader(itertools.chain([first], lines), delimiter=_delimiter(first))
    header = _columns(next(cells), path)
    if target not in header:
        raise TableError(_no_such_column(path, target, header))
    if len(header) == 1:
        raise TableError(f"{path} has no column but the target {target!r}; add at least one input column.")

    rows = np.array([_numbers(row, header, f"{path}, line {cells.line_num}") for row in _filled(cells)])
    if len(rows) < 2:
        found = "1 row" if len(rows) else "no rows"
        raise TableError(f"{path} has {found} of numbers under its header; a fit needs at least 2.")
    position = header.index(target)
    names = tuple(name for name in header if name != target)
    return Table(np.delete(rows, position, axis=1), rows[:, position].copy(), names, target)


def _filled(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    return (row for row in rows if any(cell.strip() for cell in row))


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


def _columns(header: list[str], path: str) -> list[str]:
    names = [name.strip() for name in header]
    if all(_is_number(name) for name in names):
        raise TableError(f"{path} starts with a row of numbers; add a first line that names the columns.")
    for position, name in enumerate(names, start=1):
        if not name:
            raise TableError(f"{path} gives column {position} no name; name every column in the first line.")
        if names.count(name) > 1:
            raise TableError(
                f"{path} has {names.count(name)} columns named {name!r}; give each its own name."
            )
    return names


def _no_such_column(path: str, target: str, names: list[str]) -> str:
    by_lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(target.lower(), by_lower_case, n=1)
    hint = f" Did you mean {by_lower_case[close[0]]!r}?" if close else ""
    return f"{path} has no column {target!r}; its columns are {', '.join(names)}.{hint}"


def _numbers(row: list[str], header: list[str], where: str) -> list[float]:
    if len(row) != len(header):
        cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
        raise TableError(f"{where}: {cells} for {len(header)} columns; give every row one cell per column.")
    numbers = []
    for name, cell in zip(header, row):
        if cell.strip().lower() in _MISSING:
            raise TableError(f"{where}: no value for {name!r}; fill it in, or remove the row or the column.")
        if not _is_number(cell):
            raise TableError(f"{where}: {cell.strip()!r} for {name!r} is not a number; {_mend(cell)}.")
        number = float(cell)
        if not math.isfinite(number):
            raise TableError(
                f"{where}: {cell.strip()} for {name!r} is not finite; remove the row or the column."
            )
        numbers.append(number)
    return numbers


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python reads 1_000 as a number, other programs don't


def _mend(cell: str) -> str:
    if _is_number(cell.replace(",", ".", 1)):
        return "write decimals with a point"
    return "remove the column or write it as numbers"
