"""Which rule chooses the law from a noisy front? All rules choose from the same fronts.

    python benchmarks/selection_rules.py [--noise 0.01 0.1] [--seeds 100 101] [--max-time S] --out FILE.jsonl

The problems are those of Strogatz and the twenty Feynman problems of srbench_noise.py, with seeds that no
reported table uses. "oracle" is the share of fronts that have the law at all. "holdout" needs a search of its
own, on three quarters of the rows.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import joblib
from srbench_noise import chosen_problems

from dgsr import DGSRRegressor
from dgsr.benchmarking import is_recovered, read_records
from dgsr.pareto import SELECTIONS
from dgsr.problems import load_problem, load_set


def run(name: str, noise: float, seed: int, max_time: float) -> dict[str, Any]:
    problem = load_problem(name)
    data = problem.sample(seed, noise)
    record: dict[str, Any] = {"problem": name, "noise": noise, "seed": seed, "max_time": max_time}
    for rule in ("mdl", "holdout"):
        model = DGSRRegressor(
            max_time=max_time, max_evaluations=10**9, random_state=seed, selection=rule
        ).fit(data.X_train, data.y_train)
        verdicts = [
            is_recovered(candidate.expression, problem, confirm=False).recovered
            for candidate in model.pareto_front_
        ]
        if rule == "mdl":
            record["oracle"] = any(verdicts)
            record["front"] = [
                {"complexity": candidate.complexity, "loss": candidate.loss, "recovered": verdict}
                for candidate, verdict in zip(model.pareto_front_, verdicts, strict=True)
            ]
            for other in SELECTIONS:
                if other != "holdout":
                    record[other] = verdicts[model.pareto_front_.select(other)]
        else:
            chosen = model.pareto_front_.index_of(model.expression_)
            record["holdout"], record["holdout_oracle"] = verdicts[chosen], any(verdicts)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.01, 0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--max-time", type=float, default=30.0)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    names = [problem.name for problem in load_set("strogatz")] + chosen_problems()
    tasks = [(name, noise, seed) for noise in arguments.noise for seed in arguments.seeds for name in names]
    done = list(read_records(arguments.out)) if arguments.out.exists() else []
    known = {(r["problem"], r["noise"], r["seed"]) for r in done}
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        records = joblib.Parallel(n_jobs=arguments.n_jobs, return_as="generator_unordered", batch_size=1)(
            joblib.delayed(run)(*task, arguments.max_time) for task in tasks if task not in known
        )
        with open(arguments.out, "a", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
                file.flush()
                done.append(record)
    print(f"{'noise':>6} {'runs':>5}  " + "  ".join(f"{rule:>9}" for rule in ("oracle", *SELECTIONS)))
    for noise in arguments.noise:
        of = [r for r in done if r["noise"] == noise]
        shares = [sum(r[rule] for r in of) / max(len(of), 1) for rule in ("oracle", *SELECTIONS)]
        print(f"{noise:>6} {len(of):>5}  " + "  ".join(f"{share:>9.1%}" for share in shares))


if __name__ == "__main__":
    main()
