"""Tables of the records of runs: recovery with its interval, evaluations and seconds."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from dgsr.benchmarking.record_files import read_records

#: Name of the row over all problems of a set.
ALL = "all"


def is_success(record: Mapping[str, Any]) -> bool:
    """Return whether a run found the law; a failed run did not."""
    return bool(record.get("found", record.get("recovered", False)))


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


def summarise(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each problem and method, and one for each set and method over all its problems.

    If a run has several records, the last one counts. A failed run counts as not recovered.

    Returns
    -------
    list of dict
        set, problem (``"all"`` over a whole set), method, runs, recovery (%), low, high (its 95%
        interval), evaluations and seconds (means). The recovery of a set is the share of all its runs, and
        its interval has the problem as the unit, since seeds of one problem are not independent.

    Raises
    ------
    ValueError
        If a run is on a drawn problem; see `dgsr.benchmarking.pairs` for the tables of these.
    """
    runs = {}
    for record in records:
        if "draw_seed" in record:
            raise ValueError(
                f"The runs include some of the drawn problem {record['problem']}, which is judged by another "
                "rule; print their tables with python -m dgsr.benchmarking.pairs."
            )
        runs[_written(record, _RUN)] = record
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    labels = _labels(runs.values())
    for record in runs.values():
        for problem in (record["problem"], ALL):
            group = record["set"], problem, labels[_written(record, _VARIANT)]
            groups.setdefault(group, []).append(record)
    order = sorted(groups, key=lambda group: group[1] == ALL)  # stable, so that whole sets come last
    return [_row(*group, groups[group]) for group in order]


_VARIANT = ("method", "budget", "noise", "options", "sampled_rows")
_RUN = ("set", "problem", "seed", *_VARIANT)


def _written(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return some entries of a record as JSON."""
    return tuple(json.dumps(record.get(name), sort_keys=True) for name in names)


def _labels(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], str]:
    """Return a label for every variant of a method, with the settings in which variants differ."""
    variants = {_written(record, _VARIANT): record for record in records}
    varies = [key for key, values in zip(_VARIANT, zip(*variants)) if key != "method" and len({*values}) > 1]
    return {
        variant: " ".join([str(record["method"]), *(_setting(key, record.get(key)) for key in varies)])
        for variant, record in variants.items()
    }


def _setting(key: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={inner}" for name, inner in value.items()) or "(defaults)"
    return f"{key}={value}"


def _row(set_name: str, problem: str, label: str, runs: list[Mapping[str, Any]]) -> dict[str, Any]:
    recovered = sum(map(is_success, runs))
    n = len({run["problem"] for run in runs}) if problem == ALL else len(runs)
    low, high = wilson_interval(n * recovered / len(runs), n)
    return {
        "set": set_name,
        "problem": problem,
        "method": label,
        "runs": len(runs),
        "recovery": 100.0 * recovered / len(runs),
        "low": 100.0 * low,
        "high": 100.0 * high,
        "evaluations": mean([run["evaluations"] for run in runs if "evaluations" in run]),
        "seconds": mean([run["seconds"] for run in runs if "seconds" in run]),
    }


def mean(values: Sequence[float]) -> float | None:
    """Return the mean of some numbers, None without any."""
    return fmean(values) if values else None


def to_markdown(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the summary as Markdown, with a table for each set."""
    rows = summarise(records)
    parts = []
    for set_name in dict.fromkeys(row["set"] for row in rows):
        lines = [
            f"### {set_name}",
            "",
            "| problem | method | runs | recovery % (95% interval) | evaluations | seconds |",
            "|---|---|---:|---:|---:|---:|",
        ]
        for row in rows:
            if row["set"] == set_name:
                problem = f"**{ALL}**" if row["problem"] == ALL else row["problem"].replace("*", "\\*")
                lines.append(
                    f"| {problem} | {row['method']} | {row['runs']} "
                    f"| {row['recovery']:.1f} ({row['low']:.1f} to {row['high']:.1f}) "
                    f"| {_number(row['evaluations'], ',.0f')} | {_number(row['seconds'], '.1f')} |"
                )
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def main() -> None:
    """Print the tables of the files named on the command line."""
    print(to_markdown([record for path in sys.argv[1:] for record in read_records(path)]), end="")


if __name__ == "__main__":
    main()
