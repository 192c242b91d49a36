"""Polynomials in factors: which formulas are written so, and that they stay the same functions."""

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.syntax import parse
from dgsr.finishing.factoring import factored

LIBRARY = get_library("physics", 4)


def formula(text):
    return Expression(LIBRARY, *to_program(parse(text), LIBRARY))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "4.4*x1*x2/(1 + x2*(0.6 + 0.09*x2) + x1*(1.4 + 0.49*x1 + 0.42*x2))",
            "4.4*x1*x2/(1 + 0.7*x1 + 0.3*x2)**2",
        ),
        ("9.1/(1 + 0.15*x2 + x1*(0.4 + 0.06*x2))", "9.1/((1 + 0.4*x1)*(1 + 0.15*x2))"),
        ("3.6/(6.25 + 0.16*x2 + x1*(x1 - 5))", "3.6/((x1 - 2.5)**2 + 0.16*x2)"),
        (
            "(x4 + x1*(x3*(x1 - 1) - x2*(x1 - 1) + x4*(x1 - 2)))/(x1*x2)",
            "(x1 - 1)*(x1*(x3 + x4 - x2) - x4)/(x1*x2)",
        ),
        ("exp(x1)**2 + 2*exp(x1)*sin(x2) + sin(x2)**2", "(sin(x2) + exp(x1))**2"),
        ("sqrt(x2) + exp(9 + x1*(x1 - 6))", "sqrt(x2) + exp((x1 - 3)**2)"),
    ],
)
def test_formulas_that_are_easier_to_read_in_factors_are_written_so(text, expected):
    assert str(factored(formula(text))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x1",
        "1 + x1",
        "x1**2 - x2**2",
        "2.3*x1**2 - 1.7*x1*x2 + 0.4",
        "1.5*(x1 + 0.3*x2)*(x1 - x3)",
        "(x1 + x2)**2",
        "x1*(2*x1*(x2 + x3) + 3*x2*x3)/(x1*(x2 + x3) + x2*x3)",
        "0.1339285714285714*x1**2 + 0.5*x1 + 3",
        "x1**2*exp(x2*(x2 + 3.1))",
        "(x1 + x2 + x3 + x4)**6*(x1 + x2 + x3 + x4)**6*(x1 - x2)",  # has too many terms
        "9*x1/(8 + 6*x1 + x1**2)",  # has a name, though the denominator is (x1 + 2)*(x1 + 4)
    ],
)
def test_other_formulas_stay_as_they_are(text):
    assert str(factored(formula(text))) == str(formula(text))


@pytest.mark.parametrize(
    "text",
    [
        "x1**128 + 0.3*x1 + 1.7",
        "((x1**6)**6)**6 + x1*(x1 + 2)",
        "((((((((x1**6)**6)**6)**6)**6)**6)**6)**6)**6 + x1*(x1 + 2)",
        "((((((((0.37*x1)**6)**6)**6)**6)**6)**6)**6)**6 + x1*(x1 + 2)",
        "(1e200*x1 + 3*x2)**2 + x1",
        "(1e-200*x1 + 3e-200*x2)**2",
        "(1e-60*x1 + x2)**6 + x1",
        "(1e-160*x1 + x2)**2 + 0.5*x2",
        "x1*(1e300*x1 + 1e300) + 3e299",
    ],
)
def test_high_powers_and_numbers_of_unlike_sizes_are_left_alone(text):
    assert str(factored(formula(text))) == str(formula(text))


decimals = st.builds(
    lambda n, power: float(f"{n}e{power}"), st.integers(-30, 30).filter(bool), st.integers(-6, 6)
)
sums = st.tuples(decimals, decimals, decimals)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(sums, min_size=1, max_size=3), st.sampled_from(["{}", "log(40.5 + ({})**2)", "x3/({} + 40.5)"])
)
def test_the_function_stays_the_same(factors, outer):
    x1, x2 = sympy.symbols("x1 x2")
    numbers = [[sympy.Rational(repr(c)) for c in factor] for factor in factors]
    flat = sympy.expand(sympy.prod(a + b * x1 + c * x2 for a, b, c in numbers))
    whole = formula(outer.format(flat))
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 4))
    values, other = whole(X), factored(whole)
    np.testing.assert_allclose(other(X), values, rtol=1e-9, atol=1e-9 * np.abs(values).max())
    assert len(other.tokens) <= len(whole.tokens)


@pytest.mark.slow
@given(st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_a_square_of_a_sum_is_always_found(numbers):
    x1, x2 = sympy.symbols("x1 x2")
    a, b, c = (sympy.Rational(n, 10) for n in numbers)
    square = formula(str(sympy.expand((a + b * x1 + c * x2) ** 2)))
    assert len(factored(square).tokens) < len(square.tokens)


@pytest.mark.search
def test_a_fit_writes_the_square_of_a_sum():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (80, 2))
    y = 4.4 * X[:, 0] * X[:, 1] / (1.0 + 0.7 * X[:, 0] + 0.3 * X[:, 1]) ** 2
    regressor = DGSRRegressor(generator=None, max_evaluations=5_000, random_state=0).fit(X, y)
    assert str(regressor.expression_) == "4.4*x1*x2/(1 + 0.7*x1 + 0.3*x2)**2"


@pytest.mark.search
def test_columns_of_unlike_scales_end_no_fit():
    X = np.random.default_rng(0).uniform(1.0, 2.0, (60, 2))
    y = (X[:, 0] + X[:, 1]) ** 2 + 0.5 * X[:, 0]
    X[:, 0] *= 1e160
    regressor = DGSRRegressor(generator=None, max_evaluations=2_000, random_state=0).fit(X, y)
    assert np.mean((regressor.predict(X) - y) ** 2) < 1e-6
