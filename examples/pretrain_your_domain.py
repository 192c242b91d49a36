"""Train a generator for the laws of one's own field
=================================================

The field here is networks of resistors, lenses and springs: sums, products and quotients of up to four
positive quantities, and roots of them. A library has the operators of its laws, and a prior their frequencies
and the distribution of the inputs. Searches with the generator are compared with searches without it. The
training goes on where it was stopped when the program is run again.

Run from anywhere: ``python examples/pretrain_your_domain.py [--minutes 6] [--laws 20] [--out FOLDER]``

The site shows the code alone, for the training takes six minutes.
"""

import argparse
import statistics
from pathlib import Path

import numpy as np

from dgsr import DGSRRegressor
from dgsr.expressions import Constraints, Expression, Library
from dgsr.kernels.random import new_state
from dgsr.pretraining import pretrain
from dgsr.pretraining.prior import Prior

LIBRARY = Library("networks", ("add", "sub", "mul", "div", "sqrt"), has_constants=False, n_variables=4)
PRIOR = Prior(
    min_leaves=4,
    max_leaves=7,
    weights={"add": 8, "sub": 3, "mul": 6, "div": 8, "sqrt": 2, "pow2": 3},
    variable_probability=0.95,
    max_integer=2,
    domains=((0.1, 10.0, 2.0), (0.1, 2.0, 1.0)),
)


def laws(n: int, seed: int) -> list[tuple[Expression, np.ndarray, np.ndarray]]:
    """Return laws of the field, most likely unseen in training, with 60 measurements each."""
    drawn = PRIOR.draw(n, 60, 4, LIBRARY, Constraints(max_length=30), new_state(seed))
    return [(drawn.programs[i], drawn.X[i], drawn.y[i]) for i in range(n)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--laws", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("networks"))
    arguments = parser.parse_args()

    steps = max(1, round(arguments.minutes * 60 * 2))  # two a second, which the learning rate falls over
    generator = pretrain(LIBRARY, 4, arguments.out, prior=PRIOR, steps=steps, max_time=60 * arguments.minutes)

    methods = {"trained on the field": generator, "untrained": "untrained", "genetic programming": None}
    budget = 100_000
    print(f"{arguments.laws} new laws, at most {budget:,} evaluations each:")
    tasks = laws(arguments.laws, seed=12_345)
    for name, chosen in methods.items():
        evaluations = []
        for expression, X, y in tasks:
            # Exact search, which solves many of these laws, is off, to measure what the generator adds.
            settings = {"max_evaluations": budget, "look_up": False, "random_state": 0}
            model = DGSRRegressor(LIBRARY, chosen, **settings).fit(X, y)
            found = model.stop_reason_ == "exact fit"
            evaluations.append(model.n_evaluations_ if found else np.inf)
            if chosen is generator and found and len(evaluations) <= 3:
                print(f"    {expression}  was found as  {model.expression_}")
        solved = [count for count in evaluations if np.isfinite(count)]
        print(
            f"  {name:<20} {len(solved):>3} found, median evaluations {statistics.median(evaluations):>9,.0f}"
        )


if __name__ == "__main__":
    main()
