"""Recovery on twenty SRBench Feynman problems, drawn once with a fixed seed, at four noise levels.

    python benchmarks/srbench_noise.py [--max-time S] [--seeds K] [--n-jobs J] --out FILE.jsonl

Each run is a line of FILE, and a call that was killed goes on where it was. `dgsr.benchmarking` makes the
table of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from dgsr.benchmarking import run_set, wilson_interval
from dgsr.problems import load_set

NOISE = (0.0, 0.001, 0.01, 0.1)
# A budget so large that the time alone ends a search.
_BUDGET = 1_000_000_000


def chosen_problems(n: int = 20, seed: int = 20261121) -> list[str]:
    """Return the names of `n` problems, which the seed determines."""
    names = [problem.name for problem in load_set("srbench_feynman")]
    return sorted(np.random.default_rng(seed).choice(names, n, replace=False).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds of search in a run")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--method", default="dgsr")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    problems = chosen_problems()
    print(", ".join(problems), flush=True)
    for noise in NOISE:
        records = run_set(
            "srbench_feynman",
            problems,
            [arguments.method],
            seeds=arguments.seeds,
            budget=_BUDGET,
            n_jobs=arguments.n_jobs,
            out=arguments.out,
            noise=noise,
            options={arguments.method: {"max_time": arguments.max_time}},
        )
        n = sum(record["recovered"] for record in records)
        low, high = wilson_interval(n, len(records))
        seconds = np.median([record["seconds"] for record in records if "seconds" in record])
        print(
            f"noise {noise:<6} recovered {n} of {len(records)}, "
            f"{100 * n / len(records):.0f}% [{100 * low:.0f}, {100 * high:.0f}], median {seconds:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
