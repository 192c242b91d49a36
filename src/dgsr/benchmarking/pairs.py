"""Paired comparisons of methods on drawn problems: discordant pairs and McNemar's test.

python -m dgsr.benchmarking.pairs FILE.jsonl ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any

from scipy.stats import binomtest

from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.tables import wilson_interval
from dgsr.reporting.numbers import cell

# Entries of a record that must agree for two methods to be compared.
_SETTING = ("set", "draw_seed", "noise", "max_time", "budget")
# Entries that must agree for two runs to be a pair.
_PROBLEM = ("problem", "seed")

# The runs of one setting by method, then by problem and seed.
_Runs = dict[str, dict[tuple[Any, ...], Mapping[str, Any]]]


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


def summarise_methods(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each setting and method.

    Returns
    -------
    list of dict
        set, draw_seed, noise, max_time, budget, method, runs, failed, found (with the 95% interval of its
        share, in %), on_front (number of runs with the equation on the front), form (number of runs
        whose formula has the form of the equation; of older records None), evaluations (median), seconds
        (total). A run that failed counts as not found.
    """
    rows = []
    for setting, runs in _by_setting(records).items():
        for method, by_problem in runs.items():
            own = list(by_problem.values())
            forms = [run["form"] for run in own if "form" in run]
            result = {
                "runs": len(own),
                "failed": sum("error" in run for run in own),
                "found": _found(own),
                "on_front": sum(bool(run.get("on_front")) for run in own),
                "form": sum(forms) if forms else None,
                "evaluations": _median(own),
                "seconds": _seconds(own),
            }
            rows.append({**dict(zip(_SETTING, setting)), "method": method, **result})
    return rows


def compare(records: Iterable[Mapping[str, Any]], by_columns: bool = False) -> list[dict[str, Any]]:
    """Return one row for each pair of methods and each setting, with `by_columns` for each number of columns.

    If a run has several records, the last one counts. A failed run counts as not found.

    Returns
    -------
    list of dict
        set, draw_seed, noise, max_time, budget, first and second (methods), columns (with `by_columns`), n
        (problems that both ran on), first_found and second_found (with the 95% interval of the share, in %),
        only_first, only_second, p (of McNemar's exact test), first_seconds and second_seconds (totals over
        all n), first_evaluations and second_evaluations (medians over the problems that both found).
    """
    rows = []
    for setting, runs in _by_setting(records).items():
        for first, second in combinations(runs, 2):
            pairs = [(run, runs[second][key]) for key, run in runs[first].items() if key in runs[second]]
            names = {**dict(zip(_SETTING, setting)), "first": first, "second": second}
            if not by_columns:
                rows += [{**names, **_compared(pairs)}] if pairs else []
                continue
            for columns in sorted({run["columns"] for run, _ in pairs}):
                some = [pair for pair in pairs if pair[0]["columns"] == columns]
                rows.append({**names, "columns": columns, **_compared(some)})
    return rows


def _compared(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    first, second = zip(*pairs)
    found = [(bool(a.get("found")), bool(b.get("found"))) for a, b in pairs]
    only_first, only_second = found.count((True, False)), found.count((False, True))
    both_found = [pair for pair, each in zip(pairs, found) if all(each)]
    return {
        "n": len(pairs),
        "first_found": _found(first),
        "second_found": _found(second),
        "only_first": only_first,
        "only_second": only_second,
        "p": mcnemar(only_first, only_second),
        "first_seconds": _seconds(first),
        "second_seconds": _seconds(second),
        "first_evaluations": _median([pair[0] for pair in both_found]),
        "second_evaluations": _median([pair[1] for pair in both_found]),
    }


def _by_setting(records: Iterable[Mapping[str, Any]]) -> dict[tuple[Any, ...], _Runs]:
    """Return the runs on drawn problems by setting, with methods in the order of the records."""
    drawn = [record for record in records if "draw_seed" in record]
    methods = dict.fromkeys(record["method"] for record in drawn)
    settings: dict[tuple[Any, ...], _Runs] = {}
    for record in drawn:
        runs = settings.setdefault(_values(record, _SETTING), {method: {} for method in methods})
        runs[record["method"]][_values(record, _PROBLEM)] = record
    return {
        setting: {method: by_problem for method, by_problem in runs.items() if by_problem}
        for setting, runs in settings.items()
    }


def _values(record: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(record[name] for name in names)


def _found(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the number of runs that found their equation, with the 95% interval of its share."""
    n_found = sum(bool(run.get("found")) for run in runs)
    low, high = wilson_interval(n_found, len(runs))
    return f"{n_found} ({100 * low:.1f} to {100 * high:.1f}%)"


def _seconds(runs: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(run.get("seconds", 0.0) for run in runs))


def _median(runs: Sequence[Mapping[str, Any]]) -> float | None:
    evaluations = [run["evaluations"] for run in runs if "evaluations" in run]
    return float(median(evaluations)) if evaluations else None


def tables(records: Iterable[Mapping[str, Any]]) -> tuple[str, list[list[dict[str, Any]]]]:
    """Return a heading and tables of the records for readers.

    The heading has the settings that all runs have in common, and a note if they are of several commits; it
    is empty if no run is on a drawn problem. The tables, with the other settings, have rows for methods, for
    pairs, and for pairs by number of columns.
    """
    records = [record for record in records if "draw_seed" in record]
    if not records:
        return "", []
    common = {name: records[0][name] for name in _SETTING if len({record[name] for record in records}) == 1}
    heading = ", ".join(f"{name} {value}" for name, value in common.items() if value is not None)
    commits = {record["environment"]["commit"] for record in records if "environment" in record}
    if len(commits) > 1:
        heading += f"; the runs are of {len(commits)} commits"
    parts = (summarise_methods(records), compare(records), compare(records, by_columns=True))
    return heading, [
        [{name: value for name, value in row.items() if name not in common} for row in rows]
        for rows in parts
        if rows
    ]


def to_markdown(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the `tables` as Markdown, below their heading."""
    heading, parts = tables(records)
    return "\n\n".join([heading, *("\n".join(_lines(rows)) for rows in parts)]) + "\n"


def _lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| " + " | ".join(name.replace("_", " ") for name in rows[0]) + " |"
    yield "|" + "|".join("---" if isinstance(value, str) else "---:" for value in rows[0].values()) + "|"
    for row in rows:
        yield "| " + " | ".join(cell(value) for value in row.values()) + " |"


def main() -> None:
    """Print the tables of the files named on the command line."""
    print(to_markdown([record for path in sys.argv[1:] for record in read_records(path)]), end="")


if __name__ == "__main__":
    main()
