"""How fast are the sampler, searches with the network in the loop, several processes, and large tables?

    python benchmarks/search_speed.py sampler [--max-evaluations N] --out FILE.json
    python benchmarks/search_speed.py large-table [--rows N] [--columns K] [--max-time S] --out FILE.json
    python benchmarks/search_speed.py islands [--n-jobs J] [--runs K] [--max-time S] --out FILE.json
    python benchmarks/search_speed.py cluster [--runs K] [--max-evaluations N] --out FILE.jsonl

- ``sampler`` draws 25 and 500 programs from networks with random weights (the paper's sizes and ours) and
  from shipped generators, with compiled steps and with torch's in turn, and has whole searches spend a budget
  with the shipped generator, an untrained one and none. All is in one thread, and the milliseconds of a draw
  are medians of nine.
- ``large-table`` fits a law of three columns with noise. The kernels are compiled, or loaded, before the
  clock starts; checking the table and choosing its rows count. Memory is the peak of what was resident in the
  process, once with the imports and the table alone and once after the fit; Windows has no such figure.
- ``islands`` compares the evaluations a second of a fit with several searches (`n_jobs`) and with one, in
  runs that take turns.
- ``cluster`` has one fit of two islands on one and on two workers of a dask cluster on this machine, with one
  thread each, in turns. Its seconds are all that `fit` takes, without those in which the cluster starts. The
  file has a line for each run, and the program goes on where it ends.

But for the large table, the data are such that no short formula fits them exactly, so that a search spends
all of its budget.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgsr import DGSRRegressor, list_generators, load_generator
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.recording import record_all
from dgsr.estimator.parameters import grouped
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import get_library
from dgsr.generator import sampling
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.search.compiling import compile_kernels

N_PROGRAMS, N_DRAWS = (25, 500), 9
MOST_EQUATIONS = 10**9
# Evaluations of the fit before on a cluster, in which the workers load what they need.
_BEFORE = 10_000
# Bytes of a unit of `ru_maxrss`.
_UNIT = 1 if sys.platform == "darwin" else 1024


def hard_table(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return data of two columns that no formula fits exactly."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 3.0, (n_rows, 2))
    return X, X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=n_rows)


def fitted(library: str, n_rows: int = 200, **settings: Any) -> DGSRRegressor:
    """Return a fit of such data that spends its whole budget."""
    model = DGSRRegressor(library, random_state=0, **grouped({"tolerance": 0.0, **settings}))
    return model.fit(*hard_table(n_rows))


# The sampler and whole searches --------------------------------------------------------------------


def draws(name: str, generator: Generator, n_programs: int) -> dict[str, Any]:
    """Return the median milliseconds for some programs, with the compiled steps and with torch's."""
    grammar = generator.grammar(2)
    encoding = generator.encode_dataset(*hard_table(20))
    compiled = sampling._draw_compiled
    seconds: dict[str, list[float]] = {"compiled": [], "torch": []}
    for repeat in range(N_DRAWS + 1):  # the first compiles
        for way, draw in (("compiled", compiled), ("torch", sampling._draw_with_torch)):
            sampling._draw_compiled = draw
            start = time.perf_counter()
            samples = generator.sample_encoded(encoding, n_programs, grammar, new_state(repeat))
            seconds[way].append(time.perf_counter() - start)
    sampling._draw_compiled = compiled
    return {
        "generator": name,
        "parameters": generator.n_parameters(),
        "programs": n_programs,
        "mean_length": float(np.mean(samples.lengths)),
        "milliseconds": {way: 1e3 * float(np.median(times[1:])) for way, times in seconds.items()},
    }


def whole_search(library: str, generator: str | None, budget: int) -> dict[str, Any]:
    """Return the seconds of a whole budget."""
    start = time.perf_counter()
    model = fitted(library, n_rows=20, generator=generator, max_evaluations=budget)
    seconds = time.perf_counter() - start
    return {
        "library": library,
        "generator": model.generator_,
        "evaluations": model.n_evaluations_,
        "seconds": seconds,
    }


