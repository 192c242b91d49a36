"""Quotations of names, cells and lines in messages about a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Most names that a message lists.
_MOST_NAMES = 30
# Longest quotation of a name or a cell, in characters.
_LONGEST_QUOTE = 60


class TableError(ValueError):
    """The error of a file that is no table of numbers; its message says where, and what to change."""


def quoted(text: str) -> str:
    """Return a name or a cell in quotes, or its beginning if it is long."""
    return repr(text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…")


def listed(names: Sequence[str]) -> str:
    """Return names in quotes, the first thirty."""
    shown = ", ".join(map(quoted, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown}, and {len(names) - _MOST_NAMES:,} more"


def counted(n: int, one: str, several: str) -> str:
    """Return the subject and the verb of a sentence on `n` things."""
    return f"1 {one} is" if n == 1 else f"{n:,} {several} are"


def lines_text(lines: Sequence[int], most: int = 5) -> str:
    """Return words for some lines of a file, of which at most `most` are named."""
    named = ", ".join(map(str, lines[:most]))
    more = f" and {len(lines) - most:,} more" if len(lines) > most else ""
    return f"{'line' if len(lines) == 1 else 'lines'} {named}{more}"


def units_text(units: Mapping[str, str]) -> str:
    """Return units and their columns in words."""
    return ", ".join(f"{quoted(unit)} of {quoted(name)}" for name, unit in units.items())
