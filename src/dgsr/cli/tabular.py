"""Read a table of numbers from a CSV file, for the command line."""

from __future__ import annotations

import csv
import difflib
import itertools
import math
from array import array
from collections import Counter
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

# Cells that have no value, in lower case.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}

# Most names that a message lists, and most letters of a name or a cell that it quotes.
_MOST_NAMES, _LONGEST_QUOTE = 30, 60


class TableError(ValueError):
    """A file that cannot be fitted as it is; the message says where it fails and what to do."""


class Table(NamedTuple):
    """The columns of a CSV file, split into inputs and target."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) float64
    feature_names: tuple[str, ...]
    target: str


def read_table(path: Path | str, target: str) -> Table:
    """Read the CSV file at `path`, with the column `target` to predict and all other columns as inputs.

    The first line names the columns. Cells are separated by commas, semicolons or tabs; empty lines are
    skipped.

    Raises
    ------
    TableError
        If there is no such file, it is not a table of finite numbers with at least two rows and two
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
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None


def _read(file: TextIO, path: str, target: str) -> Table:
    lines = iter(file)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise TableError(
            f"{path} is empty; its first line must name the columns, and rows of numbers follow."
        )
    cells = csv.reader(itertools.chain([first], lines), delimiter=max(",;\t", key=first.count))
    header = _columns(next(cells), path)
    if target not in header:
        raise TableError(_no_such_column(path, target, header))
    if len(header) == 1:
        raise TableError(f"{path} has no column but the target {target!r}; add at least one input column.")

    numbers = array("d")  # a list would take four times the memory of large tables
    for row in cells:
        if any(cell.strip() for cell in row):
            numbers.extend(_quickly_read(row, len(header)) or _numbers(row, header, path, cells.line_num))
    rows = np.asarray(numbers, dtype=np.float64).reshape(-1, len(header))
    if len(rows) < 2:
        found = "1 row" if len(rows) else "no rows"
        raise TableError(f"{path} has {found} of numbers under its header; a fit needs at least 2.")
    position = header.index(target)
    names = tuple(name for name in header if name != target)
    return Table(np.delete(rows, position, axis=1), rows[:, position].copy(), names, target)


def _columns(header: list[str], path: str) -> list[str]:
    names = [name.strip() for name in header]
    if all(_is_number(name) for name in names):
        raise TableError(f"{path} starts with a row of numbers; add a first line that names the columns.")
    counts = Counter(names)
    for position, name in enumerate(names, start=1):
        if not name:
            raise TableError(f"{path} gives column {position} no name; name every column in the first line.")
        if counts[name] > 1:
            raise TableError(
                f"{path} has {counts[name]} columns named {_quoted(name)}; give each its own name."
            )
    return names


def _no_such_column(path: str, target: str, names: list[str]) -> str:
    by_lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(target.lower(), by_lower_case, n=1)
    hint = f" Did you mean {_quoted(by_lower_case[close[0]])}?" if close else ""
    shown = ", ".join(map(_shortened, names[:_MOST_NAMES]))
    if len(names) > _MOST_NAMES:
        shown += f", and {len(names) - _MOST_NAMES:,} more"
    return f"{path} has no column {_quoted(target)}; its columns are {shown}.{hint}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"


def _quoted(text: str) -> str:
    return repr(_shortened(text))


def _quickly_read(row: list[str], n_columns: int) -> list[float] | None:
    """Return the numbers of a row that is plainly valid, or None for a row that `_numbers` has to check."""
    together = "".join(row)
    if len(row) != n_columns or "_" in together or not together.isascii():
        return None
    try:
        numbers = list(map(float, row))
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _numbers(row: list[str], header: list[str], path: str, line: int) -> list[float]:
    """Return the numbers of a row; raise TableError with what is wrong with it."""
    where = f"{path}, line {line}"
    if len(row) != len(header):
        cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
        raise TableError(f"{where}: {cells} for {len(header)} columns; give every row one cell per column.")
    numbers = []
    for name, cell in zip(header, row):
        if cell.strip().lower() in _MISSING:
            raise TableError(
                f"{where}: no value for {_quoted(name)}; fill it in, or remove the row or the column."
            )
        if not _is_number(cell):
            raise TableError(
                f"{where}: {_quoted(cell.strip())} for {_quoted(name)} is not a number; {_mend(cell)}."
            )
        number = float(cell)
        if not math.isfinite(number):
            raise TableError(
                f"{where}: {_shortened(cell.strip())} for {_quoted(name)} is not finite; "
                "remove the row or the column."
            )
        numbers.append(number)
    return numbers


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    # Python, unlike other programs, reads 1_000 and digits of every script as numbers.
    return "_" not in cell and cell.strip().isascii()


def _mend(cell: str) -> str:
    if _is_number(cell.replace(",", ".", 1)):
        return "write decimals with a point"
    if any(character.isdecimal() and not character.isascii() for character in cell):
        return "write numbers with the digits 0 to 9"
    return "remove the column or write it as numbers"
