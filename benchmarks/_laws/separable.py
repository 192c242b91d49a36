"""Products and sums of functions of different columns, as people write rates and responses.

Sixteen laws are written out, such as light times nutrient times temperature. Others are drawn: two or three
columns, for each a form that has a name (`dgsr.expressions.formulas.common_forms`) with random numbers, added
or multiplied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from _laws.law import Law
from dgsr.expressions.formulas.common_forms import COMMON_FORMS
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse

#: Columns of drawn laws are uniform in one of these.
RANGES = ((0.1, 10.0), (1.0, 5.0), (0.05, 1.0), (20.0, 80.0))

#: Laws as they are met in kinetics, ecology and engineering; the parts search was developed on them.
WRITTEN = (
    Law("Monod, Arrhenius", "3.1*S/(1.7 + S)*exp(-4000.5*(1/T - 1/300))", {"S": (0.1, 10), "T": (280, 320)}),
    Law("double Monod", "2.4*S/(1.3 + S)*O/(0.6 + O)", {"S": (0.1, 10), "O": (0.1, 5)}),
    Law("noncompetitive inhibition", "5.2*S/((1.1 + S)*(1 + I/2.3))", {"S": (0.1, 10), "I": (0, 8)}),
    Law("Steele, Monod, Q10", "0.015*L*exp(1 - L/120.5)*N/(0.7 + N)*exp(0.07*T - 1.4)",
        {"L": (5, 400), "N": (0.1, 6), "T": (5, 30)}),
    Law("Jarvis", "0.4*Q/(250.5 + Q)/(1 + D/1.4)*(1 - 0.003*(T - 24.5)**2)",
        {"Q": (10, 1500), "D": (0.2, 4), "T": (5, 38)}),
    Law("Arrhenius, order of reaction", "3800.5*exp(-3000.5/T)*c**1.6", {"T": (300, 500), "c": (0.1, 4)}),
    Law("three terms", "sin(1.4*a) + 2*log(b) + 1.5*exp(-0.8*c)", {"a": (-3, 3), "b": (0.2, 5), "c": (0, 4)}),
    Law("four terms", "0.8*a**2 + 3.1*b/(1.2 + b) - exp(0.5*c) + tanh(3.1*d)",
        {"a": (-2, 2), "b": (0.1, 6), "c": (0, 3), "d": (-1, 1)}),
    Law("decay, wave", "4.1*exp(-0.45*t)*(2 + cos(1.8*x))", {"t": (0, 6), "x": (0, 5)}),
    Law("Gauss, logistic", "7.1*exp(-(x - 0.6)**2/1.9)/(1 + exp(4.5 - 1.1*t))", {"x": (-3, 3), "t": (0, 10)}),
    Law("root of squares, saturation", "sqrt(a**2 + 3.1*b**2) + 2.2*c/(0.9 + c)",
        {"a": (1, 4), "b": (1, 4), "c": (0, 5)}),
    Law("sum, logistic", "(1.7*a + b**2)/(1 + exp(3.2 - 1.3*c))", {"a": (1, 4), "b": (1, 4), "c": (0.5, 5)}),
    Law("Langmuir, van 't Hoff", "3.3*p/(1.9 + p)*exp(900.5/T)", {"p": (0.1, 10), "T": (270, 330)}),
    Law("Hill, Weibull", "2.1*x**2.4/(14.1 + x**2.4)*(1 - exp(-0.26*t**1.7))",
        {"x": (0.1, 8), "t": (0.1, 6)}),
    Law("Michaelis-Menten and decay", "4.1*S/(1.5 + S) + 3.1*exp(-0.7*t)", {"S": (0.1, 9), "t": (0, 5)}),
    Law("Haldane, temperature", "6.1*S/(2.1 + S + S**2/9)*exp(-0.0123*(T - 28.5)**2)",
        {"S": (0.1, 20), "T": (5, 40)}),
)  # fmt: skip


def drawn(n: int, seed: int) -> Iterator[Law]:
    """Yield laws of random forms; the terms of a sum vary alike, within a factor of 2.5."""
    rng = np.random.default_rng(seed)
    forms = [form for form in COMMON_FORMS if form.name]
    weights = np.array([form.weight for form in forms])
    k = 0
    while k < n:
        is_product, parts, columns = bool(rng.random() < 0.6), [], {}
        while len(parts) < 2 + (k % 3 == 2):
            name, (low, high) = f"x{len(parts) + 1}", RANGES[rng.integers(len(RANGES))]
            form = forms[rng.choice(len(forms), p=weights / weights.sum())]
            # Rates are per range of the column, and places in it.
            size = rng.uniform(0.5, 4.0, 3) * rng.choice((-1.0, 1.0), 3)
            numbers = {
                "a": size[0] / high if "exp(a*x" in form.text or "sin(a*x" in form.text else abs(size[0]),
                "b": size[1] / high if "exp(b*x" in form.text or "sin(b*x" in form.text else abs(size[1]),
                "c": size[2] / high if "exp(c*x" in form.text else abs(size[2]),
            }
            text = re.sub(
                r"\b[abcx]\b",
                lambda m: name if m[0] == "x" else f"({numbers[m[0]]:.3g})",  # noqa: B023 (used at once)
                form.text,
            )
            x = np.linspace(low, high, 200)
            with np.errstate(all="ignore"):
                y = np.broadcast_to(evaluate(parse(text), {name: x}), 200)
            ratio = np.ptp(y) / np.abs(y).mean()
            if not (np.isfinite(y).all() and 0.3 < ratio < 20 and np.abs(np.diff(y)).max() < 0.3 * np.ptp(y)):
                continue
            factor = rng.uniform(1.0, 2.5) * (1.0 if is_product else 1.0 / y.std())
            parts.append(f"{factor:.3g}*{text}")
            columns[name] = (low, high)
        yield Law(f"drawn {k}", ("*" if is_product else " + ").join(parts), columns)
        k += 1
