"""Kepler's third law from six planets
===================================

In 1618 Kepler found that the square of a planet's period is proportional to the cube of its distance from the
sun. The table has the six planets that he knew, in years and astronomical units.

Run from anywhere: ``python examples/planets.py``
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dgsr import DGSRRegressor

table = pd.read_csv(Path(sys.argv[0]).parent / "data" / "planets.csv")
X, period = table[["distance"]], table["period"]
model = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(X, period)
print("law:", model.sympy_expr_)
print(model.pareto_front_)

# %%
# What can go wrong: formulas below the law on the front fit more closely, because they describe the rounding
# of the last digits. Each of them needs more bits than it saves. With Uranus and Neptune, whose printed
# distances and periods do not agree to all their digits, the exponent comes out as 1.4998 instead of 3/2:

later = pd.DataFrame({"distance": [19.19, 30.07], "period": [84.02, 164.8]})
eight = pd.concat([table, later])
of_eight = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(eight[["distance"]], eight["period"])
print("eight planets:", of_eight.sympy_expr_)

# %%
# The law through the measurements:

distance = pd.DataFrame({"distance": np.geomspace(0.3, 40.0, 200)})
plt.loglog(distance, model.predict(distance), label=f"${model.expression_.latex}$")
plt.loglog(table["distance"], period, "o", label="known to Kepler")
plt.loglog(later["distance"], later["period"], "s", label="found later")
plt.xlabel("distance (astronomical units)")
plt.ylabel("period (years)")
plt.legend(frameon=False)
plt.show()
