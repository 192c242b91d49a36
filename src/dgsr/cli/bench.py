"""`dgsr bench`: measure how often a method recovers the formulas of a problem set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dgsr.cli.errors import FAILED, input_errors
from dgsr.cli.output import print_table, tell, warnings_as_notes


def bench(
    problem_set: Annotated[
        str, typer.Argument(metavar="SET", help="Problem set, such as nguyen or feynman_d2.")
    ],
    problem: Annotated[list[str] | None, typer.Option(help="Only this problem; may be repeated.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="dgsr, untrained, gp; may be repeated.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each problem.")] = 1,
    budget: Annotated[int, typer.Option(min=1, help="Most equations that a run evaluates.")] = 2_000_000,
    max_time: Annotated[float | None, typer.Option(min=0.0, help="Most seconds of search in a run.")] = None,
    noise: Annotated[
        float, typer.Option(min=0.0, help="Standard deviation of the noise on y, in root mean squares of y.")
    ] = 0.0,
    n_jobs: Annotated[int, typer.Option(help="Runs at a time; -1 for one per core.")] = 1,
    out: Annotated[Path | None, typer.Option(help="File to add one line of JSON per run to.")] = None,
) -> None:
    """Measure how often a method recovers the formulas of a problem set."""
    from dgsr.benchmarking import run_set, summarise

    kept = f"the runs so far are in {out}; the same command goes on" if out else "give --out to keep runs"
    methods = method or ["dgsr"]
    options = {} if max_time is None else {name: {"max_time": max_time} for name in methods}
    with input_errors(f"interrupted; {kept}"), warnings_as_notes():
        records = run_set(
            problem_set,
            problems=problem or None,
            methods=methods,
            seeds=seeds,
            budget=budget,
            n_jobs=n_jobs,
            out=out,
            noise=noise,
            options=options,
            callback=lambda record: tell(_run_line(record)),
        )
    print_table(summarise(records))
    if any("error" in record for record in records):
        raise typer.Exit(FAILED)


def _run_line(record: dict[str, Any]) -> str:
    name = f"{record['problem']} {record['method']} seed {record['seed']}"
    if "error" in record:
        return f"{name}: failed: {record['error']}"
    found = "recovered" if record["recovered"] else "not recovered"
    return f"{name}: {found}, {record['evaluations']:,} evaluations, {record['seconds']:.1f} s"
