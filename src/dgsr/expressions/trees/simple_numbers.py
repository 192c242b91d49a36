"""Numbers that a person would write: their cost, their names, and those near a measured value.

A program holds floats only, so that 1/3 and 2*pi are the floats nearest to them; `recognise` names these.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.trees import Tree, is_number, map_leaves

#: Significant digits of a number as it is shown.
DIGITS_SHOWN = 5
#: Most significant digits of a number that a column may be measured from (`is_far`), which are all shown.
DIGITS_OF_FAR = 12
#: Relative difference of two equal numbers that the rounding of a computation may cause.
ROUNDING = 1e-12
#: A quarter of a turn: sin(f + pi/2) is cos(f).
QUARTER_TURN = math.pi / 2
#: Cost, in digits, of a float that has no short form.
COST_OF_FLOAT = 20.0
# Numbers of digits and steps: decimals that are multiples of the step, such as 2.5 and 0.75, cost 0.8 less.
_ROUND_STEPS = ((2, 5), (3, 25))


class _Named(NamedTuple):
    """A positive number that has a name and is no short decimal."""

    value: float
    tree: Tree
    cost: float


@cache
def _named() -> tuple[list[float], list[_Named]]:
    """Return the values of the named numbers in rising order, and the numbers."""
    pi = ("pi",)
    found: dict[float, _Named] = {}

    def add(tree: Tree, cost: float) -> None:
        value = float(evaluate(tree, {}))
        if value not in found or found[value].cost > cost:
            found[value] = _Named(value, tree, cost)

    # Each costs more than a short decimal: with noise 0.33 fits as well as 1/3, which a reader would believe.
    for q, extra in ((3, 1.6), (6, 2.0), (7, 3.0), (9, 3.0)):
        for p in range(1, 1000):
            if math.gcd(p, q) == 1:
                add(("div", p, q), len(str(p)) + extra)
    for q in (1, 2, 3, 4, 5, 6, 8, 10, 12, 180):  # the last one is a degree
        for p in range(1, 13 if q < 180 else 2):
            if math.gcd(p, q) == 1:
                cost = 3.2 + 0.5 * (p > 1) + 0.2 * (p > 4) + 0.5 * (q > 1) + 0.3 * (q > 4)
                multiple = pi if p == 1 else ("mul", p, pi)
                add(multiple if q == 1 else ("div", multiple, q), cost)
                add(("div", p, pi if q == 1 else ("mul", q, pi)), cost + 0.5)
    for inside in (2, 3, 5, 6, 7, 10, pi, ("mul", 2, pi)):
        add(("sqrt", inside), 3.6)
        add(("div", 1, ("sqrt", inside)), 3.8)
    add(("pow", pi, 2), 3.8)
    add(("exp", 1), 3.6)
    for inside in (2, 10):  # exp(log(2)*x) is 2**x
        add(("log", inside), 3.6)
    numbers = sorted(found.values())
    return [number.value for number in numbers], numbers


def _find(value: float) -> _Named | None:
    """Return the named number within one unit in the last place of |value|, or None."""
    values, numbers = _named()
    at = bisect_left(values, abs(value))
    for number in numbers[max(at - 1, 0) : at + 1]:
        if abs(abs(value) - number.value) <= math.ulp(number.value):
            return number
    return None


def recognise(value: int | float | Fraction) -> Tree:
    """Return the tree of a number: 1/3 and 2*pi for the floats nearest to them, other numbers unchanged.

    Examples
    --------
    >>> recognise(0.3333333333333333)
    ('div', 1, 3)
    >>> recognise(0.25)
    0.25
    """
    if not isinstance(value, float):
        return value
    number = _find(value)
    if number is None:
        return value
    if value > 0:
        return number.tree
    match number.tree:
        case ("div" | "mul" as name, first, second) if is_number(first):
            return (name, -first, second)
        case tree:
            return ("neg", tree)


def recognised(tree: Tree) -> Tree:
    """Return the tree with every named float replaced by the tree of its name."""
    return map_leaves(tree, recognise)


def exact(value: float) -> int | Fraction:
    """Return the rational number a person means by a float, such as 1/3; for 2*pi the float's own value."""
    number = _find(value)
    if number is None:
        fraction = Fraction(repr(float(value)))
    elif all(is_number(part) for part in number.tree[1:]) and number.tree[0] == "div":
        fraction = Fraction(number.tree[1], number.tree[2]) * (1 if value > 0 else -1)
    else:
        fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else fraction


