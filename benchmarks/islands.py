"""What do several searches of one fit do in the time of one (`n_jobs`)?

    python benchmarks/islands.py [--no-migrants] --out islands.json --records DIRECTORY

The first part compares evaluations a second on data that no formula fits exactly, in runs that take turns.
The second compares the seconds to the law on the problems of SRBench that a committed run with one search, of
another seed, found in 5 to 15 seconds. A run that finds no law counts with all its seconds. With
`--no-migrants` it is made once more with islands between which no formula migrates, the control.
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
from dgsr.benchmarking.environment import environment
from dgsr.search import islands

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


def seconds_to_laws(n_jobs: int, seconds: float, seeds: int, out: Path) -> dict:
    """Return how many laws a number of searches finds, and the median of the seconds that it takes."""
    records = run_set(
        "srbench_feynman",
        slow_problems(),
        ["dgsr"],
        seeds=range(1, 1 + seeds),
        budget=10**9,
        out=out,
        options={"dgsr": {"max_time": seconds, "n_jobs": n_jobs}},
    )
    found = sum(record["recovered"] for record in records)
    median = statistics.median(record["seconds"] if record["recovered"] else seconds for record in records)
    low, high = wilson_interval(found, len(records))
    print(
        f"{out.stem}: {found} of {len(records)} laws ({100 * low:.0f} to {100 * high:.0f}%), "
        f"median {median:.1f} s",
        flush=True,
    )
    return {"n_jobs": n_jobs, "runs": len(records), "found": found, "median_seconds": median}


def compare_seconds(
    n_jobs: int, seconds: float, seeds: int, directory: Path, no_migrants: bool
) -> list[dict]:
    directory.mkdir(parents=True, exist_ok=True)
    rows = [seconds_to_laws(n, seconds, seeds, directory / f"islands_{n}.jsonl") for n in (1, n_jobs)]
    if no_migrants:
        islands._N_MIGRANTS = 0  # formulas migrate in this process, that of the fits
        out = directory / f"islands_{n_jobs}_no_migrants.jsonl"
        rows.append(seconds_to_laws(n_jobs, seconds, seeds, out) | {"migrants": 0})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs that compare speeds")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds of each of them")
    parser.add_argument("--max-time", type=float, default=30.0, help="most seconds to a law")
    parser.add_argument("--seeds", type=int, default=2, help="runs of every law")
    parser.add_argument("--no-migrants", action="store_true", help="measure islands without migration, too")
    parser.add_argument("--records", type=Path, required=True, help="folder of the records of every run")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    begun = time.time()
    settings = {name: value for name, value in vars(arguments).items() if not isinstance(value, Path)}
    result = {
        "arguments": settings,
        "environment": environment(),
        "speed": compare_speeds(arguments.n_jobs, arguments.seconds, arguments.pairs),
        "laws": compare_seconds(
            arguments.n_jobs,
            arguments.max_time,
            arguments.seeds,
            arguments.records,
            arguments.no_migrants,
        ),
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{time.time() - begun:.0f} s")


if __name__ == "__main__":
    main()
