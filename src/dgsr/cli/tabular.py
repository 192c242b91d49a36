"""Read a table of numbers from a CSV file, for the command line."""

from __future__ import annotations

import csv
import difflib
import io
import itertools
import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

import numpy as np

# Cells that have no value, in lower case.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}

# Most names and lines that a message lists, and most letters of a name or a cell that it quotes.
_MOST_NAMES, _MOST_LINES, _LONGEST_QUOTE = 30, 5, 60

# A cell in quotes, and one whose quotes are not closed yet.
_QUOTED, _OPEN = re.compile(r'"[^"]*"'), re.compile(r'(?:^|[,;\t])"[^"]*$')
# Most lines over which the names of the columns may go.
_MOST_HEADER_LINES = 100

# A number whose decimals stand behind a comma.
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?|[+-]?\d+,\d*([eE][+-]?\d+)?", re.ASCII)


class TableError(ValueError):
    """A file that cannot be fitted as it is; the message says where it fails and what to do."""


class Table(NamedTuple):
    """The columns of a CSV file, split into inputs and target."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) float64
    feature_names: tuple[str, ...]
    target: str
    notes: tuple[str, ...] = ()  # what was left out or read in an unusual way, a sentence each
    weights: np.ndarray | None = None  # (n_samples,) float64


def read_table(
    path: Path | str, target: str, columns: Sequence[str] | None = None, weights: str | None = None
) -> Table:
    """Read a CSV file whose first line names the columns.

    Cells are separated by commas, semicolons or tabs; empty lines and lines that begin with ``#`` are
    skipped. Where semicolons or tabs separate cells, decimals may stand behind a comma. Rows with a missing
    cell are left out.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard input.
    target : str
        Column to predict.
    columns : sequence of str, optional
        Inputs; by default all other columns that have a number.
    weights : str, optional
        Column of the weights of the rows.

    Raises
    ------
    TableError
        If there is no such file, it is not a table of finite numbers with at least two rows and two
        columns, or it lacks a column.
    """
    return _rows_of(path).table(target, columns, weights)


def read_columns(path: Path | str, columns: Sequence[str]) -> np.ndarray:
    """Return columns of a CSV file, shape (n_rows, n_columns), NaN where a cell is missing."""
    return _rows_of(path).values(columns)


def _rows_of(path: Path | str) -> _Rows:
    name, file = _opened(path)
    try:
        with file, io.TextIOWrapper(file, encoding=_encoding(file), newline="") as text:
            return _read(text, name)
    except UnicodeDecodeError:
        raise TableError(f"{name} is not text; save the table as CSV (UTF-8).") from None
    except csv.Error as error:
        raise TableError(f"{name} is not a CSV file: {error}.") from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror}.") from None


def _opened(path: Path | str) -> tuple[str, BinaryIO]:
    """Return the name of a file for messages, and the file."""
    if str(path) == "-":
        return "standard input", io.BytesIO(sys.stdin.buffer.read())
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a CSV file.")
    try:
        return str(path), path.open("rb")
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None


def _encoding(file: BinaryIO) -> str:
    """Return the encoding of a text: UTF-8, UTF-16 with its mark, or else that of Western Windows."""
    mark = file.read(2)
    file.seek(0)
    if mark in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        while text.read(1 << 20):
            pass
    except UnicodeDecodeError:
        return "cp1252"
    finally:
        text.detach()
        file.seek(0)
    return "utf-8-sig"


def _read(text: TextIO, path: str) -> _Rows:
    numbered = _Lines(text)
    lines = iter(numbered)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise TableError(
            f"{path} is empty; its first line must name the columns, and rows of numbers follow."
        )
    head = [first]
    for _ in range(_MOST_HEADER_LINES):
        if not _OPEN.search(_QUOTED.sub("", "".join(head))):
            break
        head.extend(itertools.islice(lines, 1))  # a name in quotes has a line break
    delimiter = max(",;\t", key=_QUOTED.sub("", "".join(head)).count)
    cells = csv.reader(itertools.chain(head, lines), delimiter=delimiter)
    header = _columns(next(cells), path)
    rows = _Rows(path, header, may_have_commas=delimiter != ",")
    for row in cells:
        if any(cell.strip() for cell in row):
            rows.add(row, numbered.number)
    if text.encoding == "cp1252":
        rows.notes.append(f"{path} is not text in UTF-8 and is read as Windows-1252.")
    return rows


class _Lines:
    """The lines of a text without comments, and the number of the last one."""

    def __init__(self, text: Iterable[str]) -> None:
        self.number, self._text = 0, text

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.number += 1
            if not line.startswith("#"):
                yield line


@dataclass
class _Rows:
    """The rows of a table as they are read.

    Parameters
    ----------
    path : str
        What messages begin with.
    header : list of str
        Names of the columns.
    may_have_commas : bool
        Whether decimals may stand behind a comma.
    """

    path: str
    header: list[str]
    may_have_commas: bool
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places = {name: i for i, name in enumerate(self.header)}
        self._numbers = array("d")  # a list would take four times the memory of large tables
        self._lines = array("q")
        self._n_plain = 0  # rows that are plainly valid
        self._n_numbers = Counter[int]()  # in every column of the other rows
        self._bad: dict[
            int, str
        ] = {}  # for every column, what is wrong with its first cell that is no number
        self._comma: str | None = None  # the first cell with a decimal comma

    def add(self, row: list[str], line: int) -> None:
        """Add a row; cells that are missing or no numbers become NaN."""
        self._lines.append(line)
        quickly = _quickly_read(row, len(self.header))
        if quickly is not None:
            self._numbers.extend(quickly)
            self._n_plain += 1
            return
        where = f"{self.path}, line {line}"
        if len(row) != len(self.header):
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise TableError(
                f"{where}: {cells} for {len(self.header)} columns; give every row one cell per column."
            )
        for column, (name, cell) in enumerate(zip(self.header, row)):
            self._numbers.append(self._number(column, name, cell.strip(), where))

    def _number(self, column: int, name: str, cell: str, where: str) -> float:
        if cell.lower() in _MISSING:
            return math.nan
        text = cell
        if self.may_have_commas and _DECIMAL_COMMA.fullmatch(cell):
            self._comma, text = self._comma or cell, cell.replace(",", ".")
        if not _is_number(text):
            mend = f"{_quoted(cell)} for {_quoted(name)} is not a number; {_mend(cell)}."
            self._bad.setdefault(column, f"{where}: {mend}")
            return math.nan
        number = float(text)
        if not math.isfinite(number):
            raise TableError(
                f"{where}: {_shortened(cell)} for {_quoted(name)} is not finite; "
                "remove the row or the column."
            )
        self._n_numbers[column] += 1
        return number

    def table(self, target: str, columns: Sequence[str] | None, weights: str | None) -> Table:
        """Return the table of some columns without the rows that have a missing cell; see `read_table`."""
        others = [name for name in (target, weights) if name is not None]
        if columns is None:
            columns = [name for name in self.header if name not in others]
            if not columns:
                raise TableError(
                    f"{self.path} has no column but the target {target!r}; add at least one input column."
                )
            without = [name for name in columns if not self._has_numbers(self._places[name])]
            if without and len(without) < len(columns):
                are = _counted(len(without), "column without a number", "columns without a number")
                self.notes.append(f"{are} left out: {_listed(without)}.")
                columns = [name for name in columns if self._has_numbers(self._places[name])]
        elif double := next((name for name in columns if name in others), None):
            raise TableError(
                f"{_quoted(double)} is an input and the target or the weights; choose one of them."
            )
        rows = self.values([*columns, *others])
        missing = np.flatnonzero(np.isnan(rows).any(axis=1))
        if len(missing):
            lines = [str(self._lines[i]) for i in missing[:_MOST_LINES]]
            more = f" and {len(missing) - len(lines):,} more" if len(missing) > len(lines) else ""
            are = _counted(len(missing), "row with a missing cell", "rows with a missing cell")
            line = "line" if len(missing) == 1 else "lines"
            self.notes.append(f"{are} left out: {line} {', '.join(lines)}{more}.")
            rows = np.delete(rows, missing, axis=0)
        if len(rows) < 2:
            found = "1 row" if len(rows) else "no rows"
            why = f" ({self.notes[-1].removesuffix('.')})" if len(missing) else ""
            raise TableError(
                f"{self.path} has {found} of numbers under its header; a fit needs at least 2{why}."
            )
        n = len(columns)
        return Table(
            np.ascontiguousarray(rows[:, :n]),
            rows[:, n].copy(),
            tuple(columns),
            target,
            tuple(self.notes),
            None if weights is None else rows[:, n + 1].copy(),
        )

    def values(self, columns: Sequence[str]) -> np.ndarray:
        """Return columns, shape (n_rows, n_columns), NaN where a cell is missing; raise where one is text."""
        at = []
        for name in columns:
            if name not in self._places:
                raise TableError(_no_such_column(self.path, name, self.header))
            at.append(self._places[name])
            if at[-1] in self._bad:
                raise TableError(self._bad[at[-1]])
        if self._comma is not None:
            self.notes.append(f"Commas in numbers, as in {self._comma}, are read as decimal points.")
        return np.asarray(self._numbers, dtype=np.float64).reshape(-1, len(self.header))[:, at]

    def _has_numbers(self, column: int) -> bool:
        return self._n_plain > 0 or self._n_numbers[column] > 0


def _counted(n: int, one: str, several: str) -> str:
    return f"1 {one} is" if n == 1 else f"{n:,} {several} are"


def _listed(names: Sequence[str]) -> str:
    """Return names for a message, the first thirty."""
    shown = ", ".join(map(_shortened, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown}, and {len(names) - _MOST_NAMES:,} more"


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
    return f"{path} has no column {_quoted(target)}; its columns are {_listed(names)}.{hint}"


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
