"""The marks within the numbers of a file: its decimal mark, and its mark between thousands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Marks between thousands and their names. `cells.py` writes all kinds of spaces and apostrophes as these.
_THOUSANDS = {",": "Commas", ".": "Points", " ": "Spaces", "'": "Apostrophes"}

# The exponents of Fortran's double precision, as in 1.5D+03, and those of Python.
_FORTRAN = str.maketrans("dD", "ee")

#: A number with any marks. No two adjacent parts of the pattern match the same characters, so that the time
#: is in proportion to the length of a cell.
NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eEdD][+-]?[0-9]+)?"
    r"|[1-9][0-9]{0,2}(?P<mark>[,. '])[0-9]{3}(?:(?P=mark)[0-9]{3})*(?:(?!(?P=mark))[.,][0-9]*)?"
    r"|(?i:inf(?:inity)?))"
)


class Marks(NamedTuple):
    """The decimal mark of a file and the mark between thousands, "" if it has none.

    A file has one decimal mark, a point or a comma, and at most one mark between thousands: a comma, a point,
    a space or an apostrophe. Numbers with only one meaning determine the marks: 0.5, 12.34 and 1234.567 have
    a decimal point, and 1,234.5 and 1,234,567 have commas between thousands, while 1.234 determines nothing.
    Every pair of marks is tested, and those pairs remain that read all cells of every column that some pair
    reads completely. If none remains, the columns contradict each other; if two remaining pairs read a cell
    as different numbers, the user has to choose. Both cases are errors. If commas separate the cells, points
    are marks between thousands only if an option says so.
    """

    decimal: str
    thousands: str

    def numbers(self, cells: np.ndarray) -> np.ndarray:
        """Return the numbers in cells, NaN where a cell is no number with these marks."""
        point, mark = re.escape(self.decimal), re.escape(self.thousands)
        ungrouped = rf"(?:\d+(?:{point}\d*)?|{point}\d+)(?:[ed][+-]?\d+)?|inf(?:inity)?"
        groups = rf"|[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:{point}\d*)?" if mark else ""
        # Python's float alone would also accept 1_000 and the digits of every script.
        matched = re.compile(rf"[+-]?(?:{ungrouped}{groups})", re.ASCII | re.IGNORECASE).fullmatch
        # Python's float is exact to the last digit; pandas is only from version 3.1 on.
        numbers = (
            float(cell.translate(_FORTRAN).replace(self.thousands, "").replace(self.decimal, "."))
            if matched(cell)
            else np.nan
            for cell in cells.ravel()
        )
        return np.fromiter(numbers, np.float64, cells.size).reshape(cells.shape)

    def notes(self, cells: Sequence[str]) -> list[str]:
        """Return a sentence on each mark in the numbers that is no decimal point."""
        comma = {",": "are read as decimal points"} if self.decimal == "," else {}
        meanings = comma | ({self.thousands: "are read as marks between thousands"} if self.thousands else {})
        seen = {mark: next((cell for cell in cells if mark in cell), None) for mark in meanings}
        return [
            f"{_THOUSANDS[mark]} in numbers, as in {cell}, {meanings[mark]}."
            for mark, cell in seen.items()
            if cell is not None
        ]


def possible_marks(
    cells: np.ndarray, separator: str, decimal: str | None, thousands: str | None
) -> list[Marks]:
    """Return the pairs of marks that the numbers in `cells` may have; see `Marks`.

    `separator` separates the cells of the file. `decimal` and `thousands` are the user's options, the latter
    also ``"none"`` or ``"space"``; ValueError if they are no such marks, or equal.
    """
    if decimal not in (None, ".", ","):
        raise ValueError(f"--decimal {decimal!r} is no decimal mark; give . or , for it.")
    given = {"none": "", "space": " "}.get(thousands or "", thousands)
    if given not in (None, "", *_THOUSANDS):
        raise ValueError(
            f"--thousands {thousands!r} is no mark between thousands; give , or . or ' or space or none."
        )
    if decimal is not None and decimal == given:
        raise ValueError(f"--decimal and --thousands are both {decimal}; give two different marks.")
    present = [mark for mark in _THOUSANDS if any(mark in cell for cell in cells)]
    found = [
        Marks(point, mark)
        for point in ".,"
        for mark in ("", *present)
        if point not in (mark, given) and decimal in (None, point) and (not mark or given in (None, mark))
    ]
    points_are_decimal = separator == "," and decimal is None and given is None
    return [
        marks
        for marks in found
        if marks.decimal == (decimal or ".")
        or (not points_are_decimal if marks.thousands == "." else "," in present)
    ] or found[:1]
