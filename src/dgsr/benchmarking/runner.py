"""Run methods on benchmark problems and record each run as one line of JSON, so that a killed set goes on."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking.recovery import is_recovered
from dgsr.benchmarking.tables import read_records
from dgsr.problems import Problem, load_problem, load_set


def _dgsr_regressor(**parameters):
    from dgsr.regressor import DGSRRegressor

    return DGSRRegressor(**parameters)


def _wrong_data_regressor(**parameters):
    from dgsr.baselines.wrong_data import WrongDataRegressor

    return WrongDataRegressor(**parameters)


#: The methods by name: functions that make an unfitted regressor from `library`, `max_evaluations`,
#: `max_length`, `random_state` and the options of the run. The regressor has `fit` and `predict`, and once it
#: is fitted `expression_`, `n_evaluations_` and `stop_reason_`. ``misled`` is the wrong-data control,
#: ``generator`` is without exact search and ``exact`` is without a generator.
METHODS: dict[str, Callable[..., Any]] = {
    "dgsr": partial(_dgsr_regressor, generator="auto"),
    "generator": partial(_dgsr_regressor, generator="auto", look_up=False),
    "misled": partial(_wrong_data_regressor, look_up=False),
    "untrained": partial(_dgsr_regressor, generator="untrained", look_up=False),
    "gp": partial(_dgsr_regressor, generator=None, look_up=False),
    "exact": partial(_dgsr_regressor, generator=None),
}

# The entries of a record that tell one run from another.
_KEY = ("problem", "method", "seed", "budget", "noise", "options")


class _Run(NamedTuple):
    """One run: a problem, a method, and the settings."""

    problem: Problem
    method: str
    make_regressor: Callable[..., Any]
    seed: int
    budget: int
    options: Mapping[str, Any]
    noise: float = 0.0
    confirm: bool = True

    def identity(self) -> dict[str, Any]:
        """Return the entries of the record that are known before the run."""
        return {
            "problem": self.problem.name,
            "set": self.problem.set,
            "method": self.method,
            "seed": int(self.seed),
            "budget": int(self.budget),
            "noise": float(self.noise),
            "options": {name: _plain(value) for name, value in self.options.items()},
        }

    def record(self) -> dict[str, Any]:
        """Fit the method to the problem's data, and return the record of the run."""
        problem = self.problem
        data = problem.sample(self.seed, self.noise)
        regressor = self.make_regressor(
            library=problem.library,
            max_evaluations=self.budget,
            max_length=problem.max_length,
            random_state=self.seed,
            **self.options,
        )
        start = time.perf_counter()
        regressor.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        expression = regressor.expression_
        recovery = is_recovered(expression, problem, confirm=self.confirm)
        return {
            **self.identity(),
            "recovered": recovery.recovered,
            "how": recovery.how,
            "confirmed": recovery.confirmed,
            "error_vs_truth": _finite(recovery.error),
            "evaluations": int(regressor.n_evaluations_),
            "seconds": seconds,
            "formula": str(expression.with_feature_names(problem.variable_names)),
            "complexity": expression.complexity,
            "train_nmse": _nmse(data.y_train, regressor.predict(data.X_train)),
            "test_nmse": _nmse(data.y_test, regressor.predict(data.X_test)),
            "stop_reason": str(regressor.stop_reason_),
        }


