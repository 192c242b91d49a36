"""P1 and P2 of the paper, for the pre-trained generator, an untrained one and genetic programming alone.

    python benchmarks/properties.py [--problem Feynman-7] [--seeds K] [--budget N] --out FILE.json

Early stopping is off. P1 is how many different programs that are the true equation a search finds (NMSE
below 1e-12). P2 is the share of the sampled programs that are valid, and the log-likelihood of the true
function (the sum over the hundred shortest of its programs that a search with another seed has found), round
by round while the decoder is refined. P3 is in `benchmarks/objectives.py`.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, section 5.2 and figure 3.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import numpy as np
import torch

from dgsr.benchmarking.environment import environment
from dgsr.expressions import get_library
from dgsr.expressions.constraints import Constraints
from dgsr.generator.adaptation import adapted
from dgsr.generator.checkpoints import load_generator
from dgsr.generator.choice import find_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.population import DataSet
from dgsr.problems import load_problem
from dgsr.search import Search, SearchConfig
from dgsr.search import run as run_search

METHODS = ("pre-trained", "untrained", "genetic programming")

_EXACT = 1e-12
# The true function has infinitely many forms; its likelihood is the sum over this many of the shortest.
_FORMS = 100
# Numbers of evaluations after which P2 is shown.
_SHOWN_AT = (0, 5_000, 20_000, 100_000, 500_000)


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
        nmse = evaluate(population, n_new)
        for i in np.flatnonzero(nmse < _EXACT):
            program = population.tokens[i, : population.lengths[i]].copy()
            found.setdefault(program.tobytes(), program)
        return nmse

    search.evaluate = watched
    return search, dataset, found


def true_forms(problem_name: str) -> list[np.ndarray]:
    """Return the shortest of the true programs that a search with a seed of its own finds."""
    search, _, found = new_search(problem_name, METHODS[0], seed=1_000, budget=100_000)
    run_search(search)
    return sorted(found.values(), key=len)[:_FORMS]


def run(problem_name: str, method: str, seed: int, budget: int, forms: list[np.ndarray]) -> dict:
    search, dataset, found = new_search(problem_name, method, seed, budget)
    lengths = np.array([len(form) for form in forms])
    tokens = np.zeros((len(forms), lengths.max()), dtype=np.int64)
    for i, form in enumerate(forms):
        tokens[i, : len(form)] = form
    rounds = []
    while search.stop_reason() is None:
        sampled = search.ask()
        entry = {"evaluations": search.n_evaluations, "distinct": len(found)}
        if search.generator is not None:
            with torch.no_grad():
                scored = search.generator.log_probs(
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


def report(records: list[dict]) -> None:
    print(f"{'method':<20} {'seeds':>5}  distinct true equations (median, least, most)")
    for method in METHODS:
        counts = [r["distinct"] for r in records if r["method"] == method]
        if counts:
            print(
                f"{method:<20} {len(counts):>5}  "
                f"{statistics.median(counts):,.0f} ({min(counts):,}, {max(counts):,})"
            )
    print("\nafter evaluations: share of the samples that are valid / log-likelihood of the truth (means)")
    print(f"{'method':<20} " + " ".join(f"{at:>16,}" for at in _SHOWN_AT))
    for method in METHODS[:2]:
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", default="Feynman-7")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else []
    done = {(r["problem"], r["method"], r["seed"], r["budget"]) for r in records}
    forms = true_forms(arguments.problem)
    for method in METHODS:
        for seed in range(arguments.seeds):
            if (arguments.problem, method, seed, arguments.budget) not in done:
                records.append(run(arguments.problem, method, seed, arguments.budget, forms))
                arguments.out.write_text(json.dumps(records) + "\n", encoding="utf-8")
    report([r for r in records if r["problem"] == arguments.problem and r["budget"] == arguments.budget])


if __name__ == "__main__":
    main()
