"""The page of the site that has every table in full; `docs/conf.py` has it written when the site is built.

    python docs/full_tables.py [FILE]

writes it to a file, of all_tables.md beside this program by default. What it says in short is in tables.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from problem_rows import problem_rows

from dgsr.benchmarking import by_problem
from dgsr.benchmarking.environment import CHANGED
from dgsr.benchmarking.published import TABLES, USUAL_METHODS, Published, Setting, Table
from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.recording import commit_of
from dgsr.benchmarking.table_runs import Cells, cells, file_of, n_missing

ROOT = Path(__file__).parents[1]
#: Where the page is while the site is built.
PAGE = ROOT / "docs" / "all_tables.md"
#: Where the files of the tables are, as the commands name it.
FOLDER = "benchmarks/results/tables"

INTRODUCTION = """# All tables

Every table in full, from the files that the [summary](tables.md) is made of. The summary says what the
methods are, what *found* and *recovery* mean, and which problems the tables have. The command above a table
goes on with that table, and `nox -s tables -- --hours 2` with all tables for two hours, both in a checkout of
the commit that the table names.

- *Seconds* and *candidates* are means over all runs, those included that found nothing. Candidates are the
  equations evaluated and the candidates that exact search examines in tables of
  subprograms; a costlier step of that search is counted as the candidates that take as long.
- *Equations until found* is the mean over problems of the equations that a run evaluates, of which one that
  does not find the law counts the whole budget. The last column leaves out the problems that no run found, as
  the averages of the paper do; those of the paper for GP leave out the runs that failed, too. Neither column
  counts those of exact search, and both are empty where seconds alone limit a run.
- *R2 > 0.999* is the mean over problems of the share of the seeds whose formula reaches that on test rows
  without noise. *Complexity* is the median over all runs of that of the formula, C(f) of the paper: a token
  counts 1, a quotient 2, a sine or cosine 3, an exponential or logarithm 4.
- *p* is that of McNemar's exact test over problems. It compares the number of problems that more seeds of the
  first method solved with the number of those that more seeds of the second solved.

A table with few problems has a row for each, with the number of runs that found its law. One with many has
those that no run found.

The other data sets of `blind` had their laws in their first columns. With columns in any order, as later
versions draw them, it finds 138 of the 200 equations of drawn_koza with seed 0, and 139 here.

Published figures are copied from the named source, whose runs had other rows and another test of equality.
The hours below are those of one core if no run ended early; most runs do.

"""
# Two pairs of methods, in each of which the network alone differs.
PAIRS = (("generator", "gp"), ("dgsr", "exact"))
_WORTH = """
## What the network is worth

The methods of each of the two pairs differ by the network alone. *Only* is the number of problems that more
seeds of that method solved than of the other one. Beside exact search and the other look-ups, which find most
laws without a network, less is left for it to find.

