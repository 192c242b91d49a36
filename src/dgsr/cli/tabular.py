"""Read a table of numbers from a CSV file, for the command line."""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas

# Cells that have no value, in lower case.
_MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
# Cells that are truth values, in lower case, and their numbers.
_TRUTH_VALUES = {"true": 1.0, "false": 0.0}

# Most names and lines that a message lists, and most letters of a name or a cell that it quotes.
_MOST_NAMES, _MOST_LINES, _LONGEST_QUOTE = 30, 5, 60

# Comments, and lines without any cell.
_NO_ROW = re.compile(r"^(?:#.*|[,;\t ]+)$", re.MULTILINE)

# Cells of a row that has no value.
_EMPTY_CELLS = re.compile(r"[,;\t ]*[,;\t][,;\t ]*")

# Cells in quotes, and the line of the names of the columns: the first that is not empty, and what it goes on
# with behind line breaks in quotes.
_QUOTED = re.compile(r'(?<![^,;\t\n])(?:"[^"]*")+')
_HEADER = re.compile(rf"^(?=.*\S)(?:{_QUOTED.pattern}|[^\n])*", re.MULTILINE)

# Python's float would take 1_000 and the digits of every script too.
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)


class TableError(ValueError):
    """A file that cannot be fitted as it is; the message says where it fails and what to do."""


class Table(NamedTuple):
    """The columns of a CSV file, split into inputs and target."""

    X: np.ndarray  # (n_samples, n_features) float64
    y: np.ndarray  # (n_samples,) float64
    feature_names: tuple[str, ...]
    target: str
    notes: tuple[str, ...] = ()  # what was left out or read in an unusual way, a sentence each
    weights: np.ndarray | None = None  # (n_samples,) int64 if all have digits alone, otherwise float64
    lines: np.ndarray | None = None  # (n_samples,): the lines of the file that the rows stand in

    @property
    def inputs(self) -> pandas.DataFrame:
        """The inputs under their names, by which the estimator then knows them."""
        import pandas

        return pandas.DataFrame(self.X, columns=list(self.feature_names))


def read_table(
    path: Path | str, target: str, columns: Sequence[str] | None = None, weights: str | None = None
) -> Table:
    """Read a CSV file whose first line names the columns.

    Cells are separated by commas, semicolons or tabs; empty lines and lines that begin with ``#`` are
    skipped. Where semicolons or tabs separate cells, decimals may stand behind a comma. Rows with a missing
    cell are left out. In a column of true and false these are 1 and 0.

    Parameters
    ----------
    path : Path or str
        ``-`` is standard input.
    target : str
        Column to predict.
    columns : sequence of str, optional
        Inputs; by default all other columns that have a number.
    weights : str, optional
        Column of the weights of the rows. They are counts, as in `DGSRRegressor.fit`, where all are
        written with digits alone, 2 and not 2.0.

    Raises
    ------
    TableError
        If there is no such file, it is not a table of finite numbers with at least two rows and two
        columns, or it lacks a column; or if an input is given twice, or is the target or the weights, too.
    """
    if weights == target:
        raise TableError(f"{_quoted(target)} is the target and the weights; choose one of them.")
    others = [name for name in (target, weights) if name is not None]
    if double := next((name for name in columns or () if name in others), None):
        raise TableError(f"{_quoted(double)} is an input and the target or the weights; choose one of them.")
    if double := next((name for name, n in Counter(columns or ()).items() if n > 1), None):
        raise TableError(f"{_quoted(double)} is given as an input more than once; give every input once.")
    cells = _read(path, [*(columns or ()), *others])
    columns = cells.inputs(others) if columns is None else columns
    rows = cells.columns([*columns, *others])
    is_missing = rows.isna().any(axis=1)
    why = ""
    if n_missing := is_missing.sum():
        are = _counted(n_missing, "row with a missing cell", "rows with a missing cell")
        left_out = f"{are} left out: {lines_text(rows.index[is_missing], _MOST_LINES)}"
        cells.notes.append(f"{left_out}.")
        rows, why = rows[~is_missing], f" ({left_out})"
    if len(rows) < 2:
        found = "1 row" if len(rows) else "no rows"
        raise TableError(
            f"{cells.path} has {found} of numbers under its header; a fit needs at least 2{why}."
        )
    n, values = len(columns), rows.to_numpy()
    are_counts = (
        weights is not None and cells.text.loc[rows.index, weights].str.fullmatch("[0-9]{1,15}").all()
    )
    return Table(
        np.ascontiguousarray(values[:, :n]),
        values[:, n].copy(),
        tuple(columns),
        target,
        tuple(cells.notes),
        None if weights is None else values[:, n + 1].astype(np.int64 if are_counts else np.float64),
        rows.index.to_numpy(),
    )


def lines_text(lines: Sequence[int], most: int) -> str:
    """Return the words for some lines of a file, of which at most so many are named."""
    named = ", ".join(map(str, lines[:most]))
    more = f" and {len(lines) - most:,} more" if len(lines) > most else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {named}{more}"


