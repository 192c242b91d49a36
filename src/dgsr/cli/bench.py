"""`dgsr bench`: measure how often a method recovers the formulas of a problem set, or of a table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dgsr.cli.errors import FAILED, input_errors
from dgsr.cli.output import print_line, print_message, print_table, warnings_as_notes


def _integer(text: str) -> int:
    return int(text, 0)


def bench(
    problem_set: Annotated[
        str | None,
        typer.Argument(
            metavar="SET",
            help="Problem set, such as nguyen or feynman_d2, or drawn:physics for equations of a prior.",
        ),
    ] = None,
    problem: Annotated[list[str] | None, typer.Option(help="Only this problem; may be repeated.")] = None,
    problems: Annotated[
        int | None, typer.Option(min=1, help="Number of problems of a drawn set.  [default: 200]")
    ] = None,
    draw_seed: Annotated[
        int | None,
        typer.Option(
            parser=_integer,
            metavar="INTEGER",
            help="Seed that a drawn set is drawn from, such as 7 or 0xeafe1a51.  [default: 1]",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="dgsr, generator, exact, gp, misled, blind, features, guide-alone, samples-alone, "
            "unrefined, untrained, pqt, vpg, risk-seeking, sampled, and the peers operon and operon-selected "
            "(of pyoperon); may be repeated. With --table some of its methods."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem.")] = 1,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Most equations that a run evaluates.  "
            "[default: 2000000, or 1000000000 in drawn sets with --max-time]",
        ),
    ] = None,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Most seconds of search in a run.")] = None,
    noise: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Standard deviation of the noise on y, in root mean squares of y, or in drawn sets in "
            "standard deviations of y.",
        ),
    ] = 0.0,
    n_jobs: Annotated[int, typer.Option(help="Runs at a time; -1 for one per core.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to add one line of JSON per run to; with --table the folder of such files.  "
            "[default: none, or tables]"
        ),
    ] = None,
    any_commit: Annotated[
        bool, typer.Option("--any-commit", help="Add to a file with runs of another commit, too.")
    ] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(help="Run a table of the registry; may be repeated, and all is every one."),
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.0, help="With --table: begin no run after so many hours.")
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="List the tables and the hours that they may take on a core.")
    ] = False,
) -> None:
    """Measure how often a method recovers the formulas of a problem set, or of a table."""
    settings: dict[str, Any] = {"n_jobs": n_jobs, "any_commit": any_commit, "callback": _print_run}
    if tables or table or problem_set is None:
        own: dict[str, Any] = {"SET": problem_set, "--problem": problem, "--problems": problems}
        own |= {"--draw-seed": draw_seed, "--budget": budget, "--max-time": max_time}
        own |= {"--seeds": seeds != 1, "--noise": noise}
        with input_errors():
            if not (tables or table):
                raise ValueError(
                    "SET is missing; give a problem set, --table NAME, or --tables to list the tables."
                )
            if others := [name for name, value in own.items() if value]:
                raise ValueError(f"{others[0]} is not for tables, which have their own; leave it out.")
        if tables:
            _list_tables()
        else:
            _run_tables(table or [], method, out or Path("tables"), hours, settings)
        return
    methods = list(dict.fromkeys(method or ["dgsr"]))
    settings |= {"methods": methods, "seeds": seeds, "noise": noise, "out": out}
    settings |= {} if budget is None else {"budget": budget}
    goes_on = f"the runs so far are in {out}; the same command goes on" if out else "give --out to keep runs"
    with input_errors(f"interrupted; {goes_on}"), warnings_as_notes():
        from dgsr.benchmarking.drawn import PREFIX, draw_problems
        from dgsr.benchmarking.runner import run_drawn, run_set

        if max_time == 0.0:
            raise ValueError("--max-time 0 leaves no run any time; give more seconds, or leave it out.")
        if hours is not None:
            raise ValueError("--hours is for tables; leave it out, or limit each run by --max-time.")
        if problem_set.startswith(PREFIX):
            n, seed = 200 if problems is None else problems, 1 if draw_seed is None else draw_seed
            drawn = draw_problems(problem_set.removeprefix(PREFIX), n, seed, problem or None)
            records = run_drawn(drawn, max_time=max_time, **settings)
        else:
            for option, value in {"problems": problems, "draw-seed": draw_seed}.items():
                if value is not None:
                    raise ValueError(
                        f"--{option} {value} is for drawn sets, unlike {problem_set}; leave it out."
                    )
            limit = {} if max_time is None else {"max_time": max_time}
            options = dict.fromkeys(methods, limit)
            records = run_set(problem_set, problem or None, options=options, **settings)
        print_runs(records)
    if any("error" in record for record in records):
        raise typer.Exit(FAILED)


def _list_tables() -> None:
    """Print the tables with the hours that they take on one core if no run ends early."""
    from dgsr.benchmarking.registry import TABLES

    tables = TABLES.values()
    rows = [
        {"table": t.name, "title": t.title, "runs": t.n_runs, "core_hours": round(t.core_hours, 1)}
        for t in tables
    ]
    print_table(rows)
    hours = sum(table.core_hours for table in tables)
    print_line(f"{sum(table.n_runs for table in tables):,} runs, at most {hours:,.0f} hours on one core")


def _run_tables(
    names: Sequence[str],
    methods: Sequence[str] | None,
    folder: Path,
    hours: float | None,
    settings: Mapping[str, Any],
) -> None:
    """Run what is missing of tables, or of some of their methods, and print a summary of each."""
    from dgsr.benchmarking.registry import TABLES, table_of
    from dgsr.benchmarking.table_runs import run_table

    until = None if hours is None else time.monotonic() + 3600.0 * hours
    failed = False
    with input_errors(f"interrupted; the runs so far are in {folder}; the same command goes on"):
        tables = list(TABLES.values()) if "all" in names else [table_of(name) for name in names]
        for table in [each.with_methods(methods) for each in tables] if methods else tables:
            with warnings_as_notes():
                records = run_table(table, folder, until=until, **settings)
            _print_summary(table, records)
            failed = failed or any("error" in record for record in records)
    if failed:
        raise typer.Exit(FAILED)


def _print_summary(table: Any, records: list[dict[str, Any]]) -> None:
    from dgsr.benchmarking.table_runs import cells, n_missing

    found = cells(table, records)
    n_left = sum(n_missing(table, found).values())
    print_line(f"{table.name}: {table.n_runs - n_left:,} of {table.n_runs:,} runs")
    print_runs([record for runs in found.values() for record in runs.values()])
    print_line()


def print_runs(records: Sequence[Mapping[str, Any]]) -> None:
    """Print how often runs find the law, by method, in pairs of methods, and by problem."""
    from dgsr.benchmarking import tables

    heading, parts = tables(records)
    print_line(heading)
    for rows in parts:
        print_line()
        print_table(rows)


def _print_run(record: dict[str, Any]) -> None:
    """Print a line on a run that has ended on standard error."""
    name = f"{record['problem']} {record['method']} seed {record['seed']}"
    if "error" in record:
        print_message(f"{name}: failed: {record['error']}")
        return
    if "found" in record:
        found = "found" if record["found"] else "on the front" if record.get("on_front") else "not found"
    else:
        found = "recovered" if record["recovered"] else "not recovered"
    print_message(f"{name}: {found}, {record['evaluations']:,} evaluations, {record['seconds']:.1f} s")
