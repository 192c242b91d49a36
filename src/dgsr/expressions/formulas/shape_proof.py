"""Whether a formula keeps shape constraints on the whole box: by intervals, else by points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.shape import TOLERANCE, TOLERANCE_AT_POINTS, ShapeConstraints
from dgsr.expressions.trees.intervals import Interval, bounds_of_slopes, bounds_of_values, holds_on
from dgsr.expressions.trees.trees import Tree, variables_of


def keeps_shape(expression: Expression, shape: ShapeConstraints) -> bool:
    """Return whether a formula keeps all rules on their box, as the compiled evaluator computes it.

    A formula that breaks one on a few points does not; one whose bounds by interval arithmetic prove all of
    them does; between the two it is tested on some thousand points. With constants by group the formula of
    every group must, and that of a new one.
    """
    if isinstance(expression, GroupedExpression):
        groups = map(expression.of_group, expression.by_group.labels)
        return keeps_shape(expression.typical, shape) and all(keeps_shape(one, shape) for one in groups)
    program = expression.tokens[None].copy(), np.array([expression.length]), expression.constants[None].copy()
    if shape.violations(*program, expression.library)[0] > 0.0:
        return False
    verdicts = list(_verdicts(expression, shape))
    if False in verdicts:
        return False
    if None not in verdicts:
        return True
    return bool(shape.violations(*program, expression.library, points=shape.dense)[0] == 0.0)


def _verdicts(expression: Expression, shape: ShapeConstraints) -> Iterator[bool | None]:
    """Yield what intervals say of each rule, None where they do not decide it."""
    names = expression.feature_names
    margin = TOLERANCE * shape.spread
    if np.isfinite([shape.lower, shape.upper]).any():
        limits = shape.lower - margin, shape.upper + margin
        yield _stay(bounds_of_values, expression, shape.low, shape.high, *limits)
    for column, sign in shape.monotone:
        span = shape.high[column] - shape.low[column]
        if span > 0.0 and names[column] in variables_of(expression.tree):
            slopes = partial(bounds_of_slopes, column=names[column])
            limits = (-margin / span, np.inf) if sign > 0 else (-np.inf, margin / span)
            yield _stay(slopes, expression, shape.low, shape.high, *limits)
    margin = TOLERANCE_AT_POINTS * shape.spread
    for one in shape.known:
        low, high = shape.low.copy(), shape.high.copy()
        for column, value in one.columns:
            low[column] = high[column] = value
        yield _stay(bounds_of_values, expression, low, high, one.value - margin, one.value + margin)


def _stay(
    bounds: Callable[[Tree, Mapping[str, Interval]], Interval],
    expression: Expression,
    low: np.ndarray,
    high: np.ndarray,
    least: float,
    most: float,
) -> bool | None:
    """Return whether values or slopes, whichever `bounds` bounds, stay between two numbers on a box."""
    tree, names, variables = expression.tree, expression.feature_names, variables_of(expression.tree)
    used = [i for i, name in enumerate(names) if name in variables]

    def test(box: Interval) -> tuple[np.ndarray, np.ndarray]:
        own = bounds(tree, {names[i]: Interval(first, last) for i, first, last in zip(used, *box)})
        return (own.low >= least) & (own.high <= most), (own.high < least) | (own.low > most)

    return holds_on(test, low[used], high[used])
