"""Bounds of values and slopes of formulas on boxes, against their values and derivatives at many points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from dgsr.expressions import Expression, get_library
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.intervals import Interval, bounds_of_slopes, bounds_of_values, holds_on
from dgsr.expressions.trees.trees import nodes

LIBRARY = get_library("physics", 2)
UNARY = ("neg", "exp", "log", "sin", "cos", "tanh", "sqrt", "abs", "square", "cube", "arcsin", "arccos")
NUMBERS = st.floats(-3.0, 3.0).map(lambda x: round(x, 3))
TREES = st.recursive(
    st.sampled_from(["x1", "x2"]) | NUMBERS,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(UNARY), inner),
        st.tuples(st.sampled_from(["add", "sub", "mul", "div"]), inner, inner),
        st.tuples(st.just("pow"), inner, NUMBERS | inner),
    ),
    max_leaves=6,
)
ENDS = st.tuples(st.floats(-3.0, 3.0), st.floats(0.0, 3.0)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def formula_of(tree):
    """The formula of a tree that has a column, for trees without undefined numbers."""
    try:
        return Expression.from_tree(("add", tree, ("mul", 0.0, "x1")), LIBRARY)
    except ValueError:
        reject()


def box_of(*ends):
    return {f"x{i + 1}": Interval(np.array([low]), np.array([high])) for i, (low, high) in enumerate(ends)}


def points_of(ends, n=40):
    return np.stack(np.meshgrid(*(np.linspace(low, high, n) for low, high in ends)), axis=-1).reshape(-1, 2)


@settings(deadline=None, max_examples=300)
@given(tree=TREES, ends=st.tuples(ENDS, ENDS))
def test_the_bounds_hold_every_value_of_the_compiled_evaluator(tree, ends):
    expression = formula_of(tree)
    low, high = (float(np.max(end)) for end in bounds_of_values(expression.tree, box_of(*ends)))
    values = expression(points_of(ends))
    if np.isfinite(low):
        assert np.isfinite(values).all()
        assert low <= values.min()
        assert values.max() <= high


@settings(deadline=None, max_examples=200)
@given(tree=TREES, ends=st.tuples(ENDS, ENDS))
def test_the_bounds_hold_every_difference_quotient(tree, ends):
    expression = formula_of(tree)
    low, high = (float(np.max(end)) for end in bounds_of_slopes(expression.tree, box_of(*ends), "x1"))
    steps = (ends[0][1] - ends[0][0]) / 39
    if np.isnan(low) or steps < 1e-3:
        return
    points = points_of(ends)
    rises = np.diff(expression(points).reshape(40, 40), axis=1)  # along x1
    columns = dict(zip(("x1", "x2"), points.T))
    parts = [np.abs(evaluate(part, columns)).max() for part in nodes(expression.tree)]
    room = 1e-13 * max(parts)  # for the rounding of the values and of what cancels in them
    assert (rises >= low * steps - room).all()
    assert (rises <= high * steps + room).all()


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("x1*x1", 0.0, 4.0),
        ("sin(x1)", -np.sin(1.0), 1.0),
        ("cos(x1)", np.cos(2.0), 1.0),
        ("abs(x1) - 1", -1.0, 1.0),
        ("x1**3", -1.0, 8.0),
        ("(x1 + 2)**(-2)", 1 / 16, 1.0),
        ("2**x1", 0.5, 4.0),
        ("exp(-x2)", np.exp(-1.0), 1.0),
    ],
)
def test_bounds_of_one_occurrence_are_the_range_itself(text, least, most):
    tree = Expression.from_text(text, LIBRARY).tree
    low, high = bounds_of_values(tree, box_of((-1.0, 2.0), (0.0, 1.0)))
    np.testing.assert_allclose((np.max(low), np.max(high)), (least, most), atol=1e-12)


@pytest.mark.parametrize("text", ["log(x1)", "1/x1", "sqrt(x1)", "x1**x2", "arcsin(2*x1)", "exp(1000*x2)"])
def test_what_may_be_undefined_has_no_bounds(text):
    tree = Expression.from_text(text, LIBRARY).tree
    box = box_of((-1.0, 2.0), (0.0, 1.0))
    for bounds in (bounds_of_values(tree, box), bounds_of_slopes(tree, box, "x1")):
        assert np.isnan(bounds.low).all()
        assert np.isnan(bounds.high).all()


@pytest.mark.parametrize(
    "text", ["x1**1.5*exp(-x2)", "sin(x1*x2)/x1", "tanh(x1)**x2", "arccos(x1/4)*log(x2)", "sqrt(x1/x2)"]
)
def test_slopes_at_a_point_are_those_of_sympy(text):
    expression = Expression.from_text(text, LIBRARY)
    at = {"x1": 1.3, "x2": 0.7}
    low, high = bounds_of_slopes(expression.tree, box_of((1.3, 1.3), (0.7, 0.7)), "x1")
    symbols = {symbol.name: symbol for symbol in expression.sympy.free_symbols}
    slope = float(expression.sympy.diff(symbols["x1"]).subs({symbols[name]: x for name, x in at.items()}))
    assert low <= slope <= high
    np.testing.assert_allclose([np.max(low), np.max(high)], slope, rtol=1e-12)


def test_a_divided_box_proves_what_a_whole_one_does_not():
    tree = Expression.from_text("x1/(1 + x1)", LIBRARY).tree

    def rises(box):
        slopes = bounds_of_slopes(tree, {"x1": Interval(box.low[0], box.high[0])}, "x1")
        return slopes.low >= 0.0, slopes.high < 0.0

    low, high = np.array([0.0]), np.array([5.0])
    assert not rises(Interval(low[:, None], high[:, None]))[0].any()
    assert holds_on(rises, low, high) is True
    tree = Expression.from_text("x1*(5 - x1)", LIBRARY).tree
    assert holds_on(rises, low, high) is False
    tree = Expression.from_text("sqrt(x1 - 1)", LIBRARY).tree
    assert holds_on(rises, low, high) is None
