"""How long does one fit take on one and on two workers of a dask cluster?

    python benchmarks/cluster.py [--max-evaluations N] [--runs K] --out cluster.jsonl

Every run starts a cluster of processes on this machine, with one thread each. Runs with one worker and with
two take turns. The fit has two islands in any case, so that its result is the same, and a budget of
evaluations; its seconds are all that `fit` takes, without those in which the cluster starts. The program
writes one line of JSON for each run, and goes on where the file ends.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from dgsr import DGSRRegressor
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.recording import record_all

#: What identifies a run in a file of records.
KEY = ("workers", "run", "islands", "max_evaluations")

# Evaluations of the fit before, in which the workers load what they need.
_BEFORE = 10_000


@dataclass(frozen=True)
class Run:
    """A fit on a cluster of its own, for `record_all`."""

    workers: int
    run: int
    islands: int
    max_evaluations: int

    def identity(self) -> dict[str, Any]:
        return asdict(self)

    def record(self) -> dict[str, Any]:
        """Fit on a cluster; return the seconds that it took and the formula."""
        cluster = LocalCluster(n_workers=self.workers, threads_per_worker=1, dashboard_address="localhost:0")
        with cluster, Client(cluster), parallel_config("dask"):
            fitted(self.islands, _BEFORE)
            began = time.perf_counter()
            model = fitted(self.islands, self.max_evaluations)
            seconds = time.perf_counter() - began
        return {
            **self.identity(),
            "seconds": round(seconds, 2),
            "evaluations": int(model.n_evaluations_),
            "formula": str(model.expression_),
            "environment": environment(),
        }


def fitted(n_islands: int, max_evaluations: int) -> DGSRRegressor:
    """Return a fit of data that no formula fits exactly."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 3.0, (200, 2))
    y = X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=200)
    model = DGSRRegressor(max_evaluations=max_evaluations, tolerance=0.0, n_jobs=n_islands, random_state=0)
    return model.fit(X, y)


def summary(records: list[dict[str, Any]]) -> None:
    """Print the seconds with every number of workers, and how many formulas the runs found."""
    records = [record for record in records if "error" not in record]
    for n in sorted({record["workers"] for record in records}):
        seconds = sorted(record["seconds"] for record in records if record["workers"] == n)
        workers = f"{n} worker{'s' if n > 1 else ''}"
        print(f"{workers}: median {statistics.median(seconds):.2f} s of {len(seconds)} runs {seconds}")
    print(f"{len({record['formula'] for record in records})} different formulas")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-evaluations", type=int, default=600_000)
    parser.add_argument("--runs", type=int, default=5, help="runs with each number of workers")
    parser.add_argument("--islands", type=int, default=2, help="searches of the fit (n_jobs)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    print(shlex.join(["python", *sys.argv]))
    runs = [
        Run(workers, run, arguments.islands, arguments.max_evaluations)
        for run in range(arguments.runs)
        for workers in (1, 2)
    ]
    summary(record_all(runs, KEY, 1, arguments.out, _print))


def _print(record: dict[str, Any]) -> None:
    result = record.get("error") or f"{record['seconds']} s  {record['formula']}"
    print(f"run {record['run']}, workers {record['workers']}: {result}", flush=True)


if __name__ == "__main__":
    main()
