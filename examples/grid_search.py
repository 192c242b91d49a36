"""Choose the budget and the rule of selection by cross-validation
===============================================================

A grid search compares settings on rows that the search for a formula has not seen.

Run from anywhere: ``python examples/grid_search.py [--n-jobs 2]``
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from dgsr import DGSRRegressor

parser = argparse.ArgumentParser(description="Choose the budget and the rule of selection.")
parser.add_argument("--n-jobs", type=int, default=1, help="fits at a time")
arguments = parser.parse_args()

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2, size=(60, 2))
y = 3 * X[:, 0] ** 2 / (1 + X[:, 1])
y += 0.05 * y.std() * rng.normal(size=60)  # noise, which long formulas fit

# %%
# The noise makes the most accurate formula of a front the wrong one, which shows in the rows left out:

grid = {"max_evaluations": [500, 3_000], "selection": ["mdl", "accuracy"]}
search = GridSearchCV(DGSRRegressor(random_state=0), grid, cv=3, n_jobs=arguments.n_jobs).fit(X, y)

print("R2 on unseen rows, mean of three folds:")
results = search.cv_results_
for settings, score in zip(results["params"], results["mean_test_score"]):
    print(f"  {settings['max_evaluations']:>5} evaluations, {settings['selection']:<8}  {score:.4f}")

names = [f"{settings['selection']}, {settings['max_evaluations']:,}" for settings in results["params"]]
plt.errorbar(results["mean_test_score"], names, xerr=results["std_test_score"], fmt="o")
plt.margins(y=0.2)
plt.locator_params(axis="x", nbins=5)
plt.xlabel("R2 on unseen rows, mean and standard deviation of three folds")
plt.tight_layout()
plt.show()

# %%
# The best settings are those of ``best_estimator_``, which is fitted to all rows:

print("best:", search.best_params_)
print("formula:", search.best_estimator_.expression_)
print("law:     3*x1**2/(1 + x2)")
