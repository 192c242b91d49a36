"""Show that a change of the code leaves every search as it was: the same programs, in the same order.

`python tests/tools/same_search.py --out before.json` runs ten seeds of five problems and keeps, round by
round, a digest of all programs that were evaluated or fitted. After the change `--out after.json --against
before.json` runs them again and names the first round that differs. A fit that is in the file already is not
run again, so a long run may be broken off. To record another state of the code, set PYTHONPATH to its `src`.
Fit once before, so that its kernels are compiled: the small search that compiles them would be recorded too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dgsr import DGSRRegressor
from dgsr.constants.fitting import fit_constants
from dgsr.data.population import Population


class Problem(NamedTuple):
    """A law, the share of noise in it, and how it is searched for."""

    library: str
    n_columns: int
    law: Callable[[np.ndarray], np.ndarray]
    noise: float
    settings: dict[str, Any]


# No law is in reach of its library, so that no search ends before its budget; patience makes it begin again.
PROBLEMS = {
    "koza": Problem("koza", 2, lambda x: np.tanh(3.0 * x[0]) * np.abs(x[1]) ** 1.3, 0.0, {}),
    "synth": Problem("synth", 3, lambda x: np.arctan(x[0] * x[1]) + x[2] ** 1.7, 0.0, {}),
    "physics": Problem("physics", 2, lambda x: x[0] / (1.3 + x[1] ** 1.7) + np.sin(2.1 * x[0]), 0.01, {}),
    "koza-const": Problem("koza-const", 3, lambda x: 1.7 * np.sqrt(x[0]) + np.tanh(x[1]) / x[2], 0.01, {}),
    "physics, untrained": Problem(
        "physics", 4, lambda x: np.log1p(x[0]) * x[1] ** 0.7 - x[2] / (x[3] + 0.5), 0.01,
        {"generator": "untrained", "refine": "risk-seeking"},
    ),
}  # fmt: skip


class Recorder:
    """A digest, for every round, of the programs whose errors are computed or whose constants are fitted."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.rounds: list[str] = []
        self._nmse, self._fit = Population.nmse, fit_constants

    def take(self, kind: str, population: Population) -> None:
        self._digest.update(kind.encode())
        for array in (population.lengths, population.tokens, np.round(population.constants, 6) + 0.0):
            self._digest.update(np.ascontiguousarray(array).tobytes())

    def end_round(self, *_: object) -> None:
        self.rounds.append(self._digest.hexdigest()[:16])

    def __enter__(self) -> Recorder:
        def nmse(population, *arguments, **options):
            self.take("nmse", population)
            return self._nmse(population, *arguments, **options)

        def fit(population, *arguments, **options):
            self.take("fit", population)
            return self._fit(population, *arguments, **options)

        Population.nmse = nmse  # type: ignore[method-assign]
        self._replace(self._fit, fit)
        self._replacement = fit
        return self

    def __exit__(self, *_: object) -> None:
        Population.nmse = self._nmse  # type: ignore[method-assign]
        self._replace(self._replacement, self._fit)

    @staticmethod
    def _replace(old: object, new: object) -> None:
        """Put a function in the place of another, in whichever modules of the package it was imported."""
        for name, module in list(sys.modules.items()):
            if name.startswith("dgsr"):
                for attribute, value in list(vars(module).items()):
                    if value is old:
                        setattr(module, attribute, new)


def record(problem: Problem, seed: int, max_evaluations: int) -> dict[str, Any]:
    """Run one search; return its digests round by round, and what it came to."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.3, 3.0, (60, problem.n_columns))
    y = problem.law(X.T)
    y += problem.noise * y.std() * rng.normal(size=len(y))
    settings = {"max_evaluations": max_evaluations, "random_state": seed, **problem.settings}
    model = DGSRRegressor(problem.library, config={"tolerance": 0.0}, **settings)
    with Recorder() as recorder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(callback=recorder.end_round).fit(X, y)
    last = model.history_[-1]
    return {
        "rounds": recorder.rounds,
        "restarts": last["restarts"],
        "evaluations": last["evaluations"],
        "formula": str(model.expression_),
        "front": [str(candidate.expression) for candidate in model.pareto_front_],
    }


def difference(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Say where two records begin to differ; None if they do not."""
    pairs = zip(before["rounds"], after["rounds"], strict=False)
    for number, (one, other) in enumerate(pairs):
        if one != other:
            return f"round {number} differs"
    for name in before:
        if before[name] != after[name]:
            return f"{name}: {before[name]} before, {after[name]} after"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="JSON file of the records")
    parser.add_argument("--against", type=Path, help="records of another state of the code")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--max-evaluations", type=int, default=200_000)
    parser.add_argument("--only", nargs="*", choices=PROBLEMS, default=list(PROBLEMS))
    arguments = parser.parse_args()
    records = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
    before = json.loads(arguments.against.read_text(encoding="utf-8")) if arguments.against else {}
    n_different = 0
    for name in arguments.only:
        for seed in range(arguments.seeds):
            key = f"{name}, seed {seed}, {arguments.max_evaluations} evaluations"
            if key not in records:
                records[key] = record(PROBLEMS[name], seed, arguments.max_evaluations)
                arguments.out.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
            found = difference(before[key], records[key]) if key in before else None
            n_different += found is not None
            rounds, restarts = len(records[key]["rounds"]), records[key]["restarts"]
            outcome = f": {found}" if found else (": the same" if key in before else "")
            print(f"{key}, {rounds} rounds, {restarts} restarts{outcome}", flush=True)
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
