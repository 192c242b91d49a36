"""How soon does a fit of a large table have a formula, and how much memory does it take?

    python benchmarks/large_table.py [--rows N] [--columns K] [--max-time S] --out large_table.json

The target is a law of three columns with noise. The kernels are compiled, or loaded, before the clock starts;
checking the table and choosing its rows count. Memory is the peak of what was resident in the process, once
with the imports and the table alone and once after the fit; Windows has no such figure.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from dgsr import DGSRRegressor
from dgsr.benchmarking.environment import environment
from dgsr.search.compiling import compile_kernels

# Bytes of a unit of `ru_maxrss`.
_UNIT = 1 if sys.platform == "darwin" else 1024


def table(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random columns of shape (n_rows, n_columns), and a noisy law of the first three."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (n_rows, n_columns))
    y = 0.05 * rng.normal(size=n_rows)
    y += X[:, 0] * np.sin(X[:, 1]) / (X[:, 2] + 1.3)
    return X, y


def peak() -> int:
    """Return the peak of the memory that was resident in this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20, help="columns of the table, at least 3")
    parser.add_argument("--max-time", type=float, default=10.0, help="seconds of search")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    compile_kernels(has_constants=True)
    X, y = table(arguments.rows, arguments.columns)
    before, began, first = peak(), time.perf_counter(), []

    def after_round(progress) -> None:
        if not first:
            first.append(time.perf_counter() - began)

    model = DGSRRegressor(
        max_evaluations=10**9, max_time=arguments.max_time, random_state=0, callback=after_round
    )
    model.fit(X, y)
    result = {
        "rows": arguments.rows,
        "columns": arguments.columns,
        "max_time": arguments.max_time,
        "environment": environment(),
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
        f"peak of the memory: {before / 1e9:.2f} GB before the fit, {result['peak_bytes'] / 1e9:.2f} GB after"
    )
    print(result["formula"])
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
