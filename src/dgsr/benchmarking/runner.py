"""Run methods on the problems of a set, and test whether they recover the true formulas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking.fits import timed_fit
from dgsr.benchmarking.methods import METHODS, check_methods
from dgsr.benchmarking.recording import plain, record_all
from dgsr.benchmarking.recovery import is_found, is_recovered
from dgsr.estimator.parameters import MOST_TOKENS
from dgsr.problems import Problem, load_problem, load_set
from dgsr.reporting.numbers import finite

# The entries of a record that identify a run.
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

    def identity(self) -> dict[str, Any]:
        """Return the entries of the record that are known before the run."""
        return {
            "problem": self.problem.name,
            "set": self.problem.set,
            "method": self.method,
            "seed": int(self.seed),
            "budget": int(self.budget),
            "noise": float(self.noise),
            "options": {name: plain(value) for name, value in self.options.items()},
            "library": self.problem.library,
        }

    def record(self) -> dict[str, Any]:
        """Fit the method to the problem's data, and return the record of the run."""
        problem = self.problem
        data = problem.sample(self.seed, self.noise)
        max_length = min(problem.max_length, MOST_TOKENS)
        settings: dict[str, Any] = {"max_length": max_length, "random_state": self.seed}
        make, limits = self.make_regressor, (problem.library, self.budget)
        regressor, entries = timed_fit(self.method, make, data, *limits, **settings, **self.options)
        expression = regressor.expression_
        recovery = is_recovered(expression, problem)
        found = {}
        if problem.set == "laws":  # the rule of `is_recovered` rounds constants of laws to 0
            found = {"found": is_found_for(problem, self.seed, self.noise, entries["test_nmse"])}
        return {
            **self.identity(),
            **found,
            "recovered": recovery.recovered,
            "how": recovery.how,
            "error_vs_truth": finite(recovery.error),
            "rows": len(data.y_train),
            **entries,
            "formula": str(expression.with_feature_names(problem.variable_names)),
        }


def is_found_for(problem: Problem, seed: int, noise: float, error: float | None) -> bool:
    """Return whether a formula is the law by `is_found`, given its NMSE on the test rows.

    `noise` is a level of `Problem.sample`, in root mean squares of y; `is_found` takes standard deviations.
    """
    y = problem.sample(seed).y_train
    return is_found(error, noise * float(np.sqrt(np.mean(y**2)) / np.std(y)))


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
    until: float | None = None,
    any_commit: bool = False,
    noise: float = 0.0,
) -> list[dict[str, Any]]:
    """Run every method on every problem of a set with every seed.

    Parameters
    ----------
    set_name : str
        A name from `dgsr.problems.list_sets()`.
    problems : iterable of str, optional
        Names of problems of the set; all by default.
    methods : sequence of str
        Keys of `METHODS`.
    seeds : int or iterable of int
        The seeds, or their number n for the seeds 0 to n - 1.
    budget : int
        Most equations that a run evaluates.
    n_jobs : int
        Number of runs at a time, each in a process with one thread; 1 runs them in this process. Every
        process makes one short fit of a method, which is not recorded, before the first timed one.
    out : path, optional
        File to which each record is appended when its run ends. Runs in the file are not run again unless
        they failed, so that the same call resumes after an interruption.
    options : mapping of str to mapping, optional
        Further parameters of the regressor, by method.
    callback : callable, optional
        Called with each new record.
    until : float, optional
        Time, in seconds of `time.monotonic`, after which no further run begins.
    any_commit : bool
        Whether runs may be added to a file with runs of another commit.
    noise : float
        Level of the noise on y (see `Problem.sample`).

    Returns
    -------
    list of dict
        The records of all these runs, including those read from `out`, in the order of problem, method and
        seed: problem, set, method, seed, budget, noise, options, library, found (only for the set `laws`; see
        `is_found_for`), recovered, how, error_vs_truth, rows, seconds, formula (in the problem's variables),
        complexity, train_nmse, test_nmse, the entries of `dgsr.benchmarking.fits.described`, and the
        `environment`. Numbers that are not finite are `None`.

    Raises
    ------
    ValueError
        If a set, problem or method is unknown, or runs would be added to a file with runs of another commit.
    OSError
        If `out` cannot be written; this is raised before any run.
    """
    check_methods(methods)
    chosen = _chosen_problems(set_name, problems)
    seeds = range(seeds) if isinstance(seeds, int) else list(seeds)
    options = options or {}
    runs = [
        _Run(problem, method, METHODS[method], seed, budget, dict(options.get(method, {})), noise)
        for problem in chosen
        for method in methods
        for seed in seeds
    ]
    return record_all(runs, _KEY, n_jobs, out, callback, until, any_commit)


def _chosen_problems(set_name: str, names: Iterable[str] | None) -> list[Problem]:
    in_set = load_set(set_name)
    if names is None:
        return in_set
    chosen = [load_problem(name) for name in names]
    strangers = [problem.name for problem in chosen if problem not in in_set]
    if strangers:
        raise ValueError(f"problems={strangers} are not in the set {set_name!r}.")
    return chosen
