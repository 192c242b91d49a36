"""What a generator has learned, for every number of variables; more than it was trained with is P3.

    python benchmarks/generators.py [NAME ...] [--variables 1 2 5 ...] [--equations N] [--seed S] --out F.json

For each number of variables, equations of the generator's prior that no training of ours has seen (a seed of
their own, and nothing that is drawn is excluded but the benchmark problems): nats of the true program
given its own data, another equation's, and none; share of the samples that are valid; of the equations that
are looked up whole (`dgsr.exact_search.stages`), for which the generator need only copy; and of those
whose function is among the first 1, 10, 100, 1,000 samples, and the first 100 with another's data.
Names are of shipped generators, or folders.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from dgsr.exact_search.stages import DEEPEST
from dgsr.generator.checkpoints import list_generators, load_generator
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior

SEED = 20_261_121


def row(name: str, n_variables: int, n_equations: int, seed: int) -> dict:
    generator = load_generator(name)
    known = generator.library.n_variables
    generator = generator.with_variables(n_variables)  # more than it knows; else itself
    prior = Prior.default_for(generator.library, known)
    excluded = benchmark_decontamination(generator.library, generator.constraints)
    held_out = draw_validation_set(generator, prior, excluded, n_equations, seed, n_variables)
    figures = measure(generator, held_out, n_programs=1000, n_datasets=n_equations, depth=DEEPEST)
    return {
        "generator": Path(name).name,
        "n_variables": n_variables,
        "trained_with": known,
        "seed": seed,
        **figures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=[info.name for info in list_generators()])
    parser.add_argument("--variables", type=int, nargs="+", default=[1, 2, 3, 5, 9, 12])
    parser.add_argument("--equations", type=int, default=256)
    parser.add_argument("--seed", type=int, default=SEED, help="of the equations")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else []
    done = {(r["generator"], r["n_variables"], r["n_equations"], r.get("seed", SEED)) for r in rows}
    for name in arguments.names:
        most = load_generator(name).library.n_variables
        reads_any = load_generator(name).config.encoder == "columns"
        for d in arguments.variables:
            key = (Path(name).name, d, arguments.equations, arguments.seed)
            if key in done or (d > most and not reads_any):
                continue
            rows.append(row(name, d, arguments.equations, arguments.seed))
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(
        f"{'generator':<16} {'d':>2} {'right':>6} {'wrong':>6} {'none':>6} {'valid':>6} {'whole':>6}"
        f" {'1':>5} {'10':>5} {'100':>5} {'1000':>5} {'wrong':>5}"
    )
    for r in rows:
        hits = [r[f"hit_{name}"] for name in ("1", "10", "100", "1000", "100_wrong")]
        likelihoods = [r[f"log_likelihood_{name}"] for name in ("right", "wrong", "none")]
        print(
            f"{r['generator']:<16} {r['n_variables']:>2} "
            + " ".join(f"{value:>6.1f}" for value in likelihoods)
            + f" {r['valid']:>6.0%} {r.get('looked_up', 0.0):>6.0%} "
            + " ".join(f"{value:>5.0%}" for value in hits)
        )


if __name__ == "__main__":
    main()
