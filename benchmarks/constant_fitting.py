"""Compare compiled Levenberg-Marquardt with scipy's BFGS: speed and quality of constant fitting.

    python benchmarks/constant_fitting.py [--programs N] [--rows N ...] [--out FILE.json]

Both fit the same random programs of the ``koza-const`` library without linear scaling, from all constants at
1.0. The compiled one is also run with a second start, and with the settings of the search.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from dgsr.baselines import bfgs
from dgsr.constants.fitting import fit_constants
from dgsr.evolution import random_population
from dgsr.expressions import Constraints, get_library
from dgsr.kernels.random import new_state
from dgsr.population import DataSet, Population
from dgsr.search import SearchConfig

# A loss up to this factor above the best one known counts as the best.
_SAME = 1.001


def programs(n: int, seed: int) -> Population:
    """Return random programs with at least one constant, all constants 1.0."""
    library = get_library("koza-const", 2)
    population = random_population(4 * n, library, Constraints().grammar(library), new_state(seed))
    with_constants = (population.tokens == library.index["const"]).any(axis=1)
    return population[np.flatnonzero(with_constants)[:n]]


def data(n_rows: int, seed: int) -> DataSet:
    """Return data of a law with constants, with 1% noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (n_rows, 2))
    y = 2.5 * X[:, 0] * np.exp(-0.7 * X[:, 1]) + np.sin(1.3 * X[:, 0])
    return DataSet.from_arrays(X, y + 0.01 * y.std() * rng.normal(size=n_rows))


def copy(population: Population) -> Population:
    p = population
    return Population(p.library, p.tokens, p.lengths, p.constants.copy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 300])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    used = SearchConfig()
    ways = {
        "BFGS (scipy), from 1.0": bfgs.fit_constants,
        "compiled, from 1.0": lambda p, d: (
            fit_constants(p, d, scaled=False, n_iterations=100, precision=1e-8).nmse
        ),
        "compiled, from 1.0 and a second start": lambda p, d: (
            fit_constants(p, d, scaled=False, n_iterations=100, second_start=True, precision=1e-8).nmse
        ),
        "compiled, scaled, as in the search": lambda p, d: (
            fit_constants(p, d, n_iterations=used.fit_iterations).nmse
        ),
    }
    population = programs(arguments.programs, seed=1)
    for way in list(ways.values())[1:]:
        way(copy(population[:2]), data(20, 0))  # compile
    results = []
    print(f"{'rows':>5}  {'way':<42} {'programs/s':>11} {'ratio':>7}  share at the best loss")
    for n_rows in arguments.rows:
        d = data(n_rows, seed=0)
        losses, seconds = {}, {}
        for name, way in ways.items():
            repeats = 1 if name.startswith("BFGS") else 5
            times = []
            for _ in range(repeats):
                fitted = copy(population)
                start = time.perf_counter()
                losses[name] = way(fitted, d)
                times.append(time.perf_counter() - start)
            seconds[name] = min(times)
        unscaled = [name for name in ways if "scaled" not in name]
        best = np.min([losses[name] for name in unscaled], axis=0)
        finite = np.isfinite(best)
        for name in ways:
            reached = float((losses[name][finite] <= _SAME * best[finite]).mean())
            row = {
                "rows": n_rows,
                "way": name,
                "programs_per_second": len(population) / seconds[name],
                "ratio": seconds["BFGS (scipy), from 1.0"] / seconds[name],
                "share_at_best_loss": reached,
            }
            results.append(row)
            print(
                f"{n_rows:>5}  {name:<42} {row['programs_per_second']:>11,.0f} {row['ratio']:>7,.0f}"
                f"  {reached:.1%}"
            )
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
