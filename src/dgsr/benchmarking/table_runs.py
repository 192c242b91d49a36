"""Run a table of `dgsr.benchmarking.registry`, part by part, and find its runs in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from dgsr.benchmarking.drawn import PREFIX, draw_problems
from dgsr.benchmarking.registry import Table
from dgsr.benchmarking.runner import run_drawn, run_set

#: The runs of a table by noise and method, then by problem and seed.
Cells = dict[tuple[float, str], dict[tuple[str, int], Mapping[str, Any]]]


def file_of(table: Table, folder: str | os.PathLike) -> Path:
    """Return the path of the compressed file of a table's records in a folder."""
    return Path(folder) / f"{table.name}.jsonl.gz"


def run_table(
    table: Table, folder: str | os.PathLike, *, until: float | None = None, **settings: Any
) -> list[dict[str, Any]]:
    """Make the runs of a table that its file lacks, first those of all problems with the first seed.

    The same call continues where the table's file (`file_of`) ends. For `until`, for `n_jobs`, `any_commit`
    and `callback` among the `settings`, and for the errors see `dgsr.benchmarking.run_set`. Returns the
    records of all runs that were made in time, including those in the file.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    settings |= {"methods": table.methods, "budget": table.budget, "until": until}
    settings["out"] = file_of(table, folder)
    records = []
    for seed, noise in product(range(table.seeds), table.noise):
        for name in table.sets:
            if until is not None and time.monotonic() >= until:
                break
            if table.is_drawn:
                problems = draw_problems(name.removeprefix(PREFIX), table.n_problems, table.draw_seed)
                records += run_drawn(problems, seeds=[seed], noise=noise, max_time=table.max_time, **settings)
            else:
                options = {method: {"max_time": table.max_time} for method in table.methods}
                records += run_set(name, seeds=[seed], options=options, noise=noise, **settings)
    return records


def cells(table: Table, records: Iterable[Mapping[str, Any]]) -> Cells:
    """Return the runs of a table among records, without failed ones and runs of anything else."""
    found: Cells = {cell: {} for cell in product(table.noise, table.methods)}
    problems = set(table.problems)
    for record in records:
        cell = record["noise"], record["method"]
        max_time = record.get("max_time", record.get("options", {}).get("max_time"))
        limits = record["budget"] == table.budget and max_time == table.max_time
        is_asked = record["problem"] in problems and record["seed"] < table.seeds
        if cell in found and limits and is_asked and "error" not in record:
            found[cell][record["problem"], record["seed"]] = record
    return found


def n_missing(table: Table, found: Cells) -> dict[tuple[float, str], int]:
    """Return how many runs are missing in each incomplete cell."""
    n_runs = len(table.problems) * table.seeds
    return {cell: n_runs - len(runs) for cell, runs in found.items() if len(runs) < n_runs}