"""
_HEADINGS = (
    "method",
    "found",
    "recovery %",
    "seconds",
    "candidates",
    "equations until found",
    "without problems never found",
    "R2 > 0.999 %",
    "complexity",
)


def runs_of(folder: Path) -> dict[str, Cells]:
    """Return the runs of every table that has a file in a folder, by the name of the table."""
    tables = [table for table in TABLES.values() if file_of(table, folder).exists()]
    return {table.name: cells(table, read_records(file_of(table, folder))) for table in tables}


def anchor(table: Table) -> str:
    """Return the heading of a table on the page, which is written as links to it are."""
    return table.name.replace("_", "-")


def page(folder: Path = ROOT / FOLDER) -> str:
    """Return the whole page.

    Parameters
    ----------
    folder : Path
        Where the files of the tables are.
    """
    tables, runs = list(TABLES.values()), runs_of(folder)
    overview = [("table", "problems", "runs", "made", "hours")]
    for t in tables:
        made = sum(map(len, runs.get(t.name, {}).values()))
        name = _link(t) if t.name in runs else t.name
        overview.append((name, t.title, f"{t.n_runs:,}", f"{made:,}", f"{t.core_hours:,.1f}"))
    parts = [INTRODUCTION, markdown(overview)]
    if not runs:
        parts.append("\nNo table has a file yet.\n")
    worth = _worth(tables, runs)
    if len(worth) > 1:
        parts += [_WORTH, markdown(worth)]
    parts += [_section(t, runs[t.name]) for t in tables if t.name in runs]
    return "".join(parts)


def _worth(tables: Sequence[Table], runs: Mapping[str, Cells]) -> list[tuple[str, ...]]:
    """Return the rows on the two pairs, their head first: one for each setting that has runs of all four."""
    heads = [head for a, b in PAIRS for head in (f"`{a}` %", f"`{b}` %", f"only `{a}`", f"only `{b}`", "p")]
    rows = [("table", "problems", *heads)]
    for table in tables:
        for setting in table.settings if table.name in runs else ():
            own = {m: list(runs[table.name].get((setting, m), {}).values()) for pair in PAIRS for m in pair}
            if not all(own.values()):
                continue
            found = {method: f"{by_problem.summary(method, own[method]).recovery:.1f}" for method in own}
            row = [", ".join([_link(table), *differing(table, setting)]), f"{len(table.problems)}"]
            for pair in PAIRS:
                (compared,) = by_problem.comparisons({method: own[method] for method in pair})
                counts = f"{compared.only_first}", f"{compared.only_second}"
                row += [*(found[method] for method in pair), *counts, f"{compared.p:.2g}"]
            rows.append(tuple(row))
    return rows


def _section(table: Table, runs: Cells) -> str:
    """Return the part of the page about one table."""
    command = f"dgsr bench --table {table.name} --out {FOLDER}"
    seeds = f"seeds 0 to {table.seeds - 1}" if table.seeds > 1 else "seed 0"
    limits = f"At most {table.max_time:g} s and {table.budget:,} equations a run, {seeds}."
    lines = [f"\n## {anchor(table)}\n\n{table.title}. {limits}", f" {table.note}" if table.note else ""]
    lines += [f"\n\n<!-- not run: takes hours -->\n```sh\n{command}\n```\n\n{_provenance(table, runs)}\n\n"]
    lines.append(markdown([_heads(table, _HEADINGS), *_rows(table, runs)]))
    pairs = [_heads(table, ("first", "second", "problems", "only first", "only second", "p"))]
    for setting in table.settings:
        by_method = {m: list(runs[setting, m].values()) for m in table.methods if runs[setting, m]}
        compared = by_problem.comparisons(by_method)
        if len(by_method) > len(USUAL_METHODS):  # of many methods all pairs are too long a list
            firsts = table.methods[0], "generator"
            compared = [each for each in compared if each.first in firsts or "gp" in each[:2]]
        pairs += [_named(table, setting, _pair(each)) for each in compared]
    if len(pairs) > 1:
        lines += ["\n", markdown(pairs)]
    rows = problem_rows(table, runs)
    if len(rows) > 1:
        lines += ["\n", markdown(rows)]
    return "".join(lines)


def _provenance(table: Table, runs: Cells) -> str:
    """Return the line on commit, machine, generators and missing runs."""
    records = [record for cell in runs.values() for record in cell.values()]
    commits = sorted({commit_of(record) for record in records})
    described = [c.removesuffix(CHANGED) + (" with changes" if c.endswith(CHANGED) else "") for c in commits]
    machines = sorted({record.get("environment", {}).get("processor", "unknown") for record in records})
    used = {(r["generator"], r["weights"]) for r in records if r.get("weights")}
    generators = [f"{name} (SHA-256 {weights[:12]})" for name, weights in sorted(used)]
    line = f"Commit {', '.join(described) or 'none'}; processor {', '.join(machines) or 'none'}"
    line += f"; generator {', '.join(generators)}" if generators else ""
    missing = n_missing(table, runs)
    if not missing:
        return f"{line}; no run is missing."
    n_runs = len(table.problems) * table.seeds
    texts = [f"{_cell_name(table, *cell)} {n:,} of {n_runs:,}" for cell, n in missing.items()]
    return f"{line}; missing runs: {', '.join(texts)}."


def _link(table: Table) -> str:
    """Return the link to the part of the page about a table."""
    return f"[{table.name}](#{anchor(table)})"


def _cell_name(table: Table, setting: Setting, method: str) -> str:
    values = differing(table, setting)
    return " ".join([method, *(["at", " and ".join(values)] if values else [])])


def differing(table: Table, setting: Setting) -> list[str]:
    """Return what tells a setting from the others of its table, each with its name."""
    return [f"{name} {text}" for name, text in zip(_varying(table), _texts(table, setting))]


def _varying(table: Table) -> list[str]:
    """Return the names of what differs between the settings of a table."""
    return [name for name in Setting._fields if len({getattr(s, name) for s in table.settings}) > 1]


def _heads(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    return *_varying(table), *names


def _named(table: Table, setting: Setting, row: Sequence[str]) -> tuple[str, ...]:
    return *_texts(table, setting), *row


def _texts(table: Table, setting: Setting) -> list[str]:
    """Return what tells a setting from the others of its table."""
    values = [getattr(setting, name) for name in _varying(table)]
    return ["as usual" if value is None else f"{value:g}" for value in values]


def _rows(table: Table, runs: Cells) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one table: those of our methods, and then the published ones, of each setting."""
    for setting in table.settings:
        for method in table.methods:
            if runs[setting, method]:
                row = _measured(by_problem.summary(method, runs[setting, method].values()))
                yield _named(table, setting, row)
        for figure in table.published:
            is_of_setting = figure.noise == setting.noise and figure.rows in (None, setting.rows)
            if is_of_setting:
                yield _named(table, setting, _copied(figure))


def _measured(s: by_problem.Summary) -> tuple[str, ...]:
    return (
        f"`{s.method}`",
        f"{s.n_found} of {s.n_problems}",
        f"{s.recovery:.1f} ({s.low:.1f} to {s.high:.1f})",
        _number(s.seconds, ".2f"),
        _number(s.candidates, ",.0f"),
        _number(s.evaluations, ",.0f"),
        _number(s.evaluations_of_solved, ",.0f"),
        f"{s.accuracy:.1f}",
        _number(s.complexity, "g"),
    )


def _copied(figure: Published) -> tuple[str, ...]:
    interval = "" if figure.interval is None else f" ± {figure.interval:g}"
    evaluations = _number(figure.evaluations, ",d")
    name = f"{figure.method} ({figure.source})"
    return name, "", f"{figure.recovery:g}{interval}", "", "", "", evaluations, "", ""


def _pair(pair: by_problem.Comparison) -> tuple[str, ...]:
    counts = pair.n_problems, pair.only_first, pair.only_second
    return f"`{pair.first}`", f"`{pair.second}`", *map(str, counts), f"{pair.p:.3g}"


def _number(value: Any, form: str) -> str:
    return "" if value is None else format(value, form)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown, the head first."""
    lines = [" | ".join(row) for row in rows]
    return "".join(f"| {line} |\n" for line in [lines[0], " | ".join(["---"] * len(rows[0])), *lines[1:]])


if __name__ == "__main__":
    Path(*sys.argv[1:2] or [PAGE]).write_text(page(), encoding="utf-8")
