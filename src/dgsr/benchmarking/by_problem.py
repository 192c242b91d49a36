"""Summaries of the runs of a table in the measures of the field, with the problem as the unit.

Runs of one problem with different seeds are not independent: ten seeds of seven problems are seven
observations. So recovery is the mean over problems of the share of the seeds that found the law. Its interval
is Wilson's, with the number of problems as trials and the sum of these shares as successes, which is
conservative, since a share varies no more than a single success. Methods are compared by McNemar's exact test
over problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Any, NamedTuple

from dgsr.benchmarking.drawn_runner import UNBOUNDED
from dgsr.benchmarking.pairs import mcnemar
from dgsr.benchmarking.tables import is_success, mean, wilson_interval

Record = Mapping[str, Any]


class Summary(NamedTuple):
    """Results of a method on the problems of a table."""

    method: str
    n_problems: int
    n_runs: int
    n_found: int  # number of problems whose law more than half of the seeds found
    recovery: float  # %, the mean over problems of the share of the seeds that found the law
    low: float  # %, the ends of its 95% interval
    high: float
    seconds: float | None  # mean over all runs; None if no run was completed
    #: Mean over all runs of the candidates examined, by evaluation and by exact search; None where they were
    #: not counted.
    candidates: float | None
    #: Mean over problems of the equations until the law is found; a run that does not find it counts with
    #: its whole budget. None where only seconds limit the runs.
    evaluations: float | None
    #: The same over the problems that some run solved, as in the paper's tables; None without such a problem,
    #: too.
    evaluations_of_solved: float | None
    accuracy: float  # %, the mean over problems of the share of the seeds with R2 > 0.999 on test rows
    complexity: float | None  # median over all runs of the complexity C(f) of the formula
    form: float | None  # %, the mean over problems of the share with the form of the law; None if unknown


class Comparison(NamedTuple):
    """Comparison of two methods on their common problems and seeds."""

    first: str
    second: str
    n_problems: int
    only_first: int  # problems that the first method solved with more seeds than the second
    only_second: int
    p: float  # of McNemar's exact test of the two numbers


def is_accurate(record: Record) -> bool:
    """Return whether R2 of a run is above 0.999 on test rows, the criterion of SRBench."""
    error = record.get("test_nmse")
    return error is not None and error < 1e-3


def has_form(record: Record) -> bool:
    """Return whether the formula of a run is the law but for the values of its constants."""
    return bool(record["form"])


def summary(method: str, records: Iterable[Record]) -> Summary:
    """Return the summary of at least one run of one method."""
    problems = _by_problem(records)
    runs = [run for of_one in problems.values() for run in of_one]
    shares = [fmean(map(is_success, of_one)) for of_one in problems.values()]
    low, high = wilson_interval(sum(shares), len(shares))
    sizes = [run["complexity"] for run in runs if "complexity" in run]
    knows_form = all("form" in run for run in runs)
    until = [
        fmean(run["evaluations"] if is_success(run) else run["budget"] for run in of_one)
        for of_one in problems.values()
    ]
    of_solved = mean([each for each, share in zip(until, shares) if share > 0])
    is_bounded = all(run["budget"] < UNBOUNDED for run in runs)
    return Summary(
        method,
        n_problems=len(problems),
        n_runs=len(runs),
        n_found=sum(share > 0.5 for share in shares),
        recovery=100.0 * fmean(shares),
        low=100.0 * low,
        high=100.0 * high,
        seconds=mean([run["seconds"] for run in runs if "seconds" in run]),
        candidates=mean([r["evaluations"] + r["looks"] for r in runs if r.get("looks") is not None]),
        evaluations=fmean(until) if is_bounded else None,
        evaluations_of_solved=of_solved if is_bounded else None,
        accuracy=100.0 * fmean(fmean(map(is_accurate, of_one)) for of_one in problems.values()),
        complexity=median(sizes) if sizes else None,
        form=100.0 * fmean(fmean(map(has_form, of_one)) for of_one in problems.values())
        if knows_form
        else None,
    )


def comparisons(
    runs: Mapping[str, Sequence[Record]], is_solved: Callable[[Record], bool] = is_success
) -> list[Comparison]:
    """Return the comparison of every two methods, whose runs are given, on the same problems and seeds."""
    found = []
    for first, second in combinations(runs, 2):
        ours, theirs = ({(r["problem"], r["seed"]): is_solved(r) for r in runs[m]} for m in (first, second))
        lead: dict[str, int] = {}
        for problem, seed in ours.keys() & theirs.keys():
            difference = ours[problem, seed] - theirs[problem, seed]
            lead[problem] = lead.get(problem, 0) + difference
        if lead:
            ahead, behind = sum(n > 0 for n in lead.values()), sum(n < 0 for n in lead.values())
            found.append(Comparison(first, second, len(lead), ahead, behind, mcnemar(ahead, behind)))
    return found


def _by_problem(records: Iterable[Record]) -> dict[str, list[Record]]:
    problems: dict[str, list[Record]] = {}
    for record in records:
        problems.setdefault(record["problem"], []).append(record)
    return problems
