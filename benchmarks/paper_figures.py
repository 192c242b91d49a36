"""What the paper shows in figures of single problems: Pareto fronts, and two properties of generators.

    python benchmarks/paper_figures.py fronts [--seed 0] --out benchmarks/results/fronts.json
    python benchmarks/paper_figures.py properties [--problem Feynman-7] [--seeds K] [--budget N] --out FILE

``fronts`` has those of Feynman-8 and Feynman-13, two laws that no method of the paper finds, by the methods
of `dgsr.benchmarking.METHODS` without exact search: `generator` and `gp`. A run evaluates at most 2,000,000
equations in at most 60 s, as in the tables. `docs/pictures.py` draws the fronts beside the formulas that the
paper lists: test NMSE over the complexity C(f), which is the same measure in both.

``properties`` has P1 and P2 of the paper, for the pre-trained generator, an untrained one and genetic
programming alone, with early stopping off. P1 is how many different programs that are the true equation a
search finds (NMSE below 1e-12). P2 is the share of the sampled programs that are valid, and the
log-likelihood of the true function (the sum over the hundred shortest of its programs that a search with
another seed has found), round by round while the decoder is refined. P3 is in `trainings.py`. Printed are the
means over the seeds.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, section 5.2, figure 3 and appendix "Feynman d=5 Pareto Front Analysis".
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dgsr.benchmarking import METHODS, is_recovered
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.recording import nmse
from dgsr.data.dataset import DataSet
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.generator.adaptation import adapted
from dgsr.generator.checkpoints import load_generator
from dgsr.generator.choice import find_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.problems import load_problem
from dgsr.search import Search, SearchConfig
from dgsr.search import run as run_search

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

WITH_NETWORKS = ("pre-trained", "untrained", "genetic programming")

_EXACT = 1e-12
# The true function has infinitely many forms; its likelihood is the sum over this many of the shortest.
_FORMS = 100
# Numbers of evaluations after which P2 is shown.
_SHOWN_AT = (0, 5_000, 20_000, 100_000, 500_000)


# Fronts --------------------------------------------------------------------------------------------


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
        "recovered": is_recovered(regressor.expression_, problem).recovered,
        "evaluations": regressor.n_evaluations_,
        "generator": regressor.generator_,
        "front": sorted(front, key=lambda each: each["complexity"]),
    }


def measure_fronts(arguments: argparse.Namespace) -> None:
    """Write the fronts of both problems by both methods."""
    runs = []
    for problem_name in PUBLISHED:
        for method in OURS:
            runs.append(front_of(problem_name, method, arguments.seed))
            print(f"{problem_name} {method}: {json.dumps(runs[-1]['front'][-1])}", flush=True)
    found = {"environment": environment(), "published": PUBLISHED, "runs": runs}
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


# Properties ----------------------------------------------------------------------------------------


def generator_of(method: str, library, constraints: Constraints, seed: int) -> Generator | None:
    if method == "genetic programming":
        return None
    if method == "untrained":
        return Generator.untrained(library, CONFIGS["paper"], constraints, seed)
    name = find_generator(library)
    if name is None:
        raise SystemExit(f"No shipped generator serves library {library.name}.")
    return adapted(load_generator(name), library, constraints.max_length)


def new_search(problem_name: str, method: str, seed: int, budget: int) -> tuple[Search, DataSet, dict]:
    """Return a search without early stopping, its data, and the true programs it will have found."""
    problem = load_problem(problem_name)
    data = problem.sample(seed)
    library = get_library(problem.library, problem.n_variables)
    constraints = Constraints(max_length=problem.max_length)
    generator = generator_of(method, library, constraints, seed)
    # With a tolerance below 0 no fit is exact.
    config = SearchConfig(max_evaluations=budget, tolerance=-1.0, refine=True)
    dataset = DataSet.from_arrays(data.X_train, data.y_train)
    search = Search(dataset, library, constraints, config, generator, "compiled", seed)
    found: dict[bytes, np.ndarray] = {}
    evaluate = search.evaluate

    def watched(population, n_new=0):
        errors = evaluate(population, n_new)
        for i in np.flatnonzero(errors < _EXACT):
            program = population.tokens[i, : population.lengths[i]].copy()
            found.setdefault(program.tobytes(), program)
        return errors

    search.evaluate = watched
    return search, dataset, found


def true_forms(problem_name: str) -> list[np.ndarray]:
    """Return the shortest of the true programs that a search with a seed of its own finds."""
    search, _, found = new_search(problem_name, WITH_NETWORKS[0], seed=1_000, budget=100_000)
    run_search(search)
    return sorted(found.values(), key=len)[:_FORMS]


def properties_of(problem_name: str, method: str, seed: int, budget: int, forms: list[np.ndarray]) -> dict:
    search, dataset, found = new_search(problem_name, method, seed, budget)
    lengths = np.array([len(form) for form in forms])
    tokens = np.zeros((len(forms), lengths.max()), dtype=np.int64)
    for i, form in enumerate(forms):
        tokens[i, : len(form)] = form
    rounds = []
    while search.stop_reason() is None:
        sampled = search.ask()
        entry = {"evaluations": search.n_evaluations, "distinct": len(found)}
        if search.conditioned is not None:
            with torch.no_grad():
                scored = search.conditioned.generator.log_probs(
                    search.conditioned.encoding, tokens, lengths, search.grammar
                )
            entry["log_likelihood"] = float(scored.programs[0].logsumexp(0))
            entry["valid"] = float(np.isfinite(sampled.nmse(dataset)).mean())
        search.tell(sampled)
        rounds.append(entry)
    return {
        "problem": problem_name,
        "method": method,
        "seed": seed,
        "budget": budget,
        "environment": environment(),
        "distinct": len(found),
        "restarts": search.restarts.n,
        "rounds": rounds,
    }


def report_properties(records: list[dict]) -> None:
    print(f"{'method':<20} {'seeds':>5}  distinct true equations (median, least, most)")
    for method in WITH_NETWORKS:
        counts = [r["distinct"] for r in records if r["method"] == method]
        if counts:
            print(
                f"{method:<20} {len(counts):>5}  "
                f"{statistics.median(counts):,.0f} ({min(counts):,}, {max(counts):,})"
            )
    print("\nafter evaluations: share of the samples that are valid / log-likelihood of the truth (means)")
    print(f"{'method':<20} " + " ".join(f"{at:>16,}" for at in _SHOWN_AT))
    for method in WITH_NETWORKS[:2]:
        cells = []
        for at in _SHOWN_AT:
            entries = [
                next((e for e in r["rounds"] if e["evaluations"] >= at), None)
                for r in records
                if r["method"] == method
            ]
            entries = [e for e in entries if e is not None]
            if entries:
                valid = statistics.mean(e["valid"] for e in entries)
                likelihood = statistics.mean(e["log_likelihood"] for e in entries)
                cells.append(f"{valid:>8.0%} / {likelihood:>5.1f}")
        print(f"{method:<20} " + " ".join(f"{cell:>16}" for cell in cells))


def measure_properties(arguments: argparse.Namespace) -> None:
    """Make the runs that the file does not have, and print what is in it."""
    torch.set_num_threads(1)
    records = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else []
    done = {(r["problem"], r["method"], r["seed"], r["budget"]) for r in records}
    forms = true_forms(arguments.problem)
    for method in WITH_NETWORKS:
        for seed in range(arguments.seeds):
            run = arguments.problem, method, seed, arguments.budget
            if run not in done:
                records.append(properties_of(*run, forms))
                arguments.out.write_text(json.dumps(records) + "\n", encoding="utf-8")
    report_properties(
        [r for r in records if r["problem"] == arguments.problem and r["budget"] == arguments.budget]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    fronts = parts.add_parser("fronts")
    fronts.add_argument("--seed", type=int, default=0)
    fronts.set_defaults(measure=measure_fronts)
    properties = parts.add_parser("properties")
    properties.add_argument("--problem", default="Feynman-7")
    properties.add_argument("--seeds", type=int, default=5)
    properties.add_argument("--budget", type=int, default=1_000_000)
    properties.set_defaults(measure=measure_properties)
    for part in (fronts, properties):
        part.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.measure(arguments)


if __name__ == "__main__":
    main()
