"""Find one formula for each of several targets
============================================

The position of a thrown stone depends on speed, angle and time (in units in which gravity is 2).
One fit finds a formula for each of its two coordinates.

Run from anywhere: ``python examples/multi_output.py``
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dgsr import DGSRRegressor

rng = np.random.default_rng(0)
throws = pd.DataFrame(
    {"speed": rng.uniform(1, 5, 60), "angle": rng.uniform(0.2, 1.4, 60), "time": rng.uniform(0, 1, 60)}
)
speed, angle, time = (throws[name].to_numpy() for name in throws)
places = pd.DataFrame(
    {"distance": speed * time * np.cos(angle), "height": speed * time * np.sin(angle) - time**2}
)

# %%
# The data are exact and the laws have no constants but whole numbers, so the library ``koza`` will do.

model = DGSRRegressor("koza", max_evaluations=100_000, random_state=0)
model.fit(throws, places)
for target, formula, stop_reason in zip(places, model.sympy_expr_, model.stop_reason_):
    print(f"{target} = {formula}   ({stop_reason})")
print(model.predict(throws[:2]).round(3))
print(places[:2].round(3).to_numpy())

# %%
# Three throws, of which the fit has seen none:

moments = np.linspace(0, 1, 30)
for thrown_at in (0.4, 0.8, 1.2):
    throw = pd.DataFrame({"speed": 4.0, "angle": thrown_at, "time": moments})
    distance, height = model.predict(throw).T
    plt.plot(distance, height, label=f"thrown at an angle of {thrown_at}")
plt.xlabel("distance")
plt.ylabel("height")
plt.legend(frameon=False)
plt.show()
