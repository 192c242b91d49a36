"""Summaries of runs in the measures of the field, with the problem as the unit.

Runs of one problem with different seeds are not independent: ten seeds of seven problems are seven
observations. So recovery is the mean over problems of the share of the seeds that found the law. Its interval
is Wilson's, with the number of problems as trials and the sum of these shares as successes, which is
conservative, since a share varies no more than a single success. Methods are compared by McNemar's exact test
over problems. A run that failed counts as one that found nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import fmean, median
from typing import Any, NamedTuple

from scipy.stats import binomtest

from dgsr.benchmarking.record_files import Record
from dgsr.benchmarking.runner import UNBOUNDED

# Settings of a run, which must agree for runs to be summarised together.
_SETTING = ("set", "draw_seed", "noise", "max_time", "budget")


class Summary(NamedTuple):
    """Results of a method on several problems."""

    method: str
    n_problems: int
    n_runs: int
    n_failed: int  # runs that ended with an error
    n_found: int  # number of problems whose law more than half of the seeds found
    recovery: float  # %, the mean over problems of the share of the seeds that found the law
    low: float  # %, the ends of its 95% interval
    high: float
    form: float | None  # %, the same of the form of the law; None where it was not judged
    on_front: float | None  # %, the same of the law anywhere on the front; None where it was not judged
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


class Comparison(NamedTuple):
    """Comparison of two methods on their common problems and seeds."""

    first: str
    second: str
    n_problems: int
    only_first: int  # problems that the first method solved with more seeds than the second
    only_second: int
    p: float  # of McNemar's exact test of the two numbers


def is_success(record: Record) -> bool:
    """Return whether a run found the law; a failed run did not."""
    return bool(record.get("found", record.get("recovered", False)))


def has_form(record: Record) -> bool:
    """Return whether the formula of a run is the law but for the values of its constants."""
    return bool(record.get("form"))


def is_on_front(record: Record) -> bool:
    """Return whether any formula of the front of a run is the law."""
    return bool(record.get("on_front"))


def is_accurate(record: Record) -> bool:
    """Return whether R2 of a run is above 0.999 on test rows, the criterion of SRBench."""
    error = record.get("test_nmse")
    return error is not None and error < 1e-3


def wilson_interval(successes: float, n: int) -> tuple[float, float]:
    """Return Wilson's 95% score interval of a success rate, its two ends from 0 to 1.

    Parameters
    ----------
    successes : float
        Number of successes, or a sum of shares of successes with one share for each trial.
    n : int
        Number of trials, at least 1.

    References
    ----------
    Wilson, Journal of the American Statistical Association 22, 1927.
    """
    z, rate = 1.959964, successes / n
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    denominator = 1 + z * z / n
    return max(0.0, (centre - spread) / denominator), min(1.0, (centre + spread) / denominator)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p-value of McNemar's exact test, a binomial test of two numbers of successes.

    `only_first` and `only_second` are the numbers of problems that only the first, and only the second method
    found.

    References
    ----------
    McNemar, Psychometrika 12, 1947.
    """
    n = only_first + only_second
    return 1.0 if n == 0 else float(binomtest(only_first, n, 0.5).pvalue)


