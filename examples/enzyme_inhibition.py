"""How an inhibitor slows an enzyme
================================

Textbooks know three rate laws of an enzyme with an inhibitor. In each of them v is the rate without inhibitor
at much substrate, and the other letters are constants:

- competitive, the inhibitor takes the place of the substrate: v*S/(S + Km*(1 + I/Ki));
- non-competitive, it disturbs the enzyme anywhere: v*S/((S + Km)*(1 + I/Ki));
- uncompetitive, it binds to the enzyme that holds a substrate: v*S/(Km + S*(1 + I/Ki)).

The 72 rates are measurements of the French research unit INRA UMR1233. No law is given to the search.

Run from anywhere: ``python examples/enzyme_inhibition.py``
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dgsr import DGSRRegressor

table = pd.read_csv(Path(sys.argv[0]).parent / "data" / "enzyme_inhibition.csv")
X, rate = table[["substrate", "inhibitor"]], table["rate"]
model = DGSRRegressor(max_evaluations=50_000, random_state=0).fit(X, rate)
print(model.pareto_front_)

# %%
# The chosen formula is the uncompetitive law, with v = 1500/68, Km = 2000/68 and Ki = 68:

print("law:", model.sympy_expr_)

# %%
# Least squares of the three laws agrees: the uncompetitive law leaves a quarter of the squared error of the
# competitive one, and four fifths of that of the non-competitive one. What can go wrong: whoever compares the
# competitive and the non-competitive law alone, chooses the better of two wrong ones.

concentration = np.linspace(0.0, 210.0, 200)
for inhibitor, color in zip([0.0, 12.5, 50.0, 100.0], plt.cm.viridis([0.0, 0.3, 0.6, 0.85])):
    here = table[table["inhibitor"] == inhibitor]
    grid = pd.DataFrame({"substrate": concentration, "inhibitor": inhibitor})
    plt.plot(here["substrate"], here["rate"], "o", color=color)
    plt.plot(concentration, model.predict(grid), color=color, label=f"inhibitor {inhibitor:g}")
plt.xlabel("concentration of the substrate")
plt.ylabel("rate")
plt.legend(frameon=False)
plt.show()
