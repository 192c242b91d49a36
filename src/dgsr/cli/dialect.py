"""The rows of a CSV file: its encoding, its separator, and the line that names its columns."""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dgsr.cli.marks import NUMBER
from dgsr.cli.quoting import TableError, counted, lines_text, listed, quoted

if TYPE_CHECKING:
    import pandas

#: The error value of a spreadsheet in a cell whose formula has no value, in English or another language.
SHEET_ERROR = re.compile(r"#(?:N/A|N/D|NA|NV|DIV/0!|[^\W\d_]{3,9}[!?])")

# Most lines that are searched for the one that names the columns.
_MOST_LINES_BEFORE = 100

# Comments: lines that begin with # and not with such an error value.
_COMMENT = re.compile(rf"^(?!{SHEET_ERROR.pattern} *(?:[,;\t\d.+#N-]|$))#.*$", re.MULTILINE)

# A cell in quotes.
_QUOTED = re.compile(r'(?<![^,;\t\n])(?:"[^"]*")+')
# A line with some cell, together with the lines on which its quoted cells continue.
_LINE = re.compile(rf"^(?=.*[^\s,;])(?:{_QUOTED.pattern}|[^\n])*", re.MULTILINE)

# A first line that declares the separator of the cells for a spreadsheet.
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t ]*$', re.IGNORECASE | re.MULTILINE)

# A cell that is added after the last line. If it is not read as one, a quote is never closed.
_END = "\x7f"


class Sheet(NamedTuple):
    """The cells of a file as texts, and the names of its columns."""

    path: str  # the name of the file, with which messages begin
    separator: str
    text: pandas.DataFrame  # without spaces around cells; its index has the line on which each row ends
    notes: list[str]  # see `Table`
    given: str  # the whole file
    names_end: int  # the line on which the names of the columns end

    def with_column(self, name: str, cells: Mapping[int, str]) -> str:
        """Return the text of the file with a further column, whose cells are given by their lines."""
        lines = self.given.split("\n")
        for line, cell in {self.names_end: name, **dict.fromkeys(self.text.index, ""), **cells}.items():
            end = io.StringIO()
            csv.writer(end, delimiter=self.separator, lineterminator="").writerow(["", cell])
            if not cell and self.separator == " ":  # an empty cell between spaces is none without quotes
                end.write('""')
            lines[line - 1] = lines[line - 1].rstrip(" ") + end.getvalue()
        return "\n".join(lines)


class _Header(NamedTuple):
    """The line that names the columns."""

    start: int  # its position in the text
    n_before: int  # number of lines before it
    written: str
    separator: str
    names: list[str]


def read_sheet(path: Path | str, wanted: Sequence[str], keeps_empty: bool = False) -> Sheet:
    """Return the rows of a file that have a value, with `keeps_empty` also rows of empty cells.

    The first line with all the names `wanted` names the columns. The first column may have no name and is
    then called "". Other columns without a name must be empty and are left out. Raises TableError if there is
    no such file, or if it is no table with these columns.
    """
    import pandas

    name, content = _content(path)
    given, notes = _decoded(content, name)
    # Comments become empty lines, so that lines keep their numbers.
    text = _COMMENT.sub("", given).replace("\0", "\ufffd")
    said = _SEPARATOR_LINE.match(text)
    text = text[said.end() :] if said else text
    try:
        header = _header(text, name, wanted, said and said[1])
        before = given.split("\n", header.n_before)[: header.n_before]
        _check_names(header, name, wanted, [line for line in before if line[:1] == "#"])
        cells, lines = _rows_below(header, text[header.start :], name, keeps_empty)
    except csv.Error as error:
        raise TableError(f"{name} is not a CSV file: {error}; check its quotes.") from None
    before = text.split("\n", header.n_before)[: header.n_before]
    if passed := [i for i, line in enumerate(before, start=1) if line.strip(",;\t ")]:
        are = counted(len(passed), "line before it", "lines before it")
        notes.append(
            f"Line {header.n_before + 1} names the columns; {are} passed over: {lines_text(passed)}."
        )
    is_named = np.array(header.names, dtype=object) != ""
    is_kept = is_named | (cells != "").any(axis=0)
    unnamed = np.flatnonzero(is_kept & ~is_named)
    if unnamed.any():  # the first may be
        raise TableError(
            f"{name} gives column {unnamed[-1] + 1} no name; name every column in the first line."
        )
    frame = pandas.DataFrame(cells, lines, header.names, dtype=object).loc[:, is_kept]
    names_end = header.n_before + header.written.count("\n") + 1
    return Sheet(name, header.separator, frame, notes, given, names_end)


def one_line(name: str) -> str:
    """Return the name of a column with plain spaces in place of line breaks and of typographic spaces."""
    return re.sub(r"\s*\n\s*|[^\S\t]", " ", name.strip())


