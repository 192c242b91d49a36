"""`dgsr bench`: measure how often a method recovers the formulas of a problem set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dgsr.cli.errors import FAILED, input_errors
from dgsr.cli.output import print_line, print_table, tell, warnings_as_notes

_DRAWN = "drawn:"


def bench(
    problem_set: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="Problem set, such as nguyen or feynman_d2, or drawn:physics for equations of a prior.",
        ),
    ],
    problem: Annotated[list[str] | None, typer.Option(help="Only this problem; may be repeated.")] = None,
    problems: Annotated[
        int | None, typer.Option(min=1, help="Number of problems of a drawn set.  [default: 200]")
    ] = None,
    draw_seed: Annotated[
        int | None, typer.Option(min=0, help="Seed that a drawn set is drawn from.  [default: 1]")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="dgsr, exact, generator, gp, untrained, misled; may be repeated.")
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
    out: Annotated[Path | None, typer.Option(help="File to add one line of JSON per run to.")] = None,
) -> None:
    """Measure how often a method recovers the formulas of a problem set."""
    settings = {
        "problems": problem or None,
        "methods": list(dict.fromkeys(method or ["dgsr"])),
        "seeds": seeds,
        "noise": noise,
        "n_jobs": n_jobs,
        "out": out,
        "callback": lambda record: tell(_run_line(record)),
    }
    kept = f"the runs so far are in {out}; the same command goes on" if out else "give --out to keep runs"
    with input_errors(f"interrupted; {kept}"), warnings_as_notes():
        if problem_set.startswith(_DRAWN):
            records = _drawn(problem_set, problems, draw_seed, max_time, budget, settings)
        else:
            for name, value in {"problems": problems, "draw-seed": draw_seed}.items():
                if value is not None:
                    raise ValueError(
                        f"--{name} {value} is for drawn sets; {problem_set} is none, leave it out."
                    )
            records = _named(problem_set, max_time, budget, settings)
    if any("error" in record for record in records):
        raise typer.Exit(FAILED)


def _named(
    problem_set: str, max_time: float | None, budget: int | None, settings: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run a set of the package, and print how often its formulas are recovered."""
    from dgsr.benchmarking import run_set, summarise

    options = {} if max_time is None else {name: {"max_time": max_time} for name in settings["methods"]}
    records = run_set(problem_set, budget=budget or 2_000_000, options=options, **settings)
    print_table(summarise(records))
    return records


def _drawn(
    problem_set: str,
    problems: int | None,
    draw_seed: int | None,
    max_time: float | None,
    budget: int | None,
    settings: dict[str, Any],
) -> list[dict[str, Any]]:
    """Run a drawn set, and print how often its equations are found, and the methods in pairs."""
    from dgsr.benchmarking.drawn_runner import run_drawn
    from dgsr.benchmarking.pairs import tables

    records = run_drawn(
        problem_set,
        200 if problems is None else problems,
        1 if draw_seed is None else draw_seed,
        max_time=max_time,
        budget=budget,
        **settings,
    )
    heading, parts = tables(records)
    print_line(heading)
    for rows in parts:
        print_line()
        print_table(rows)
    return records


def _run_line(record: dict[str, Any]) -> str:
    name = f"{record['problem']} {record['method']} seed {record['seed']}"
    if "error" in record:
        return f"{name}: failed: {record['error']}"
    if "found" in record:
        found = "found" if record["found"] else "on the front" if record["on_front"] else "not found"
    else:
        found = "recovered" if record["recovered"] else "not recovered"
    return f"{name}: {found}, {record['evaluations']:,} evaluations, {record['seconds']:.1f} s"
