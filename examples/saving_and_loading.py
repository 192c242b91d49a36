"""Save a fit, load it again, and use another formula of its front.

Run from anywhere: python examples/saving_and_loading.py [--out FILE]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import dgsr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="by default a temporary file")
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, size=(100, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) * (1 + 0.05 * rng.normal(size=100))
    regressor = dgsr.DGSRRegressor(max_evaluations=10_000, random_state=0).fit(X, y)

    with tempfile.TemporaryDirectory() as folder:
        path = arguments.out or Path(folder) / "fit.dgsr"
        regressor.save(path)
        print(f"saved: {path.stat().st_size:,} bytes")
        loaded = dgsr.load(path)

    print("chosen:", loaded.expression_)
    print("predicts the same:", np.array_equal(loaded.predict(X), regressor.predict(X)))
    print("predictions of each formula of its front:")
    for i, candidate in enumerate(loaded.pareto_front_):
        print(f"  {i}  {candidate.expression}: {loaded.predict(X[:2], index=i).round(3)}")


if __name__ == "__main__":
    main()
