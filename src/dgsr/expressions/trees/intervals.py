"""Interval arithmetic on syntax trees: bounds of a formula's values and of its slopes on many boxes at once.

Slopes are bounded by forward differentiation with intervals in the place of numbers. The bounds hold for the
compiled evaluator, too, since every step widens them by more than its rounding. Where a part is undefined
somewhere on a box, or no rule bounds it, the bounds are NaN, and no comparison with them is true.

References
----------
Moore, Kearfott and Cloud, "Introduction to Interval Analysis", SIAM 2009, chapters 2 (arithmetic), 5
(functions) and 9 (derivatives).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np

from dgsr.expressions.trees.trees import Tree, as_float, is_number

# Share by which every step widens an interval: five units of float64's rounding, where the compiled
# elementary functions err by two.
_ROUNDING = 1e-15
# Share of a period by which the turning points of a sine count as reached before they are. Above `_FAR`
# radians the rounding of an argument is of this size.
_BEFORE_A_TURN = 1e-7
_FAR = 1e8
# Most boxes that are examined at once where a box is divided, and most divisions of any of them.
_MOST_BOXES = 2_048
_MOST_DIVISIONS = 40


class Interval(NamedTuple):
    """Closed intervals, one for each box; they are NaN where nothing is known."""

    low: np.ndarray
    high: np.ndarray


class _Bounds(NamedTuple):
    """Bounds of the values of a part, and of its slopes in one column; None is a slope of 0."""

    value: Interval
    slope: Interval | None


_ONE = Interval(np.array(1.0), np.array(1.0))


def bounds_of_values(tree: Tree, box: Mapping[str, Interval]) -> Interval:
    """Return intervals that hold all values of a tree on boxes, which are given by intervals of columns."""
    with np.errstate(all="ignore"):
        return _bounds(tree, box, None).value


def bounds_of_slopes(tree: Tree, box: Mapping[str, Interval], column: str) -> Interval:
    """Return intervals that hold all partial derivatives of a tree by a column.

    They are NaN where a value may be undefined. Where the tree has a kink they hold the slopes on both sides,
    and everything between.
    """
    with np.errstate(all="ignore"):
        value, slope = _bounds(tree, box, column)
        slope = _number(0.0) if slope is None else slope
        return _widened(slope.low + 0.0 * value.low, slope.high + 0.0 * value.high)


def holds_on(
    test: Callable[[Interval], tuple[np.ndarray, np.ndarray]], low: np.ndarray, high: np.ndarray
) -> bool | None:
    """Return whether a rule holds on a box, None if intervals do not decide it.

    The box is divided, each part in the column in which it is relatively widest, until the rule holds on all
    parts or is broken on one. `low` and `high` have the shape (n_columns,). The test is given intervals of
    the columns, of shape (n_columns, n_boxes), and returns two masks: where the rule surely holds, and where
    it is surely broken.
    """
    parts, spans = Interval(low[:, None], high[:, None]), np.where(high > low, high - low, 1.0)[:, None]
    for _ in range(_MOST_DIVISIONS):
        holds, is_broken = test(parts)
        if np.any(is_broken):
            return False
        is_open = ~np.broadcast_to(holds, parts.low.shape[1])
        parts = Interval(parts.low[:, is_open], parts.high[:, is_open])
        n = parts.low.shape[1]
        if n == 0:
            return True
        if 2 * n > _MOST_BOXES or len(low) == 0:
            return None
        widest, each = np.argmax((parts.high - parts.low) / spans, axis=0), np.arange(n)
        middle = 0.5 * parts.low[widest, each] + 0.5 * parts.high[widest, each]
        parts = Interval(np.hstack([parts.low] * 2), np.hstack([parts.high] * 2))
        parts.high[widest, each] = parts.low[widest, n + each] = middle  # the lower halves come first
    return None


def _bounds(tree: Tree, box: Mapping[str, Interval], column: str | None) -> _Bounds:
    if isinstance(tree, str):
        return _Bounds(box[tree], _ONE if tree == column else None)
    if is_number(tree) or tree == ("pi",):
        return _Bounds(_number(as_float(tree) if is_number(tree) else math.pi), None)
    if tree[0] == "mul" and tree[1] == tree[2]:  # the product of an interval by itself is wider
        tree = ("square", tree[1])
    if tree[0] == "pow" and is_number(tree[2]):
        return _of_power(_bounds(tree[1], box, column), as_float(tree[2]))
    operands = [_bounds(child, box, column) for child in tree[1:]]
    if tree[0] not in _RULES:
        unknown = _number(math.nan)
        return _Bounds(unknown, unknown)
    of_value, of_derivatives = _RULES[tree[0]]
    values, slopes = zip(*operands)
    value = _defined(of_value(*values))
    if all(slope is None for slope in slopes):
        return _Bounds(value, None)
    # By the chain rule the slope is a sum of products.
    derivatives = of_derivatives(value, *values)
    terms = [_times(d, slope) for d, slope in zip(derivatives, slopes, strict=True) if slope is not None]
    return _Bounds(value, reduce(_plus, terms))


def _of_power(base: _Bounds, exponent: float) -> _Bounds:
    value = _defined(_raised(base.value, exponent))
    if base.slope is None:
        return _Bounds(value, None)
    slope = _times(_number(exponent), _raised(base.value, exponent - 1.0))
    return _Bounds(value, _times(slope, base.slope))


def _number(value: float) -> Interval:
    return Interval(np.array(value), np.array(value))


def _widened(low: np.ndarray, high: np.ndarray) -> Interval:
    """Return the interval with room for rounding, NaN where an end is."""
    low, high = low - _ROUNDING * np.abs(low), high + _ROUNDING * np.abs(high)
    is_unknown = np.isnan(low) | np.isnan(high)
    return Interval(np.where(is_unknown, np.nan, low), np.where(is_unknown, np.nan, high))


def _hull(*values: np.ndarray) -> Interval:
    """Return the smallest interval of some numbers, NaN where one of them is."""
    return _widened(np.minimum.reduce([*values]), np.maximum.reduce([*values]))


def _defined(x: Interval) -> Interval:
    """Return bounds of values, which are undefined where they may be infinite."""
    is_finite = np.isfinite(x.low) & np.isfinite(x.high)
    return Interval(np.where(is_finite, x.low, np.nan), np.where(is_finite, x.high, np.nan))


def _plus(a: Interval, b: Interval) -> Interval:
    return _widened(a.low + b.low, a.high + b.high)


def _minus(a: Interval, b: Interval) -> Interval:
    return _widened(a.low - b.high, a.high - b.low)


def _negative(a: Interval) -> Interval:
    return Interval(-a.high, -a.low)


def _times(a: Interval, b: Interval) -> Interval:
    products = [x * y for x in a for y in b]
    is_known = ~(np.isnan(a.low) | np.isnan(b.low))
    # An infinite end stands for slopes of any size, each of which times 0 is 0.
    return _hull(*(np.where(np.isnan(product) & is_known, 0.0, product) for product in products))


def _inverse(x: Interval) -> Interval:
    has_pole = (x.low <= 0.0) & (x.high >= 0.0)
    return _hull(*(np.where(has_pole, np.nan, 1.0 / end) for end in x))


def _over(a: Interval, b: Interval) -> Interval:
    return _times(a, _inverse(b))


def _raised(x: Interval, exponent: float) -> Interval:
    if exponent == 0.0:
        return _hull(1.0 + 0.0 * x.low)  # which is undefined where x is
    if exponent < 0.0 and exponent == round(exponent):
        return _inverse(_raised(x, -exponent))
    ends = [np.power(end, exponent) for end in x]
    is_even = exponent % 2.0 == 0.0
    middle = np.where(is_even & (x.low < 0.0) & (x.high > 0.0), 0.0, ends[0])
    return _hull(*ends, middle)


def _powered(base: Interval, exponent: Interval) -> Interval:
    return _rising(np.exp)(_times(exponent, _rising(np.log)(base)))


def _rising(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Interval], Interval]:
    """Return the bounds of a function that rises or falls everywhere."""
    return lambda x: _hull(function(x.low), function(x.high))


def _sine(x: Interval, phase: float = 0.0) -> Interval:
    """Return the bounds of sin(x + phase)."""
    turns = [(end + phase) / (2.0 * math.pi) for end in x]

    def has(turn: float) -> np.ndarray:
        first, last = turns[0] - turn - _BEFORE_A_TURN, turns[1] - turn + _BEFORE_A_TURN
        return (np.floor(last) >= np.ceil(first)) | (np.abs(x.low) > _FAR) | (np.abs(x.high) > _FAR)

    function = np.cos if phase else np.sin
    low, high = _hull(function(x.low), function(x.high))
    is_known = ~np.isnan(low)
    return Interval(np.where(has(0.75) & is_known, -1.0, low), np.where(has(0.25) & is_known, 1.0, high))


def _cosine(x: Interval) -> Interval:
    return _sine(x, 0.5 * math.pi)


def _size(x: Interval) -> Interval:
    has_zero = (x.low < 0.0) & (x.high > 0.0)
    return _hull(np.abs(x.low), np.abs(x.high), np.where(has_zero, 0.0, np.abs(x.low)))


def _slope_of_arcsin(x: Interval) -> Interval:
    return _raised(_minus(_ONE, _raised(x, 2.0)), -0.5)


# The bounds of each operator's values, and of its derivatives by its operands, which are given the bounds of
# the operator itself first.
_RULES: dict[str, tuple[Callable[..., Interval], Callable[..., tuple[Interval, ...]]]] = {
    "add": (_plus, lambda y, a, b: (_ONE, _ONE)),
    "sub": (_minus, lambda y, a, b: (_ONE, _negative(_ONE))),
    "mul": (_times, lambda y, a, b: (b, a)),
    "div": (_over, lambda y, a, b: (_inverse(b), _negative(_over(y, b)))),
    "pow": (
        _powered,
        lambda y, a, b: (_times(b, _powered(a, _minus(b, _ONE))), _times(y, _rising(np.log)(a))),
    ),
    "neg": (_negative, lambda y, x: (_negative(_ONE),)),
    "exp": (_rising(np.exp), lambda y, x: (y,)),
    "log": (_rising(np.log), lambda y, x: (_inverse(x),)),
    "sin": (_sine, lambda y, x: (_cosine(x),)),
    "cos": (_cosine, lambda y, x: (_negative(_sine(x)),)),
    "tanh": (_rising(np.tanh), lambda y, x: (_minus(_ONE, _raised(y, 2.0)),)),
    "arcsin": (_rising(np.arcsin), lambda y, x: (_slope_of_arcsin(x),)),
    "arccos": (_rising(np.arccos), lambda y, x: (_negative(_slope_of_arcsin(x)),)),
    "sqrt": (_rising(np.sqrt), lambda y, x: (_times(_number(0.5), _raised(x, -0.5)),)),
    "abs": (_size, lambda y, x: (Interval(np.sign(x.low), np.sign(x.high)),)),
    "square": (lambda x: _raised(x, 2.0), lambda y, x: (_times(_number(2.0), x),)),
    "cube": (lambda x: _raised(x, 3.0), lambda y, x: (_times(_number(3.0), _raised(x, 2.0)),)),
}
