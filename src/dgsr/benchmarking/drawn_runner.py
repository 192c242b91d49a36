"""Run methods on drawn problems, and judge whether they find the equations."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dgsr.benchmarking.drawn import DrawnProblem
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.methods import METHODS, check_methods
from dgsr.benchmarking.recording import nmse, record_all

#: An equation is found when the NMSE on clean rows is below the larger of the first number, and the second
#: times the square of the noise level.
EXACT, SHARE_OF_NOISE = 1e-8, 0.02
#: Most equations of a run that a time limit ends.
UNBOUNDED = 10**9
# The entries of a record that identify a run.
_KEY = ("set", "draw_seed", "problem", "method", "seed", "noise", "max_time", "budget")
# Equations that the fit before the first timed one evaluates.
_WARM_UP = 2_000

# Methods and libraries that have had their first fit in this process.
_warm: set[tuple[str, str]] = set()


class _Run(NamedTuple):
    """One run: a problem, a method, and the settings."""

    problem: DrawnProblem
    method: str
    make_regressor: Callable[..., Any]
    seed: int
    noise: float
    max_time: float | None
    budget: int

    def identity(self) -> dict[str, Any]:
        """Return the entries of the record that are known before the run."""
        problem = self.problem
        return {
            "set": problem.set,
            "draw_seed": int(problem.seed),
            "problem": problem.name,
            "method": self.method,
            "seed": int(self.seed),
            "noise": float(self.noise),
            "max_time": None if self.max_time is None else float(self.max_time),
            "budget": int(self.budget),
            "rows": problem.n_rows,
            "columns": problem.n_columns,
            "variables": problem.n_variables,
            "constants": len(problem.truth.constants),
            "truth": str(problem.truth),
            "truth_length": problem.truth.length,
        }

    def record(self) -> dict[str, Any]:
        """Fit the method to the problem's data, and return the record of the run."""
        self._warm_up()
        data = self.problem.sample(self.noise)
        regressor = self._regressor(self.budget)
        start = time.perf_counter()
        regressor.fit(data.X_train, data.y_train)
        seconds = time.perf_counter() - start
        error = nmse(data.y_test, regressor.predict(data.X_test))
        front = [nmse(data.y_test, c.expression(data.X_test)) for c in regressor.pareto_front_]
        generator = getattr(regressor, "generator_", "none")
        return {
            **self.identity(),
            "found": is_found(error, self.noise),
            "on_front": any(is_found(each, self.noise) for each in front),
            "evaluations": int(regressor.n_evaluations_),
            "seconds": seconds,
            "formula": str(regressor.expression_),
            "complexity": regressor.expression_.complexity,
            "train_nmse": nmse(data.y_train, regressor.predict(data.X_train)),
            "test_nmse": error,
            "stop_reason": str(regressor.stop_reason_),
            "generator": None if generator == "none" else generator,
            "environment": environment(),
        }

    def _regressor(self, max_evaluations: int) -> Any:
        options = {} if self.max_time is None else {"max_time": self.max_time}
        return self.make_regressor(
            library=self.problem.truth.library.name,
            max_evaluations=max_evaluations,
            max_length=self.problem.max_length,
            random_state=self.seed,
            **options,
        )

    def _warm_up(self) -> None:
        """Make a small fit, so that the first timed fit of this process has no compiling in its time."""
        name = self.method, self.problem.truth.library.name
        if name in _warm:
            return
        random = np.random.default_rng(0)
        X = random.uniform(1.0, 3.0, (40, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._regressor(min(self.budget, _WARM_UP)).fit(X, X[:, 0] + random.normal(size=40))
        _warm.add(name)


def is_found(error: float | None, noise: float) -> bool:
    """Return whether a formula is the equation, by its NMSE on clean rows, which is None if not finite."""
    return error is not None and error < max(EXACT, SHARE_OF_NOISE * noise**2)


def run_drawn(
    problems: Sequence[DrawnProblem],
    methods: Sequence[str] = ("dgsr",),
    *,
    seeds: int = 1,
    noise: float = 0.0,
    max_time: float | None = None,
    budget: int | None = None,
    n_jobs: int | None = 1,
    out: str | os.PathLike | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run every method on drawn problems: all methods on the first, then on the next.

    Parameters
    ----------
    problems : sequence of DrawnProblem
        The problems, which `draw_problems` returns.
    methods : sequence of str
        Keys of `METHODS`.
    seeds : int
        Number of runs of each problem, whose methods have the seeds 0 to seeds - 1.
    noise : float
        Standard deviation of the noise on y, in standard deviations of y.
    max_time : float, optional
        Most seconds of a search.
    budget : int, optional
        Most equations that a run evaluates; 2,000,000 by default, or 1,000,000,000 with a `max_time`.
    n_jobs, out, callback
        As in `run_set`. Every process makes one short fit of a method, which is not recorded, before it times
        one, so that no run has the compiling in its time.

    Returns
    -------
    list of dict
        The records of all these runs, those read from `out` included: set, draw_seed, problem, method, seed,
        noise, max_time, budget, rows, columns, variables (that the equation has), constants, truth,
        truth_length, found (the chosen formula, see `is_found`), on_front (any formula of the front),
        evaluations, seconds, formula, complexity, train_nmse, test_nmse, stop_reason, generator (the name of
        the one that was used, or None) and environment.

    Raises
    ------
    ValueError
        If a method is unknown.
    OSError
        If `out` cannot be written; it is raised before anything is run.
    """
    check_methods(methods)
    if budget is None:
        budget = 2_000_000 if max_time is None else UNBOUNDED
    runs = [
        _Run(problem, method, METHODS[method], seed, noise, max_time, budget)
        for problem in problems
        for seed in range(seeds)
        for method in methods
    ]
    return record_all(runs, _KEY, n_jobs, out, callback)
