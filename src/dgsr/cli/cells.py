"""The conversion of the cells of a table to numbers: missing cells, truth values, units and marks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dgsr.cli.dialect import SHEET_ERROR, Sheet
from dgsr.cli.marks import NUMBER, Marks, possible_marks
from dgsr.cli.names import DASHES
from dgsr.cli.quoting import TableError, lines_text, quoted, units_text

if TYPE_CHECKING:
    import pandas

# Cells that have no value, in lower case.
_MISSING = {"", "na", "n/a", "n.a.", "n.a", "nan", "-nan", "<na>", "null", "none", "?", ".", *DASHES}
# Cells of columns of truth values, in lower case, and their numbers.
_TRUTH_VALUES = ({"true": "1", "false": "0"}, {"yes": "1", "no": "0"})

# Typographic spaces and apostrophes, and the plain ones by which they are replaced.
_TYPESET = str.maketrans({"\u00a0": " ", "\u2007": " ", "\u2009": " ", "\u202f": " ", "\u2019": "'"})
# Dashes that are used as the minus sign of a number.
_DASH = re.compile("(?:^|(?<=[eE]))[\u2010-\u2013\u2212](?=[0-9.,$€£¥])")

_IS_TEXT, _IS_NUMBER, _IS_MISSING = range(3)
# A number with a currency sign or a short unit, which begins with a letter or a sign.
_WITH_UNIT = re.compile(
    rf"(?P<sign>[+-]?)(?P<currency>[$€£¥]?) ?(?P<number>{NUMBER.pattern}) ?"
    r"(?P<unit>(?:[^\W\d_]|[%‰°$€£¥]).{0,19})?"
)
_UNIT = re.compile(r"[^\s\d<>≤≥~=+.,-].{0,19}")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*")

# Numbers that mark missing values in many files: 99, -99, 999, -999 and so on.
_CODES = {sign * (10.0**n - 1.0) for n in range(2, 8) for sign in (-1.0, 1.0)}


class Cells(NamedTuple):
    """The cells of a sheet; the index of every frame has the lines of the file on which its rows end."""

    path: str  # the name of the file, with which messages begin
    text: pandas.DataFrame  # the cells of the file
    plain: pandas.DataFrame  # the cells with plain spaces and minus signs, and without units
    has_number: pandas.DataFrame  # whether a cell is a number with any marks
    is_missing: pandas.DataFrame
    readings: dict[Marks, pandas.DataFrame]  # float64 for each possible pair of marks, NaN where no number
    notes: list[str]  # see `Table`
    notes_on: dict[str, list[str]]  # notes on single columns
    units: dict[str, str]  # the texts of a row of units, by the columns

    def columns(self, names: Sequence[str]) -> pandas.DataFrame:
        """Return the numbers of some columns, NaN where a cell is missing, and add to the notes.

        Raises
        ------
        TableError
            If a cell is no finite number, or can be read as several numbers.
        """
        names = list(names)
        marks, *others = self.marks_of(names)
        numbers = self.readings[marks][names]
        for column, row in np.argwhere((~np.isfinite(numbers) & ~self.is_missing[names]).to_numpy().T):
            wrong = self._mend(row, names[column], marks)
            if np.isinf(numbers.iat[row, column]):
                wrong = "finite; remove the row or the column"
            raise TableError(f"{self._place(row, names[column])} is not {wrong}.")
        for other in others:
            self._check_one_meaning(numbers, self.readings[other][names])
        self.notes.extend(note for name in names for note in self.notes_on.get(name, ()))
        self.notes.extend(marks.notes(self.plain[names].to_numpy()[numbers.notna()]))
        has_code = numbers.columns[numbers.isin(_CODES).any()]
        self.notes.extend(note for name in has_code for note in _notes_on_codes(numbers[name]))
        return numbers

    def marks_of(self, names: list[str]) -> list[Marks]:
        """Return the marks that read all readable columns, or else those that read the most of `names`."""
        reads = np.array([(read.notna() | self.is_missing).all() for read in self.readings.values()])
        settles = reads.any(axis=0)
        if not reads[:, settles].all(axis=1).any():
            settles &= self.text.columns.isin(names)
        n_read = reads[:, settles].sum(axis=1)
        return [marks for marks, n in zip(self.readings, n_read, strict=True) if n == n_read.max()]

    def _check_one_meaning(self, numbers: pandas.DataFrame, others: pandas.DataFrame) -> None:
        """Raise an error for the first cell that other marks read as another number."""
        for row, column in np.argwhere(((numbers != others) & numbers.notna() & others.notna()).to_numpy()):
            name = numbers.columns[column]
            mark, word = (",", "comma") if "," in self.plain[name].iat[row] else (".", "point")
            small, large = sorted((numbers.iat[row, column], others.iat[row, column]), key=abs)
            raise TableError(
                f"{self._place(row, name)} can be {small:.15g} or {large:.15g}; give --decimal {mark} if the "
                f"{word} is the decimal mark, or --thousands {mark} if it stands between thousands."
            )

    def _place(self, row: Any, name: str) -> str:
        """Return the beginning of a message about a cell."""
        cell, line = self.text[name].iat[row], self.text.index[row]
        return f"{self.path}, line {line}: {quoted(cell)} for {quoted(name)}"

    def _mend(self, row: Any, name: str, marks: Marks) -> str:
        """Return the end of a message about a cell that is no number with these marks."""
        cell, is_known = self.plain[name].iat[row], (self.has_number | self.is_missing)[name]
        mend = "remove the column or write it as numbers"
        if re.match("[<>≤≥~]", cell):
            mend = "write a number in place of a limit, such as half of it, or empty the cell"
        elif NUMBER.fullmatch(cell):
            return (
                f"a number where {marks.decimal!r} is the decimal mark; write all numbers alike, or give "
                "their marks by --decimal and --thousands"
            )
        elif _DATE.fullmatch(cell):
            mend = "write numbers in place of dates, such as days since the first"
        elif _WITH_UNIT.fullmatch(cell):
            mend = "give all cells of the column the same unit, or none"
        elif any(character.isdecimal() and not character.isascii() for character in cell):
            mend = "write numbers with the digits 0 to 9"
        elif row == 0 and _UNIT.fullmatch(cell) and is_known.iloc[1:].all() and len(is_known) > 1:
            mend = f"if the line has units, remove it, and give them to dgsr fit by --units; else {mend}"
        return f"a number; {mend}"


def read_cells(sheet: Sheet, decimal: str | None, thousands: str | None) -> Cells:
    """Return the cells of a sheet with their numbers; for `decimal` and `thousands` see `possible_marks`."""
    text, notes, notes_on = sheet.text, list(sheet.notes), defaultdict(list)
    units: dict[str, str] = {}
    plain = np.frompyfunc(_plain, 1, 1)(text)
    kinds = np.frompyfunc(_kind, 1, 1)(plain)
    has_number, is_missing = kinds == _IS_NUMBER, kinds == _IS_MISSING
    if _begins_with_units(text, has_number, is_missing):
        units = {name: unit for name, unit in text.iloc[0].items() if unit}
        notes.append(f"Line {text.index[0]} is taken for units: {units_text(units)}.")
        frames = (text, plain, has_number, is_missing)
        text, plain, has_number, is_missing = (frame.iloc[1:].copy() for frame in frames)
    for name in text.columns[(plain != text).any()]:
        dashed = next((cell for cell in text[name] if _DASH.search(cell)), None)
        if dashed is not None:
            notes_on[name].append(f"Dashes in {quoted(name)}, as in {dashed}, are read as minus signs.")
    for name in text.columns[~has_number.any() & ~is_missing.all()]:
        is_known = ~is_missing[name]
        written = plain.loc[is_known, name].tolist()
        if read := _truth_values(written, name) or _without_unit(written, name):
            plain.loc[is_known, name], note = read
            has_number.loc[is_known, name] = True
            notes_on[name].append(note)
    known = plain.to_numpy()[has_number]
    readings = {
        marks: type(plain)(marks.numbers(plain.to_numpy()), plain.index, plain.columns)
        for marks in possible_marks(known, sheet.separator, decimal, thousands)
    }
    return Cells(sheet.path, text, plain, has_number, is_missing, readings, notes, notes_on, units)


def _plain(cell: str) -> str:
    return cell if cell.isascii() else _DASH.sub("-", cell.translate(_TYPESET))


def _kind(cell: str) -> int:
    if NUMBER.fullmatch(cell):
        return _IS_NUMBER
    return _IS_MISSING if cell.lower() in _MISSING or SHEET_ERROR.fullmatch(cell) else _IS_TEXT


def _begins_with_units(
    text: pandas.DataFrame, has_number: pandas.DataFrame, is_missing: pandas.DataFrame
) -> bool:
    """Return whether the first row has units and no numbers, above columns of numbers."""
    if len(text) < 2 or has_number.iloc[0].any():
        return False
    of_numbers = has_number.iloc[1:].any()
    units = text.iloc[0][of_numbers & ~is_missing.iloc[0]]
    are_numbers = (has_number | is_missing).iloc[1:].all() | ~of_numbers
    return len(units) > 0 and bool(are_numbers.all()) and all(map(_UNIT.fullmatch, units))


def _truth_values(cells: list[str], name: str) -> tuple[list[str], str] | None:
    """Return the numbers of truth values and a note, None if some cell is no truth value."""
    lower = [cell.lower() for cell in cells]
    for numbers in _TRUTH_VALUES:
        if numbers.keys() >= set(lower):
            words = " and ".join(numbers).capitalize()
            return [numbers[cell] for cell in lower], f"{words} in {quoted(name)} are read as 1 and 0."
    return None


def _without_unit(cells: list[str], name: str) -> tuple[list[str], str] | None:
    """Return cells without their common unit and a note, None if they have no common unit."""
    found: list[re.Match[str]] = []
    for cell in cells:
        match = _WITH_UNIT.fullmatch(cell)
        if match is None or (found and match.group("currency", "unit") != found[0].group("currency", "unit")):
            return None
        found.append(match)
    numbers = [match["sign"] + match["number"] for match in found]
    unit = quoted(found[0]["currency"] or found[0]["unit"])
    return numbers, f"{quoted(name)} is read without its unit {unit}: {cells[0]} is {numbers[0]}."


def _notes_on_codes(column: pandas.Series) -> Iterator[str]:
    """Yield a sentence for the least and the largest value of a column if it may mark missing values.

    Such a value consists of nines, occurs in several rows and is far from all others.
    """
    for code in {column.min(), column.max()} & _CODES:
        rest, lines = column[column.notna() & (column != code)], column.index[column == code]
        if len(lines) > 1 and 0.0 < np.ptp(rest) < (rest - code).abs().min():
            yield (
                f"{quoted(str(column.name))} is {code:g} in {lines_text(lines)}, far from its other numbers; "
                "if that stands for a missing value, empty these cells."
            )
