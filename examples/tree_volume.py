"""The timber in a tree
====================

Girth (in inches, above the ground), height (in feet) and volume of timber (in cubic feet) of 31 felled
cherry trees. A forester expects a volume proportional to girth**2*height, as of a cone or a cylinder.

Run from anywhere: ``python examples/tree_volume.py``
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score

from dgsr import DGSRRegressor

table = pd.read_csv(Path(sys.argv[0]).parent / "data" / "trees.csv")
X, volume = table[["girth", "height"]], table["volume"]
model = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(X, volume)
print(model.pareto_front_)

# %%
# The chosen formula lies between a cone and a cylinder whose diameter is the girth:

print("law:", model.sympy_expr_)
print(f"cone:     {np.pi / 4 / 144 / 3:.4f}*girth**2*height")
print(f"cylinder: {np.pi / 4 / 144:.4f}*girth**2*height")

# %%
# The table is ordered by girth, so that of five folds the first has thinner and the last thicker trees than
# all others, which is where a formula shows its worth. The mean error on trees held out, in cubic feet:

for name, estimator in {"formula": model, "linear regression": LinearRegression()}.items():
    scores = cross_val_score(estimator, X, volume, cv=5, scoring="neg_mean_absolute_error")
    print(f"{name:>17}: {-scores.mean():.2f}")

# %%
# What can go wrong: the front ends with formulas that follow single trees. Their leave-one-out error hardly
# falls, although their loss does, so that they are not chosen.

plt.plot(table["girth"] ** 2 * table["height"], volume, "o", label="measured")
line = np.array([0.0, 38_000.0])
plt.plot(line, line * model.predict(X)[0] / (X.iloc[0, 0] ** 2 * X.iloc[0, 1]), label="formula")
plt.xlabel("girth² · height")
plt.ylabel("volume (cubic feet)")
plt.legend(frameon=False)
plt.show()
