"""Add an operator of one's own to a library, and find a law that is long without it.

The law is Hill's equation, the rate of an enzyme at a concentration of its substrate: r*c**2/(k**2 + c**2).

Run from anywhere: python examples/custom_operator.py
"""

import numpy as np

from dgsr import DGSRRegressor
from dgsr.expressions import Library


def hill(x: float) -> float:
    return x * x / (1.0 + x * x)


def slope(x: float) -> float:
    return 2.0 * x / (1.0 + x * x) ** 2


def main() -> None:
    concentration = np.geomspace(0.1, 30.0, 40)[:, None]  # micromole per litre
    rate = 7.5 * concentration[:, 0] ** 2 / (3.2**2 + concentration[:, 0] ** 2)
    rate += 0.01 * rate.std() * np.random.default_rng(0).normal(size=40)

    plain = Library("plain", ("add", "sub", "mul", "div", "exp"), has_constants=True, n_variables=1)
    # Without `sympy` formulas show hill(x), and without `derivative` finite differences are used.
    own = plain.with_operator("hill", hill, sympy=lambda x: x**2 / (1 + x**2), derivative=slope)

    for name, library in {"without": plain, "with": own}.items():
        model = DGSRRegressor(library, max_evaluations=5_000, random_state=0).fit(concentration, rate)
        chosen = model.expression_
        print(f"{name:>7} the operator: {chosen}   complexity {chosen.complexity}")
    print("in sympy:", model.sympy_expr_)
    print("law:      7.5*hill(x1/3.2)")


if __name__ == "__main__":
    main()
