"""How long does one fit take on one and on two workers of a dask cluster?

    python benchmarks/cluster.py --out cluster.json

The cluster is of processes on this machine, with one thread each. The fit has two islands in any case, so
that its result is the same, and a budget of evaluations.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from dgsr import DGSRRegressor


def fitted(max_evaluations: int) -> tuple[float, str]:
    """Return the seconds of a fit, and its formula."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 3.0, (200, 2))
    y = X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=200)
    model = DGSRRegressor(max_evaluations=max_evaluations, tolerance=0.0, n_jobs=2, random_state=0)
    began = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - began, str(model.expression_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-evaluations", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows, formulas = [], set()
    for n_workers in (1, 2):
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster), parallel_config("dask"):
            fitted(10_000)  # compiles, and loads
            runs = [fitted(arguments.max_evaluations) for _ in range(arguments.runs)]
        formulas |= {formula for _, formula in runs}
        seconds = [round(spent, 2) for spent, _ in runs]
        rows.append({"workers": n_workers, "median_seconds": statistics.median(seconds), "seconds": seconds})
        print(f"{n_workers} workers: {rows[-1]['median_seconds']} s ({seconds})", flush=True)
    print(f"{len(formulas)} different formulas")
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
