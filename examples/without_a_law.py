"""A table without a law: the noise of an airfoil
==============================================

The noise of an airfoil, measured in a wind tunnel: formulas are found on three quarters of the measurements,
and judged on the others. No short law is known here, so the front goes on as far as the data support it.

Run from anywhere: ``python examples/without_a_law.py [--max-evaluations 2_000_000]``
"""

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.metrics import PredictionErrorDisplay
from sklearn.model_selection import train_test_split

from dgsr import DGSRRegressor
from dgsr.reporting.displays import ParetoFrontDisplay

parser = argparse.ArgumentParser(description="Fit the noise of an airfoil.")
parser.add_argument("--max-evaluations", type=int, default=100_000)
arguments = parser.parse_args()

table = pd.read_csv(Path(sys.argv[0]).parent / "data" / "airfoil_self_noise.csv")
X, y = table.drop(columns="sound_pressure"), table["sound_pressure"]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
regressor = DGSRRegressor(max_evaluations=arguments.max_evaluations, random_state=0).fit(X_train, y_train)

# %%
# The front, from the shortest formula to the longest that the measurements support:

for candidate in regressor.pareto_front_:
    print(f"{candidate.complexity:4d}  NMSE {candidate.loss:.3g}  {candidate.expression}")

ParetoFrontDisplay.from_estimator(regressor)
plt.show()

# %%
# The chosen formula, and what it predicts for the measurements held out:

print(f"chosen: {regressor.sympy_expr_}")
print(f"R2 on the measurements held out: {regressor.score(X_test, y_test):.3f}")

PredictionErrorDisplay.from_estimator(regressor, X_test, y_test, kind="actual_vs_predicted")
plt.title("Sound pressure of the measurements held out (dB)")
plt.show()
