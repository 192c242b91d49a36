"""Add an operator of one's own
============================

A law can be long in the operators of a library and short with one more. This one is Hill's equation, the rate
of an enzyme at a concentration of its substrate: r*c**2 / (k**2 + c**2).

Run from anywhere: ``python examples/custom_operator.py``
"""

import matplotlib.pyplot as plt
import numpy as np

from dgsr import DGSRRegressor
from dgsr.expressions import Library

concentration = np.geomspace(0.1, 30.0, 40)[:, None]  # micromole per litre
rate = 7.5 * concentration[:, 0] ** 2 / (3.2**2 + concentration[:, 0] ** 2)
rate += 0.01 * rate.std() * np.random.default_rng(0).normal(size=40)

# %%
# The operator is a function of floats that numba can compile. Without ``sympy`` formulas show hill(x), and
# without ``derivative`` finite differences are used where constants inside it are fitted.


def hill(x: float) -> float:
    return x * x / (1.0 + x * x)


def slope(x: float) -> float:
    return 2.0 * x / (1.0 + x * x) ** 2


plain = Library("plain", ("add", "sub", "mul", "div", "exp"), has_constants=True, n_variables=1)
own = plain.with_operator("hill", hill, sympy=lambda x: x**2 / (1 + x**2), derivative=slope)

# %%
# Both libraries find the law, and with the operator it is shorter.

models = {}
for name, library in {"without": plain, "with": own}.items():
    model = DGSRRegressor(library, max_evaluations=5_000, random_state=0).fit(concentration, rate)
    models[name] = model
    chosen = model.expression_
    print(f"{name:>7} the operator: {chosen}   complexity {chosen.complexity}")
print("in sympy:", models["with"].sympy_expr_)
print("law:      7.5*hill(x1/3.2)")

# %%
# The formula between the measurements:

c = np.geomspace(0.1, 30.0, 200)[:, None]
plt.semilogx(concentration, rate, "o", markersize=4, label="measured")
plt.semilogx(c, models["with"].predict(c), label=str(models["with"].expression_))
plt.xlabel("concentration (µmol/l)")
plt.ylabel("rate")
plt.legend(frameon=False)
plt.show()
