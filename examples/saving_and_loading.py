"""Save a fit, load it again, and use another formula of its front
===============================================================

A fit is one file, which holds data and no code. Any formula of the front can be used once it is loaded.

Run from anywhere: ``python examples/saving_and_loading.py [--out FILE]``
"""

import argparse
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dgsr
from dgsr.reporting.displays import ParetoFrontDisplay

parser = argparse.ArgumentParser(description="Save a fit and load it again.")
parser.add_argument("--out", type=Path, help="by default a temporary file")
arguments = parser.parse_args()

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2, size=(100, 2))
y = X[:, 0] * np.exp(-X[:, 1]) * (1 + 0.05 * rng.normal(size=100))
regressor = dgsr.DGSRRegressor(max_evaluations=10_000, random_state=0).fit(X, y)

# %%
# ``save`` and ``dgsr.load``:

with tempfile.TemporaryDirectory() as folder:
    path = arguments.out or Path(folder) / "fit.dgsr"
    regressor.save(path)
    loaded = dgsr.load(path)

print("chosen:", loaded.expression_)
print("predicts the same:", np.array_equal(loaded.predict(X), regressor.predict(X)))

# %%
# What the other formulas of the front predict for the first two rows:

for i, candidate in enumerate(loaded.pareto_front_):
    print(f"  {i}  {candidate.expression}: {loaded.predict(X[:2], index=i).round(3)}")

# %%
# The front as a picture:

ParetoFrontDisplay.from_estimator(loaded)
plt.show()
