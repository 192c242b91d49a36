"""Write docs/tables.md, and a page for each table, from the runs: `python docs/benchmark_tables.py`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from table_pages import FOLDER, ROOT, markdown, part_of, parts_of, published_of, runs_of, table_page

from dgsr.benchmarking import summaries, wilson_interval
from dgsr.benchmarking.recording import commit_of
from dgsr.benchmarking.registry import NAMED_TESTS, TABLES, NamedTest, Table
from dgsr.benchmarking.summaries import is_success
from dgsr.benchmarking.table_runs import Cells

PAGE = ROOT / "docs" / "tables.md"
#: Where the pages of single tables are.
PAGES = ROOT / "docs" / "tables"

_INTRODUCTION = """# What is found, and by what

`nox -s tables` makes these figures in at most a night of one core, in parts if need be, with the weights
that ship; below the table are the commits. The problems, methods, seconds and tests were stated [in the
registry](../src/dgsr/benchmarking/registry.py) before the run. Each table has a page with seconds,
equations, pairs of methods and the command that goes on with it. All pages are made from
`benchmarks/results/tables`, one compressed line of JSON for each run, by
`python docs/benchmark_tables.py`.

| method | what it is |
| --- | --- |
| `dgsr` | the whole search |
| `exact` | the same without the network |
| `generator` | network and evolution, without exact search and the finders of laws by least squares |
| `gp` | evolution alone |
| `operon`, `operon-selected` | pyoperon, and pyoperon in six columns that a random forest selects |

Three strong peers are missing: PySR was not measured, HROCH 1.4.12 does not run with the present
scikit-learn, and rils-rols has to be compiled.

## The laws that are found

The figures are percent of the problems that are found, with Wilson's 95% intervals, from one run of each on
one core; in the sets of the paper they are the mean of three runs. *s* is the mean seconds of a fit by
`dgsr`, whose limit is on the page of the table. A drawn law or a law of textbooks is *found* if the error of
the chosen formula on 1,000 further rows, the mean square over the variance, is below 1e-8, or with noise
below a fiftieth of the variance of the noise. A law of the other sets is *found* if the formula is equal to
it by SRBench's rule, which rounds constants to three decimals. *Form* requires the structure of the law, with
any values of its constants. Pyoperon writes a coefficient with every variable, so that most of its formulas
fail *form*: compare it by *found*, although the two tests of it that were named ask for *form*.

"""
_PAPER = """
## The sets of the paper

Percent of the runs that recover the equation, three seeds of at most 7 s here, and as published: the
paper allows 2,000,000 equations and no seconds. The network of `generator` is larger than the paper's and
was trained on other equations, and `dgsr` looks up what exact search finds, so the last columns compare
results and not methods.

"""
_TESTS = """
## Tests named before the run

Does the first method find more? *Only* counts the problems that more seeds of that method solve; p is
McNemar's exact test, once alone and once with Holm's correction for the number of tests.

"""
_FAILURES = """
## Where `dgsr` fails

A law can be among the best formulas of every length, the front, and not be chosen, or not be found at
all. The front is recorded for drawn laws alone.

