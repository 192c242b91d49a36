"""Figures of a page that are marked as from a table, and whether they are what its file says.

A mark is a comment right after a figure, which a reader of the page does not see: the name of the table, the
method and the entry of `dgsr.benchmarking.by_problem.Summary`, or *found* for the problems found of all:

    | Nguyen | 12 of 12<!-- table nguyen dgsr found --> | 0.31 s<!-- table nguyen dgsr seconds --> |
    | with 1% noise | 71%<!-- table srbench_noise dgsr recovery noise=0.01 --> |
"""

from __future__ import annotations

import re
from pathlib import Path

from dgsr.benchmarking.by_problem import Summary, summary
from dgsr.benchmarking.published import Setting, table_of
from dgsr.benchmarking.table_runs import cells, file_of
from dgsr.benchmarking.tables import read_records

_FIGURE = r"(\d[\d,]*(?:\.\d+)?(?: of \d+)?) ?(?:%|s)?"
_MARK = re.compile(rf"(?:{_FIGURE})?<!-- table (\S+) (\S+) (\S+)((?: (?:noise|rows)=[\d.]+)*) -->")


def wrong_figures(text: str, folder: Path) -> list[str]:
    """Return what is wrong with the marked figures of a page, one line each.

    Parameters
    ----------
    text : str
    folder : Path
        Where the files of the tables are.
    """
    found = []
    for mark in _MARK.finditer(text):
        figure, name, method, entry, setting = mark.groups()
        where = f"{figure or 'no figure'}, marked as {name} {method} {entry}{setting}"
        try:
            value = _value(folder, name, method, entry, setting)
        except ValueError as error:
            found.append(f"{where}: {error}")
            continue
        if figure is None or not _is_rounded(figure, value):
            found.append(f"{where}: the file has {value}")
    return found


def _value(folder: Path, name: str, method: str, entry: str, setting: str) -> float | str:
    """Return an entry of a table as its file has it; ValueError if there is none."""
    table = table_of(name)
    path = file_of(table, folder)
    if not path.exists():
        raise ValueError(f"there is no {path.name}")
    given = dict(each.split("=") for each in setting.split())
    first = table.settings[0]
    noise = float(given["noise"]) if "noise" in given else first.noise
    rows = int(given["rows"]) if "rows" in given else first.rows
    runs = cells(table, read_records(path)).get((Setting(noise, rows), method))
    if not runs:
        raise ValueError("the file has no such runs")
    result = summary(method, runs.values())
    if entry == "found":
        return f"{result.n_found} of {result.n_problems}"
    if entry not in Summary._fields[1:]:
        raise ValueError(f"there is no such entry; choose found or {', '.join(Summary._fields[1:])}")
    value = getattr(result, entry)
    if value is None:
        raise ValueError("the runs do not say")
    return value


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
