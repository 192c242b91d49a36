"""The table of the README, from the files of the tables: `python docs/readme_table.py` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from table_pages import FOLDER, ROOT

from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.registry import table_of
from dgsr.benchmarking.summaries import Record, is_success, wilson_interval
from dgsr.benchmarking.table_runs import cells, file_of

README = ROOT / "README.md"
#: The comments between which the table stands.
BEGIN, END = "<!-- docs/readme_table.py -->\n", "<!-- end -->\n"
_METHODS = ("dgsr", "operon")


class Row(NamedTuple):
    """What the problems of a row are."""

    title: str
    table: str
    noise: float


ROWS = (
    Row("SRBench problems", "srbench", 0.0),
    Row("laws drawn at random", "drawn_laws", 0.0),
    Row("laws drawn at random, 1% noise", "drawn_laws", 0.01),
    Row("laws in 30 columns, 1% noise", "wide", 0.01),
    Row("textbook laws", "laws", 0.0),
)


def readme_table(folder: Path = ROOT / FOLDER) -> str:
    """Return the table.

    Parameters
    ----------
    folder : Path
        Where the files of the tables are.
    """
    lines = [("problems", "dgsr", "pyoperon", "`dgsr bench --table …`"), ("---",) * 4]
    for row in ROWS:
        table = table_of(row.table)
        runs = cells(table, read_records(file_of(table, folder)))
        shares = [_share(list(runs.get((row.noise, method), {}).values())) for method in _METHODS]
        lines.append((f"{len(table.problems)} {row.title}, {table.max_time:g} s", *shares, f"`{row.table}`"))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _share(runs: list[Record]) -> str:
    """Return the share of the runs that find the law, with Wilson's interval at 95%, in percent, if any."""
    if not runs:
        return "not run"
    n_found = sum(map(is_success, runs))
    low, high = wilson_interval(n_found, len(runs))
    return f"{100 * n_found / len(runs):.0f}% ({100 * low:.0f}–{100 * high:.0f})"  # noqa: RUF001


def with_table(readme: str, folder: Path = ROOT / FOLDER) -> str:
    """Return the text of the README with the table that the files make."""
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{readme_table(folder)}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
