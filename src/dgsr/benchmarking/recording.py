"""Make runs and record each as one line of JSON, so that an interrupted set of runs can be resumed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.record_files import adding_to, read_records
from dgsr.reporting.numbers import finite


class Run(Protocol):
    """A run that can be made in this process or another."""

    def identity(self) -> dict[str, Any]:
        """Return the entries of the record that are known before the run."""

    def record(self) -> dict[str, Any]:
        """Make the run and return its record, plain JSON."""


def record_all(
    runs: Iterable[Run],
    key: Sequence[str],
    n_jobs: int | None = 1,
    out: str | os.PathLike | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
    until: float | None = None,
    any_commit: bool = False,
) -> list[dict[str, Any]]:
    """Make the runs that a file lacks, and return the records of all runs that were made in time.

    Parameters
    ----------
    runs : iterable of Run
    key : sequence of str
        The entries of a record that identify a run.
    n_jobs, out, callback, until, any_commit
        As in `dgsr.benchmarking.run_set`. The file `out` is compressed if its name ends in ``.gz``.

    Raises
    ------
    ValueError
        If `n_jobs` is 0, or runs would be added to a file with runs of another or of an unknown commit.
    OSError
        If `out` cannot be written; this is raised before any run.
    """

    def name(record: Mapping[str, Any]) -> str:
        return json.dumps([record.get(entry) for entry in key], sort_keys=True)

    if n_jobs == 0:
        raise ValueError("n_jobs=0 leaves no run a process; give 1, or more, or -1 for one per core.")
    by_name = {name(run.identity()): run for run in runs}
    known = read_records(out) if out and Path(out).exists() else []
    records = {name(record): record for record in known}
    records = {key: record for key, record in records.items() if key in by_name and "error" not in record}
    missing = [run for key, run in by_name.items() if key not in records]
    if missing and not any_commit:
        _refuse_other_commits(out, known)
    if out is not None:
        open(out, "ab").close()  # a file that cannot be written is an error before the first run
    in_time = takewhile(lambda _: until is None or time.monotonic() < until, missing)
    # The environment is read before the first run, so that a later commit is not recorded.
    record_of = partial(_record_safely, its=environment() if missing else {})
    with nullcontext() if out is None else adding_to(out, known) as add:
        for record in _in_parallel(record_of, in_time, n_jobs):
            if add is not None:
                add(record)
            records[name(record)] = record
            if callback is not None:
                callback(record)
    return [records[key] for key in by_name if key in records]


def commit_of(record: Mapping[str, Any]) -> str:
    """Return the commit of a record, or its version if it was not made in a checkout."""
    its = record.get("environment") or {}
    commit = its.get("commit", "unknown")
    return f"unknown of version {its['version']}" if commit == "unknown" and "version" in its else commit


def _refuse_other_commits(path: str | os.PathLike | None, records: Iterable[Mapping[str, Any]]) -> None:
    """Raise ValueError if records in a file are of another commit than the present one."""
    own = commit_of({"environment": environment()})
    others = sorted({commit_of(record) for record in records} - {own})
    if others:
        raise ValueError(
            f"out={str(path)!r} has runs of commit {', '.join(others)}, and this is commit {own}; name "
            "another file, check out that commit, or allow it with any_commit=True (--any-commit)."
        )


def _record_safely(run: Run, its: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record of a run with its environment; an exception is recorded, too."""
    try:
        return {**run.record(), "environment": its}
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return {**run.identity(), "error": text, "environment": its}


def _in_parallel(
    record_of: Callable[[Run], dict[str, Any]], runs: Iterable[Run], n_jobs: int | None
) -> Iterable[dict[str, Any]]:
    """Yield the records in the order in which runs end; runs begin in the given order."""
    if n_jobs in (None, 1):
        return map(record_of, runs)
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    return parallel(map(joblib.delayed(record_of), runs))


def plain(value: Any) -> Any:
    """Return `value` after a round trip through JSON, or as text if JSON cannot represent it."""
    return json.loads(json.dumps(value, default=str))


def nmse(y: np.ndarray, prediction: np.ndarray) -> float | None:
    """Return the mean squared error over the variance of `y`, or None if it is not finite."""
    with np.errstate(all="ignore"):
        return finite(np.mean((y - prediction) ** 2) / np.var(y))
