"""What lynx and hare do to each other
===================================

The Hudson's Bay Company bought pelts of the lynx and of the snowshoe hare, its prey. From the numbers of the
years 1900 to 1920 a search finds a system of differential equations, and no law is given to it.

Run from anywhere: ``python examples/lynx_and_hare.py``
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.integrate import solve_ivp

from dgsr import DGSRRegressor, rates

pelts = pd.read_csv(Path(sys.argv[0]).parent / "data" / "lynx_hare.csv", index_col="year")

# %%
# Errors of such numbers are in proportion to them, so the logarithms are smoothed. The rate of change of a
# logarithm is growth per head; it comes with standard errors.

growth = rates(pelts.index, np.log(pelts))
animals = np.exp(growth.states)
print(growth.derivatives.head(3).round(2))
print(growth.errors.head(3).round(2))

# %%
# Both rates are fitted at once, and the chosen formulas are the law of Lotka and Volterra.

model = DGSRRegressor(max_evaluations=10_000, random_state=0)
model.fit(animals, growth.derivatives, sample_weight=growth.sample_weight)
for animal, formula in zip(animals, model.expression_):
    print(f"growth of {animal}: {formula}")

# %%
# The system, integrated from the first year on, goes round as the animals did.


def change(_, logs):
    return [formula(np.exp(logs)[None])[0] for formula in model.expression_]


years = np.linspace(1900, 1920, 200)
cycle = np.exp(solve_ivp(change, (1900, 1920), growth.states.to_numpy()[0], t_eval=years).y)
for animal, line in zip(pelts, cycle):
    (drawn,) = plt.plot(years, line, label=f"{animal}, by the system")
    plt.plot(pelts.index, pelts[animal], "o", color=drawn.get_color(), label=f"{animal}, pelts")
plt.xlabel("year")
plt.ylabel("thousands of pelts")
plt.xticks(range(1900, 1921, 5))
plt.ylim(0, 105)
plt.legend(frameon=False, ncols=2)
plt.show()
