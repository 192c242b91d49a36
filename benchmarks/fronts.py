"""Pareto fronts of Feynman-8 and Feynman-13, two laws that no method of the DGSR paper finds.

    python benchmarks/fronts.py --out benchmarks/results/fronts.json [--seed 0]

The methods are those of `dgsr.benchmarking.METHODS` without exact search: `generator` and `gp`. A run
evaluates at most 2,000,000 equations in at most 60 s, as in the tables. `docs/pictures.py` draws the fronts
beside the formulas that the paper lists: test NMSE over the complexity C(f), which is the same measure in
both.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "Feynman d=5 Pareto Front Analysis".
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dgsr.benchmarking import METHODS, is_recovered
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.recording import nmse
from dgsr.problems import load_problem

#: Complexity and test NMSE of the formulas that the paper lists, by problem and method.
PUBLISHED = {
    "Feynman-8": {
        "DGSR": [(20, 0.253), (26, 0.216), (33, 0.212), (37, 0.200), (64, 0.142)],
        "NGGP": [(20, 0.337), (29, 0.244), (35, 0.235), (54, 0.212), (66, 0.201)],
        "GP": [(23, 0.296), (33, 0.295), (41, 0.288), (44, 0.277), (54, 0.252)],
    },
    "Feynman-13": {
        "DGSR": [(20, 0.288), (22, 0.185), (24, 0.170), (29, 0.128), (45, 0.118)],
        "NGGP": [(20, 0.288), (22, 0.281), (23, 0.194), (31, 0.172), (47, 0.133)],
        "GP": [(24, 0.465), (25, 0.429), (28, 0.427), (35, 0.382), (50, 0.370)],
    },
}
OURS = ("generator", "gp")


def front_of(problem_name: str, method: str, seed: int) -> dict[str, Any]:
    problem = load_problem(problem_name)
    data = problem.sample(seed)
    regressor = METHODS[method](
        library=problem.library,
        max_evaluations=2_000_000,
        max_time=60.0,
        max_length=problem.max_length,
        random_state=seed,
    ).fit(data.X_train, data.y_train)
    front = [
        {
            "complexity": candidate.complexity,
            "test_nmse": nmse(data.y_test, candidate.expression(data.X_test)),
            "formula": str(candidate.expression),
        }
        for candidate in regressor.pareto_front_
    ]
    return {
        "problem": problem_name,
        "method": method,
        "seed": seed,
        "recovered": is_recovered(regressor.expression_, problem, confirm=False).recovered,
        "evaluations": regressor.n_evaluations_,
        "generator": regressor.generator_,
        "front": sorted(front, key=lambda each: each["complexity"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    runs = []
    for problem_name in PUBLISHED:
        for method in OURS:
            runs.append(front_of(problem_name, method, arguments.seed))
            print(f"{problem_name} {method}: {json.dumps(runs[-1]['front'][-1])}", flush=True)
    found = {"environment": environment(), "published": PUBLISHED, "runs": runs}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
