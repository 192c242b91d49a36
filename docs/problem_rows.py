"""What the page of tables says of single problems; see benchmark_tables.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dgsr.benchmarking.published import Table
from dgsr.benchmarking.table_runs import Cells
from dgsr.benchmarking.tables import is_success
from dgsr.problems import Problem, load_set

Runs = Mapping[str, Mapping[tuple[str, int], Mapping[str, Any]]]

# Tables of more problems than this name those that no method found, and no other.
_MOST_ROWS = 32
_PUBLISHED = ("DGSR", "NGGP")


def problem_rows(table: Table, runs: Cells) -> list[tuple[str, ...]]:
    """Return the rows about problems, their head first.

    Parameters
    ----------
    table : Table
        For drawn problems, whose names tell nothing, and for tables of several settings there are no rows.
    runs : dict
        The runs of the table.
    """
    if table.is_drawn or len(table.settings) > 1:
        return []
    (setting,) = table.settings
    by_method = {method: runs[setting, method] for method in table.methods if runs[setting, method]}
    problems = [problem for name in table.sets for problem in load_set(name)]
    if len(problems) > _MOST_ROWS:
        return _never_found(problems, by_method)
    published = [name for name in _PUBLISHED if name in problems[0].paper_recovery]
    rows = [
        ("problem", "law", *(f"`{method}`" for method in by_method), *(f"published {n} %" for n in published))
    ]
    for problem in problems:
        counts = [
            f"{sum(map(is_success, own))} of {len(own)}" for own in _of_problem(problem, by_method).values()
        ]
        figures = [f"{problem.paper_recovery[name]:g}" for name in published]
        rows.append((problem.name, _law(problem), *counts, *figures))
    return rows


def _never_found(problems: Sequence[Problem], by_method: Runs) -> list[tuple[str, ...]]:
    """Return a row for every problem whose law no run found, with the least error of the runs."""
    rows = [("problem", "law that no run found", "least test NMSE")]
    for problem in problems:
        own = [record for of_method in _of_problem(problem, by_method).values() for record in of_method]
        if own and not any(map(is_success, own)):
            errors = [record["test_nmse"] for record in own if record["test_nmse"] is not None]
            rows.append((problem.name, _law(problem), f"{min(errors):.1e}" if errors else ""))
    return rows


def _of_problem(problem: Problem, by_method: Runs) -> dict[str, list[Mapping[str, Any]]]:
    """Return the runs of a problem by method."""
    return {
        method: [record for (name, _), record in runs.items() if name == problem.name]
        for method, runs in by_method.items()
    }


def _law(problem: Problem) -> str:
    return f"`{problem.expression.replace(' ', '')}`"
