"""Systems of differential equations from noisy time series: how often the right side has the form of the law.

The systems are the seven of La Cava, Danai and Spector (2016), which are SRBench's Strogatz set: bacterial
respiration, bar magnets, the glider, competition, predator and prey, shear flow, and van der Pol's oscillator
(S. H. Strogatz, *Nonlinear Dynamics and Chaos*). Each has four runs of 100 rows at t = 0, 0.1, ..., 9.9, as
in https://github.com/lacava/ode-strogatz, from the four initial values of the tables of that set. Each state
is measured with normal noise of `--noise` times its standard deviation over the four runs. The two rates of
change of a system are fitted one by one. They, and the states, are

- ``truth``: those of the system, without noise, for an upper bound;
- ``rates``: those of `dgsr.rates`, with its weights;
- ``all rows``: the same without weights;
- ``gradient``: numpy.gradient of the measured states, and these, as a control.

Whether a formula has the form of the law is judged on the 400 rows of ``truth``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from dgsr import rates
from dgsr.benchmarking import METHODS
from dgsr.benchmarking.fits import warm_up
from dgsr.benchmarking.recovery import has_the_form
from dgsr.expressions import Expression, get_library
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.problems import Problem, load_problem
from dgsr.problems.problem import read_table

SYSTEMS = ("bacres", "barmag", "glider", "lv", "predprey", "shearflow", "vdp")
KINDS = ("truth", "rates", "all rows", "gradient")
TIMES, N_RUNS = np.arange(100) / 10, 4
RUN = np.repeat(np.arange(N_RUNS), len(TIMES))
MOST_EQUATIONS, _WARM = 10**9, 2_000
#: What identifies a run in a file of records.
KEY = ("problem", "kind", "noise", "seed")


def equations(system: str) -> tuple[Problem, Problem]:
    """Return the equations of both states."""
    return load_problem(f"strogatz_{system}1"), load_problem(f"strogatz_{system}2")


@cache
def simulated(system: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the states of all runs and their rates of change, each of shape (400, 2)."""
    laws = [equation.truth for equation in equations(system)]

    def change(_: float, state: Sequence[float]) -> list[float]:
        return [float(evaluate(law, dict(zip("xy", state)))) for law in laws]

    starts = read_table(f"strogatz/strogatz_{system}1.csv")[:: len(TIMES), :2]
    how = {"t_eval": TIMES, "method": "LSODA", "rtol": 1e-10, "atol": 1e-12}
    states = np.concatenate([solve_ivp(change, TIMES[[0, -1]], start, **how).y.T for start in starts])
    return states, np.array([change(0.0, state) for state in states])


def measured(
    system: str, kind: str, noise: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return states and rates of change of a kind, shape (400, 2), and weights of the rows or None."""
    states, changes = simulated(system)
    if kind == "truth":
        return states, changes, None
    rng = np.random.default_rng((seed, SYSTEMS.index(system)))
    noisy = states + noise * states.std(axis=0) * rng.normal(size=states.shape)
    if kind == "gradient":
        by_run = noisy.reshape(N_RUNS, len(TIMES), 2)
        return noisy, np.gradient(by_run, TIMES, axis=1).reshape(-1, 2), None
    smooth = rates(np.tile(TIMES, N_RUNS), noisy, groups=RUN)
    return smooth.states, smooth.derivatives, smooth.sample_weight if kind == "rates" else None


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of one rate of change, for `record_all`."""

    system: str
    state: int
    kind: str
    noise: float
    seed: int
    max_time: float

    def identity(self) -> dict[str, Any]:
        named = {"problem": equations(self.system)[self.state].name, "kind": self.kind}
        return {**named, "noise": self.noise, "seed": self.seed, "max_time": self.max_time}

    def record(self) -> dict[str, Any]:
        """Fit; return the error of the rate, and whether the form is chosen, or on the front."""
        problem = equations(self.system)[self.state]
        states, changes, weights = measured(self.system, self.kind, self.noise, self.seed)
        true_states, true_changes = simulated(self.system)
        y, truth = changes[:, self.state], true_changes[:, self.state]
        law = Expression.from_text(problem.expression, get_library("physics", 2), ["x", "y"])
        make = METHODS["dgsr"]
        warm_up("dgsr", "physics", _WARM, lambda n: make(library="physics", max_evaluations=n))
        limits = {"max_evaluations": MOST_EQUATIONS, "max_time": self.max_time}
        regressor = make(library="physics", random_state=0, **limits)
        regressor.fit(states, y, sample_weight=weights)
        forms = {
            candidate.expression: has_the_form(candidate.expression, true_states, truth, law.complexity)
            for candidate in regressor.pareto_front_
        }
        return {
            **self.identity(),
            "error_of_rate": float(np.sqrt(np.mean((y - truth) ** 2)) / truth.std()),
            "chosen": forms[regressor.expression_],
            "on_front": any(forms.values()),
            "formula": str(regressor.expression_),
        }


def runs(noise: float, seed: int, max_time: float) -> list[Fit]:
    """Return the fits of both rates of change of every system, of all kinds."""
    return [
        Fit(system, state, kind, noise, seed, max_time)
        for kind in KINDS
        for system in SYSTEMS
        for state in (0, 1)
    ]


def summary(records: Sequence[dict[str, Any]]) -> None:
    """Print by noise and kind how many laws are chosen and on the front, and the median of the errors."""
    for noise, kind in dict.fromkeys((record["noise"], record["kind"]) for record in records):
        own = [r for r in records if (r["noise"], r["kind"]) == (noise, kind) and "error" not in r]
        errors = np.median([r["error_of_rate"] for r in own]) if own else np.nan
        n_chosen, n_front = (sum(r[key] for r in own) for key in ("chosen", "on_front"))
        found = f"{n_chosen} of {len(own)} chosen, {n_front} on the front"
        print(f"noise {noise:.0%}, {kind:>8}: {found}, error {errors:.3f}")
