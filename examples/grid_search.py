"""Choose the budget and the rule of selection by cross-validation, on rows that the search has not seen.

Run from anywhere: python examples/grid_search.py [--n-jobs 2]
"""

import argparse

import numpy as np
from sklearn.model_selection import GridSearchCV

from dgsr import DGSRRegressor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, size=(60, 2))
    y = 3 * X[:, 0] ** 2 / (1 + X[:, 1])
    y += 0.05 * y.std() * rng.normal(size=60)  # noise, which long formulas fit

    grid = {"max_evaluations": [500, 3_000], "selection": ["mdl", "accuracy"]}
    search = GridSearchCV(DGSRRegressor(random_state=0), grid, cv=3, n_jobs=arguments.n_jobs).fit(X, y)

    print("R2 on unseen rows, mean of three folds:")
    results = search.cv_results_
    for settings, score in zip(results["params"], results["mean_test_score"]):
        print(f"  {settings['max_evaluations']:>5} evaluations, {settings['selection']:<8}  {score:.4f}")
    print("best:", search.best_params_)
    print("formula:", search.best_estimator_.expression_)
    print("law:     3*x1**2/(1 + x2)")


if __name__ == "__main__":
    main()
