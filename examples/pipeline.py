"""Find a formula at the end of a pipeline
=======================================

The target is the resistance of wires of two metals. One column names the metal, and two columns are
irrelevant: the pipeline encodes the metal as a number, selects the relevant columns, and searches for a
formula of these, in the names of the table's columns.

Run from anywhere: ``python examples/pipeline.py``
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import PredictionErrorDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dgsr import DGSRRegressor


def wires(n: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return n wires and their resistances in ohm."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "metal": rng.choice(["copper", "iron"], n),
            "length": rng.uniform(1, 10, n),  # m
            "diameter": rng.uniform(0.2, 1, n),  # mm
            "price": rng.uniform(1, 9, n),
            "hour": rng.uniform(8, 18, n),
        }
    )
    resistivity = table["metal"].map({"copper": 0.0168, "iron": 0.0971})  # ohm mm^2 / m
    area = np.pi * table["diameter"] ** 2 / 4
    return table, resistivity * table["length"] / area + 0.02 * rng.normal(size=n)


X_train, X_test, y_train, y_test = train_test_split(*wires(200), random_state=0)
print(X_train.head())

# %%
# With ``set_output(transform="pandas")`` the columns keep their names from step to step.

words = (OneHotEncoder(drop="if_binary", sparse_output=False), ["metal"])
pipeline = make_pipeline(
    make_column_transformer(words, remainder="passthrough", verbose_feature_names_out=False),
    SelectFromModel(ExtraTreesRegressor(random_state=0), threshold=0.05),
    DGSRRegressor(max_evaluations=20_000, random_state=0),
).set_output(transform="pandas")
pipeline.fit(X_train, y_train)

print("kept:", ", ".join(pipeline[-1].feature_names_in_))
print(pipeline[-1].pareto_front_)

# %%
# The column ``metal_iron`` is 0 for copper and 1 for iron, so that a sum with it stands for the resistivities
# of both metals.

print("chosen:", pipeline[-1].expression_)
print(f"R2 on the wires held out: {pipeline.score(X_test, y_test):.4f}")

PredictionErrorDisplay.from_estimator(pipeline, X_test, y_test, kind="actual_vs_predicted")
plt.title("Resistance of the wires held out (ohm)")
plt.show()
