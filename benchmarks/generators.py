"""What a generator has learned, for every number of variables; more than it was trained with is P3.

    python benchmarks/generators.py [NAME ...] [--variables 1 2 5 ...] [--equations N] [--seed S] --out F.json

For each number of variables it draws equations of the generator's prior that no training of ours has seen:
they have a seed of their own, and only the benchmark problems are left out. The figures are the nats of the
true program given its own data, another equation's, and none; the share of the samples that are valid; and
the share of the equations whose function is among the first 1, 10, 100, 1,000 samples, and among the first
100 with another's data. Names are of shipped generators, or folders.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from dgsr.generator.checkpoints import list_generators, load_generator
from dgsr.generator.generator import Generator
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior

#: Seed of the equations.
SEED = 20_261_121


def prior_of(generator: Generator) -> Prior:
    """Return the distribution of the equations that a generator like this is trained on by default."""
    usual = Prior.varied_for if generator.guide is not None else Prior.default_for
    return usual(generator.library, generator.library.n_variables)


def figures(
    generator: Generator, prior: Prior, n_variables: int, n_equations: int, seed: int = SEED
) -> dict[str, float]:
    """Return what `measure` says of a generator on new equations of a prior."""
    generator = generator.with_variables(n_variables)
    excluded = benchmark_decontamination(generator.library, generator.constraints)
    held_out = draw_validation_set(generator, prior, excluded, n_equations, seed, n_variables)
    return measure(generator, held_out, n_programs=1000, n_datasets=n_equations)


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
        generator = load_generator(name)
        most = generator.library.n_variables
        reads_any = generator.config.encoder == "descriptions"
        for d in arguments.variables:
            key = (Path(name).name, d, arguments.equations, arguments.seed)
            if key in done or (d > most and not reads_any):
                continue
            found = figures(generator, prior_of(generator), d, arguments.equations, arguments.seed)
            row = {"generator": key[0], "n_variables": d, "trained_with": most, "seed": arguments.seed}
            rows.append({**row, **found})
            arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(
        f"{'generator':<16} {'d':>2} {'right':>6} {'wrong':>6} {'none':>6} {'valid':>6}"
        f" {'1':>5} {'10':>5} {'100':>5} {'1000':>5} {'wrong':>5}"
    )
    for r in rows:
        hits = [r[f"hit_{name}"] for name in ("1", "10", "100", "1000", "100_wrong")]
        likelihoods = [r[f"log_likelihood_{name}"] for name in ("right", "wrong", "none")]
        print(
            f"{r['generator']:<16} {r['n_variables']:>2} "
            + " ".join(f"{value:>6.1f}" for value in likelihoods)
            + f" {r['valid']:>6.0%} "
            + " ".join(f"{value:>5.0%}" for value in hits)
        )


if __name__ == "__main__":
    main()
