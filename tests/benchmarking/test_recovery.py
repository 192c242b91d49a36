"""The judge of recovery: right on equals, near misses, fitted constants and undefined formulas."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dgsr.benchmarking import is_recovered, recovery
from dgsr.benchmarking.recovery import has_the_form
from dgsr.expressions import Expression, get_library
from dgsr.problems import load_problem


def judge(name, text):
    """Judge a formula in the library of its problem; numbers become fitted constants there."""
    problem = load_problem(name)
    library = get_library(problem.library, problem.n_variables)
    expression = Expression.from_text(text, library, problem.variable_names)
    return is_recovered(expression, problem)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Nguyen-8", "exp(log(x1)/2)"),
        ("Nguyen-7", "log((x1 + 1)*(x1*x1 + 1))"),
        ("Nguyen-12", "x1**3*(x1 - 1) + x2*(x2 - 2)/2"),
        ("Livermore-7", "(exp(x1) - exp(-x1))/2"),
        ("Livermore-1", "(x1 + 1/3) + sin(x1*x1)"),
        ("Feynman-9", "x1*x2*x3*(log(x5) - log(x4))"),
        ("Feynman-A-24", "x1*(1 - cos(x3*x2))/(1 - cos(x2))"),
        ("strogatz_barmag1", "0.5*sin(x - y) - sin(x)"),
    ],
)
def test_another_form_of_the_truth_is_recovered(name, text):
    verdict = judge(name, text)
    assert verdict.recovered
    assert verdict.how == "equal"
    assert verdict.error < 1e-40


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Nguyen-1", "x1**3 + x1**2 + x1 + x1/20/20/20/20/20/20/20/20"),
        ("Nguyen-1", "x1**3 + x1**2 + x1 + 1"),
        ("Feynman-1", "2*x1*x2"),
        ("Livermore-20", "1 - x1**2"),
        ("Nguyen-1c", "3.38*x1**3 + 2.12*x1**2 + 1.78*x1"),
        ("Nguyen-10c", "sin(1.5*x1)*cos(0.502*x2)"),
        ("feynman_I_12_1", "mu + 7.5*Nn"),
    ],
)
def test_a_near_miss_is_not_recovered(name, text):
    verdict = judge(name, text)
    assert not verdict.recovered
    assert verdict.how == "different"


@pytest.mark.parametrize(
    ("name", "text", "how"),
    [
        ("Nguyen-1c", "3.39000001*x1**3 + 2.11999999*x1**2 + 1.78*x1", "difference"),
        ("feynman_I_12_2", "0.0795774715*q1*q2/(r*r*epsilon)", "ratio"),
        ("strogatz_lv1", "3.00001*x - 2.0001*x*y - x**2 + 0.02", "difference"),
        # Rounded one by one the factors would give 0.999.
        ("strogatz_vdp2", "x*(0.037*(-2.7027027027))", "difference"),
    ],
)
def test_fitted_constants_are_judged_after_rounding_to_three_decimals(name, text, how):
    verdict = judge(name, text)
    assert verdict.recovered
    assert verdict.how == how


def test_factors_are_merged_before_they_are_rounded():
    problem = load_problem("strogatz_vdp2")
    library = get_library("koza-const", 2)
    tokens = [library.index[name] for name in ("mul", "const", "mul", "const", "x1")]
    # 0.0370 * -2.7027...: each rounded alone gives -0.0999, no multiple of it is -0.1.
    assert is_recovered(Expression(library, tokens, [0.037, -2.7027027027]), problem).recovered


def test_a_constant_offset_needs_an_r2_above_a_half():
    assert judge("Nguyen-5c", "sin(x1**2)*cos(x1) - 0.76").how == "difference"
    assert not judge("Nguyen-5c", "sin(x1**2)*cos(x1) - 7.75").recovered


def test_an_expression_undefined_on_the_domain_is_not_recovered():
    verdict = judge("Feynman-1", "log(-x1) + x2")
    assert verdict.how == "undefined"
    assert not verdict.recovered


def test_the_largest_relative_error_is_told():
    assert judge("feynman_III_4_32", "1/(exp(0.1591549431*h*omega/(kb*T)) - 1)").error < 1e-8


def test_text_is_judged_by_the_names_of_the_problem():
    problem = load_problem("feynman_II_13_17")
    assert is_recovered("I/(2*pi*epsilon*r*c**2)", problem).recovered
    assert not is_recovered("2*I/(2*pi*epsilon*r*c**2)", problem).recovered


def test_every_truth_recovers_itself():
    for name in ("feynman_I_26_2", "feynman_test_10", "strogatz_shearflow1", "Livermore-15", "R-3"):
        problem = load_problem(name)
        assert is_recovered(problem.expression, problem).recovered, name


def test_the_precision_of_mpmath_is_left_alone():
    before = mpmath.mp.dps
    judge("Nguyen-8", "exp(log(x1)/2)")
    assert mpmath.mp.dps == before
    assert recovery.DIGITS == 50


def test_columns_count_and_not_the_names_the_data_had():
    problem = load_problem("feynman_I_25_13")
    library = get_library("koza", 2)
    tokens = [library.index[name] for name in ("div", "x1", "x2")]
    assert is_recovered(Expression(library, tokens, (), ["C", "q"]), problem).recovered
    assert is_recovered(Expression(library, tokens, (), ["q", "C"]), problem).recovered


def test_an_expression_of_other_variables_is_refused():
    with pytest.raises(ValueError, match="has 1 variables; Feynman-1 has 2"):
        is_recovered(Expression.from_text("x1", get_library("koza", 1)), load_problem("Feynman-1"))


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("2*x1*exp(-0.7*x2) + 3", True),
        ("2.2*x1*exp(-0.75*x2) + 2.9", True),
        ("4.1 + 1.7*x1/exp(0.6*x2)", True),
        ("2.2*x1*exp(-0.75*x2)", False),
        ("2*x1*exp(-0.7*x2) + 3 + 0.01*x3", False),  # has a term that vanishes
        ("2*x1/(1 + 0.7*x2) + 3", False),
        (
            "x1*(exp(-0.7*x2) + exp(-0.7*x2)) + 3 + (x3 - x3)*(x1 + x2*x3)/(x1 + x2 + x3)",
            False,
        ),  # is too long
    ],
)
def test_a_formula_has_the_form_of_the_law_if_other_constants_make_it_the_law(text, has):
    library = get_library("physics", 3)
    truth = Expression.from_text("2*x1*exp(-0.7*x2) + 3", library)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (300, 3))
    expression = Expression.from_text(text, library)
    constants = expression.constants.copy()
    assert has_the_form(expression, X, truth(X), truth.complexity) == has
    np.testing.assert_array_equal(expression.constants, constants)
