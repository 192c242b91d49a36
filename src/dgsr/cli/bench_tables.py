"""`dgsr bench --table` and `--tables`: the tables of the registry."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dgsr.cli.errors import FAILED, input_errors
from dgsr.cli.output import print_line, print_message, print_table, warnings_as_notes


def list_tables() -> None:
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


def run_tables(
    names: Sequence[str],
    methods: Sequence[str] | None,
    folder: Path | None,
    hours: float | None,
    n_jobs: int,
    any_commit: bool,
) -> None:
    """Run what is missing of tables, or of some of their methods, and print a summary of each."""
    from dgsr.benchmarking.registry import TABLES, table_of
    from dgsr.benchmarking.table_runs import run_table

    folder = folder or Path("tables")
    until = None if hours is None else time.monotonic() + 3600.0 * hours
    failed = False
    with input_errors(f"interrupted; the runs so far are in {folder}; the same command goes on"):
        tables = list(TABLES.values()) if "all" in names else [table_of(name) for name in names]
        for table in [each.with_methods(methods) for each in tables] if methods else tables:
            with warnings_as_notes():
                records = run_table(
                    table, folder, n_jobs=n_jobs, until=until, any_commit=any_commit, callback=print_run
                )
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


def print_run(record: dict[str, Any]) -> None:
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
