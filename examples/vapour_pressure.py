"""The vapour pressure of mercury
==============================

Antoine's equation says how the pressure of a vapour rises with temperature: exp(p - q/(r + T)). The table has
19 measurements between 0 and 360 degrees Celsius, in millimetres of mercury; the pressures span six decades.

Run from anywhere: ``python examples/vapour_pressure.py``
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from dgsr import DGSRRegressor

table = pd.read_csv(Path(sys.argv[0]).parent / "data" / "mercury_pressure.csv")
X, pressure = table[["temperature"]], table["pressure"]

# %%
# With equal errors in all rows, and with errors that are proportional to the pressure:

models = {
    loss: DGSRRegressor(loss=loss, max_evaluations=50_000, random_state=0).fit(X, pressure)
    for loss in ("squared", "relative")
}
deviations = {loss: 100.0 * (model.predict(X) / pressure - 1.0) for loss, model in models.items()}
for loss, model in models.items():
    print(f"{loss:>8}: {model.sympy_expr_}   at most {abs(deviations[loss]).max():.0f}% off")

# %%
# Both find Antoine's equation. What can go wrong is seen in the deviations: with squared errors the pressures
# below 100 degrees, which are under 0.3, hardly count beside those of hundreds, and a wrong constant could be
# seen nowhere else. Relative errors count all rows alike, and then the first rows count as much although the
# table gives them with one or two digits: 0.0002 may be a quarter off.

for loss, marker in zip(models, "os"):
    plt.plot(table["temperature"], deviations[loss], marker, label=f"{loss} errors")
plt.axhline(0.0, color="grey", linewidth=0.8)
plt.xlabel("temperature (°C)")
plt.ylabel("formula against measurement (%)")
plt.legend(frameon=False)
plt.show()
