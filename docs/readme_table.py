"""The table of recoveries in the README, from the files of the tables; `benchmark_tables.py` writes it."""

from __future__ import annotations

from pathlib import Path

from dgsr.benchmarking.by_problem import Summary, summary
from dgsr.benchmarking.published import TABLES, Table
from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.table_runs import cells, file_of

#: The comments between which the table stands.
BEGIN, END = "<!-- The next lines are made by docs/benchmark_tables.py. -->\n", "<!-- Here they end. -->\n"
_TABLES = (
    "feynman_d2", "feynman_d5", "nguyen", "nguyen_c", "r", "livermore", "feynman_additional", "synthetic_d12",
    "drawn_koza", "srbench", "drawn_physics", "drawn_laws",
)  # fmt: skip
# What each method is, in the order of the columns.
_METHODS = {
    "dgsr": "all of it",
    "exact": "no network",
    "generator": "nothing looked up",
    "gp": "neither",
}
_HEAD = (
    "problems",
    *(f"`{method}`: {what}" for method, what in _METHODS.items()),
    "published DGSR / NGGP",
)


def readme_table(folder: Path) -> str:
    """Return the table, with a row for every file that has all runs.

    Parameters
    ----------
    folder : Path
        Where the files of the tables are.
    """
    rows = [_HEAD, ("---",) * len(_HEAD)]
    for name in _TABLES:
        table = TABLES[name]
        path = file_of(table, folder)
        if not path.exists():
            continue
        found = cells(table, read_records(path))
        runs = [list(found[table.settings[0], method].values()) for method in _METHODS]
        if all(len(own) == len(table.problems) * table.seeds for own in runs):
            each = [summary(method, own) for method, own in zip(_METHODS, runs)]
            rows.append((f"{table.title} ({each[0].n_problems})", *map(_cell, each), _published(table)))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(readme: str, folder: Path) -> str:
    """Return the text of the README with the table that the files make."""
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{readme_table(folder)}{END}{after}"


def _cell(found: Summary) -> str:
    seconds = "" if found.seconds is None else f", {found.seconds:.2g} s"
    return f"{found.recovery:.1f} ({found.low:.0f} to {found.high:.0f}){seconds}"


def _published(table: Table) -> str:
    figures = {figure.method: figure.recovery for figure in table.published if figure.noise == 0.0}
    return " / ".join(f"{figures[name]:.1f}" if name in figures else "-" for name in ("DGSR", "NGGP"))
