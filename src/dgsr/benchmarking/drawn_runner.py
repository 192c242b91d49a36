"""Run methods on drawn problems, and test whether they find the equations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dgsr.benchmarking.drawn import DrawnProblem
from dgsr.benchmarking.fits import timed_fit
from dgsr.benchmarking.methods import METHODS, check_methods
from dgsr.benchmarking.recording import nmse, record_all
from dgsr.benchmarking.recovery import has_the_form, is_found

#: Most equations of a run that only a time limit ends.
UNBOUNDED = 10**9
# The entries of a record that identify a run.
_KEY = ("set", "draw_seed", "problem", "method", "seed", "noise", "max_time", "budget")


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
            "library": problem.truth.library.name,
            "rows": problem.n_rows,
            "columns": problem.n_columns,
            "variables": problem.n_variables,
            "constants": len(problem.truth.constants),
            "truth": str(problem.truth),
            "truth_length": problem.truth.length,
        }

    def record(self) -> dict[str, Any]:
        """Fit the method to the problem's data, and return the record of the run."""
        problem, noise = self.problem, self.noise
        data = problem.sample(noise)
        parameters: dict[str, Any] = {"max_length": problem.max_length, "random_state": self.seed}
        parameters |= {} if self.max_time is None else {"max_time": self.max_time}
        regressor, entries = timed_fit(
            self.method, self.make_regressor, data, problem.truth.library.name, self.budget, **parameters
        )
        front = [nmse(data.y_test, c.expression(data.X_test)) for c in regressor.pareto_front_]
        form = has_the_form(regressor.expression_, data.X_test, data.y_test, problem.truth.complexity)
        return {
            **self.identity(),
            "found": is_found(entries["test_nmse"], noise),
            "on_front": any(is_found(each, noise) for each in front),
            "form": form,
            **entries,
        }


def run_drawn(
    problems: Sequence[DrawnProblem],
    methods: Sequence[str] = ("dgsr",),
    *,
    seeds: int | Iterable[int] = 1,
    noise: float = 0.0,
    max_time: float | None = None,
    budget: int | None = None,
    n_jobs: int | None = 1,
    out: str | os.PathLike | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
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
    methods, seeds, n_jobs, out, callback
        These are the parameters of `run_set`.
    **settings
        `until` and `any_commit`, as in `run_set`.

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
    runs = [
        _Run(problem, method, METHODS[method], seed, noise, max_time, budget)
        for problem in problems
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
        for method in methods
    ]
    return record_all(runs, _KEY, n_jobs, out, callback, **settings)
