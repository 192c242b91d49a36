"""Measure what a network reads from tables whose target has a scale and an offset, which a fit has for free.

    python benchmarks/transformed_targets.py --out benchmarks/results/transformed_targets.json

The figures are mean log-likelihoods, in nats, of the true programs of 200 random equations and of 200 laws of
the prior, over three columns of 60 rows without noise, given the target or a transformed one. They take half
a minute.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dgsr import load_generator
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior

N_EQUATIONS, N_ROWS, N_COLUMNS = 200, 60, 3
TRANSFORMATIONS = {
    "y": lambda y, deviation: y,
    "3 y": lambda y, deviation: 3.0 * y,
    "-y": lambda y, deviation: -y,
    "y + sd": lambda y, deviation: y + deviation,
    "y - mean": lambda y, deviation: y - y.mean(axis=1, keepdims=True),
    "-40 y + 200 sd": lambda y, deviation: -40.0 * y + 200.0 * deviation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generator", default="physics-d16", help="name or folder of a generator")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    generator = load_generator(arguments.generator)
    library, grammar = generator.library, generator.grammar(N_COLUMNS)
    priors = {
        "random equations": Prior.default_for(library, N_COLUMNS),
        "laws": Prior.varied_for(library, N_COLUMNS, laws=1.0),
    }
    found: dict[str, object] = {"generator": arguments.generator, "seed": arguments.seed}
    for name, prior in priors.items():
        shape, state = (N_EQUATIONS, N_ROWS, N_COLUMNS), new_state(arguments.seed)
        drawn = replace(prior, noise=None, transformed=0.0).draw(
            *shape, library, generator.constraints, state, in_any_order=True
        )
        deviation = drawn.y.std(axis=1, keepdims=True)
        nats = {}
        for how, transformed in TRANSFORMATIONS.items():
            with torch.inference_mode():
                encoding = generator.encode(drawn.X, transformed(drawn.y, deviation), N_COLUMNS)
                log_probs = generator.log_probs(
                    encoding, drawn.programs.tokens, drawn.programs.lengths, grammar
                )
            nats[how] = round(float(np.mean(log_probs.programs.numpy())), 2)
        found[name] = nats
        print(name, nats, flush=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
