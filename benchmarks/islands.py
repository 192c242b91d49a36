"""What do several searches of one fit do in the time of one (`n_jobs`)?

    python benchmarks/islands.py --out islands.json --records DIRECTORY

The first part compares evaluations a second on data that no formula fits exactly, in runs that take turns.
The second compares the seconds to the law on the problems of SRBench that a committed run with one search, of
another seed, found in 5 to 15 seconds. A run that finds no law counts with all its seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from dgsr import DGSRRegressor
from dgsr.benchmarking import run_set, wilson_interval

RESULTS = Path(__file__).parent / "results" / "srbench_feynman_dgsr.jsonl"


def slow_problems(at_least: float = 5.0) -> list[str]:
    """Return the problems whose law a recorded run found, and not sooner."""
    records = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return sorted(r["problem"] for r in records if r["recovered"] and r["seconds"] > at_least)


def speed(library: str, n_jobs: int, seconds: float) -> float:
    """Return the evaluations a second of a fit of some seconds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 3.0, (200, 2))
    y = X[:, 0] / (1.3 + X[:, 1] ** 1.7) + np.sin(2.1 * X[:, 0]) + 0.01 * rng.normal(size=200)
    model = DGSRRegressor(
        library, max_evaluations=10**9, max_time=seconds, tolerance=0.0, n_jobs=n_jobs, random_state=0
    )
    last = model.fit(X, y).history_[-1]
    return last["evaluations"] / last["seconds"]


def compare_speeds(n_jobs: int, seconds: float, runs: int) -> list[dict]:
    rows = []
    for library in ("physics", "koza"):
        for n in (1, n_jobs):
            speed(library, n, 1.0)  # compiles, and starts the processes
        pairs = [(speed(library, 1, seconds), speed(library, n_jobs, seconds)) for _ in range(runs)]
        ratios = sorted(many / one for one, many in pairs)
        row = {"library": library, "n_jobs": n_jobs, "pairs": pairs, "median": statistics.median(ratios)}
        rows.append(row)
        print(
            f"{library}: {row['median']:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) times as many", flush=True
        )
    return rows


def compare_seconds(n_jobs: int, seconds: float, seeds: int, directory: Path) -> list[dict]:
    problems = slow_problems()
    rows = []
    for n in (1, n_jobs):
        records = run_set(
            "srbench_feynman",
            problems,
            ["dgsr"],
            seeds=range(1, 1 + seeds),
            budget=10**9,
            out=directory / f"islands_{n}.jsonl",
            options={"dgsr": {"max_time": seconds, "n_jobs": n}},
        )
        found = sum(record["recovered"] for record in records)
        spent = [record["seconds"] if record["recovered"] else seconds for record in records]
        low, high = wilson_interval(found, len(records))
        rows.append(
            {"n_jobs": n, "runs": len(records), "found": found, "median_seconds": statistics.median(spent)}
        )
        print(
            f"n_jobs={n}: {found} of {len(records)} laws ({100 * low:.0f} to {100 * high:.0f}%), "
            f"median {rows[-1]['median_seconds']:.1f} s",
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs that compare speeds")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds of each of them")
    parser.add_argument("--max-time", type=float, default=30.0, help="most seconds to a law")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--records", type=Path, required=True, help="folder of the records of every run")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.records.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    result = {
        "speed": compare_speeds(arguments.n_jobs, arguments.seconds, arguments.pairs),
        "laws": compare_seconds(arguments.n_jobs, arguments.max_time, arguments.seeds, arguments.records),
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
