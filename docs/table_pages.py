"""A page for each table of the registry, from the file of its runs; see benchmark_tables.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from table_notes import NOTES, PUBLISHED, Published

from dgsr.benchmarking import summaries
from dgsr.benchmarking.environment import CHANGED
from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.recording import commit_of
from dgsr.benchmarking.registry import TABLES, Table
from dgsr.benchmarking.summaries import Record, is_success
from dgsr.benchmarking.table_runs import Cells, cells, file_of, n_missing
from dgsr.problems import load_set

ROOT = Path(__file__).parents[1]
#: Where the files of the tables are, as the commands name it.
FOLDER = "benchmarks/results/tables"
# Tables of more problems than this name those that no method found, and no other.
_MOST_ROWS = 32
_LEGEND = """
*Found* counts the problems whose law more than half of the seeds find. *Recovery* is the mean over
problems of the share of the seeds that find it, with Wilson's 95% interval and the problem as the unit;
*form* the share whose formula is the law but for the values of its constants. *Seconds* and *candidates*
are means over all runs; candidates are the equations evaluated and the candidates of exact search and the
finders. *Equations until found* counts the whole budget for a run that does not find the law; in the
column after it problems that no run found are left out, as in the averages of the paper. *R2 > 0.999* is
the share of formulas that reach this on rows without noise, *complexity* the median of C(f). *p* is that
of McNemar's exact test over problems.
"""
_HEADINGS = (
    *("method", "found", "recovery %", "form %", "seconds", "candidates", "equations until found"),
    *("without problems never found", "R2 > 0.999 %", "complexity"),
)


def runs_of(folder: Path) -> dict[str, Cells]:
    """Return the runs of every table that has a file in a folder, by the name of the table."""
    tables = [table for table in TABLES.values() if file_of(table, folder).exists()]
    return {table.name: cells(table, read_records(file_of(table, folder))) for table in tables}


def parts_of(table: Table) -> list[Table]:
    """Return tables of one set of problems each."""
    return [replace(table, sets=(name,)) for name in table.sets]


def published_of(part: Table) -> list[Published]:
    """Return the figures that others published for the sets of a table."""
    return [figure for figure in PUBLISHED.get(part.name, ()) if figure.set in part.sets]


def part_of(part: Table, runs: Cells) -> Cells:
    """Return the runs of a table that are on the problems of one of its sets."""
    problems = set(part.problems)
    return {
        cell: {run: record for run, record in own.items() if run[0] in problems} for cell, own in runs.items()
    }


def table_page(table: Table, runs: Cells) -> str:
    """Return the page of a table.

    Parameters
    ----------
    table : Table
    runs : dict
        The runs of the table.
    """
    seeds = f"seeds 0 to {table.seeds - 1}" if table.seeds > 1 else "seed 0"
    drawn = f" of the seed {table.draw_seed}" if table.is_drawn else ""
    n_problems = f"{len(table.problems)} problems{drawn}"
    limits = f"{n_problems}, at most {table.max_time:g} s and {table.budget:,} equations a run, {seeds}."
    lines = [f"# {table.title}\n\n{limits}", f" {NOTES[table.name]}" if table.name in NOTES else ""]
    command = f"dgsr bench --table {table.name} --out {FOLDER}"
    lines += [f"\n\n<!-- not run: takes hours -->\n```sh\n{command}\n```\n\n{provenance(table, runs)}\n"]
    for part in parts_of(table):
        own = part_of(part, runs)
        if len(table.sets) > 1:
            lines.append(f"\n## {part.sets[0].replace('_', '-')}\n")
        lines += ["\n", markdown([_heads(part, _HEADINGS), *_rows(part, own)])]
        rows = _problem_rows(part, own)
        lines += ["\n", markdown(rows)] if len(rows) > 1 else []
    lines += ["\n## Pairs of methods\n\n", markdown(list(_pairs(table, runs)))]
    return "".join([*lines, _LEGEND])


def provenance(table: Table, runs: Cells) -> str:
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
    texts = [f"{method} at noise {noise:g} {n:,} of {n_runs:,}" for (noise, method), n in missing.items()]
    return f"{line}; missing runs: {', '.join(texts)}."


def _heads(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    return (*(["noise"] if len(table.noise) > 1 else []), *names)


def _named(table: Table, noise: float, row: Sequence[str]) -> tuple[str, ...]:
    return (*([f"{noise:g}"] if len(table.noise) > 1 else []), *row)


def _rows(table: Table, runs: Cells) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one set: those of our methods at each level of noise, and the published ones."""
    for (noise, method), own in runs.items():
        if own:
            yield _named(table, noise, _measured(summaries.summary(method, own.values())))
    for figure in published_of(table):
        yield _named(table, 0.0, _copied(figure))


