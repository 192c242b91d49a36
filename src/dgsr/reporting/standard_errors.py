"""A typeset formula with the standard error beneath each constant."""

from __future__ import annotations

import html
import re

from dgsr.pareto import Candidate
from dgsr.reporting.numbers import number

_NUMBER = re.compile(r"(<mn>[^<]*</mn>)")


def with_standard_errors(candidate: Candidate) -> tuple[str, list[int]]:
    """Return the MathML of a candidate with errors, and the constants whose errors have no place in it.

    A constant stands at the number that changes with it. It has no place if several numbers do, as where
    factors are multiplied out, or if the formula changes, as where 0.5 is written as a root.
    """
    expression, units = candidate.expression, candidate.units or ("",) * len(candidate.expression.constants)
    parts = _NUMBER.split(expression.mathml)  # numbers have odd indices
    labels: dict[int, str] = {}
    left: list[int] = []
    for i, error in enumerate(candidate.standard_errors.tolist()):
        if not error > 0.0:
            continue
        constants = expression.constants.copy()
        constants[i] *= 1.0 + 1.0 / 128.0  # which alters the five digits that are typeset
        changed = _NUMBER.split(expression.with_constants(constants).mathml)
        places = [at for at, (part, other) in enumerate(zip(parts, changed)) if part != other]
        if len(parts) == len(changed) and len(places) == 1 and places[0] % 2 and places[0] not in labels:
            size = "∞" if error == float("inf") else number(error, 2)
            labels[places[0]] = html.escape(f"± {size} {units[i]}".rstrip())
        else:
            left.append(i)
    for at, label in labels.items():
        parts[at] = f'<munder>{parts[at]}<mtext class="error">{label}</mtext></munder>'
    return "".join(parts), left
