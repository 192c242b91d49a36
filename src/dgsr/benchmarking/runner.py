"""Run methods on problems: one line of JSON for each run, in a file that can be added to at any time."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dgsr.benchmarking.recovery import is_recovered
from dgsr.benchmarking.tables import read_records
from dgsr.problems import Problem, load_problem, load_set


def _dgsr_regressor(**parameters):
    from dgsr.regressor import DGSRRegressor

    return DGSRRegressor(**parameters)


def _misled_regressor(**parameters):
    from dgsr.baselines.misled import MisledRegressor

    return MisledRegressor(**parameters)


#: What a method's name stands for: a function that makes an unfitted regressor from `library`,
#: `max_evaluations`, `max_length`, `random_state` and the options of the run. The regressor has
#: `fit`, `predict` and afterwards `expression_`, `n_evaluations_` and `stop_reason_`.
METHODS: dict[str, Callable[..., Any]] = {
    "dgsr": partial(_dgsr_regressor, generator="auto"),
    "sampled": partial(_dgsr_regressor, generator="auto", look_up=False),
    "misled": partial(_misled_regressor, look_up=False),
    "untrained": partial(_dgsr_regressor, generator="untrained", look_up=False),
    "gp": partial(_dgsr_regressor, generator=None, look_up=False),
    "look-up": partial(_dgsr_regressor, generator=None),
}

# What tells one run from another.
_KEY = ("problem", "method", "seed", "budget", "noise", "options")


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
        Of the data, ``problem.sample(seed)``, and of the method.
    budget : int
        Most equation evaluations.
    noise : float
        As in `Problem.sample`.
    confirm : bool
        Whether sympy confirms recovery, as in `is_recovered`.
    **options
        Further parameters of the regressor.

    Returns
    -------
    dict
        problem, set, method, seed, budget, noise, options, recovered, how, confirmed, evaluations,
        seconds, formula, complexity, train_nmse, test_nmse, stop_reason. Numbers that are not
        finite are `None`, so that every record is plain JSON. The formula has the problem's names.
    """
    _check_methods([method])
    problem = load_problem(problem) if isinstance(problem, str) else problem
    return _run(problem, method, METHODS[method], seed, budget, noise, confirm, options)


def _run(
    problem: Problem,
    method: str,
    make_regressor: Callable[..., Any],
    seed: int,
    budget: int,
    noise: float,
    confirm: bool,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    data = problem.sample(seed, noise)
    regressor = make_regressor(
        library=problem.library,
        max_evaluations=budget,
        max_length=problem.max_length,
        random_state=seed,
        **options,
    )
    start = time.perf_counter()
    regressor.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    expression = regressor.expression_
    recovery = is_recovered(expression, problem, confirm=confirm)
    return {
        **_identity(problem, method, seed, budget, noise, options),
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


def _run_safely(problem: Problem, method: str, *arguments: Any) -> dict[str, Any]:
    """Run; an exception becomes a record, so that one failure does not end the others."""
    try:
        return _run(problem, method, *arguments)
    except Exception as error:
        _, seed, budget, noise, _, options = arguments
        identity = _identity(problem, method, seed, budget, noise, options)
        return {**identity, "recovered": False, "error": f"{type(error).__name__}: {error}"}


def run_set(
    set_name: str,
    problems: Iterable[str] | None = None,
    methods: Sequence[str] = ("dgsr",),
    seeds: int | Iterable[int] = 10,
    budget: int = 2_000_000,
    n_jobs: int | None = 1,
    out: str | os.PathLike | None = None,
    *,
    noise: float = 0.0,
    confirm: bool = True,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run every method on every problem of a set with every seed.

    Parameters
    ----------
    set_name : str
        One of `dgsr.problems.list_sets()`.
    problems : iterable of str, optional
        Names of the problems of the set to run; all by default.
    methods : sequence of str
        Keys of `METHODS`.
    seeds : int or iterable of int
        The seeds, or how many: 0, 1, ...
    budget : int
        Most equation evaluations of a run.
    n_jobs : int
        Runs at a time, each in a process with one thread; 1 runs them here.
    out : path, optional
        Each record is appended as it comes, on the disk before the next. Runs that are there
        already are not run again, except those that failed; so a killed call is resumed by the
        same call.
    noise, confirm
        The same as in `run_one`.
    options : mapping of method to mapping, optional
        Further parameters of the regressor of a method.
    callback : callable, optional
        Called with each new record.

    Returns
    -------
    list of dict
        The records of all runs asked for, also those read from `out`, in the order problem, method,
        seed.

    Raises
    ------
    ValueError
        If a set, problem or method is unknown.
    OSError
        If `out` cannot be written; before anything is run.
    """
    _check_methods(methods)
    chosen = _chosen_problems(set_name, problems)
    seeds = range(seeds) if isinstance(seeds, int) else list(seeds)
    options = options or {}
    tasks = {}
    for problem in chosen:
        for method in methods:
            for seed in seeds:
                arguments = (seed, budget, noise, confirm, dict(options.get(method, {})))
                key = _key(_identity(problem, method, seed, budget, noise, arguments[-1]))
                tasks[key] = (problem, method, METHODS[method], *arguments)
    records = {_key(record): record for record in read_records(out)} if out and Path(out).exists() else {}
    records = {key: record for key, record in records.items() if key in tasks and "error" not in record}
    if out is not None:
        open(out, "ab").close()  # one that cannot be written is told now, and not after a run
    for record in _in_parallel([task for key, task in tasks.items() if key not in records], n_jobs):
        if out is not None:
            _append(Path(out), record)
        records[_key(record)] = record
        if callback is not None:
            callback(record)
    return [records[key] for key in tasks]


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


def _in_parallel(tasks: list[tuple], n_jobs: int | None) -> Iterable[dict[str, Any]]:
    """Yield the records as runs finish."""
    if n_jobs in (None, 1) or len(tasks) < 2:
        return (_run_safely(*task) for task in tasks)
    import joblib

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    return parallel(joblib.delayed(_run_safely)(*task) for task in tasks)


def _identity(
    problem: Problem, method: str, seed: int, budget: int, noise: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "problem": problem.name,
        "set": problem.set,
        "method": method,
        "seed": int(seed),
        "budget": int(budget),
        "noise": float(noise),
        "options": {name: _plain(value) for name, value in options.items()},
    }


def _plain(value: Any) -> Any:
    """Return what JSON gives back for `value`; what it cannot write, by its text."""
    return json.loads(json.dumps(value, default=str))


def _key(record: Mapping[str, Any]) -> str:
    return json.dumps([record.get(name) for name in _KEY], sort_keys=True)


def _append(path: Path, record: Mapping[str, Any]) -> None:
    """Add one line and wait until it is on the disk."""
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
