"""The table of the README, from the runs of its commands: `python docs/readme_table.py` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.summaries import Record, wilson_interval

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results"
#: The comments between which the table stands.
BEGIN, END = "<!-- docs/readme_table.py -->\n", "<!-- end -->\n"
_METHODS = ("dgsr", "operon")
_METHODS_IN_5_S = "--max-time 5 --method dgsr --method operon"


class Row(NamedTuple):
    """What the problems of a row are, in which file its runs are, and what runs them."""

    title: str
    file: str
    set_name: str
    command: str


ROWS = (
    Row("laws drawn at random", "readme.jsonl.gz", "drawn:laws",
        f"dgsr bench drawn:laws --problems 100 --draw-seed 9701 {_METHODS_IN_5_S}"),
    Row("laws in 30 columns", "readme.jsonl.gz", "drawn:wide",
        f"dgsr bench drawn:wide --problems 60 --draw-seed 9702 {_METHODS_IN_5_S}"),
    Row("laws of textbooks", "readme.jsonl.gz", "laws", f"dgsr bench laws {_METHODS_IN_5_S}"),
)  # fmt: skip


def readme_table(folder: Path = RESULTS) -> str:
    """Return the table.

    Parameters
    ----------
    folder : Path
        Where the files of the runs are.
    """
    lines = [("problems", "dgsr", "pyoperon", "command"), ("---",) * 4]
    for row in ROWS:
        runs = [run for run in read_records(folder / row.file) if run["set"] == row.set_name]
        cells = [_cell([run for run in runs if run["method"] == method]) for method in _METHODS]
        n_problems = sum(run["method"] == _METHODS[0] for run in runs)
        lines.append((f"{n_problems} {row.title}", *cells, f"`{row.command}`"))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(runs: list[Record]) -> str:
    """Return the share of the problems that are found, with Wilson's interval at 95%, in percent."""
    n_found = sum(run["found"] for run in runs)
    low, high = wilson_interval(n_found, len(runs))
    return f"{100 * n_found / len(runs):.0f}% ({100 * low:.0f} to {100 * high:.0f})"


def with_table(readme: str, folder: Path = RESULTS) -> str:
    """Return the text of the README with the table that the files make."""
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}{readme_table(folder)}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
