"""Laws of which a person knows the outline: known operators and columns around unknown functions.

The rule, which was written before the first fit of any of them: four laws are those that people gave as
examples, with numbers of their textbooks' size. Six are drawn. Each has an outline of a list, in its order,
and each unknown function of it is a form that has a name (`dgsr.expressions.formulas.common_forms`), drawn by
its weight, with numbers uniform from 0.5 to 3 of either sign. A function is drawn again where it is not
finite, or spreads by less than a third of its mean size, from 0.5 to 3, the range of every column, and a law
where it comes near a pole: where one of 1,000 rows is further than ten standard deviations from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from _laws.law import Law
from dgsr.expressions.formulas.common_forms import COMMON_FORMS
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse

_LOW, _HIGH = 0.5, 3.0

WRITTEN = (
    Law("Antoine", "x*exp(9.2 - 38.5/(t - 0.46))", {"t": (2.8, 3.7), "x": (0.1, 1)}, "x*exp(f(t))"),
    Law("Nusselt", "2 + 0.6*R**0.5*P**0.33", {"R": (1, 400), "P": (0.7, 10)}, "k + f(R)*g(P)"),
    Law("separable rate law", "7.4*exp(-3.2/T)*c**1.5/(0.8 + c)", {"T": (1, 3), "c": (0.1, 4)}, "f(T)*g(c)"),
    Law("difference of potentials", "2.1*exp(-0.9*a)/a - 2.1*exp(-0.9*b)/b", {"a": (0.5, 3), "b": (0.5, 3)},
        "f(a) - f(b)"),
)  # fmt: skip

#: The outlines of the laws that are drawn.
OUTLINES = ("f(a) - f(b)", "b*exp(f(a))", "f(a)*g(b) + k", "a/(f(b) + a)", "c*f(a/b)", "f(a) + g(b)*c")


def drawn(n: int, seed: int) -> Iterator[Law]:
    """Yield laws of the outlines in turn."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        law = _law(i, rng)
        while not _is_far_from_poles(law):
            law = _law(i, rng)
        yield law


def _is_far_from_poles(law: Law) -> bool:
    rows = np.random.default_rng(0).uniform(_LOW, _HIGH, (1_000, len(law.columns)))
    with np.errstate(all="ignore"):
        y = law.values(rows)
        return bool(np.abs(y).max() < 10.0 * y.std())


def _law(i: int, rng: np.random.Generator) -> Law:
    """Return a law of the outline with number i."""
    outline = OUTLINES[i % len(OUTLINES)]
    functions = {name: _function(rng) for name in sorted(set(re.findall(r"\b([fg])\(", outline)))}
    text = re.sub(
        r"\b([fg])\(([^)]*)\)",
        lambda match: "(" + re.sub(r"\bx\b", f"({match[2]})", functions[match[1]]) + ")",
        outline,
    )
    text = re.sub(r"\bk\b", f"{rng.uniform(0.5, 3.0):.2g}", text)
    columns = dict.fromkeys(sorted(set(re.findall(r"\b[abc]\b", outline))), (_LOW, _HIGH))
    return Law(f"drawn {i}", text, columns, outline)


def _function(rng: np.random.Generator) -> str:
    """Return a function of x as a text."""
    forms = [form for form in COMMON_FORMS if form.name]
    weights = np.array([form.weight for form in forms])
    x = np.linspace(_LOW, _HIGH, 200)
    while True:
        form = forms[rng.choice(len(forms), p=weights / weights.sum())]
        numbers = {name: rng.uniform(0.5, 3.0) * rng.choice((-1.0, 1.0)) for name in "abc"}
        text = re.sub(r"\b[abc]\b", lambda m: f"({numbers[m[0]]:.2g})", form.text)  # noqa: B023
        with np.errstate(all="ignore"):
            y = np.broadcast_to(evaluate(parse(text), {"x": x}), 200)
        if np.isfinite(y).all() and np.abs(y).max() < 100 and np.ptp(y) > np.abs(y).mean() / 3:
            return f"{rng.uniform(1.0, 2.5):.2g}*{text}"