def _measured(s: summaries.Summary) -> tuple[str, ...]:
    return (
        f"`{s.method}`",
        f"{s.n_found} of {s.n_problems}",
        f"{s.recovery:.1f} ({s.low:.1f} to {s.high:.1f})",
        _number(s.form, ".1f"),
        _number(s.seconds, ".2f"),
        _number(s.candidates, ",.0f"),
        _number(s.evaluations, ",.0f"),
        _number(s.evaluations_of_solved, ",.0f"),
        f"{s.accuracy:.1f}",
        _number(s.complexity, "g"),
    )


def _copied(figure: Published) -> tuple[str, ...]:
    interval = "" if figure.interval is None else f" ± {figure.interval:g}"
    name = f"{figure.method} ({figure.source})"
    return name, "", f"{figure.recovery:g}{interval}", *[""] * 4, _number(figure.evaluations, ",d"), "", ""


def _pairs(table: Table, runs: Cells) -> Iterator[tuple[str, ...]]:
    """Yield comparisons with the first method, and of generator and gp, also by the form; the head first."""
    yield _heads(table, ("verdict", "first", "second", "problems", "only first", "only second", "p"))
    verdicts = {"found": is_success, **({"form": summaries.has_form} if table.is_drawn else {})}
    for noise in table.noise:
        by_method = {m: list(runs[noise, m].values()) for m in table.methods if runs[noise, m]}
        for verdict, is_solved in verdicts.items():
            for pair in summaries.comparisons(by_method, is_solved):
                if pair.first != table.methods[0] and pair[:2] != ("generator", "gp"):
                    continue
                counts = map(str, (pair.n_problems, pair.only_first, pair.only_second))
                names = verdict, f"`{pair.first}`", f"`{pair.second}`"
                yield _named(table, noise, (*names, *counts, f"{pair.p:.2g}"))


def _problem_rows(part: Table, runs: Cells) -> list[tuple[str, ...]]:
    """Return rows about problems, the head first: all of a small set, those that no run found of a large one.

    Drawn problems, whose names tell nothing, have no rows.
    """
    if part.is_drawn:
        return []
    problems = load_set(part.sets[0])
    if len(problems) > _MOST_ROWS:
        rows: list[tuple[str, ...]] = [_heads(part, ("problem", "law that no run found", "least test NMSE"))]
        for noise in part.noise:
            own = [record for (level, _), of in runs.items() if level == noise for record in of.values()]
            for problem in problems:
                of_problem = [record for record in own if record["problem"] == problem.name]
                if of_problem and not any(map(is_success, of_problem)):
                    errors = [r["test_nmse"] for r in of_problem if r["test_nmse"] is not None]
                    least = f"{min(errors):.1e}" if errors else ""
                    rows.append(_named(part, noise, (problem.name, _law(problem), least)))
        return rows
    cells_of = [(noise, method) for noise, method in runs if runs[noise, method]]
    published = list(dict.fromkeys(name for problem in problems for name in problem.paper_recovery))
    names = [method + (f", noise {noise:g}" if len(part.noise) > 1 else "") for noise, method in cells_of]
    heads = "problem", "law", *(f"`{name}`" for name in names), *(f"published {name} %" for name in published)
    return [heads, *(_of_problem(problem, cells_of, runs, published) for problem in problems)]


def _of_problem(
    problem: Any, cells_of: Sequence[tuple[float, str]], runs: Cells, published: Sequence[str]
) -> tuple[str, ...]:
    counts = []
    for cell in cells_of:
        own: list[Record] = [record for (name, _), record in runs[cell].items() if name == problem.name]
        counts.append(f"{sum(map(is_success, own))} of {len(own)}")
    figures = [_number(problem.paper_recovery.get(name), "g") for name in published]
    return problem.name, _law(problem), *counts, *figures


def _law(problem: Any) -> str:
    return f"`{problem.expression.replace(' ', '')}`"


def _number(value: Any, form: str) -> str:
    return "" if value is None else format(value, form)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown, the head first."""
    lines = [" | ".join(row) for row in rows]
    return "".join(f"| {line} |\n" for line in [lines[0], " | ".join(["---"] * len(rows[0])), *lines[1:]])
