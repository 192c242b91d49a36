"""How fast are evaluation and genetic programming?

Prints a table and writes JSON::

    python benchmarks/gp_speed.py --out gp_speed.json

Everything runs in one thread. The evaluator is timed on random programs of 16 to 18 tokens; the two
engines of genetic programming run the same problem from the same first populations, breeding and
evaluating, and their speed is evaluations a second.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numba
import numpy as np

from dgsr.evolution import EvolutionConfig, get_engine, random_population
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import get_library
from dgsr.kernels.random import new_state
from dgsr.population import DataSet, Population

ROWS = (20, 50, 1000)
N_PROGRAMS = 500
SEED = 0


def data_set(n_rows: int) -> DataSet:
    """Return points of [1, 5]^2 with noise, so that no program fits exactly and the whole budget is spent."""
    random = np.random.default_rng(SEED)
    X = random.uniform(1.0, 5.0, (n_rows, 2))
    x1, x2 = X.T
    return DataSet.from_arrays(X, x1 * x2 + np.sin(x1) + 0.1 * random.normal(size=n_rows))


def programs_of_18_tokens(library, grammar) -> Population:
    """Return `N_PROGRAMS` random programs of 16 to 18 tokens."""
    state, found = new_state(SEED), []
    while sum(map(len, found)) < N_PROGRAMS:
        population = random_population(5000, library, grammar, state, min_height=3, max_height=5)
        found.append(population[(population.lengths >= 16) & (population.lengths <= 18)])
    return Population.concatenate(found)[:N_PROGRAMS]


def evaluator_seconds(population: Population, data: DataSet, repeats: int) -> float:
    """Return the least time of several evaluations of the population."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        population.nmse(data)
        best = min(best, time.perf_counter() - start)
    return best


def evolve(name: str, data: DataSet, library, grammar, n_evaluations: int) -> dict:
    """Run genetic programming, restarted from random populations, for `n_evaluations`."""
    engine = get_engine(name, EvolutionConfig())
    state = new_state(SEED)
    done, best, n_tokens, evaluating = 0, np.inf, 0, 0.0

    def evaluate(population: Population) -> np.ndarray:
        nonlocal done, best, n_tokens, evaluating
        begun = time.perf_counter()
        nmse = population.nmse(data)
        evaluating += time.perf_counter() - begun
        done += len(population)
        n_tokens += int(population.lengths.sum())
        best = min(best, float(nmse.min()))
        return nmse

    start = time.perf_counter()
    while done < n_evaluations:
        population = random_population(N_PROGRAMS, library, grammar, state)
        first = evaluate(population)
        engine.evolve(population, first, evaluate, grammar, state, lambda: done >= n_evaluations)
    seconds = time.perf_counter() - start
    return {
        "engine": name,
        "rows": data.columns.shape[1],
        "evaluations": done,
        "seconds": seconds,
        "evaluations_per_second": done / seconds,
        "us_per_evaluation": 1e6 * seconds / done,
        "us_breeding": 1e6 * (seconds - evaluating) / done,
        "mean_length": n_tokens / done,
        "best_nmse": best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--evaluations", type=int, default=1_000_000, help="of the compiled engine")
    parser.add_argument("--deap-evaluations", type=int, default=40_000)
    arguments = parser.parse_args()

    library = get_library("koza", 2)
    grammar = Constraints().grammar(library)
    result = {
        "command": "python benchmarks/gp_speed.py",
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "library": library.name,
        "n_programs": N_PROGRAMS,
        "evaluator": [],
        "evolution": [],
    }

    population = programs_of_18_tokens(library, grammar)
    population.nmse(data_set(2))  # compiles
    print(f"evaluator, random programs of {population.lengths.mean():.1f} tokens on average")
    print(f"{'rows':>6} {'us/program':>12} {'million node-rows/s':>20}")
    for n_rows in ROWS:
        seconds = evaluator_seconds(population, data_set(n_rows), repeats=max(5, 20_000 // n_rows))
        node_rows = population.lengths.sum() * n_rows / seconds
        row = {
            "rows": n_rows,
            "us_per_program": 1e6 * seconds / len(population),
            "node_rows_per_second": node_rows,
        }
        result["evaluator"].append(row)
        print(f"{n_rows:>6} {row['us_per_program']:>12.2f} {node_rows / 1e6:>20.0f}")

    print("\ngenetic programming, breeding and evaluation")
    columns = (
        ("engine", 9),
        ("rows", 6),
        ("evaluations/s", 14),
        ("us each", 8),
        ("breeding", 9),
        ("tokens", 7),
    )
    print(" ".join(f"{name:>{width}}" for name, width in (*columns, ("NMSE", 9))))
    for name, n_evaluations in (
        ("compiled", arguments.evaluations),
        ("deap", arguments.deap_evaluations),
    ):
        evolve(name, data_set(2), library, grammar, 2 * N_PROGRAMS)  # compiles
        for n_rows in ROWS:
            row = evolve(name, data_set(n_rows), library, grammar, n_evaluations)
            result["evolution"].append(row)
            print(
                f"{name:>9} {n_rows:>6} {row['evaluations_per_second']:>14,.0f} "
                f"{row['us_per_evaluation']:>8.2f} {row['us_breeding']:>9.2f} "
                f"{row['mean_length']:>7.1f} {row['best_nmse']:>9.1e}"
            )

    if arguments.out is not None:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
