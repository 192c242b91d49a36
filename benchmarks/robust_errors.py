"""Measure whether the errors of fits that forgive outliers are right, in repeated measurements of a line.

    python benchmarks/robust_errors.py --out benchmarks/results/robust_errors.json

The line 1 + 2*x1 is measured at 20, 50 and 200 random places with normal, Laplace or contaminated noise (ten
times as large in a tenth of the rows), and fitted by absolute errors and by Huber's loss in sixty iterations.
Each record has the standard deviation of the slopes of all repetitions, and for `robust_uncertainty_of` and
for `uncertainty_of`, which has the errors of weighted least squares, the share of the intervals of 1.96
standard errors that hold the slope, and the root mean square of the errors over that deviation. It takes two
minutes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from dgsr.constants.uncertainty import robust_uncertainty_of, uncertainty_of
from dgsr.expressions import Expression, get_library
from dgsr.passes.losses import precisions
from dgsr.population import DataSet

LIBRARY = get_library("physics", 1)
TOKENS = [LIBRARY.index[name] for name in ("add", "const", "mul", "const", "x1")]
NOISE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "laplace": lambda rng, n: rng.laplace(size=n),
    "contaminated": lambda rng, n: rng.normal(size=n) * np.where(rng.random(n) < 0.1, 10.0, 1.0),
}
SLOPE, N_ITERATIONS = 2.0, 60


def repetition(rng: np.random.Generator, noise: str, n: int, loss: str) -> tuple[float, float, float]:
    """Return the slope of one fit, and its standard error by either method."""
    X = rng.uniform(0.5, 2.0, (n, 1))
    data = DataSet.from_arrays(X, 1.0 + SLOPE * X[:, 0] + 0.3 * NOISE[noise](rng, n))
    design = np.column_stack([np.ones(n), X[:, 0]])
    constants = np.linalg.lstsq(design, data.y, rcond=None)[0]
    for _ in range(N_ITERATIONS):
        root = np.sqrt(precisions(loss, data, design @ constants))
        constants = np.linalg.lstsq(design * root[:, None], data.y * root, rcond=None)[0]
    weighted = data.with_precision(precisions(loss, data, design @ constants))
    expression = Expression(LIBRARY, TOKENS, constants)
    robust, by_squares = (
        robust_uncertainty_of(expression, data, weighted, loss),
        uncertainty_of(expression, weighted),
    )
    return constants[1], robust.standard_errors[1], by_squares.standard_errors[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    rng, rows = np.random.default_rng(0), []
    for noise in NOISE:
        for n in (20, 50, 200):
            for loss in ("absolute", "huber"):
                fits = np.array([repetition(rng, noise, n, loss) for _ in range(arguments.repetitions)])
                slopes, errors = fits[:, :1], fits[:, 1:]
                covered = (np.abs(slopes - SLOPE) < 1.96 * errors).mean(axis=0)
                sizes = np.sqrt((errors**2).mean(axis=0)) / slopes.std()
                row = {"noise": noise, "rows": n, "loss": loss, "spread": round(float(slopes.std()), 4)}
                for name, share, size in zip(("robust", "weighted"), covered, sizes):
                    row |= {f"{name}_covers": round(float(share), 3), f"{name}_error": round(float(size), 3)}
                rows.append(row)
                print(row, flush=True)
    arguments.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