def _rows_below(header: _Header, text: str, path: str, keeps_empty: bool) -> tuple[np.ndarray, list[int]]:
    """Return the cells of a text that begins with a header, and the lines on which their rows end."""
    n, lines, cells = len(header.names), [], []
    rows = _csv((f"{line.strip(' ')}\n" for line in [*text.split("\n"), _END]), header.separator)
    for row in rows:
        stripped = [cell.strip() for cell in row]
        if not any(stripped):
            if not keeps_empty or len(row) < 2:
                continue
            stripped = [""] * n
        elif len(row) != n and row != [_END]:
            are = "1 cell" if len(row) == 1 else f"{len(row)} cells"
            mend = "give every row one cell per column"
            if header.separator == "," and len(row) > n and all(map(str.isdecimal, stripped)):
                mend += "; numbers that have commas need quotes, or semicolons between the cells"
            raise TableError(
                f"{path}, line {header.n_before + rows.line_num}: {are} for {n} columns; {mend}."
            )
        cells.append(stripped)
        lines.append(header.n_before + rows.line_num)
    if cells.pop()[0] != _END:
        raise csv.Error("a quote is never closed")
    return np.array(cells[1:], dtype=object).reshape(-1, n), lines[1:-1]


def _csv(lines: Iterable[str], separator: str) -> Any:
    """Return a reader of cells that skips spaces after a separator."""
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _header(text: str, path: str, wanted: Sequence[str], separator: str | None) -> _Header:
    """Return the first line with the names `wanted` or, if there is none, the line with the most names."""
    found: list[_Header] = []
    for line in islice(_LINE.finditer(text), _MOST_LINES_BEFORE):
        header = _as_header(line, wanted, separator)
        if found and any(map(NUMBER.fullmatch, header.names)):
            continue  # a row of the table
        if set(wanted) <= set(header.names):
            return header
        found.append(header)
    if not found:
        raise TableError(
            f"{path} is empty; its first line must name the columns, and rows of numbers follow."
        )
    return max(found, key=lambda header: 1 if header.separator == " " else len(header.names))


def _as_header(line: re.Match[str], wanted: Sequence[str], separator: str | None) -> _Header:
    """Return a line as names of columns.

    By default its most frequent separator outside of quotes counts, of those that leave all names `wanted`.
    """
    written = line[0].strip(" ")
    bare = _QUOTED.sub("", written)
    if separator is None:
        leaving = [mark for mark in ",;\t" if set(wanted) <= set(_names(written, mark))]
        separator = max(leaving or ",;\t", key=bare.count)
        if separator not in bare and " " in bare and one_line(written) not in wanted:
            separator = " "
    n_before = line.string.count("\n", 0, line.start())
    return _Header(line.start(), n_before, written, separator, _names(written, separator))


def _names(written: str, separator: str) -> list[str]:
    return [one_line(name) for name in next(_csv(io.StringIO(written), separator))]


def _check_names(header: _Header, path: str, wanted: Sequence[str], comments: list[str]) -> None:
    """Raise an error if the names of the columns, below lines that are comments, cannot be such."""
    names = [name for name in header.names if name]
    if names and all(map(NUMBER.fullmatch, names)):
        mend = "add a first line that names the columns."
        if comments:
            mend = (
                f"lines that begin with # are skipped, such as {quoted(comments[-1])}. If it has the names "
                "of the columns, take the # away; numpy.savetxt(..., comments='') writes none."
            )
        raise TableError(f"{path} starts with a row of numbers; {mend}")
    if lacking := [name for name in wanted if name not in names]:
        raise TableError(_no_such_column(path, lacking[0], header))
    if double := next((name for name, n in Counter(names).items() if n > 1), None):
        raise TableError(
            f"{path} has {names.count(double)} columns named {quoted(double)}; give each its own name."
        )


def _no_such_column(path: str, target: str, header: _Header) -> str:
    """Return the message on a column that the header lacks."""
    *_, last = names = header.names
    by_lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(target.lower(), by_lower_case, n=1)
    hint = f" Did you mean {quoted(by_lower_case[close[0]])}?" if close else ""
    if header.separator in last and ("\n" in header.written or header.written.count('"') % 2):
        hint = " Close the quotes in its first line."
    elif len(names) == 1 and "|" in last:
        hint = " Separate the cells by commas, semicolons, tabs or spaces."
    return f"{path} has no column {quoted(target)}; its columns are {listed(names)}.{hint}"


def _content(path: Path | str) -> tuple[str, bytes]:
    """Return the name of a file for messages, and its content."""
    if str(path) == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed; send the table to it, or name a file.")
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
    """Return a text and notes on its encoding: UTF-8, UTF-16 with a byte order mark, or else Windows-1252."""
    has_mark = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    for encoding in ["utf-16"] if has_mark else ["utf-8-sig", "cp1252"]:
        try:
            text = io.TextIOWrapper(io.BytesIO(content), encoding).read().lstrip("\ufeff")  # a second mark
        except UnicodeDecodeError:
            continue
        told = f"{path} is not text in UTF-8 and is read as Windows-1252."
        return text, [told] if encoding == "cp1252" else []
    raise TableError(f"{path} is not text; save the table as CSV (UTF-8).")
