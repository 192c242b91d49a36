"""Columns measured from a number near them: what is moved, that nothing is lost, and what a person reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.constants.uncertainty import uncertainty_of
from dgsr.expressions.coordinates import Coordinates
from dgsr.expressions.library import Library
from dgsr.expressions.soundness import weak_points
from dgsr.population import DataSet

LIBRARY = get_library("physics", 2)
START = 1_700_000_000  # seconds since 1970
SECONDS = START + np.sort(np.random.default_rng(0).uniform(0.0, 86_400.0, 60))
OTHER = np.random.default_rng(1).uniform(1.0, 5.0, 60)
TIMES = np.column_stack([SECONDS, OTHER])
DECAY = 20.0 + 5.0 * np.exp(-(SECONDS - START) / 20_000.0)
QUICK = {"random_state": 0, "max_time": 20, "max_evaluations": 60_000}


def formula(text):
    return Expression.from_text(text, LIBRARY)


def origin_of(values):
    return Coordinates.of(np.asarray(values, dtype=np.float64)[:, None]).origins[0]


# Which columns are moved -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "origin"),
    [
        (1e9 + np.linspace(0.01, 0.99, 9), 1e9),
        (START + np.linspace(12_345, 98_765, 9), START + 10_000),
        (-1e9 - np.linspace(0.01, 0.99, 9), -1e9 - 1.0),
        (7.25 + np.linspace(1.5e-5, 9e-5, 9), 7.25001),
        (np.linspace(300.0, 302.0, 9), 0.0),  # temperatures, of which laws have a quotient
        (np.linspace(1960, 2020, 9), 0.0),
        (np.linspace(-1e-6, 1e-6, 9), 0.0),
        (np.full(9, 1e9), 0.0),
        (1e9 + np.array([0.0, 1e-6]), 0.0),  # the difference is a matter of rounding
        ([0.0, 1e9, 1e9 + 1.0], 0.0),
    ],
)  # fmt: skip
def test_columns_that_vary_by_little_are_measured_from_a_round_number_below_them(values, origin):
    assert origin_of(values) == origin


@settings(max_examples=200, deadline=None)
@given(
    st.floats(1e-250, 1e250),
    st.sampled_from([1.0, -1.0]),
    st.floats(1e-10, 1e-1),
    st.integers(0, 2**32 - 1),
)
def test_an_origin_is_no_further_than_a_range_away_and_columns_come_back(size, sign, spread, seed):
    column = sign * size * (1.0 + spread * np.random.default_rng(seed).uniform(size=20))
    coordinates = Coordinates.of(column[:, None])
    measured = coordinates.measured(column[None])
    np.testing.assert_allclose(coordinates.raw(measured)[0], column, rtol=1e-15)
    if coordinates.origins[0] != 0.0:
        moved = coordinates.from_origins(column[None])[0]
        assert moved.min() >= 0.0
        assert moved.max() <= 2.0 * np.ptp(column) + 4 * math.ulp(size)
    assert coordinates.scales[0] == 1.0 or 0.1 <= np.sqrt(np.mean(measured**2)) < 20.0


def test_flags_leave_columns_as_they_are():
    for with_scales in (True, False):
        for with_origins in (True, False):
            coordinates = Coordinates.of(TIMES, with_scales, with_origins)
            assert coordinates.origins.tolist() == ([START, 0.0] if with_origins else [0.0, 0.0])
            scale = {(True, True): 1e4, (True, False): 1e9}.get((with_scales, with_origins), 1.0)
            assert coordinates.scales.tolist() == [scale, 1.0]


# Formulas in both coordinates ------------------------------------------------------------------------
FORMULAS = ["x1*x2", "exp(-x1/3) + x2", "sin(2*x1)**2/x2", "x1 - x2", "x1/(x1 + 2.5)"]


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("origins", [(0.0, 0.0), (START, 0.0), (-1e6, 7.25)])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e4, 1e-3)])
def test_a_formula_has_the_same_values_in_both_coordinates(text, origins, scales):
    coordinates = Coordinates(np.array(origins), np.array(scales))
    measured = np.random.default_rng(0).uniform(0.5, 2.0, (2, 30))
    raw = coordinates.raw(measured)
    written = coordinates.written(formula(text))
    measured = coordinates.measured(raw)  # rounded as the raw ones are
    expected = formula(text)(measured.T)
    np.testing.assert_allclose(written(raw.T), expected, rtol=1e-12)
    np.testing.assert_allclose(coordinates.read(written)(measured.T), expected, rtol=1e-7)


def test_a_formula_of_distances_is_read_without_their_origins():
    coordinates = Coordinates(np.array([START, 0.0]), np.array([1.0, 1.0]))
    assert str(coordinates.read(formula(f"sin((x1 - {START})/3000)*x2"))) == "sin(x1/3000)*x2"
    assert str(coordinates.read(formula("x1*x2"))) == f"(x1 + {START})*x2"


# What is said of such formulas -----------------------------------------------------------------------
def test_a_distance_from_an_origin_is_no_weak_point_and_differences_of_formulas_are():
    assert weak_points(formula(f"x1 - {START}"), TIMES.T) == []
    assert weak_points(formula(f"exp(-5e-5*(x1 - {START}))*x2"), TIMES.T) == []
    (found,) = weak_points(formula(f"x1*x2 - {START}*x2"), TIMES.T)
    assert "small difference of large numbers" in found


def test_an_origin_has_no_error_and_leaves_those_of_other_constants_alone():
    y = DECAY + 0.01 * np.random.default_rng(2).normal(size=60)
    far = uncertainty_of(formula(f"20 + 5*exp(-5e-5*(x1 - {START}))"), DataSet.from_arrays(TIMES, y))
    near = uncertainty_of(formula("20 + 5*exp(-5e-5*x1)"), DataSet.from_arrays(TIMES - [START, 0], y))
    np.testing.assert_allclose(far.standard_errors, [*near.standard_errors, 0.0], rtol=1e-5)
    assert far.leave_one_out == pytest.approx(near.leave_one_out, rel=1e-5)
    assert far.noise == pytest.approx(near.noise, rel=1e-5)


def test_a_number_within_the_range_of_a_column_is_fitted():
    data = DataSet.from_arrays(np.column_stack([OTHER, OTHER]), (OTHER - 3.0) ** 2 + 0.01 * np.sin(9 * OTHER))
    assert uncertainty_of(formula("(x1 - 3)**2"), data).standard_errors[0] > 0.0


def test_sympy_does_not_take_apart_an_exponential_of_large_numbers():
    import sympy

    expression = formula(f"5*exp(-5e-5*(x1 - {START}))")
    function = sympy.lambdify(sympy.Symbol("x1"), expression.sympy)
    np.testing.assert_allclose(function(SECONDS), expression(TIMES), rtol=1e-9)


# Fits ------------------------------------------------------------------------------------------------
def test_a_decay_over_a_day_of_seconds_is_found_and_written_from_an_origin():
    regressor = DGSRRegressor(**QUICK).fit(TIMES, DECAY * OTHER)
    np.testing.assert_allclose(regressor.predict(TIMES), DECAY * OTHER, rtol=1e-6)
    assert f"(x1 - {START})" in str(regressor.expression_)


@pytest.mark.parametrize(
    "function", [lambda u: 3.0 * u + 2.0, lambda u: 3.0 * u**2 + 2.0, lambda u: np.sin(5.0 * u)]
)
def test_a_law_of_a_small_part_of_a_large_number_is_found(function):
    u = np.random.default_rng(0).uniform(size=60)
    X = (1e9 + u)[:, None]
    u = X[:, 0] - 1e9  # what is left of it
    regressor = DGSRRegressor(**QUICK, tolerance=1e-10).fit(X, function(u))
    between = np.linspace(u.min(), u.max(), 200)
    np.testing.assert_allclose(regressor.predict((1e9 + between)[:, None]), function(between), atol=1e-4)


def test_a_law_of_the_column_itself_is_written_without_the_origin():
    pressure = 101_325.0 + np.random.default_rng(0).uniform(-5.0, 5.0, 60)
    regressor = DGSRRegressor(**QUICK).fit(np.column_stack([pressure, OTHER]), pressure * OTHER)
    assert str(regressor.expression_) in ("x1*x2", "x2*x1")


def test_given_formulas_the_progress_and_later_fits_speak_of_the_columns_as_given():
    y = OTHER * np.sin((SECONDS - START) / 3000.0)
    shown = []
    regressor = DGSRRegressor(
        **{**QUICK, "max_evaluations": 3000},
        warm_start=True,
        initial_formulas=[f"x2*sin((x1 - {START})/3001)"],
        callback=lambda progress: shown.append(progress.best),
    )
    regressor.fit(TIMES, y)
    assert regressor.score(TIMES, y) > 0.999999
    for best in shown:
        assert np.mean((best(TIMES) - y) ** 2) < 10.0 * np.var(y)
    regressor.fit(TIMES, y)
    assert regressor.score(TIMES, y) > 0.999999


@pytest.mark.parametrize(
    "parameters",
    [
        {"units": {"x1": "s", "x2": "m/s"}, "y_units": "m", "unitless_constants": True},
        {"nested": {"exp": {"sub": 0}}},
        {"library": Library("own", ("add", "mul", "sin"), True, 2)},
        {"library": "koza"},
    ],
)
def test_nothing_is_moved_where_it_cannot_be_written(parameters):
    if "units" in parameters:
        pytest.importorskip("pint")
    regressor = DGSRRegressor(**{**QUICK, "max_evaluations": 2000, **parameters}, warm_start=True)
    regressor.fit(TIMES, OTHER * (SECONDS - START))
    assert not regressor._last_fit.coordinates.origins.any()
