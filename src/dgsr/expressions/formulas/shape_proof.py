"""Whether a formula keeps shape constraints on the whole box: by intervals, else by points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.shape import TOLERANCE, TOLERANCE_AT_POINTS, ShapeConstraints
from dgsr.expressions.trees.intervals import Interval, bounds_of_slopes, bounds_of_values, holds_on
from dgsr.expressions.trees.trees import variables_of


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
        yield _stays(expression, shape.low, shape.high, shape.lower - margin, shape.upper + margin)
    for column, sign in shape.monotone:
        span = shape.high[column] - shape.low[column]
        if span > 0.0 and names[column] in variables_of(expression.tree):
            yield _rises(expression, shape, column, sign, margin / span)
    margin = TOLERANCE_AT_POINTS * shape.spread
    for one in shape.known:
        low, high = shape.low.copy(), shape.high.copy()
        for column, value in one.columns:
            low[column] = high[column] = value
        yield _stays(expression, low, high, one.value - margin, one.value + margin)


def _stays(
    expression: Expression, low: np.ndarray, high: np.ndarray, least: float, most: float
) -> bool | None:
    """Return whether the values stay between two numbers on a box."""
    tree, used, names = expression.tree, *_used(expression)

    def test(box: Interval) -> tuple[np.ndarray, np.ndarray]:
        values = bounds_of_values(tree, _named(names, box))
        holds = (values.low >= least) & (values.high <= most)
        return holds, (values.high < least) | (values.low > most)

    return holds_on(test, low[used], high[used])


def _rises(
    expression: Expression, shape: ShapeConstraints, column: int, sign: int, margin: float
) -> bool | None:
    """Return whether no slope along a column is below -margin, or with a sign of -1 none above margin."""
    tree, used, names = expression.tree, *_used(expression)

    def test(box: Interval) -> tuple[np.ndarray, np.ndarray]:
        slopes = bounds_of_slopes(tree, _named(names, box), expression.feature_names[column])
        least, most = (slopes.low, slopes.high) if sign > 0 else (-slopes.high, -slopes.low)
        return least >= -margin, most < -margin

    return holds_on(test, shape.low[used], shape.high[used])


def _used(expression: Expression) -> tuple[list[int], list[str]]:
    """Return the indices and the names of the columns that a formula has."""
    names = variables_of(expression.tree)
    used = [i for i, name in enumerate(expression.feature_names) if name in names]
    return used, [expression.feature_names[i] for i in used]


def _named(names: list[str], box: Interval) -> dict[str, Interval]:
    return {name: Interval(low, high) for name, low, high in zip(names, *box)}
