"""Shape constraints: their points, their verdicts on formulas, and the mapping to other coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.coordinates import Coordinates
from dgsr.expressions.formulas.shape_proof import keeps_shape
from dgsr.expressions.programs.shape import TOLERANCE, Known, ShapeConstraints

LIBRARY = get_library("physics", 2)
ROWS = np.random.default_rng(0).uniform([0.5, 1.0], [4.0, 3.0], (30, 2)).T
LOW, HIGH = ROWS.min(axis=1), ROWS.max(axis=1)


def shape(**rules):
    return ShapeConstraints(LOW, HIGH, ROWS, spread=2.0, **rules)


def formula(text):
    return Expression.from_text(text, LIBRARY)


def violation(expression, rules, *scaling):
    return float(rules.violations(*Population.from_expressions([expression]).arrays, LIBRARY, *scaling)[0])


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("x1/(1 + x1)*x2", {"lower": 0.0, "upper": 3.0, "monotone": ((0, 1), (1, 1))}),
        ("x1**3 - 3*x1**2 + 3.1*x1", {"monotone": ((0, 1), (1, -1))}),
        ("exp(-0.3*x1*x2)", {"lower": 0.0, "upper": 1.0, "monotone": ((0, -1), (1, -1))}),
        ("3*x1**x2", {"known": (Known(((0, 0.0),), 0.0),)}),
        ("x2 - x2*exp(-x1)", {"known": (Known(((0, 0.0),), 0.0),)}),
        ("2.5", {"lower": 0.0, "monotone": ((0, 1),)}),
        ("cos(x1)", {"lower": -1.0, "upper": 1.0}),
        ("sqrt(x1 - 0.1)", {"lower": 0.0, "monotone": ((0, 1),)}),
    ],
)
def test_a_formula_that_keeps_its_rules_is_let_through(text, rules):
    assert violation(formula(text), shape(**rules)) == 0.0
    assert keeps_shape(formula(text), shape(**rules))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("x1 - 0.6", {"lower": 0.0}),
        ("x1", {"upper": 3.5}),
        ("x1**2 - 1.6*x1", {"monotone": ((0, 1),)}),
        ("x1*(1.5 - x2)", {"monotone": ((0, 1),)}),
        ("x1 + 0.01", {"known": (Known(((0, 0.0),), 0.0),)}),
        ("x1 + x2", {"known": (Known(((0, 0.0),), 2.0),)}),
        ("log(x1 - x2)", {"upper": 10.0}),
        ("1/(x1 - 2)", {"monotone": ((0, -1),)}),
    ],
)
def test_a_formula_that_breaks_a_rule_is_not(text, rules):
    assert violation(formula(text), shape(**rules)) > 0.0
    assert not keeps_shape(formula(text), shape(**rules))


def test_what_happens_between_the_few_points_of_a_search_is_seen_in_the_end():
    dip = formula("x1 - 0.3*exp(-((x1 - 2.03)/0.003)**2)")
    assert violation(dip, shape(monotone=((0, 1),))) == 0.0
    assert not keeps_shape(dip, shape(monotone=((0, 1),)))


def test_what_intervals_do_not_know_is_decided_by_points():
    library = LIBRARY.with_operator("half", lambda a: 0.5 * a)
    rising, wave = (Expression.from_text(text, library) for text in ("half(x1)*x2", "half(sin(9*x1))"))
    assert keeps_shape(rising, shape(lower=0.0)) is True
    assert keeps_shape(rising, shape(lower=0.0, monotone=((0, 1),)))
    assert not keeps_shape(wave, shape(monotone=((0, 1),)))


def test_a_violation_is_measured_in_standard_deviations_of_y():
    assert violation(formula("x1"), shape(lower=1.0)) == pytest.approx((1.0 - LOW[0]) / 2.0)
    assert violation(formula("-x1"), shape(monotone=((0, 1),))) == pytest.approx((HIGH - LOW)[0] / 2.0)
    assert violation(formula("x1"), shape(known=(Known(((0, 0.0),), 3.0),))) == pytest.approx(1.5)
    assert violation(formula("log(x1 - x2)"), shape(lower=-9.0)) == np.inf
    allowed = LOW[0] + TOLERANCE * 2.0
    assert violation(formula("x1"), shape(lower=0.999999 * allowed)) == 0.0


def test_a_program_stands_for_itself_with_a_slope_and_an_intercept():
    rules = shape(lower=0.0, monotone=((0, 1),))
    assert violation(formula("-x1"), rules) > 0.0
    assert violation(formula("-x1"), rules, np.array([-2.0]), np.array([0.0])) == 0.0
    assert violation(formula("-x1"), rules, np.array([-2.0]), np.array([-4.0])) > 0.0


@settings(deadline=None, max_examples=40)
@given(
    lower=st.floats(-2.0, 2.0), sign=st.sampled_from([1, -1]), a=st.floats(-2.0, 2.0), b=st.floats(-2.0, 2.0)
)
def test_verdicts_are_those_of_a_fine_grid(lower, sign, a, b):
    expression = formula(f"{a}*x1**2 + {b}*x1*x2")
    x1, x2 = np.meshgrid(*(np.linspace(low, high, 101) for low, high in zip(LOW, HIGH)), indexing="ij")
    values = a * x1**2 + b * x1 * x2
    for rules, distance in (
        (shape(lower=lower), values.min() - lower),
        (shape(monotone=((0, sign),)), np.diff(sign * values, axis=0).min()),
    ):
        if abs(distance) > 1e-3:
            assert keeps_shape(expression, rules) == (distance > 0.0)


def test_rules_hold_in_the_coordinates_of_a_search_if_they_do_in_the_users():
    coordinates = Coordinates(np.array([1.0, 0.0]), np.array([1.0, 100.0]))
    rules = shape(lower=0.0, monotone=((0, 1),), known=(Known(((1, 50.0),), 2.0),))
    of_search = rules.in_coordinates(*coordinates)
    for text in ("x1", "x1*x2", "exp(x1) - x2", "1 - x1", "x1 + x2"):
        inner = formula(text)
        assert violation(inner, of_search) == pytest.approx(violation(coordinates.written(inner), rules))
    np.testing.assert_allclose(coordinates.raw(of_search.anchors[0]), rules.anchors[0])


def test_a_known_point_holds_for_all_values_of_other_columns():
    columns, values = shape(known=(Known(((0, 0.0),), 5.0),)).anchors
    assert set(columns[0]) == {0.0}
    assert np.ptp(columns[1]) > 0.9 * (HIGH - LOW)[1]
    assert set(values) == {5.0}
    columns, _ = shape(known=(Known(((0, 0.0), (1, 7.0)), 5.0),)).anchors
    np.testing.assert_array_equal(columns, [[0.0], [7.0]])
    assert shape(lower=0.0).anchors[0].shape == (2, 0)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 12])
def test_the_points_are_in_the_box_with_its_corners_and_the_same_every_time(n_columns):
    rows = np.random.default_rng(1).normal(size=(n_columns, 50))
    box = rows.min(axis=1), rows.max(axis=1)
    made = [ShapeConstraints(*box, rows, 1.0, lower=0.0, monotone=((0, 1),)) for _ in range(2)]
    few, dense = made[0].few.columns, made[0].dense.columns
    np.testing.assert_array_equal(few, made[1].few.columns)
    assert few.shape[1] < 300 < 3_000 < dense.shape[1]
    for points in (few, dense):
        assert (points >= box[0][:, None]).all()
        assert (points <= box[1][:, None]).all()
    is_corner = ((few == box[0][:, None]) | (few == box[1][:, None])).all(axis=0)
    assert is_corner.sum() >= min(2**n_columns, 8)