def cost(value: float | int | Fraction) -> float:
    """Return the cost of a number to a reader: 0 for 1 and -1, about the number of its digits for others.

    The cost of 0 is -1, since a part of the formula drops out with it. The position of the decimal point
    does not count: 2.5e9 costs as much as 2.5, so that the form of a formula is the same in all units.
    """
    return _cost(float(value))


@lru_cache(maxsize=1 << 14)  # finishing a formula needs the same numbers repeatedly
def _cost(value: float) -> float:
    if value in (0.0, 1.0, -1.0):
        return 0.0 if value != 0 else -1.0
    number = _find(value)
    if number is not None:
        return number.cost
    digits = f"{abs(value):.14e}".partition("e")[0].replace(".", "").rstrip("0")
    if len(digits) > 13 or not math.isfinite(value):
        return COST_OF_FLOAT
    is_round = any(len(digits) == n and int(digits) % step == 0 for n, step in _ROUND_STEPS)
    return len(digits) - 0.8 * is_round


def simple_numbers(value: float, half_width: float, max_digits: int) -> list[float]:
    """Return simple numbers within `half_width`, which may be inf, of `value`, the simplest first.

    Decimals among them have at most `max_digits` significant digits.
    """
    found = {number for number in (0.0, 1.0, -1.0) if abs(number - value) <= half_width}
    if math.isfinite(half_width):
        mantissa, _, exponent = f"{value:.15e}".partition("e")
        nearby = [float(f"{value:.{digits - 1}e}") for digits in range(1, max_digits + 1)]
        for digits, step in _ROUND_STEPS:
            shift = digits - 1
            nearest = step * round(float(mantissa) * 10**shift / step)
            nearby.append(float(f"{nearest}e{int(exponent) - shift}"))
        values, numbers = _named()
        first = bisect_left(values, abs(value) - half_width)
        last = bisect_right(values, abs(value) + half_width)
        nearby = [number for number in nearby if cost(number) < COST_OF_FLOAT]
        nearby += [math.copysign(number.value, value) for number in numbers[first:last]]
        # The ends of the interval are rounded: in floats, 7/3 is 2 + 1/3, but farther from 2 than 1/3.
        found |= {number for number in nearby if abs(number - value) <= half_width}
    return sorted(found, key=lambda number: (cost(number), abs(number - value)))


def expected_by_chance(number: float, half_width: float) -> float:
    """Return how many numbers as simple as a given one an interval near it holds on average.

    Decimals of d digits, which cost d, are evenly spaced between two powers of ten, and the cost of others
    determines their spacing in the same way. Named numbers are ten times less dense than decimals of their
    cost, since they also cost the name. The number must have a positive cost, and half the width must be
    finite.

    Examples
    --------
    >>> [round(expected_by_chance(0.39, half), 6) for half in (0.006, 0.0006)]
    [1.2, 0.12]
    """
    of_digits = cost(number) - 1.0 - (_find(number) is not None)
    power_of_ten = 10.0 ** math.floor(math.log10(max(abs(number), sys.float_info.min)))
    return 2.0 * half_width / power_of_ten * 10.0**of_digits


def shortest(value: float, half_width: float) -> float:
    """Return the decimal of the fewest digits within `half_width` of a number."""
    decimals = (float(f"{value:.{digits}e}") for digits in range(17))
    return next((decimal for decimal in decimals if abs(decimal - value) <= half_width), value)


def simplest(value: float, half_width: float) -> float:
    """Return the simplest number within `half_width` of a value, or the shortest if none is simple."""
    return next(iter(simple_numbers(value, half_width, max_digits=13)), shortest(value, half_width))


def is_far(number: int | float | Fraction) -> bool:
    """Return whether a number is large, or of moderate size with six to twelve digits.

    The difference of a column and such a number may need more than five of its digits.
    """
    value = float(number)
    is_precise = float(f"{value:.{DIGITS_SHOWN}g}") != float(f"{value:.{DIGITS_OF_FAR}g}") == value
    return abs(value) >= 1000.0 or (is_precise and abs(value) >= 1e-3)


def digits_of(number: int | float | Fraction) -> int:
    """Return the most significant digits of a number that are shown."""
    return DIGITS_OF_FAR if is_far(number) else DIGITS_SHOWN
