"""Fit the noise of an airfoil on some of the measurements, and judge the formula on the others.

Run from anywhere: python examples/fit_real_data.py [--max-time 60]
"""

import argparse
from pathlib import Path

from sklearn.model_selection import train_test_split

from dgsr import DGSRRegressor
from dgsr.cli.tabular import read_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-time", type=float, default=60.0, help="seconds")
    arguments = parser.parse_args()

    table = read_table(Path(__file__).parent / "data" / "airfoil_self_noise.csv", "sound_pressure")
    X_train, X_test, y_train, y_test = train_test_split(table.X, table.y, random_state=0)
    regressor = DGSRRegressor(max_time=arguments.max_time, random_state=0).fit(X_train, y_train)

    for candidate in regressor.pareto_front_:
        print(f"{candidate.complexity:4d}  NMSE {candidate.loss:.3g}  {candidate.expression}")
    print("with", ", ".join(f"x{i} = {name}" for i, name in enumerate(table.feature_names, start=1)))
    print(f"chosen: {regressor.sympy_expr_}")
    print(f"R2 on the measurements held out: {regressor.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
