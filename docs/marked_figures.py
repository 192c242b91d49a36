"""Figures of a page that are marked as from a table, and whether they are what its file says.

A mark is a comment right after a figure, which a reader of the page does not see: the name of the table, the
method and the entry of `dgsr.benchmarking.summaries.Summary`, or *found* for the problems found of all:

    | laws | 55 of 60<!-- table laws dgsr found --> | 0.31 s<!-- table laws dgsr seconds --> |
    | with 1% noise | 71%<!-- table srbench dgsr recovery noise=0.01 --> |

Two counts can be marked as those of a pair: the problems that the first method solved with more seeds than
the second, and the other way round; a p-value may stand between them and the mark.

    | laws | 12 and 6 (p = 0.24)<!-- pair drawn_laws generator gp --> |
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.registry import table_of
from dgsr.benchmarking.summaries import Record, Summary, comparisons, summary
from dgsr.benchmarking.table_runs import cells, file_of

_NOISE = r"((?: noise=[\d.]+)?) -->"
_FIGURE = re.compile(r"(?:(\d[\d,]*(?:\.\d+)?(?: of \d+)?) ?(?:%|s)?)?<!-- table (\S+) (\S+) (\S+)" + _NOISE)
_PAIR = re.compile(r"(?:(\d+ and \d+)(?:\s+\(p = (\S+)\))?)?<!-- pair (\S+) (\S+) (\S+)" + _NOISE)


def wrong_figures(text: str, folder: Path) -> list[str]:
    """Return what is wrong with the marked figures of a page, one line each.

    Parameters
    ----------
    text : str
    folder : Path
        Where the files of the tables are.
    """
    found = []
    for mark in (*_FIGURE.finditer(text), *_PAIR.finditer(text)):
        figure, *rest = mark.groups()
        try:
            complaint = (_about_figure if mark.re is _FIGURE else _about_pair)(folder, figure, *rest)
        except ValueError as error:
            complaint = str(error)
        if complaint:
            marked = mark.group().partition("<!-- ")[2].removesuffix(" -->")
            found.append(f"{figure or 'no figure'}, marked as {marked}: {complaint}")
    return found


def _about_figure(
    folder: Path, figure: str | None, name: str, method: str, entry: str, noise: str
) -> str | None:
    """Return what is wrong with a figure, or None; ValueError if the file has no such entry."""
    result = summary(method, _runs(folder, name, method, noise))
    value: float | str | None
    if entry == "found":
        value = f"{result.n_found} of {result.n_problems}"
    elif entry in Summary._fields[1:]:
        value = getattr(result, entry)
    else:
        raise ValueError(f"there is no such entry; choose found or {', '.join(Summary._fields[1:])}")
    if value is None:
        raise ValueError("the runs do not say")
    return None if figure is not None and _is_rounded(figure, value) else f"the file has {value}"


def _about_pair(
    folder: Path, counts: str | None, p: str | None, name: str, first: str, second: str, noise: str
) -> str | None:
    """Return what is wrong with the counts of a pair, or None; ValueError if the file has no such runs."""
    (pair,) = comparisons({method: _runs(folder, name, method, noise) for method in (first, second)})
    of_file = f"{pair.only_first} and {pair.only_second}"
    is_p = p is None or p in {f"{pair.p:.{digits}g}".replace("e-0", "e-") for digits in (1, 2)}
    return None if counts == of_file and is_p else f"the file has {of_file}, p = {pair.p:.2g}"


def _runs(folder: Path, name: str, method: str, noise: str) -> list[Record]:
    """Return the runs of a method that a mark names; ValueError if the file has none."""
    table = table_of(name)
    path = file_of(table, folder)
    if not path.exists():
        raise ValueError(f"there is no {path.name}")
    level = float(noise.partition("=")[2]) if noise else table.noise[0]
    runs = cells(table, _records(path, path.stat().st_mtime_ns)).get((level, method))
    if not runs:
        raise ValueError("the file has no such runs")
    return list(runs.values())


@cache
def _records(path: Path, written: int) -> list[Record]:
    """Return the records of a file as of the time when it was written; many figures are from one file."""
    return read_records(path)


def _is_rounded(figure: str, value: float | str) -> bool:
    """Return whether a figure is a value rounded to the digits that it has.

    The zeros at the end of a number from 1,000 on are taken for rounded digits: 287,000 is 287,390.
    """
    if isinstance(value, str) or " of " in figure:
        return figure == value
    plain = figure.replace(",", "")
    n_decimals = len(plain.partition(".")[2])
    if "." not in plain and float(plain) >= 1000:
        n_decimals = len(plain.rstrip("0")) - len(plain)
    return abs(float(plain) - value) <= 0.5 * 10.0**-n_decimals * (1 + 1e-9)