def run_one(
    problem: Problem | str,
    method: str = "dgsr",
    seed: int = 0,
    budget: int = 2_000_000,
    *,
    noise: float = 0.0,
    confirm: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Fit one method to one problem and judge the result.

    Parameters
    ----------
    problem : Problem or str
    method : str
        A key of `METHODS`.
    seed : int
        Seed of the data, ``problem.sample(seed)``, and of the method.
    budget : int
        Most equations to evaluate.
    noise : float
        Level of the noise on y, see `Problem.sample`.
    confirm : bool
        Whether sympy confirms recovery, see `is_recovered`.
    **options
        Further parameters of the regressor.

    Returns
    -------
    dict
        problem, set, method, seed, budget, noise, options, recovered, how, confirmed, error_vs_truth,
        evaluations, seconds, formula, complexity, train_nmse, test_nmse, stop_reason. Numbers that are not
        finite are `None`, so that every record is plain JSON. The formula is in the problem's variables.
    """
    _check_methods([method])
    problem = load_problem(problem) if isinstance(problem, str) else problem
    return _Run(problem, method, METHODS[method], seed, budget, options, noise, confirm).record()


def _run_safely(run: _Run) -> dict[str, Any]:
    """Return the record of a run; an exception is recorded, so that one failure does not end the others."""
    try:
        return run.record()
    except Exception as error:
        return {**run.identity(), "recovered": False, "error": f"{type(error).__name__}: {error}"}


def run_set(
    set_name: str,
    problems: Iterable[str] | None = None,
    methods: Sequence[str] = ("dgsr",),
    seeds: int | Iterable[int] = 10,
    budget: int = 2_000_000,
    n_jobs: int | None = 1,
    out: str | os.PathLike | None = None,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Run every method on every problem of a set with every seed.

    Parameters
    ----------
    set_name : str
        One of `dgsr.problems.list_sets()`.
    problems : iterable of str, optional
        Names of problems of the set; all by default.
    methods : sequence of str
        Keys of `METHODS`.
    seeds : int or iterable of int
        The seeds, or their number n for the seeds 0 to n - 1.
    budget : int
        Most equations that a run evaluates.
    n_jobs : int
        Number of runs at a time, each in a process with one thread; 1 runs them in this process.
    out : path, optional
        File that each record is added to as it comes. Runs in the file are not run again unless they
        failed, so that the same call goes on after it was killed.
    options : mapping of str to mapping, optional
        Further parameters of the regressor, by method.
    callback : callable, optional
        Called with each new record.
    **settings
        `noise` and `confirm`, as in `run_one`.

    Returns
    -------
    list of dict
        The records of all these runs, those read from `out` included, in the order of problem, method and
        seed.

    Raises
    ------
    ValueError
        If a set, problem or method is unknown.
    OSError
        If `out` cannot be written; it is raised before anything is run.
    """
    _check_methods(methods)
    chosen = _chosen_problems(set_name, problems)
    seeds = range(seeds) if isinstance(seeds, int) else list(seeds)
    options = options or {}
    runs = [
        _Run(problem, method, METHODS[method], seed, budget, dict(options.get(method, {})), **settings)
        for problem in chosen
        for method in methods
        for seed in seeds
    ]
    by_key = {_key(run.identity()): run for run in runs}
    records = {_key(record): record for record in read_records(out)} if out and Path(out).exists() else {}
    records = {key: record for key, record in records.items() if key in by_key and "error" not in record}
    if out is not None:
        open(out, "ab").close()  # a file that cannot be written is an error now, and not after a run
    for record in _in_parallel([run for key, run in by_key.items() if key not in records], n_jobs):
        if out is not None:
            _append(Path(out), record)
        records[_key(record)] = record
        if callback is not None:
            callback(record)
    return [records[key] for key in by_key]


def _check_methods(methods: Sequence[str]) -> None:
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise ValueError(f"methods={unknown} are unknown; choose from {', '.join(METHODS)}.")


def _chosen_problems(set_name: str, names: Iterable[str] | None) -> list[Problem]:
    in_set = load_set(set_name)
    if names is None:
        return in_set
    chosen = [load_problem(name) for name in names]
    strangers = [problem.name for problem in chosen if problem not in in_set]
    if strangers:
        raise ValueError(f"problems={strangers} are not in the set {set_name!r}.")
    return chosen


def _in_parallel(runs: list[_Run], n_jobs: int | None) -> Iterable[dict[str, Any]]:
    """Yield the records as runs finish."""
    if n_jobs in (None, 1) or len(runs) < 2:
        return map(_run_safely, runs)
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    return parallel(map(joblib.delayed(_run_safely), runs))


def _plain(value: Any) -> Any:
    """Return `value` as JSON would give it back, as text if JSON cannot hold it."""
    return json.loads(json.dumps(value, default=str))


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps([record.get(name) for name in _KEY], sort_keys=True)


def _append(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record to a file as one line, and wait until it is on the disk."""
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with open(path, "ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a line cut off when the writer was killed
                line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _finite(value: float) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None


def _nmse(y: np.ndarray, prediction: np.ndarray) -> float | None:
    with np.errstate(all="ignore"):
        return _finite(np.mean((y - prediction) ** 2) / np.var(y))