def read_columns(path: Path | str, columns: Sequence[str]) -> np.ndarray:
    """Return columns of a CSV file, shape (n_rows, n_columns), NaN where a cell is missing.

    Rows of which all cells are missing are rows, too.
    """
    return _read(path, columns, keeps_empty=True).columns(columns).to_numpy()


class _Cells(NamedTuple):
    """The rows of a file that have a cell; the frames' index has the line on which each of them ends."""

    path: str  # what messages begin with
    text: pandas.DataFrame  # the cells without spaces around them
    numbers: pandas.DataFrame  # the same as float64, NaN where a cell is no number
    notes: list[str]  # see `Table`
    of_truth: list[str]  # the names of the columns of truth values

    def inputs(self, others: Sequence[str]) -> list[str]:
        """Return the names of the columns but `others` and, where one has numbers, those that have none."""
        columns = self.numbers.drop(columns=others)
        if not len(columns.columns):
            raise TableError(
                f"{self.path} has no column but the target {others[0]!r}; add at least one input column."
            )
        has_numbers = columns.notna().any()
        if has_numbers.all() or not has_numbers.any():
            return columns.columns.tolist()
        without = columns.columns[~has_numbers]
        are = _counted(len(without), "column without a number", "columns without a number")
        self.notes.append(f"{are} left out: {_listed(without)}.")
        return columns.columns[has_numbers].tolist()

    def columns(self, names: Sequence[str]) -> pandas.DataFrame:
        """Return some columns, NaN where a cell is missing; raise where one is no finite number."""
        numbers = self.numbers[list(names)]
        self.notes.extend(
            f"True and false in {_quoted(name)} are read as 1 and 0."
            for name in names
            if name in self.of_truth
        )
        for name in numbers.columns[~np.isfinite(numbers).all()]:
            odd = self.text.loc[~np.isfinite(self.numbers[name]), name]
            odd = odd[~odd.str.lower().isin(_MISSING)]
            if len(odd):
                line, cell = odd.index[0], odd.iloc[0]
                what = f"{_quoted(cell)} for {_quoted(name)} is not a number; {_mend(cell)}"
                if np.isinf(self.numbers.at[line, name]):
                    what = f"{_shortened(cell)} for {_quoted(name)} is not finite; "
                    what += "remove the row or the column"
                raise TableError(f"{self.path}, line {line}: {what}.")
        return numbers


def _read(path: Path | str, wanted: Sequence[str], keeps_empty: bool = False) -> _Cells:
    """Return the cells of a file that must have the columns `wanted`, rows of empty cells too if asked to."""
    import pandas

    name, content = _content(path)
    text, notes = _decoded(content, name)
    try:
        return _parsed(text, name, wanted, notes, keeps_empty)
    except (csv.Error, pandas.errors.ParserError) as error:
        raise TableError(f"{name} is not a CSV file: {str(error).strip()}; check its quotes.") from None


def _parsed(text: str, path: str, wanted: Sequence[str], notes: list[str], keeps_empty: bool) -> _Cells:
    """Return the cells of a text, and add to `notes`; csv.Error or ParserError where quotes stay open."""
    import pandas

    # Lines keep their numbers. Before version 3.1 pandas ends a cell at a null character.
    given, text = text, _NO_ROW.sub("", text).replace("\0", "\ufffd")
    header = _HEADER.search(text)
    if header is None:
        raise TableError(
            f"{path} is empty; its first line must name the columns, and rows of numbers follow."
        )
    delimiter = max(",;\t", key=_QUOTED.sub("", header[0]).count)
    n_before = text.count("\n", 0, header.start())
    comments = [line for line in given.split("\n", n_before)[:n_before] if line.startswith("#")]
    names = _columns(next(csv.reader(io.StringIO(header[0]), delimiter=delimiter)), path, comments)
    if lacking := [name for name in wanted if name not in names]:
        is_open = "\n" in names[-1] or (header[0].count('"') % 2 == 1 and delimiter in names[-1])
        raise TableError(_no_such_column(path, lacking[0], names, is_open))
    try:
        table = pandas.read_csv(
            io.BytesIO(text.encode()),
            sep=delimiter,
            header=None,
            dtype=object,
            na_filter=False,
            skiprows=n_before,
            skip_blank_lines=False,
        )
    except pandas.errors.ParserError:
        _check_widths(text, delimiter, len(names), path)
        raise
    n_breaks = table.apply(lambda column: column.str.count("\n")).sum(axis=1) if '"' in text else 0
    lines = (n_before + np.arange(1, len(table) + 1) + np.cumsum(n_breaks))[1:]
    cells = pandas.Series(table.to_numpy()[1:].ravel(), dtype=object).str.strip()
    numbers, comma = _numbers(cells, may_have_commas=delimiter != ",")
    if comma is not None:
        notes.append(f"Commas in numbers, as in {comma}, are read as decimal points.")
    table = pandas.DataFrame(cells.to_numpy().reshape(-1, len(names)), lines, names, dtype=object)
    is_row = (table != "").any(axis=1)
    if (table.loc[is_row, names[-1]] == "").any():  # pandas fills short rows with empty cells
        _check_widths(text, delimiter, len(names), path)
    if keeps_empty:
        of_file = given.split("\n")
        are_empty = [_EMPTY_CELLS.fullmatch(of_file[line - 1]) is not None for line in lines]
        is_row |= np.array(are_empty, dtype=bool)
    numbers = pandas.DataFrame(numbers.reshape(table.shape), lines, names)
    of_truth = []
    for name in numbers.columns[numbers.isna().all()]:
        written = table[name].str.lower()
        known = written[~written.isin(_MISSING)]
        if len(known) and known.isin(_TRUTH_VALUES).all():
            numbers[name] = written.map(_TRUTH_VALUES).astype(float)
            of_truth.append(name)
    return _Cells(path, table[is_row], numbers[is_row], notes, of_truth)


