"""Find one formula for each of several targets with scikit-learn's MultiOutputRegressor.

The position of a thrown stone depends on speed, angle and time (in units in which gravity is 2).

Run from anywhere: python examples/multi_output.py
"""

import numpy as np
import pandas as pd
from sklearn.multioutput import MultiOutputRegressor

from dgsr import DGSRRegressor


def main() -> None:
    rng = np.random.default_rng(0)
    throws = pd.DataFrame(
        {"speed": rng.uniform(1, 5, 60), "angle": rng.uniform(0.2, 1.4, 60), "time": rng.uniform(0, 1, 60)}
    )
    speed, angle, time = (throws[name].to_numpy() for name in throws)
    places = pd.DataFrame(
        {"distance": speed * time * np.cos(angle), "height": speed * time * np.sin(angle) - time**2}
    )

    model = MultiOutputRegressor(DGSRRegressor("koza", max_evaluations=50_000, random_state=0))
    model.fit(throws, places)

    for target, regressor in zip(places, model.estimators_):
        print(f"{target} = {regressor.sympy_expr_}   ({regressor.stop_reason_})")
    print(model.predict(throws[:2]).round(3))
    print(places[:2].round(3).to_numpy())


if __name__ == "__main__":
    main()