def measure_sampler(arguments: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(1)
    library, constraints = get_library("koza", 2), Constraints()
    networks = {
        f"{name}, random weights": Generator.untrained(library, config, constraints, 0)
        for name, config in CONFIGS.items()
    }
    for info in list_generators():
        if info.card["library"]["name"] == library.name:
            networks[info.name] = load_generator(info.name)
    samplers = [draws(name, network, n) for name, network in networks.items() for n in N_PROGRAMS]
    print("sampler                parameters  programs  mean length  compiled, ms  torch, ms  ratio")
    for row in samplers:
        ours, theirs = row["milliseconds"]["compiled"], row["milliseconds"]["torch"]
        print(
            f"{row['generator']:<22} {row['parameters']:>10,}  {row['programs']:>8}"
            f"  {row['mean_length']:>11.1f}  {ours:>12.1f}  {theirs:>9.1f}  {theirs / ours:>5.1f}"
        )
    print("\nlibrary   generator     evaluations  seconds")
    searches = []
    for name in ("koza", "physics"):
        whole_search(name, "auto", 20_000)  # compiles what is not yet compiled
        for generator in ("auto", "untrained", None):
            row = whole_search(name, generator, arguments.max_evaluations)
            searches.append(row)
            evaluations = f"{row['evaluations']:>11,}  {row['seconds']:>7.1f}"
            print(f"{name:<8}  {row['generator']!s:<12}  {evaluations}", flush=True)
    return {"sampler": samplers, "search": searches}


# Large tables --------------------------------------------------------------------------------------


def large_table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random columns of shape (n_rows, n_columns), and a noisy law of the first three."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (n_rows, n_columns))
    y = 0.05 * rng.normal(size=n_rows)
    y += X[:, 0] * np.sin(X[:, 1]) / (X[:, 2] + 1.3)
    return X, y


def peak() -> int:
    """Return the peak of the memory that was resident in this process so far, in bytes."""
    import resource  # which Windows lacks

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


def measure_large_table(arguments: argparse.Namespace) -> dict[str, Any]:
    compile_kernels(has_constants=True)
    X, y = large_table(arguments.rows, arguments.columns)
    before, began, first = peak(), time.perf_counter(), []

    def after_round(progress) -> None:
        if not first:
            first.append(time.perf_counter() - began)

    limits = {"max_evaluations": MOST_EQUATIONS, "max_time": arguments.max_time}
    model = DGSRRegressor(random_state=0, callback=after_round, **grouped(limits)).fit(X, y)
    result = {
        "rows": arguments.rows,
        "columns": arguments.columns,
        "max_time": arguments.max_time,
        "table_bytes": X.nbytes + y.nbytes,
        "seconds_to_first_formula": round(first[0], 2),
        "seconds": round(time.perf_counter() - began, 2),
        "peak_bytes_before": before,
        "peak_bytes": peak(),
        "formula": str(model.expression_),
    }
    print(
        f"{arguments.rows:,} rows, {arguments.columns} columns, {result['table_bytes'] / 1e9:.2f} GB\n"
        f"first formula after {result['seconds_to_first_formula']} s, fit after {result['seconds']} s\n"
        f"peak of the memory: {before / 1e9:.2f} GB before, {result['peak_bytes'] / 1e9:.2f} GB after\n"
        f"{result['formula']}"
    )
    return result


# Several processes ---------------------------------------------------------------------------------


def evaluations_a_second(library: str, n_jobs: int, seconds: float) -> float:
    model = fitted(library, n_jobs=n_jobs, max_evaluations=MOST_EQUATIONS, max_time=seconds)
    return model.history_[-1]["evaluations"] / model.history_[-1]["seconds"]


def measure_islands(arguments: argparse.Namespace) -> dict[str, Any]:
    rows, numbers = [], (1, arguments.n_jobs)
    for library in ("physics", "koza"):
        for n in numbers:
            evaluations_a_second(library, n, 1.0)  # compiles, and starts the processes
        pairs = [
            [evaluations_a_second(library, n, arguments.max_time) for n in numbers]
            for _ in range(arguments.runs)
        ]
        ratios = sorted(many / one for one, many in pairs)
        row = {"library": library, "n_jobs": arguments.n_jobs, "pairs": pairs}
        rows.append(row | {"median": statistics.median(ratios)})
        spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{library}: {rows[-1]['median']:.2f} {spread} times as many a second", flush=True)
    return {"speed": rows}


@dataclass(frozen=True)
class ClusterFit:
    """A fit on a cluster of its own, for `record_all`."""

    workers: int
    run: int
    islands: int
    max_evaluations: int

    def identity(self) -> dict[str, Any]:
        return asdict(self)

    def record(self) -> dict[str, Any]:
        """Fit on a cluster; return the seconds that it took and the formula."""
        from distributed import Client, LocalCluster
        from joblib import parallel_config

        cluster = LocalCluster(n_workers=self.workers, threads_per_worker=1, dashboard_address="localhost:0")
        with cluster, Client(cluster), parallel_config("dask"):
            fitted("physics", n_jobs=self.islands, max_evaluations=_BEFORE)
            began = time.perf_counter()
            model = fitted("physics", n_jobs=self.islands, max_evaluations=self.max_evaluations)
            seconds = time.perf_counter() - began
        found = {"evaluations": int(model.n_evaluations_), "formula": str(model.expression_)}
        return {**self.identity(), "seconds": round(seconds, 2), **found}


def measure_cluster(arguments: argparse.Namespace) -> None:
    runs = [
        ClusterFit(workers, run, 2, arguments.max_evaluations)
        for run in range(arguments.runs)
        for workers in (1, 2)
    ]
    key = ("workers", "run", "islands", "max_evaluations")
    records = record_all(runs, key, 1, arguments.out, lambda record: print(record, flush=True))
    records = [record for record in records if "error" not in record]
    for n in sorted({record["workers"] for record in records}):
        seconds = sorted(record["seconds"] for record in records if record["workers"] == n)
        print(f"workers {n}: median {statistics.median(seconds):.2f} s of {len(seconds)} runs {seconds}")
    print(f"{len({record['formula'] for record in records})} different formulas")


#: The function of each kind, and its options by default.
KINDS = {
    "sampler": (measure_sampler, {"max_evaluations": 2_000_000}),
    "large-table": (measure_large_table, {"rows": 1_000_000, "columns": 20, "max_time": 10.0}),
    "islands": (measure_islands, {"n_jobs": 2, "runs": 5, "max_time": 20.0}),
    "cluster": (measure_cluster, {"runs": 5, "max_evaluations": 600_000}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name, (_, defaults) in KINDS.items():
        own = kinds.add_parser(name)
        for option, value in defaults.items():
            own.add_argument(f"--{option.replace('_', '-')}", type=type(value), default=value)
        own.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    measure, defaults = KINDS[arguments.kind]
    result = measure(arguments)
    if result is not None:
        settings = {option: getattr(arguments, option) for option in defaults}
        result = {"arguments": settings, "environment": environment(), **result}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