def summary(method: str, records: Iterable[Record]) -> Summary:
    """Return the summary of at least one run of one method."""
    problems: dict[str, list[Record]] = {}
    for record in records:
        problems.setdefault(record["problem"], []).append(record)
    runs = [run for of_one in problems.values() for run in of_one]

    def means_of(measure: Callable[[Record], float]) -> list[float]:
        return [fmean(map(measure, of_one)) for of_one in problems.values()]

    shares = means_of(is_success)
    low, high = wilson_interval(sum(shares), len(shares))
    until = means_of(lambda run: run["evaluations"] if is_success(run) else run["budget"])
    sizes = [run["complexity"] for run in runs if "complexity" in run]
    is_bounded = all(run["budget"] < UNBOUNDED for run in runs)
    return Summary(
        method,
        n_problems=len(problems),
        n_runs=len(runs),
        n_failed=sum("error" in run for run in runs),
        n_found=sum(each > 0.5 for each in shares),
        recovery=100.0 * fmean(shares),
        low=100.0 * low,
        high=100.0 * high,
        form=100.0 * fmean(means_of(has_form)) if any("form" in run for run in runs) else None,
        on_front=100.0 * fmean(means_of(is_on_front)) if any("on_front" in run for run in runs) else None,
        seconds=_mean(run["seconds"] for run in runs if "seconds" in run),
        candidates=_mean(run["evaluations"] + run["looks"] for run in runs if run.get("looks") is not None),
        evaluations=fmean(until) if is_bounded else None,
        evaluations_of_solved=_mean(n for n, each in zip(until, shares) if each > 0) if is_bounded else None,
        accuracy=100.0 * fmean(means_of(is_accurate)),
        complexity=median(sizes) if sizes else None,
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


def tables(records: Iterable[Record]) -> tuple[str, list[list[dict[str, Any]]]]:
    """Return a heading and tables of the runs in some records for readers.

    If a run has several records, the last one counts. The heading has the settings that all runs have in
    common, and a note if they are of several commits. The tables, with the other settings, have rows for
    methods, for pairs of methods, and for the problems of named sets; those without rows are left out.
    """
    records = list(records)
    settings = _by_setting(records)
    values = dict(zip(_SETTING, zip(*settings)))  # of all settings, by name
    differing = [name for name, given in values.items() if len(set(map(repr, given))) > 1]
    heading = ", ".join(
        f"{name} {given[0]}"
        for name, given in values.items()
        if name not in differing and given[0] is not None
    )
    commits = {record["environment"]["commit"] for record in records if "environment" in record}
    if len(commits) > 1:
        heading += f"; the runs are of {len(commits)} commits"
    parts: list[list[dict[str, Any]]] = [[], [], []]
    for setting, runs in settings.items():
        own = {name: value for name, value in zip(_SETTING, setting) if name in differing}
        for rows, of_setting in zip(parts, (_methods(runs), _pairs(runs), _problems(runs)), strict=True):
            rows += [{**own, **row} for row in of_setting]
    return heading, [rows for rows in parts if rows]


def _by_setting(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, list[Record]]]:
    """Return the runs by setting, then by method, with the options that a method has."""
    settings: dict[tuple[Any, ...], dict[str, dict[Any, Record]]] = {}
    for record in records:
        options = dict(record.get("options", {}))
        limit = options.pop("max_time", None)  # runs of drawn sets have it beside their options
        flat = {"max_time": limit, **record}
        method = " ".join([record["method"], *(f"{name}={value}" for name, value in options.items())])
        runs = settings.setdefault(tuple(flat.get(name) for name in _SETTING), {}).setdefault(method, {})
        runs[record["problem"], record["seed"]] = record
    return {
        setting: {method: list(runs.values()) for method, runs in methods.items()}
        for setting, methods in settings.items()
    }


def _methods(runs: Mapping[str, Sequence[Record]]) -> Iterator[dict[str, Any]]:
    for method, own in runs.items():
        s = summary(method, own)
        yield {
            "method": method,
            "problems": s.n_problems,
            "runs": s.n_runs,
            "failed": s.n_failed,
            "recovery %": f"{s.recovery:.1f} ({s.low:.1f} to {s.high:.1f})",
            "form %": s.form,
            "on front %": s.on_front,
            "seconds": s.seconds,
            "equations until found": s.evaluations,
            "complexity": s.complexity,
        }


def _pairs(runs: Mapping[str, Sequence[Record]]) -> Iterator[dict[str, Any]]:
    for pair in comparisons(runs):
        yield {name.replace("n_", ""): value for name, value in pair._asdict().items()}


def _problems(runs: Mapping[str, Sequence[Record]]) -> Iterator[dict[str, Any]]:
    """Yield how many runs found the law of each problem, by method; names of drawn problems tell nothing."""
    records = [record for own in runs.values() for record in own if "draw_seed" not in record]
    for problem in dict.fromkeys(record["problem"] for record in records):
        row = {"problem": problem}
        for method, own in runs.items():
            found = [is_success(record) for record in own if record["problem"] == problem]
            row[method] = f"{sum(found)} of {len(found)}"
        yield row


def _mean(values: Iterable[float]) -> float | None:
    values = list(values)
    return fmean(values) if values else None