def _numbers(cells: pandas.Series, may_have_commas: bool) -> tuple[np.ndarray, str | None]:
    """Return the numbers in cells, NaN where there is none, and the first with a decimal comma."""
    written = cells.str.replace(",", ".") if may_have_commas else cells
    is_number = written.str.fullmatch(_NUMBER).astype(bool)
    # Python's float is right to the last digit; pandas is from version 3.1 on.
    numbers = written.where(is_number, "nan").to_numpy().astype(float)
    return numbers, next(iter(cells[is_number & (written != cells)]), None)


def _check_widths(text: str, delimiter: str, n: int, path: str) -> None:
    """Raise an error for the first row that has not `n` cells."""
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    for row in rows:
        if len(row) != n and any(map(str.strip, row)):
            cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            raise TableError(
                f"{path}, line {rows.line_num}: {cells} for {n} columns; give every row one cell per column."
            )


def _content(path: Path | str) -> tuple[str, bytes]:
    """Return the name of a file for messages, and its content."""
    if str(path) == "-":
        return "standard input", sys.stdin.buffer.read()
    path = Path(path)
    if not path.exists():
        raise TableError(f"{path} does not exist; check the path.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a CSV file.")
    try:
        return str(path), path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None


def _decoded(content: bytes, path: str) -> tuple[str, list[str]]:
    """Return a text in UTF-8, UTF-16 with its mark or else Windows-1252, and notes on it."""
    has_mark = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    for encoding in ["utf-16"] if has_mark else ["utf-8-sig", "cp1252"]:
        try:
            text = io.TextIOWrapper(io.BytesIO(content), encoding).read()
        except UnicodeDecodeError:
            continue
        told = f"{path} is not text in UTF-8 and is read as Windows-1252."
        return text, [told] if encoding == "cp1252" else []
    raise TableError(f"{path} is not text; save the table as CSV (UTF-8).")


def _counted(n: int, one: str, several: str) -> str:
    return f"1 {one} is" if n == 1 else f"{n:,} {several} are"


def _listed(names: Sequence[str]) -> str:
    """Return names for a message, the first thirty."""
    shown = ", ".join(map(_quoted, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown}, and {len(names) - _MOST_NAMES:,} more"


def _columns(header: list[str], path: str, comments: list[str]) -> list[str]:
    """Return the names of the columns, below lines that are comments."""
    names = [name.strip() for name in header]
    if all(_NUMBER.fullmatch(name) for name in names):
        mend = "add a first line that names the columns."
        if comments:
            mend = (
                f"lines that begin with # are skipped, such as {_quoted(comments[-1])}. If it has the names "
            )
            mend += "of the columns, take the # away; numpy.savetxt(..., comments='') writes none."
        raise TableError(f"{path} starts with a row of numbers; {mend}")
    counts = Counter(names)
    for position, name in enumerate(names, start=1):
        if not name:
            mend = "name every column in the first line"
            if position == 1:
                mend += ", or leave the index of a pandas table out: to_csv(..., index=False)"
            raise TableError(f"{path} gives column {position} no name; {mend}.")
        if counts[name] > 1:
            raise TableError(
                f"{path} has {counts[name]} columns named {_quoted(name)}; give each its own name."
            )
    return names


def _no_such_column(path: str, target: str, names: list[str], is_open: bool) -> str:
    """Return the message on a column that is none of `names`, the last of which may be an open quote."""
    by_lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(target.lower(), by_lower_case, n=1)
    hint = f" Did you mean {_quoted(by_lower_case[close[0]])}?" if close else ""
    if is_open:
        hint = " Close the quotes in its first line."
    elif len(names) == 1 and re.search("[ |]", names[0]):
        hint = " Separate the cells by commas, semicolons or tabs."
    return f"{path} has no column {_quoted(target)}; its columns are {_listed(names)}.{hint}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"


def _quoted(text: str) -> str:
    return repr(_shortened(text))


def _mend(cell: str) -> str:
    if _NUMBER.fullmatch(cell.replace(",", ".", 1)):
        return "write decimals with a point"
    if any(character.isdecimal() and not character.isascii() for character in cell):
        return "write numbers with the digits 0 to 9"
    return "remove the column or write it as numbers"
