"""Run methods on problems, and test whether they find the true formulas."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking.drawn import DrawnProblem
from dgsr.benchmarking.fits import timed_fit
from dgsr.benchmarking.methods import METHODS, check_methods
from dgsr.benchmarking.recording import nmse, plain, record_all
from dgsr.benchmarking.recovery import has_the_form, is_found, is_recovered
from dgsr.estimator.parameters import MOST_TOKENS
from dgsr.problems import Problem, Sample, load_problem, load_set
from dgsr.reporting.numbers import finite

#: Most equations of a run that only a time limit ends.
UNBOUNDED = 10**9
# The entries of a record that identify a run, those that it has: named problems have options, and drawn ones
# a seed and a limit of time.
_KEY = ("set", "draw_seed", "problem", "method", "seed", "noise", "max_time", "budget", "options")


class _Run(NamedTuple):
    """One run: a problem, a method, and the settings."""

    problem: Any  # Problem or DrawnProblem
    method: str
    make_regressor: Callable[..., Any]
    seed: int
    budget: int
    options: Mapping[str, Any]  # further parameters of the regressor
    noise: float

    def identity(self) -> dict[str, Any]:
        """Return the entries of the record that are known before the run."""
        problem, options = self.problem, {name: plain(value) for name, value in self.options.items()}
        entries = {
            "problem": problem.name,
            "set": problem.set,
            "method": self.method,
            "seed": int(self.seed),
            "budget": int(self.budget),
            "noise": float(self.noise),
            "library": problem.library,
        }
        if isinstance(problem, Problem):
            return {**entries, "options": options}
        return {
            **entries,
            "draw_seed": int(problem.seed),
            "max_time": options.get("max_time"),
            "rows": problem.n_rows,
            "columns": problem.n_columns,
            "variables": problem.n_variables,
            "constants": len(problem.truth.constants),
            "truth": str(problem.truth),
            "truth_length": problem.truth.length,
        }

    def record(self) -> dict[str, Any]:
        """Fit the method to the problem's data, and return the record of the run."""
        problem = self.problem
        is_named = isinstance(problem, Problem)
        data = problem.sample(self.seed, self.noise) if is_named else problem.sample(self.noise)
        parameters = {"max_length": min(problem.max_length, MOST_TOKENS), "random_state": self.seed}
        fit = self.method, self.make_regressor, data, problem.library, self.budget
        regressor, entries = timed_fit(*fit, **parameters, **self.options)
        verdict = _verdict_on_named if is_named else _verdict_on_drawn
        return {**self.identity(), **entries, **verdict(self, regressor, data, entries["test_nmse"])}


def _verdict_on_named(run: _Run, regressor: Any, data: Sample, error: float | None) -> dict[str, Any]:
    """Return the entries on whether the formula of a named problem is its law, and how that is written."""
    problem, expression = run.problem, regressor.expression_
    recovery = is_recovered(expression, problem)
    found = {}
    if problem.set == "laws":  # the rule of `is_recovered` rounds constants of laws to 0
        found = {"found": is_found_for(problem, run.seed, run.noise, error)}
    return {
        **found,
        "recovered": recovery.recovered,
        "how": recovery.how,
        "error_vs_truth": finite(recovery.error),
        "rows": len(data.y_train),
        "formula": str(expression.with_feature_names(problem.variable_names)),
    }


def _verdict_on_drawn(run: _Run, regressor: Any, data: Sample, error: float | None) -> dict[str, Any]:
    """Return the entries on whether formulas for a drawn problem are its law, by rows without noise."""
    front = [nmse(data.y_test, c.expression(data.X_test)) for c in regressor.pareto_front_]
    complexity = run.problem.truth.complexity
    return {
        "found": is_found(error, run.noise),
        "on_front": any(is_found(each, run.noise) for each in front),
        "form": has_the_form(regressor.expression_, data.X_test, data.y_test, complexity),
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
        If a set, problem or method is unknown, `n_jobs` is 0, or runs would be added to a file with runs of
        another commit.
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


def run_drawn(
    problems: Sequence[DrawnProblem],
    methods: Sequence[str] = ("dgsr",),
    *,
    seeds: int | Iterable[int] = 1,
    noise: float = 0.0,
    max_time: float | None = None,
    budget: int | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Run every method on drawn problems, problem by problem.

    Parameters
    ----------
    problems : sequence of DrawnProblem
        The problems, which `draw_problems` returns.
    noise : float
        Standard deviation of the noise on y, in standard deviations of y.
    max_time : float, optional
        Most seconds of a search.
    budget : int, optional
        Most equations that a run evaluates; 2,000,000 by default, or 1,000,000,000 with a `max_time`.
    methods, seeds
        These are the parameters of `run_set`.
    **settings
        `n_jobs`, `out`, `callback`, `until` and `any_commit`, as in `run_set`.

    Returns
    -------
    list of dict
        The records of all these runs, including those read from `out`: set, draw_seed, problem, method, seed,
        noise, max_time, budget, library, rows, columns, variables (of the equation), constants, truth,
        truth_length, found (whether the chosen formula is the equation, see
        `dgsr.benchmarking.recovery.is_found`), on_front (whether any formula of the front is), form (whether
        the chosen one has its form, see `dgsr.benchmarking.recovery.has_the_form`), seconds, formula,
        complexity, train_nmse, test_nmse, the entries of `dgsr.benchmarking.fits.described`, and the
        `environment`.

    Raises
    ------
    ValueError
        If a method is unknown, or runs would be added to a file with runs of another commit.
    OSError
        If `out` cannot be read or written.
    """
    check_methods(methods)
    if budget is None:
        budget = 2_000_000 if max_time is None else UNBOUNDED
    options = {} if max_time is None else {"max_time": float(max_time)}
    runs = [
        _Run(problem, method, METHODS[method], seed, budget, options, noise)
        for problem in problems
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
        for method in methods
    ]
    return record_all(runs, _KEY, **settings)


def _chosen_problems(set_name: str, names: Iterable[str] | None) -> list[Problem]:
    in_set = load_set(set_name)
    if names is None:
        return in_set
    chosen = [load_problem(name) for name in names]
    strangers = [problem.name for problem in chosen if problem not in in_set]
    if strangers:
        raise ValueError(f"problems={strangers} are not in the set {set_name!r}.")
    return chosen