"""
_METHODS = ("dgsr", "exact", "generator", "gp", "operon")
# A set of more unfound laws than this has their number alone; its page has their names.
_MOST_NAMES = 10


def page(folder: Path = ROOT / FOLDER) -> str:
    """Return the summary.

    Parameters
    ----------
    folder : Path
        Where the files of the tables are.
    """
    runs = runs_of(folder)
    if not runs:
        return f"{_INTRODUCTION}No table has a file yet.\n"
    tables = [table for table in TABLES.values() if table.name in runs]
    heads = "problems", "noise", "verdict", "s", *(f"`{method}`" for method in _METHODS)
    rows = [row for table in tables for row in _rows(table, runs[table.name])]
    parts = [_INTRODUCTION, markdown([heads, *rows]), f"\n{_commits(runs)}\n"]
    if "paper" in runs:
        parts += [_PAPER, markdown(_paper_rows(TABLES["paper"], runs["paper"]))]
    if tests := _tests(runs):
        parts += [_TESTS, markdown(tests)]
    return "".join([*parts, _FAILURES, *(_failures(table, runs[table.name]) for table in tables)])


def _rows(table: Table, runs: Cells) -> list[tuple[str, ...]]:
    """Return a row for each level of noise and verdict."""
    found = []
    for noise in table.noise:
        by_method = {
            method: summaries.summary(method, runs[noise, method].values())
            for method in _METHODS
            if runs.get((noise, method))
        }
        if "dgsr" not in by_method:
            continue
        knows_form = table.is_drawn and noise > 0.0
        for verdict in ("found", "form") if knows_form else ("found",):
            cells = [_share(by_method[m], verdict) if m in by_method else "" for m in _METHODS]
            name = f"{by_method['dgsr'].n_problems} [{table.title}](tables/{table.name}.md)"
            found.append((name, f"{noise:g}", verdict, f"{by_method['dgsr'].seconds:.1f}", *cells))
    return found


def _share(summary: summaries.Summary, verdict: str) -> str:
    if verdict == "found":
        return f"{summary.recovery:.0f} ({summary.low:.0f}\N{EN DASH}{summary.high:.0f})"
    assert summary.form is not None
    n = summary.n_problems
    low, high = wilson_interval(n * summary.form / 100.0, n)
    return f"{summary.form:.0f} ({100 * low:.0f}\N{EN DASH}{100 * high:.0f})"


def _commits(runs: Mapping[str, Cells]) -> str:
    """Return of which commits how many runs are."""
    records = [record for cells in runs.values() for cell in cells.values() for record in cell.values()]
    counts = Counter(commit_of(record)[:8] for record in records)
    n_all = sum(table.n_runs for table in TABLES.values())
    hours = sum(record["seconds"] for record in records) / 3600.0
    of_commits = ", ".join(f"{n:,} of commit {commit}" for commit, n in counts.most_common())
    which = f"All {n_all:,} runs are" if n_all == len(records) else f"Of {n_all:,} runs {len(records):,} are"
    return f"{which} complete: {of_commits}. Their fits took {hours:.1f} core-hours."


def _paper_rows(table: Table, runs: Cells) -> list[tuple[str, ...]]:
    """Return the recovery of each set beside the published one, the head first."""
    rows = [("set", "problems", *(f"`{m}`" for m in table.methods), "DGSR, published", "NGGP, published")]
    for part in parts_of(table):
        own = part_of(part, runs)
        published = {figure.method: f"{figure.recovery:.1f}" for figure in published_of(part)}
        shares = [
            f"{summaries.summary(m, own[0.0, m].values()).recovery:.1f}" if own[0.0, m] else ""
            for m in table.methods
        ]
        names = published.get("DGSR", ""), published.get("NGGP", "")
        rows.append((part.sets[0], f"{len(part.problems)}", *shares, *names))
    return rows


def _tests(runs: Mapping[str, Cells]) -> list[tuple[str, ...]]:
    """Return the named tests whose runs are complete, the head first; nothing without any."""
    found = [(test, _compared(test, runs[test.table])) for test in NAMED_TESTS if test.table in runs]
    made = [(test, pair) for test, pair in found if pair is not None]
    rows = [("problems", "noise", "verdict", "first", "second", "only first", "only second", "p", "Holm")]
    corrected = holm([pair.p for _, pair in made], len(NAMED_TESTS))
    for (test, pair), p in zip(made, corrected, strict=True):
        names = (
            TABLES[test.table].title,
            f"{test.noise:g}",
            test.verdict,
            f"`{test.first}`",
            f"`{test.second}`",
        )
        rows.append((*names, f"{pair.only_first}", f"{pair.only_second}", f"{pair.p:.2g}", f"{p:.2g}"))
    return rows if made else []


def _compared(test: NamedTest, runs: Cells) -> summaries.Comparison | None:
    """Return the comparison that a test asks for; None unless all its runs are made."""
    table = TABLES[test.table]
    own = {method: list(runs[test.noise, method].values()) for method in (test.first, test.second)}
    if any(len(records) < len(table.problems) * table.seeds for records in own.values()):
        return None
    is_solved = summaries.has_form if test.verdict == "form" else is_success
    (pair,) = summaries.comparisons(own, is_solved)
    return pair


def holm(p: Sequence[float], n_tests: int) -> list[float]:
    """Return p-values with Holm's correction for `n_tests` tests, of which some may not be made yet.

    References
    ----------
    Holm, Scandinavian Journal of Statistics 6, 1979.
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    corrected, largest = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (n_tests - rank) * p[i]))
        corrected[i] = largest
    return corrected


def _failures(table: Table, runs: Cells) -> str:
    """Return a line for each level of noise: how many laws the whole search misses, and how."""
    lines = []
    for noise in table.noise:
        own = runs.get((noise, "dgsr"), {})
        missed = [record for record in own.values() if not is_success(record)]
        if not own:
            continue
        at = f" with noise of {noise:g}" if noise > 0.0 else ""
        line = f"- {table.title}{at}: {len(missed)} of {len(own)} runs miss the law"
        if table.is_drawn and missed:
            on_front, has_form = (
                sum(map(verdict, missed)) for verdict in (summaries.is_on_front, summaries.has_form)
            )
            if on_front or has_form:
                line += f", {on_front} of them with the law on the front and {has_form} with its form chosen"
        names = list(dict.fromkeys(record["problem"] for record in missed))
        if not table.is_drawn and 0 < len(names) <= _MOST_NAMES:
            line += f": {', '.join(names)}"
        lines.append(f"{line}.\n")
    return "".join(lines)


def write(folder: Path = ROOT / FOLDER) -> None:
    """Write the summary and the pages of all tables that have a file."""
    for path, text in pages(folder).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pages(folder: Path = ROOT / FOLDER) -> dict[Path, str]:
    """Return the text of the summary and of the page of every table that has a file, by their paths."""
    runs = runs_of(folder)
    of_tables = {PAGES / f"{name}.md": table_page(TABLES[name], own) for name, own in runs.items()}
    return {PAGE: page(folder), **of_tables}


if __name__ == "__main__":
    write()
