"""The digits that a formula predicts with: those that the rows determine, while its length stays."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor, load
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.trees.simple_numbers import expected_by_chance
from dgsr.finishing import finish
from dgsr.finishing.digits import with_measured_digits
from dgsr.pareto import ParetoFront

LIBRARY = get_library("koza-const", 2)
TOLERANCE = 1e-20


def noisy(truth, noise=0.02, n=60, seed=0):
    """Rows of a formula, with noise as a share of the standard deviation of y."""
    random = np.random.default_rng(seed)
    X = random.uniform(1.0, 3.0, (n, 2))
    y = Expression.from_text(truth, LIBRARY)(X)
    return DataSet.from_arrays(X, y + noise * np.std(y) * random.normal(size=n))


def digits_of(text, data, tolerance=TOLERANCE):
    return with_measured_digits(Expression.from_text(text, LIBRARY), data, tolerance)


def test_a_formula_predicts_as_well_as_least_squares():
    """With the simplest numbers in the intervals alone, it has 1.9 times the squared error."""
    random = np.random.default_rng(0)
    of_fits, of_formulas = [], []
    for slope in random.uniform(1.0, 10.0, 200):
        x = random.uniform(1.0, 2.0, 60)
        data = DataSet.from_arrays(x[:, None], slope * x + 0.02 * slope * random.normal(size=60))
        fitted = float((x @ data.y) / (x @ x))
        program = Expression.from_text(f"{fitted!r}*x1", LIBRARY)
        (formula,) = finish(Population.from_expressions([program]), np.ones(1), data, TOLERANCE)
        formula = with_measured_digits(formula, data, TOLERANCE)
        of_fits.append((fitted / slope - 1.0) ** 2)
        of_formulas.append((formula(np.ones((1, 1)))[0] / slope - 1.0) ** 2)
        assert len(str(formula)) <= len("1.2345*x1")
    assert np.mean(of_formulas) < 1.5 * np.mean(of_fits)


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("2*x1 + 3*x2", 0.1),  # numbers of one digit are more probable than the odds say
        ("2.5*x1*x2", 0.002),  # the fit is next to a number that few intervals as narrow hold
        ("x1**2*x2", 0.1),  # there is no number, and an exponent is one of the form
        ("1.2345*x1", 0.0),  # exact
    ],
)
def test_a_formula_stays_as_it_is(text, noise):
    assert digits_of(text, noisy(text, noise)) == Expression.from_text(text, LIBRARY)


@pytest.mark.parametrize("exponent", ["(1/3)", "0.75"])
def test_an_exponent_that_is_a_third_or_a_quarter_stays(exponent):
    formula = Expression.from_text(f"x2*x1**{exponent}", get_library("physics", 2))
    assert with_measured_digits(formula, noisy(str(formula), 0.5), TOLERANCE) == formula


def test_a_number_far_from_the_fit_is_fitted_and_one_that_is_meant_stays():
    formula = digits_of("0.39*x1 + 2.5*exp(x2)", noisy("0.3925*x1 + 2.5*exp(x2)", 2e-4, n=500))
    first, second = formula.constants
    assert second == 2.5
    assert first != 0.39
    assert first == pytest.approx(0.3925, abs=0.003)


def test_the_others_are_fitted_beside_the_numbers_that_stay():
    """With 2 fixed, least squares has another slope than with both free."""
    data = noisy("2 + 1.234*x1", 0.02)
    formula = digits_of("2 + 1.2*x1", data)
    x = data.columns[0]
    beside_two = (x @ (data.y - 2.0)) / (x @ x)
    half = 2.0 * np.sqrt(np.mean((data.y - 2.0 - beside_two * x) ** 2) / (x @ x))
    assert formula.constants[0] == 2.0
    assert formula.constants[1] == pytest.approx(beside_two, abs=0.25 * half)


def test_copies_of_a_number_stay_equal_if_they_may():
    formula = digits_of("4.3*x1/(4.3 + x2)", noisy("4.321*x1/(4.321 + x2)", 0.01, n=200, seed=1))
    assert formula.constants[0] == formula.constants[1] != 4.3


def test_what_a_column_is_measured_from_stays():
    random = np.random.default_rng(0)
    X = np.column_stack([1_700_000_000 + random.uniform(0.0, 9.0, 80), np.ones(80)])
    y = 3.217 * np.exp(-0.2 * (X[:, 0] - 1_700_000_000)) + 0.01 * random.normal(size=80)
    formula = digits_of("3.2*exp(-0.2*(x1 - 1700000000))", DataSet.from_arrays(X, y))
    assert 1_700_000_000 in formula.constants
    assert 3.2 not in formula.constants


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["{a}*x1 + {b}", "{a}*exp({b}*x2)", "x1/({a} + {b}*x2)", "sin({a}*x1 + {b})", "{a}"]),
    st.floats(0.1, 9.0),
    st.floats(0.1, 2.0),
    st.sampled_from([0.0, 1e-6, 0.01, 0.3]),
    st.integers(0, 5),
)
def test_only_digits_change_and_the_fit_is_no_worse(form, a, b, noise, seed):
    data = noisy(form.format(a=a, b=b), noise, seed=seed) if form != "{a}" else noisy("x1 + x2", seed=seed)
    coarse = Expression.from_text(form.format(a=float(f"{a:.1e}"), b=float(f"{b:.1e}")), LIBRARY)
    fine = with_measured_digits(coarse, data, TOLERANCE)
    assert np.array_equal(fine.tokens, coarse.tokens)
    losses = Population.from_expressions([fine, coarse]).nmse(data)
    assert losses[0] <= losses[1]
    assert (losses[0] < losses[1]) == (fine != coarse)


@pytest.mark.parametrize(("number", "digits"), [(7.0, 1), (3.9, 2), (3.91, 3), (0.0391, 3), (-39.1, 3)])
def test_as_many_decimals_are_expected_as_intervals_hold(number, digits):
    exponent = math.floor(math.log10(abs(number)))
    half_width = 0.8 * 10.0**exponent / 10 ** (digits - 1)
    decimals = np.arange(10 ** (digits - 1), 10**digits) * 10.0 ** (exponent - digits + 1)
    middles = np.random.default_rng(0).uniform(2.0, 9.0, 20_000) * 10.0**exponent
    held = np.abs(decimals - middles[:, None]) <= half_width
    assert expected_by_chance(number, half_width) == pytest.approx(held.sum(axis=1).mean(), rel=0.05)


@pytest.mark.parametrize("number", [5e-324, 1.7e308])
def test_the_smallest_and_the_largest_numbers_have_a_chance(number):
    assert expected_by_chance(number, abs(number)) > 0.0


# --- on the front -----------------------------------------------------------------------------------


def front_of(texts, data, finer):
    def with_digits(expression):
        return Expression.from_text(finer.get(str(expression), str(expression)), LIBRARY)

    formulas = [Expression.from_text(text, LIBRARY) for text in texts]
    return ParetoFront.from_expressions(formulas, data, with_digits=with_digits)


def test_a_formula_keeps_the_length_that_it_was_compared_by():
    data = noisy("3.217*x1")
    (candidate,) = front_of(["3.2*x1"], data, {"3.2*x1": "3.217*x1"})
    coarse = Expression.from_text("3.2*x1", LIBRARY)
    assert str(candidate.expression) == "3.217*x1"
    assert candidate.description_length == description_length(coarse)
    assert candidate.description_length < description_length(candidate.expression)
    assert candidate.loss == Population.from_expressions([candidate.expression]).nmse(data)[0]
    assert candidate.uncertainty.noise < np.inf


def test_finer_digits_that_fit_worse_or_make_a_pole_are_left():
    data = noisy("3.2*x1")
    (candidate,) = front_of(["3.2*x1"], data, {"3.2*x1": "3.9*x1"})
    assert str(candidate.expression) == "3.2*x1"
    X = np.linspace(1.0, 2.0, 30)[:, None]
    rows = DataSet.from_arrays(X, 1.0 / (X[:, 0] - 1.517))
    pole = "1/(x1 - 1.5169)"
    (candidate,) = front_of(["1/(x1 - 0.9)"], rows, {"1/(x1 - 0.9)": pole})
    assert str(candidate.expression) == "1/(x1 - 0.9)"
    assert len(front_of([pole], rows, {})) == 1  # alone it may be on the front


def test_a_longer_formula_that_finer_digits_overtake_is_off_the_front():
    data = noisy("3.2171*x1 + 0*x2", 0.001)
    texts = ["3.1*x1", "3.217*x1*x2/x2"]
    assert len(front_of(texts, data, {})) == 2
    (candidate,) = front_of(texts, data, {"3.1*x1": "3.2171*x1"})
    assert str(candidate.expression) == "3.2171*x1"


def test_a_fit_has_measured_digits_and_keeps_them_when_saved(tmp_path):
    random = np.random.default_rng(3)
    X = random.uniform(1.0, 3.0, (300, 1))
    y = 3.2171 * X[:, 0] / (1.4567 + X[:, 0]) + 0.003 * random.normal(size=300)
    model = DGSRRegressor(generator=None, max_evaluations=5_000, random_state=0).fit(X, y)
    front = model.pareto_front_
    chosen = front.candidate_of(model.expression_)
    assert chosen == front[front.select("mdl")]
    assert chosen.description_length < description_length(model.expression_)
    assert all(a.loss > b.loss for a, b in pairwise(front))
    model.save(tmp_path / "model.dgsr")
    again = load(tmp_path / "model.dgsr")
    assert again.expression_ == model.expression_
    lengths = [candidate.description_length for candidate in front]
    assert [candidate.description_length for candidate in again.pareto_front_] == lengths
