"""What a search ends with becomes what a person would write, and fits as well."""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit, least_squares

from dgsr.constants.uncertainty import uncertainty_of
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Constraints, Expression, get_library
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import FreeProgram, to_program
from dgsr.expressions.rewriting.expansion import expanded, gathered, separated
from dgsr.expressions.rewriting.merging import PLACEMENTS, merge
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.simple_numbers import cost, recognise, simple_numbers
from dgsr.expressions.trees.syntax import parse, to_text
from dgsr.expressions.trees.trees import leaves, map_leaves
from dgsr.finishing import _collected, finish, mean_formula
from dgsr.finishing.fits import Fits, FittedProgram
from dgsr.finishing.forms import _without_idle, forms
from dgsr.finishing.programs import complexity, written
from finished import LIBRARY, finished_by_hand, population_of

pytestmark = pytest.mark.search

POINT = {"x1": 0.7, "x2": 1.9}


def scipys_least_squares(fits, program, copies=False):
    """`Fits.least_squares` by scipy."""
    start = program.constants[program.free]
    of = np.arange(len(start))
    if copies:
        start, of = np.unique(start, return_inverse=True)

    def residuals(values):
        trial = program.constants.copy()
        trial[program.free] = values[of]
        residual = fits.residuals(program._replace(constants=trial))
        return np.where(np.isfinite(residual), residual, 1e10)

    precise = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
    fitted = program.constants.copy()
    with warnings.catch_warnings(), contextlib.suppress(ValueError):  # a derivative that is not finite
        warnings.simplefilter("ignore")
        fitted[program.free] = least_squares(residuals, start, x_scale="jac", jac="3-point", **precise).x[of]
    return fitted


def finished(truth, program, noise=0.0, scales=(1.0, 1.0), seed=1, n=200, library=LIBRARY):
    """Fit `program` to data of `truth` in scaled variables, as a search does, and finish it."""
    rng = np.random.default_rng(seed)
    scales = np.array(scales)
    X = rng.uniform(0.2, 4.0, (n, 2)) * scales
    y = Expression.from_text(truth, library)(X)
    y = y + noise * y.std() * rng.standard_normal(n)
    data = DataSet.from_arrays(X, y)
    population = population_of([program], library)
    n_constants = int((population.tokens[0] == library.index["const"]).sum())
    program = FreeProgram(population.tokens[0], population.constants[0], np.ones(n_constants, dtype=bool))
    population.constants[0] = scipys_least_squares(
        Fits(DataSet.from_arrays(X / scales, y), library, 1e-16), program
    )
    (expression,) = finish(population, scales, data, 1e-16)
    return expression, float(np.mean((expression(X) - y) ** 2) / y.var())


LAWS = [
    (
        "20 - x1 - x1*x2/(1 + 0.5*x1**2)",
        "20.1*(1.1 - 0.05*(1.1*x1)) - 1.1*x1*x2/(1.1 + 0.5*(x1*(1.01*x1))) + 0.1",
        "20 - x1 - x1*x2/(1 + 0.5*x1**2)",
    ),
    (
        "0.5*sin(x1 - x2) - sin(x1)",
        "0.7*(0.6*sin(x2*0.9 - 1.1*x1) + 1.3*sin(x1)) + 0.1",
        "0.5*sin(x1 - x2) - sin(x1)",
    ),
    (
        "x2*(x1/(1 + x1) - 0.075*x2)",
        "1.1*(x2*(1.5*x1/(1.2 + 1.3*x1) - 0.1*x2)) + 0.2",
        "x2*(x1/(1 + x1) - 0.075*x2)",
    ),
    ("2*pi*x1", "6.1*x1 + 0.1", "2*pi*x1"),
    ("x1/3", "0.31*x1 + 0.1", "x1/3"),
    ("3*x1/(1 + 0.7*x1)", "1.1*x1/(0.3 + 0.2*x1) + 0.1", "3*x1/(1 + 0.7*x1)"),
    ("x2 + 2.5*exp(-x1**2/2)", "1.5*exp(-0.4*x1*(1.1*x1) + 0.1) + 1.2*x2 + 0.1", "x2 + 2.5*exp(-0.5*x1**2)"),
    ("cos(x1) + 0.1*x2", "0.9*sin(1.02*x1 + 1.5) + 0.11*x2 + 0.1", "0.1*x2 + cos(x1)"),
    ("1 + 2*log(x1)", "1.1*log(1.2*x1) + 1.1 + 0.001*x2", "1 + 2*log(x1)"),
    ("0.2 + 1.38*x1**2", "1.1*exp(1.9*log(1.1*x1)) + 0.1", "0.2 + 1.38*x1**2"),
    ("x1/(x1 + x2)", "1.1*(1.2*x1/(0.9*x1 + 1.3*x2 + 0.1)) + 0.01", "x1/(x1 + x2)"),
    ("1.5 + x1*x2/4", "1.01*(0.3*x1*(1.2*x2) + 0.1) + 1.1", "1.5 + 0.25*x1*x2"),
]


@pytest.mark.parametrize(("truth", "program", "expected"), LAWS)
def test_a_law_is_finished_to_what_a_person_writes(truth, program, expected):
    expression, nmse = finished(truth, program)
    assert str(expression) == expected
    assert nmse < 1e-28


@pytest.mark.parametrize(
    ("truth", "program", "expected"),
    [
        ("x1*x2", "1.1*x1*x2*tanh(120*x2)", "x1*x2"),
        ("3.7 + x1*x2", "x1*x2 + 3.5*tanh(120*x2)", "3.7 + x1*x2"),
        ("x1 + tanh(x2)", "x1 + 1.1*tanh(1.1*x2)", "x1 + tanh(x2)"),
    ],
)
def test_a_function_that_is_a_number_on_the_data_is_written_as_one(truth, program, expected):
    expression, nmse = finished(truth, program, library=get_library("physics", 2))
    assert str(expression) == expected
    assert nmse < 1e-28


def test_a_function_that_is_infinite_on_the_data_is_no_number():
    tree = ("exp", ("mul", 300.0, "x1"))
    X = np.linspace(5.0, 1.0, 9)[:, None]  # infinite in the first row
    assert _without_idle(Fits(DataSet.from_arrays(X, X[:, 0]), LIBRARY, 1e-16), tree) == tree


@pytest.mark.parametrize(("truth", "program", "expected"), LAWS[:4])
def test_a_law_is_finished_with_any_least_squares(truth, program, expected, monkeypatch):
    monkeypatch.setattr(Fits, "least_squares", scipys_least_squares)
    expression, nmse = finished(truth, program)
    assert str(expression) == expected
    assert nmse < 1e-28


# Where a decimal that noise cannot tell from a multiple of pi is written instead.
ROUNDED = {"2*pi*x1": "6.28*x1"}


@pytest.mark.parametrize(("truth", "program", "expected"), LAWS)
def test_a_law_is_found_in_noise(truth, program, expected):
    """Every constant is right with a chance of 95%: most of the time the law is."""
    found = [finished(truth, program, 0.01, seed=seed) for seed in range(1, 6)]
    assert sum(str(expression) in (expected, ROUNDED.get(expected)) for expression, _ in found) >= 3
    for expression, nmse in found:
        assert nmse < 1.4e-4
        assert not re.search(r"\d\.\d{5}", str(expression))  # no long decimals


@pytest.mark.parametrize("scales", [(1e9, 1.0), (1.0, 1e-9), (1e9, 1e-9), (1e-9, 1e9)])
def test_scaled_columns_come_back_in_their_own_units(scales):
    product, nmse = finished("3*x1*x2", "0.5*((x1*1.1 + 0.1)*(1.2*x2 + 0.1)) + 0.2", scales=scales)
    assert str(product) == "3*x1*x2"
    assert nmse < 1e-28
    a, b = (repr(1 / scale) for scale in scales)
    expression, nmse = finished(
        f"2*sin({a}*x1) + 0.5*{b}*x2", "1.9*sin(1.01*x1) + 0.3*x2 + 0.1", scales=scales
    )
    assert nmse < 1e-25
    assert len(str(expression)) < 40


def test_a_needless_constant_is_dropped():
    for noise in (0.0, 0.01, 0.3):
        expression, _ = finished("x1*x2", "0.9*(x1 + 0.1)*(x2 + 0.1) + 0.1", noise)
        assert str(expression) == "x1*x2"
        assert len(expression.constants) == 0


def test_a_constant_that_is_no_simple_number_is_kept_whole():
    expression, nmse = finished("1.8384776310850235*x1 + x2", "1.5*x1 + 1.1*x2 + 0.1")
    assert re.fullmatch(r"1\.838477631085\d+\*x1 \+ x2", str(expression))
    assert nmse < 1e-28


def test_a_fit_that_ended_early_is_finished_too(monkeypatch):
    monkeypatch.setattr(Fits, "least_squares", lambda fits, program, copies: program.constants)
    X = np.random.default_rng(0).uniform(0.2, 4.0, (200, 2))
    data = DataSet.from_arrays(X, X[:, 0] * X[:, 1] / 3)
    programs = population_of(["0.33333333337*x1*(1.0000000002*x2) + 0.0000000001"])
    (expression,) = finish(programs, np.ones(2), data, 1e-16)
    assert str(expression) == "x1*x2/3"


def test_a_fit_without_any_error_is_finished_whatever_the_tolerance():
    X = np.random.default_rng(0).uniform(0.2, 4.0, (20, 2))
    data = DataSet.from_arrays(X, 2.0 * X[:, 0])
    programs = population_of(["2.0*x1", "1.0*x1 + 1.0*x1"])
    for expression in finish(programs, np.ones(2), data, tolerance=0.0):
        assert str(expression) == "2*x1"


def test_order_and_number_of_programs_are_kept():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 4, (100, 2))
    data = DataSet.from_arrays(X, 2 * X[:, 0] + 0.5 * X[:, 1] ** 2)
    programs = population_of(["5.1", "2.1*x1 + 0.5", "2.1*x1 + 0.4*x2*(1.1*x2) + 0.1", "x1 + x2", "x2 - x2"])
    expressions = finish(programs, np.ones(2), data, 1e-16)
    assert len(expressions) == len(programs)
    assert str(expressions[2]) == "2*x1 + 0.5*x2**2"
    assert str(expressions[3]) == "x1 + x2"
    assert all(expression.library is LIBRARY for expression in expressions)


def test_formulas_finished_before_the_time_was_over_stay_finished():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 4, (100, 2))
    data = DataSet.from_arrays(X, 2 * X[:, 0] + 0.5 * X[:, 1] ** 2)
    programs, known = population_of(["2.1*x1 + 0.4*x2*(1.1*x2) + 0.1", "2.1*x1 + 0.5"]), {}
    law, _ = finish(programs, np.ones(2), data, 1e-16, is_over=lambda: len(known) > 0, known=known)
    again, other = finish(programs, np.ones(2), data, 1e-16, is_over=lambda: True, known=known)
    assert str(law) == str(again) == "2*x1 + 0.5*x2**2"
    assert str(other) == "2.1*x1 + 0.5"


@pytest.mark.parametrize("least_squares", [Fits.least_squares, scipys_least_squares])
def test_weights_decide_which_rows_count(least_squares, monkeypatch):
    monkeypatch.setattr(Fits, "least_squares", least_squares)
    rng = np.random.default_rng(0)
    X = rng.uniform(0.2, 4, (200, 2))
    first = np.arange(200) < 100
    y = np.where(first, 2 * X[:, 0], 3 * X[:, 0])
    programs = population_of(["2.4*x1"])
    for weights, expected in [(first, "2*x1"), (~first, "3*x1")]:
        data = DataSet.from_arrays(X, y, weights)
        (expression,) = finish(programs, np.ones(2), data, 1e-16)
        assert str(expression) == expected


def test_programs_without_constants_stay_or_become_shorter():
    library = get_library("koza", 2)
    X = np.random.default_rng(0).uniform(0.2, 4, (100, 2))
    data = DataSet.from_arrays(X, X[:, 0] + X[:, 1])
    programs = population_of(["x1*x2 + sin(x1)", "x1 + x2 - x1"], library)
    expressions = finish(programs, np.ones(2), data, 1e-16)
    assert [str(expression) for expression in expressions] == ["sin(x1) + x1*x2", "x2"]
    with pytest.raises(ValueError, match="koza"):
        finish(programs, np.array([1e9, 1.0]), data, 1e-16)


def test_a_root_in_a_square_is_gone():
    library = get_library("physics", 5)
    above, below = ("mul", ("sqrt", "x1"), ("square", "x2")), ("mul", "x3", ("mul", "x4", "x5"))
    tree = ("mul", -0.125, ("square", ("div", above, below)))
    tokens, constants = to_program(tree, library)
    expression = Expression(library, tokens, constants)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 5))
    data = DataSet.from_arrays(X, expression(X))
    (found,) = finish(Population.from_expressions([expression]), np.ones(5), data, 1e-20)
    assert found.text == "-0.125*x1*x2**4/(x3**2*x4**2*x5**2)"


def test_a_library_without_subtraction_writes_what_it_can():
    library = Library("few", ("add", "mul", "div", "sin"), has_constants=True, n_variables=1)
    expression = Expression.from_text("x1 + 3.7*(x1/sin(x1) + -0.72)", library)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 1))
    data = DataSet.from_arrays(X, expression(X))
    (found,) = finish(Population.from_expressions([expression]), np.ones(1), data, 1e-20)
    np.testing.assert_allclose(found(X), expression(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "noise", "expected"),
    [
        ("x1/(0.54 + 0.08*x1)", 0.0, "12.5*x1/(6.75 + x1)"),
        ("3 + x1/(0.54 + 0.08*x1)", 0.0, "3 + 12.5*x1/(6.75 + x1)"),
        ("x1/(0.53 + 0.07*x1)", 0.02, "14.36*x1/(7.7 + x1)"),  # 1/0.07 has no end
        ("x1**2/(5 + 0.25*x1**2)", 0.0, "4*x1**2/(20 + x1**2)"),
        ("1/(0.01 + 0.19*exp(-0.5*x1))", 0.0, "100/(1 + 19*exp(-0.5*x1))"),
        ("5/(0.05 + exp(-0.5*x1))", 0.02, "100/(1 + 20*exp(-0.5*x1))"),
        ("8 - 8/(1 + 0.1*x1)", 0.02, "8*x1/(10 + x1)"),
        ("8 - 160/(20 + x1**2)", 0.02, "8*x1**2/(20 + x1**2)"),
        ("8 - 8/(1 + 0.024*x1**1.7)", 0.02, "8*x1**1.7/(42 + x1**1.7)"),
        ("8 - 8/(1 + 0.005*exp(0.6*x1))", 0.0, "8/(1 + 200*exp(-0.6*x1))"),
        ("8 - 4/(1 + 0.1*x1)", 0.02, "8 - 40/(10 + x1)"),
        ("300*exp(1/(-0.11 - 0.04*x1))", 0.001, "300*exp(-25/(2.75 + x1))"),
        # What is left as it is: whole numbers, numbers that would have no end, another usual way, no name.
        ("x1/(2 + 3*x1)", 0.0, "x1/(2 + 3*x1)"),
        ("x1/(0.53 + 0.07*x1)", 0.0, "x1/(0.53 + 0.07*x1)"),
        ("2.5*x1/(1 + 0.3*x1)", 0.0, "2.5*x1/(1 + 0.3*x1)"),  # and not x1/(0.4 + 0.12*x1)
        ("1/(0.54 + 0.08*x1)", 0.0, "1/(0.54 + 0.08*x1)"),
    ],
)
def test_a_function_with_a_name_is_written_as_people_write_it(text, noise, expected):
    X = np.random.default_rng(0).uniform(0.5, 30.0, (60, 1))
    assert str(finished_by_hand(text, X, noise=noise)) == expected


@pytest.mark.parametrize(
    ("text", "noise", "expected"),
    [
        ("4*(x1 - 0.75*x2)", 0.0, "4*x1 - 3*x2"),
        ("0.7*(x1 + 0.4285714*x2)", 0.005, "0.7*x1 + 0.3*x2"),
        ("2.5*(x1 + 0.3*x2)", 0.0, "2.5*(x1 + 0.3*x2)"),
        ("26 + 24*cos(0.3 + 2*x1)**2", 0.0, "38 + 12*cos(0.6 + 4*x1)"),
        ("26 - 24*sin(2*x1)**2", 0.0, "14 + 12*cos(4*x1)"),
        ("3*sin(x1)**2", 0.0, "3*sin(x1)**2"),
        ("5*x1/9 - 160/9", 0.0, "5*(x1 - 32)/9"),
        ("3 + 2*log(x1)", 0.0, "3 + 2*log(x1)"),
        ("7 + 1.7*(x1 + 2*x2)", 0.005, "7 + 1.7*(x1 + 2*x2)"),
    ],
)
def test_sums_and_waves_are_written_in_the_shorter_way(text, noise, expected):
    X = np.random.default_rng(0).uniform(0.5, 5.0, (60, 2))
    assert str(finished_by_hand(text, X, noise=noise)) == expected


def test_a_function_with_a_name_keeps_what_is_required():
    X, library = np.random.default_rng(0).uniform(0.5, 30.0, (60, 1)), get_library("physics", 1)
    text = "8 - 8/(1 + 0.1*x1)"
    assert str(finished_by_hand(text, X, noise=0.02)) == "8*x1/(10 + x1)"
    kept = finished_by_hand(text, X, noise=0.02, constraints=Constraints(required=("sub",)))
    assert library.index["sub"] in kept.tokens


@pytest.mark.parametrize("seed", range(3))
def test_numbers_that_are_equal_stay_equal_where_that_fits_as_well(seed):
    """Hill's law has one exponent, which stands in it twice; least squares with scipy has one, too."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.5, 30.0, 60))
    y = 8 * x**1.7 / (50 + x**1.7) + 0.05 * rng.standard_normal(60)
    library = get_library("physics", 1)
    fits = Fits(DataSet.from_arrays(x[:, None], y), library, 1e-16)
    programs = population_of(["9*x1**1.5/(40 + x1**1.5)"], library)
    program = FreeProgram(programs.tokens[0], programs.constants[0], np.ones(4, dtype=bool))
    fit = fits.refitted(program, copies=True)
    expected, _ = curve_fit(lambda x, a, b, c: a * x**c / (b + x**c), x, y, p0=(9.0, 40.0, 1.5))
    assert set(fit.program.constants) == {*fit.program.constants[:2], fit.program.constants[2]}
    np.testing.assert_allclose(np.sort(list(set(fit.program.constants))), np.sort(expected), rtol=1e-3)
    finished_law = finish(programs, np.ones(1), fits.data, 1e-16)[0]
    assert len({*finished_law.constants.tolist()}) == 3


def ways_to_write(text):
    """The complexities and NMSE of the ways to write the program that `text` is, on its own values."""
    programs = population_of([text])
    X = np.random.default_rng(0).uniform(0.2, 4.0, (100, 2))
    fits = Fits(DataSet.from_arrays(X, programs.predict(X)[0]), LIBRARY, 1e-16)
    program = FreeProgram(
        programs.tokens[0], programs.constants[0], np.ones(programs.constants.shape[1], dtype=bool)
    )
    ways = forms(FittedProgram(program, fits.nmse(program)), fits)
    return [complexity(way.program, LIBRARY) for way in ways], [way.nmse for way in ways]


def test_a_way_to_write_that_is_far_longer_than_the_simplest_is_left_out(monkeypatch):
    product_of_sums = "(x1 + 2.1)*(x2 + 3.3)*(x1 + 0.7)*(x2 + 1.9)*(x1 + 4.3)"
    sizes, nmse = ways_to_write(product_of_sums)
    assert max(sizes) <= 1.5 * min(sizes)
    assert max(nmse) < 1e-16
    monkeypatch.setitem(forms.__globals__, "_MOST_COMPLEX", np.inf)
    all_sizes, _ = ways_to_write(product_of_sums)
    assert max(all_sizes) > 1.5 * min(all_sizes), "none of the ways to write this law is far longer"
    assert sorted(size for size in all_sizes if size <= 1.5 * min(all_sizes)) == sorted(sizes)


POSITIVE = np.random.default_rng(0).uniform(0.2, 4.0, (200, 2))


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("x2*abs(x1)/(1 + x2)", "x1*x2/(1 + x2)"),
        ("3*x1*x2/(0.7 + sqrt(x2**2))", "3*x1*x2/(0.7 + x2)"),
        ("sqrt(square(x2 - 5))*x1", "x1*(5 - x2)"),
        ("sqrt(x2)**2 + x1", "x1 + x2"),
        ("x1*sqrt(x1 + x2)**2", "x1*(x1 + x2)"),
        ("x1 + abs(1/x2**2)", "x1 + 1/x2**2"),
        ("x2 + 1.0**x1", "1 + x2"),
        ("x2 + 2*x1**1.0", "2*x1 + x2"),
        ("x2*exp(1.5*log(x1))", "x2*x1**1.5"),
        ("x2*log(exp(x1*x2))", "x1*x2**2"),
        ("x2*exp(log(x1))", "x1*x2"),
        ("x1 + 0.223130160148429828933**x2", "x1 + exp(-1.5*x2)"),
    ],
)
def test_functions_that_change_nothing_on_the_data_go(program, expected, noise):
    assert str(finished_by_hand(program, POSITIVE, noise=noise)) == expected


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("x1 + x2**(-2974.3)", "x1"),
        ("x1*(1 + x2**(-2974.3))", "x1"),
        ("x2**(-2974.3) - x1", "-x1"),
        ("sin(x1 + x2 - exp(-200*x1))", "sin(x1 + x2)"),
    ],
)
def test_a_term_that_is_lost_in_the_rounding_of_the_other_goes(program, expected, noise):
    assert str(finished_by_hand(program, POSITIVE + 1.1, noise=noise)) == expected


def test_a_small_term_that_rounding_does_not_lose_stays():
    assert str(finished_by_hand("1000000000000*x1 + x2", POSITIVE)) == "1000000000000*x1 + x2"


def test_a_power_of_two_is_written_so():
    assert str(finished_by_hand("x1 + 1.0*2.0**x2", POSITIVE)) == "x1 + 2**x2"


@pytest.mark.parametrize("library", ["physics", "koza-const"])
def test_functions_that_change_something_stay(library):
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (200, 2))
    library = get_library(library, 2)
    program = "abs(x1) + x2" if "abs" in library.index else "exp(0.5*log(x1*x1)) + x2"
    expression = finished_by_hand(program, X, library)
    assert len(expression.tokens) <= len(population_of([program], library).tokens[0])
    np.testing.assert_allclose(expression(X), np.abs(X[:, 0]) + X[:, 1], rtol=1e-12)


def test_a_library_without_the_function_merging_writes_says_it_with_what_it_has():
    no_cosine = Library("sine", ("add", "sub", "mul", "sin"), True, 2)
    text = "1.0*sin(x1 + 1.5707963267948966) + 0.5*x2 + 0.5*x2"
    expression = finished_by_hand(text, POSITIVE, no_cosine)
    assert len(expression.tokens) == 6  # + x2 sin + c x1
    no_exp = Library("powers", ("add", "sub", "mul", "pow"), True, 2)
    text = "0.5**x1 + 0.5*x2 + 0.5*x2"
    assert len(finished_by_hand(text, POSITIVE, no_exp).tokens) == 5  # + x2 pow c x1


def in_units(tree, units):
    """The program with x_i/unit_i for x_i, all times the unit of y."""
    *columns, target = units
    tree = map_leaves(tree, lambda v: float(v) if isinstance(v, Fraction) else v)
    names = {f"x{i + 1}": ("mul", 1 / unit, f"x{i + 1}") for i, unit in enumerate(columns) if unit != 1}
    tree = map_leaves(tree, lambda leaf: names.get(leaf, leaf) if isinstance(leaf, str) else leaf)
    return tree if target == 1 else ("mul", target, tree)


UNITS = [
    (1e9, 1.0, 1.0),
    (1e-9, 1.0, 1.0),
    (1.0, 1e9, 1.0),
    (1.0, 1e-9, 1.0),
    (1.0, 1.0, 1e9),
    (1.0, 1.0, 1e-9),
]


# Every second one is left to the slow tests, with noise others than without it.
@pytest.mark.parametrize(
    ("noise", "units"),
    [
        pytest.param(noise, units, marks=[pytest.mark.slow] * ((i + j) % 2))
        for i, noise in enumerate([0.0, 0.01])
        for j, units in enumerate(UNITS)
    ],
)
@pytest.mark.parametrize(
    "law",
    [
        "4*x1*x2/(0.7 + x2)",
        "3*x1/(0.7 + x2)",
        "2.5*x1/(0.7 + x2)",
        "1.5 + 0.3*x1*x2**2",
        "2*sin(3*x1) + 0.5*x2",
        "4*x1*exp(-0.3*x2)",
        "6*x1/(2*x1 + 0.7*x2 + 5)",
    ],
)
def test_the_form_is_the_same_in_other_units(law, noise, units):
    def in_these(units):
        tree = in_units(parse(law), units)
        tokens, constants = to_program(tree, library)
        X = POSITIVE * np.array(units[:2])
        programs = Population(library, tokens[None], np.array([len(tokens)]), constants[None])
        y = programs.predict(X)[0]
        y = y + noise * y.std() * np.random.default_rng(1).standard_normal(len(y))
        return finish(programs, np.ones(2), DataSet.from_arrays(X, y), 1e-16)[0]

    library = get_library("physics", 2)
    plain, expression = in_these((1.0, 1.0, 1.0)), in_these(units)
    assert expression.tokens.tolist() == plain.tokens.tolist(), f"{plain} and {expression}"


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        ((1.0, 1.0, 1.0), "x1*x2/(1 + x2)"),
        ((1.0, 1e9, 1.0), "x1*x2/(1000000000 + x2)"),
        ((1.0, 1.0, 1e9), "1000000000*x1*x2/(1 + x2)"),
    ],
)
def test_a_factor_of_one_becomes_the_unit(units, expected):
    library = get_library("physics", 2)
    tokens, constants = to_program(in_units(parse("x1*x2/(1 + x2)"), units), library)
    programs = Population(library, tokens[None], np.array([len(tokens)]), constants[None])
    X = POSITIVE * np.array(units[:2])
    data = DataSet.from_arrays(X, programs.predict(X)[0])
    assert str(finish(programs, np.ones(2), data, 1e-16)[0]) == expected


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("2*sin(1.5*x1 + 1.57079632679) + x2", "x2 + 2*cos(1.5*x1)"),
        ("2*cos(1.5*x1 - 1.57079632679) + x2", "x2 + 2*sin(1.5*x1)"),
        ("2*sin(1.5*x1 + 3.14159265359) + x2", "x2 - 2*sin(1.5*x1)"),
        ("sin(-x1)*x2", "-x2*sin(x1)"),
    ],
)
def test_a_phase_of_quarter_turns_goes(program, expected, noise):
    assert str(finished_by_hand(program, POSITIVE, noise=noise)) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("2*sin(1.5*x1 + 63.53185307179586) + x2", "x2 + 2*sin(0.7 + 1.5*x1)"),
        ("2*cos(0.6 - 1.5*x1 + 62.83185307179586) + x2", "x2 + 2*cos(1.5*x1 - 0.6)"),
    ],
)
def test_a_phase_has_no_whole_turns(program, expected):
    assert str(finished_by_hand(program, POSITIVE)) == expected


@pytest.mark.parametrize("exponent", ["(1/3)", "(2/3)", "0.3", "0.8", "1.5"])
@pytest.mark.parametrize("off", [-0.008, 0.0, 0.008])
def test_exponents_are_thirds_or_short(exponent, off):
    """The interval of the exponent, 0.02 to both sides, holds several decimals of two digits."""
    library, random = get_library("physics", 2), np.random.default_rng(0)
    X, noise = random.uniform(1.0, 4.0, (400, 2)), random.normal(size=400)
    fitted = Expression.from_text(f"x2*x1**{float(Fraction(exponent.strip('()'))) + off}", library)
    slopes = fitted(X) * np.log(X[:, 0])
    noise -= slopes * (slopes @ noise) / (slopes @ slopes)
    data = DataSet.from_arrays(X, fitted(X) + 0.01 * np.linalg.norm(slopes) * noise)
    (found,) = finish(Population.from_expressions([fitted]), np.ones(2), data, 1e-20)
    assert str(found) == f"x2*x1**{exponent}"


def test_a_phase_of_half_a_turn_goes_beside_a_sum_that_is_kept_as_one_term():
    inside = ("add", ("add", "x2", ("mul", 2.8, "x1")), ("mul", "x1", "x2"))
    tree = ("sin", ("sub", ("mul", 0.5843, inside), Fraction(math.pi)))
    assert to_text(merge(tree, "leading")) == "-sin(0.5843*(2.8*x1 + x2 + x1*x2))"


def test_whole_turns_that_a_fit_adds_are_taken_off(monkeypatch):
    def many_turns_on(fits, program, copies):
        constants = program.constants
        return np.where(np.abs(constants - 0.69) < 0.02, 0.7 + 3584 * math.pi, constants)

    monkeypatch.setattr(Fits, "least_squares", many_turns_on)
    y = 2 * np.sin(1.5 * POSITIVE[:, 0] + 0.7) + POSITIVE[:, 1]
    programs = population_of(["2.0*sin(1.5*x1 + 0.69) + x2"], get_library("physics", 2))
    (expression,) = finish(programs, np.ones(2), DataSet.from_arrays(POSITIVE, y), 1e-16)
    assert str(expression) == "x2 + 2*sin(0.7 + 1.5*x1)"


# Programs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "free"),
    [
        (("mul", 2.5, "x1"), [True]),
        (("mul", 2, "x1"), [False]),
        (("add", ("mul", Fraction(1, 3), "x1"), 1.0), [False, True]),
        (("mul", ("neg", 2.5), ("sin", ("mul", ("pi",), "x1"))), [True, False]),
        (("add", "x1", ("mul", 2, 0.5)), [True]),
        (("mul", ("arcsin", 0.9), "x1"), [True]),  # though the arcsine of a larger float is undefined
        (("mul", 2.5, ("pow", "x1", 2.0)), [True]),  # x1**2 needs no constant
        ("x1", []),
    ],
)
def test_the_constants_that_are_made_of_floats_are_free(tree, free):
    assert written(tree, get_library("physics", 1)).free.tolist() == free


# Merging -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("2.5*(1.5*x)", "3.75*x"),
        ("(2.5*x)/0.5", "5.0*x"),
        ("x/(-2.5*y)", "-0.4*x/y"),
        ("1.25*(x + y + 0.5) + 2.25", "2.875 + 1.25*(x + y)"),
        ("1.5*exp(x + 0.5)*y", "2.4730819060501923*y*exp(x)"),
        ("2.5*log(2.5*x) + 0.5", "2.7907268296853878 + 2.5*log(x)"),
        ("log(3.5*x)", "log(3.5*x)"),
        ("1.5*sqrt(2.25*x)", "2.25*sqrt(x)"),
        ("sqrt(2.25*x)", "sqrt(2.25*x)"),
        ("square(1.5*x)", "2.25*x**2"),
        ("abs(-2.5*x)", "2.5*abs(x)"),
        ("1.5*exp(1.5*log(2.25*x))", "5.0625*x**1.5"),
        ("exp(1.5*x)*exp(2.25*x)", "exp(3.75*x)"),
        ("x/exp(-1.5*x)", "x*exp(1.5*x)"),
        ("x/exp(1.5*x)", "x*exp(-1.5*x)"),
        ("x/exp(x)", "x/exp(x)"),
        ("-2.5*(x - y)*x", "2.5*x*(y - x)"),
        ("-2.5*x*log(x/y)", "2.5*x*log(y/x)"),
        ("-2.5*log(1/x)", "2.5*log(x)"),
        ("sin(-1.5*x)", "-sin(1.5*x)"),
        ("cos(1.5*y - 2.5*x)", "cos(2.5*x - 1.5*y)"),
        ("0.5*x - 0.5*x + y", "y"),
        ("x*y/(y*x)", "1"),
        ("sqrt(x + y)**2", "x + y"),
        ("x*sqrt(y)**4", "x*y**2"),
        ("sqrt(x**2*y**4)", "y**2*abs(x)"),
        ("abs(x)**2*y", "x**2*y"),
        ("1**x + y", "1 + y"),
        ("0.5**x", "exp(-0.6931471805599453*x)"),
        ("2.5*0.5**(x + 1.5)*y", "0.8838834764831844*y*exp(-0.6931471805599453*x)"),
    ],
)
def test_constants_are_merged(text, merged):
    tree = map_leaves(parse(text), lambda v: float(v) if isinstance(v, Fraction) else v)
    assert to_text(merge(tree, "leading")) == merged


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("x/sqrt(x)", "sqrt(x)"),
        ("sqrt(x)/x", "1/sqrt(x)"),
        ("x*x/sqrt(x)", "x*sqrt(x)"),
        ("(x + y)/sqrt(x + y)", "sqrt(x + y)"),
        ("8*x/sqrt(4*x)", "4*sqrt(x)"),
        ("x/sqrt(y)", "x/sqrt(y)"),
        ("x*x**1.3", "x**2.3"),
        ("y/(x*x**1.3)", "y/x**2.3"),
        ("x/(x**1.3)", "1/x**0.3"),
        ("y/x**(-1.3)", "y*x**1.3"),
        ("3*y/(8*x)**(-1/3)", "6.0*y*x**(1/3)"),
        ("y*x**(-1.3)", "y*x**(-1.3)"),
        ("x**1.3*x**0.7*y", "x**2*y"),
        ("(x*y)**1.3*(x*y)**0.7*y", "x**2*y**3"),
        ("x/(x*y)**(-1.5)", "x**2*y*sqrt(x*y)"),
        ("sqrt(x)*x**0.25*sqrt(y)", "sqrt(y)*x**0.75"),
        ("x*y**1.3", "x*y**1.3"),
        ("x*x**y", "x*x**y"),
        ("y*x**(-y)", "y/x**y"),
        ("y*x**(-2*y)", "y/x**(2*y)"),
        ("y*x**(1 - y)", "y*x**(1 - y)"),
    ],
)
def test_powers_of_a_base_and_its_root_are_one_power(text, merged):
    assert to_text(merge(parse(text))) == merged


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("0.5/sqrt(0.25 + x**2)", "1/sqrt(1 + 4.0*x**2)"),
        ("3*sqrt(2.25*x + 0.25)", "1.5*sqrt(1 + 9.0*x)"),
        ("x/sqrt(3 + x)", "x/sqrt(3 + x)"),  # else it would have a constant that is not exact
        ("x*sqrt(x - 4.5)", "x*sqrt(x - 4.5)"),
        ("8.5*(0.5 + x)**1.5/y", "3.005203820042827*(1 + 2.0*x)**1.5/y"),
    ],
)
def test_the_number_under_a_root_becomes_one_where_that_is_wanted(text, merged):
    tree = map_leaves(parse(text), lambda v: float(v) if isinstance(v, Fraction) else v)
    assert to_text(merge(tree, "number")) == merged


def test_the_scale_of_a_quotient_goes_where_it_is_wanted():
    tree = ("div", ("mul", 3.0, "x"), ("add", 2.0, ("mul", 4.0, "y")))
    assert to_text(merge(tree, "leading")) == "0.75*x/(0.5 + y)"
    assert to_text(merge(tree, "number")) == "1.5*x/(1 + 2.0*y)"
    # Of exact numbers the simplest are taken.
    half = Fraction(1, 2)
    assert to_text(merge(("div", ("mul", 2, "x"), ("add", 2, "y")))) == "x/(1 + 0.5*y)"
    assert to_text(merge(("div", ("mul", half, "x"), ("add", half, ("mul", 2, "y"))))) == "x/(1 + 4*y)"
    seven = Fraction(7, 10)
    above, below = ("add", ("mul", seven, "x"), 2 * seven), ("add", 2, "y")
    assert to_text(merge(("div", above, below))) == "0.7*(2 + x)/(2 + y)"


def test_undefined_parts_are_refused():
    for text in ("x/(x - x)", "log(x - x)", "exp(exp(9.5))*x + exp(1000)"):
        with pytest.raises(ArithmeticError):
            merge(parse(text))


variables = st.sampled_from(["x1", "x2"])
fitted = st.floats(-5, 5, allow_subnormal=False).filter(lambda value: abs(value) > 0.01)
leaf = st.one_of(variables, fitted, st.integers(-3, 3))
UNARY = ["neg", "exp", "log", "sin", "cos", "sqrt", "square", "cube", "abs", "tanh"]


def _branches(children, unary, binary):
    return st.one_of(
        st.tuples(st.sampled_from(unary), children), st.tuples(st.sampled_from(binary), children, children)
    )


float_trees = st.recursive(
    leaf, lambda c: _branches(c, UNARY, ["add", "sub", "mul", "div", "pow"]), max_leaves=10
)
koza_trees = st.recursive(
    leaf, lambda c: _branches(c, ["exp", "log", "sin", "cos"], ["add", "sub", "mul", "div"]), max_leaves=10
)

rational_trees = st.recursive(
    leaf, lambda c: _branches(c, ["neg", "square"], ["add", "sub", "mul", "div"]), max_leaves=10
)


def precisely(tree):
    """Evaluate with 50 digits; None where undefined."""
    with mpmath.workdps(50):
        try:
            return evaluate(tree, {name: mpmath.mpf(value) for name, value in POINT.items()}, mpmath.mp)
        except ArithmeticError:
            return None


def _is_well_conditioned(tree):
    """Whether every part stays near 1 in size, so that rounding is not magnified."""
    value = precisely(tree)
    is_near_1 = value is not None and 1e-2 < abs(value) < 50
    if isinstance(tree, tuple) and tree[0] == "pow" and not (precisely(tree[1]) or 0.0) > 0.0:
        return False  # (-1)**(0.06/0.06) has no value when the quotient is rounded
    return is_near_1 and (not isinstance(tree, tuple) or all(map(_is_well_conditioned, tree[1:])))


@settings(deadline=None)
@given(float_trees)
def test_tidy_keeps_the_value_of_trees_with_floats(tree):
    if _is_well_conditioned(tree):
        assert math.isclose(precisely(tidy(tree)), precisely(tree), rel_tol=1e-9)


@settings(deadline=None, max_examples=300)
@given(float_trees, st.sampled_from(PLACEMENTS))
def test_merging_keeps_the_value(tree, placement):
    if not _is_well_conditioned(tree):
        return
    try:
        merged = merge(tree, placement)
    except ArithmeticError:
        return
    assert math.isclose(precisely(merged), precisely(tree), rel_tol=1e-8)


ONE = ("div", "x1", "x1")  # an exact 1


@settings(deadline=None, max_examples=200)
@example(("add", ("mul", "x1", 2.0), ("div", "x1", ("add", "x1", "x1"))), "leading")  # 2.0*x1 + 1/2
@example(("add", ("add", ("mul", 2.5, "x1"), "x2"), "x2"), "leading")  # 2.5*x1 + 2*x2
@example(("add", "x1", ("mul", 2.5, ("add", "x1", "x2"))), "leading")  # not 3.5*x1 + 2.5*x2
@example(("mul", 2.0, ("add", "x1", ONE)), "leading")  # not 2.0 + 2.0*x1
@example(("mul", 2.0, ("mul", ("add", "x1", ONE), "x2")), "inside")  # not (2.0 + 2.0*x1)*x2
@example(("div", 2.0, ("mul", ("add", "x1", ONE), "x2")), "inside")  # not 1/((0.5 + 0.5*x1)*x2)
@example(("div", "x1", ("add", "x1", 2.5)), "number")  # not 0.4*x1/(1 + 0.4*x1)
@given(rational_trees, st.sampled_from(PLACEMENTS))
def test_merging_never_adds_a_fitted_constant(tree, placement):
    def n_fitted(tree):
        return sum(isinstance(leaf, float) for leaf in leaves(tree))

    try:
        merged = merge(tree, placement)
    except ArithmeticError:
        return
    numbers = sum(not isinstance(leaf, str) for leaf in leaves(tree))
    assert n_fitted(merged) <= numbers


programs_of_libraries = st.one_of(
    st.tuples(st.just("koza-const"), koza_trees), st.tuples(st.just("physics"), float_trees)
)


@settings(deadline=None, max_examples=60)
@example(("physics", ("div", ("neg", -1), "x1")), 0.0, 0)  # a constant that is 1 and free
@example(("koza-const", ("exp", ("exp", ("exp", "x1")))), 0.0, 0)  # up to 1e250
@example(("koza-const", ("exp", ("exp", ("exp", "x1")))), 0.0, 17)
@given(programs_of_libraries, st.sampled_from([0.0, 0.05]), st.integers(0, 100))
def test_finishing_never_raises_and_fits_as_well(of_library, noise, seed):
    name, tree = of_library
    library = get_library(name, 2)
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 2.0, (60, 2))
    try:
        tokens, constants = to_program(tree, library)
    except ValueError:
        return
    program = Population(
        library, tokens[None], np.array([len(tokens)]), constants[None].reshape(1, len(constants))
    )
    y = program.predict(X)[0]
    if not (np.abs(y).max() < 1e6 and 1e-3 < y.std() < 1e3):  # not so if it is not finite
        y = X[:, 0] * X[:, 1]
    y = y + noise * y.std() * rng.standard_normal(len(y))
    data = DataSet.from_arrays(X, y)
    before = program.nmse(X, y)[0]
    (expression,) = finish(program, np.ones(2), data, 1e-16)
    if np.isfinite(before):
        after = np.mean((expression(X) - y) ** 2) / y.var()
        n_snapped = max(len(constants), 1)
        assert len(y) * math.log(max(after, 1e-20) / max(before, 1e-20)) < 4 * n_snapped


# Numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "1/3"),
        (-2 / 3, "-2/3"),
        (math.pi, "pi"),
        (2 * math.pi, "2*pi"),
        (-math.pi, "-pi"),
        (math.pi / 4, "pi/4"),
        (1 / (4 * math.pi), "1/(4*pi)"),
        (math.sqrt(2), "sqrt(2)"),
        (0.25, "0.25"),
        (0.1, "0.1"),
        (0.333, "0.333"),
        (3.14159, "3.14159"),
    ],
)
def test_floats_are_named_where_they_have_a_name(value, text):
    assert to_text(recognise(value)) == text
    assert math.isclose(evaluate(recognise(value), {}), value, rel_tol=4e-16)


def test_a_formula_prints_the_names_of_its_numbers():
    library = LIBRARY
    tokens = [library.index[name] for name in ("add", "mul", "const", "x1", "mul", "const", "x2")]
    assert str(Expression(library, tokens, [1 / 3, 2 * math.pi])) == "x1/3 + 2*pi*x2"


@pytest.mark.parametrize(
    ("value", "half_width", "simplest"),
    [
        (0.001, 0.002, 0.0),
        (1.01, 0.02, 1.0),
        (2.98, 0.05, 3.0),
        (0.499, 0.01, 0.5),
        (0.3333, 0.001, 1 / 3),
        (3.1413, 0.001, math.pi),
        (6.674e-11, 5e-14, 6.67e-11),
        (299792458.0, 0.1, 299792458.0),
        (5.0, math.inf, 0.0),
        (2.27e-9, 2.5e-11, 2.25e-9),
        (7.44e8, 8e6, 7.5e8),
        (0.6931472, 1e-7, math.log(2)),
        (0.6283185307, 1e-9, math.pi / 5),
        (0.0174532925, 1e-10, math.pi / 180),
        (17.7777777778, 1e-9, 160 / 9),
    ],
)
def test_the_simplest_number_in_an_interval(value, half_width, simplest):
    assert simple_numbers(value, half_width, 9)[0] == simplest


@example(2.0, 1 / 3)
@given(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-12, 10))
def test_simple_numbers_are_in_the_interval_and_in_order(value, half_width):
    numbers = simple_numbers(value, half_width, 9)
    assert all(abs(number - value) <= half_width for number in numbers)
    assert sorted(map(cost, numbers)) == list(map(cost, numbers))


@given(st.integers(1, 99_999), st.integers(-200, 200))
def test_a_decimal_costs_its_digits_wherever_the_point_is(digits, exponent):
    if cost(float(f"{digits}e{exponent}")) > 0:
        assert cost(float(f"{digits}e{exponent}")) == cost(float(f"{digits}e-250"))


def test_numbers_near_the_largest_float_are_simple_or_left_out():
    assert simple_numbers(1.79e308, 1e300, 9) == [1.79e308]
    assert str(finished_by_hand("1.23e308*x2", POSITIVE * [1.0, 1e-308])) == "1.23e+308*x2"


# --- rewriting ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=300)
@example(("exp", ("sub", -0.7, "x1")), separated)
@example(("sqrt", ("add", ("square", "x1"), ("mul", 2.6, "x1"))), partial(merge, squares=True))
@given(float_trees, st.sampled_from([expanded, gathered, separated, partial(merge, squares=True)]))
def test_rewriting_keeps_the_value(tree, rewrite):
    value = precisely(tree)
    try:
        rewritten = precisely(rewrite(tree))
    except ArithmeticError:
        return
    if _is_well_conditioned(tree) and rewritten is not None:
        assert math.isclose(rewritten, value, rel_tol=1e-8, abs_tol=1e-9)


@pytest.mark.parametrize(
    "product",
    [
        "sqrt(x1)**1.3*sqrt(x1)*sqrt(x1)**0.7",
        "sqrt(sqrt(x1))*sqrt(x1)*sqrt(x1)**1.5",
        "sqrt(x1)**1.3*sqrt(x1)**0.7/sqrt(x1)**2",
        "sqrt(x1)*(x1**1.5)**1.4*x1**1.5/x1",
    ],
)
def test_a_power_whose_base_is_a_power_is_merged_with_it(product):
    merged = merge(parse(product))
    values = {"x1": 1.7}
    assert evaluate(merged, values) == pytest.approx(evaluate(parse(product), values), rel=1e-12)


def test_logarithms_are_gathered_inside_of_sums():
    tree = parse("x1 + sqrt(log(x1) + log(x2))")
    assert to_text(gathered(tree)) == "x1 + sqrt(log(x1*x2))"


def test_products_of_sums_are_multiplied_out():
    tree = parse("(x1 - 2)*(x2 + 3)**2")
    assert to_text(tidy(expanded(tree))).count("*(") == 0
    values = {"x1": 0.7, "x2": 1.3}
    assert evaluate(expanded(tree), values) == pytest.approx(evaluate(tree, values))


@pytest.mark.parametrize(
    "program",
    [
        "log(1.82 + x1 + x1*(0.2641101056459321 + x1)*(1.135889894354068 + x1))",
        "0.2623642644674909 + log(1.4 + x1 + 0.7692307692307697*x1**2*(1.4 + x1))",
    ],
)
def test_a_way_of_writing_with_simpler_constants_is_found(program):
    library = get_library("koza-const", 1)
    found = finished_by_hand(program, POSITIVE[:, :1], library)
    assert str(found) == "log((1.4 + x1)*(1.3 + x1**2))"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("exp(-6.907755278982137 - x1)", "0.001*exp(-x1)"),
        ("2.0 + exp(-0.6931471805599453 - x1)", "2 + 0.5*exp(-x1)"),
        ("1.7048518779758706*exp(1.09375*x1 - 0.78125*x1**2)", "2.5*exp(-0.78125*(x1 - 0.7)**2)"),
        ("1/(9.0 + x1**2 - 4.0*x1)", "1/(5 + (x1 - 2)**2)"),
        ("sqrt(2.94 - 2.6*x1 + x1**2)", "sqrt(1.25 + (x1 - 1.3)**2)"),
        ("5.5 - 6.2*x1 + x1**2", "5.5 - 6.2*x1 + x1**2"),
    ],
)
def test_factors_stand_before_exponentials_and_squares_are_completed_inside(program, expected):
    assert str(finished_by_hand(program, POSITIVE[:, :1])) == expected


# --- the digits that the data know --------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.0, 124.8359428, -3.1e-7, 1e6])
@pytest.mark.parametrize("deviation", [1e-9, 1.0, 7.3])
def test_the_formula_that_is_the_mean_is_as_short_as_its_standard_error_allows(mean, deviation):
    y = mean + deviation * np.random.default_rng(0).normal(size=50)
    data = DataSet.from_arrays(np.zeros((50, 2)), y)
    formula = mean_formula(data, LIBRARY)
    (loss,) = Population.from_expressions([formula]).nmse(data)
    assert loss <= 1.0 + 1.01 * max(4.0 / 50, data.rounding_nmse)
    n_digits = math.ceil(max(math.log10(abs(data.mean) / deviation), 0.0)) + 2
    assert float(f"{formula.constants[0]:.{n_digits}g}") == formula.constants[0]


@pytest.mark.parametrize(
    ("law", "program"),
    [
        (lambda x: 1e6 + 1e-9 * np.sin(3.0 * x), "1000000.0000000001 + 9.97e-10*sin(3.004*x1)"),
        (lambda x: 1e6 + 1e-6 * np.sin(3.0 * x), "1000000.0 + 1.000014739e-06*sin(3.00000128*x1)"),
        (lambda x: 1e3 + 1e-3 * x**2, "1000.0 + 0.00100000000013*x1*x1"),
        (lambda x: 1e12 + x**2, "1000000000000.0 + 0.9999998770883626*x1*x1"),
    ],
)
def test_residuals_below_the_rounding_of_the_targets_give_no_constant_digits(law, program):
    library = get_library("physics", 1)
    x = np.random.default_rng(0).uniform(0.5, 3.0, 100)
    data = DataSet.from_arrays(x[:, None], law(x))
    (formula,) = finish(population_of([program], library), np.ones(1), data, data.rounding_nmse)
    assert (np.abs(formula(x[:, None]) - data.y) <= np.spacing(data.y)).mean() > 0.95
    for constant in formula.constants.tolist():
        assert float(f"{constant:.2g}") == constant


def test_a_constant_without_a_simple_number_has_the_digits_that_the_data_know():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (200, 2))
    # Twelve digits of the offset are known, more than a number that is tried for it has.
    data = DataSet.from_arrays(X, 123456.7891234 + 1e-6 * X[:, 0] + 1e-9 * rng.normal(size=200))
    (formula,) = finish(population_of(["123456.7891234 + 1e-06*x1"]), np.ones(2), data, 1e-20)
    uncertainty = uncertainty_of(formula, data)
    assert np.abs(formula.constants[0] - 123456.7891234) < 1e-8
    for constant, error in zip(formula.constants.tolist(), uncertainty.standard_errors.tolist(), strict=True):
        assert float(f"{constant:.15g}") == constant
        n_digits = math.ceil(math.log10(abs(constant) / error)) + 2
        assert float(f"{constant:.{n_digits}g}") == pytest.approx(constant, abs=0.1 * error)
        assert len(f"{constant:.14e}".partition("e")[0].rstrip("0")) - 1 <= n_digits


def test_small_terms_beside_a_large_offset_have_standard_errors():
    x = np.random.default_rng(0).uniform(0.5, 3.0, (100, 1))
    data = DataSet.from_arrays(x, 1e6 + 1e-9 * np.sin(3.0 * x[:, 0]))
    formula = Expression.from_text("1000000 + 1e-9*sin(3*x1)", get_library("physics", 1))
    errors = uncertainty_of(formula, data).standard_errors
    assert (errors > 0.0).all()
    assert errors[0] < 1e-10  # half a unit in the last place is 6e-11
    assert errors[1] < 2e-11
    assert errors[2] < 0.05


# --- forms that a person would not write ----------------------------------------------------------


def test_a_column_times_nothing_is_no_part_of_a_formula():
    rng, library = np.random.default_rng(11), get_library("koza-const", 3)
    data = DataSet.from_arrays(rng.normal(size=(40, 3)), 3.0 * rng.normal(size=40))
    text = "0.9*(x2 - x3)*(x1 + x2 + cos(exp(x3))/exp(exp(1e-5*x3))) - 0.9"
    program = Population.from_expressions([Expression.from_text(text, library)])
    (formula,) = finish(program, np.ones(3), data, 1e-20)
    assert 0.0 not in formula.constants


def test_a_logarithm_in_an_exponent_becomes_a_factor():
    X = np.random.default_rng(0).uniform(1.0, 3.0, (60, 2))
    data = DataSet.from_arrays(X, 2.0 * X[:, 0] * np.exp(-((X[:, 1] - 1.0) ** 2)))
    program = Expression.from_text("2*exp(log(x1) - (x2 - 1)**2)", LIBRARY)
    (formula,) = finish(Population.from_expressions([program]), np.ones(2), data, 1e-20)
    assert "log" not in str(formula)
    np.testing.assert_allclose(formula(np.array([[-1.0, 1.0], [0.0, 1.0]])), [-2.0, 0.0])


@pytest.mark.parametrize("coefficients", [(1.5, 2.5), (-0.7, 0.3), (2.0, 3.0), (-1.9, -0.9)])
def test_the_variables_of_a_linear_law_stand_once_each(coefficients):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 5.0, (80, 2))
    data = DataSet.from_arrays(X, X @ coefficients + 0.3 * rng.normal(size=80))
    program = Expression.from_text("x2 + 1.52*(x1 + x2) - 0.013", LIBRARY)
    (formula,) = finish(Population.from_expressions([program]), np.ones(2), data, 1e-20)
    assert str(formula).count("x1") == str(formula).count("x2") == 1
    slopes = [float(formula.sympy.diff(symbol)) for symbol in sorted(formula.sympy.free_symbols, key=str)]
    np.testing.assert_allclose(slopes, coefficients, atol=0.1)
    assert all(len(repr(value)) < 6 for value in formula.constants.tolist())


def test_collected_constants_keep_their_digits_whatever_their_size():
    formula = Expression.from_text("1.23e-17*x2 + 4.56e-17*(x1 + x2)", get_library("physics", 2))
    np.testing.assert_allclose(np.sort(_collected(formula).constants), [4.56e-17, 5.79e-17], rtol=1e-14)


def test_collected_constants_are_fractions_where_these_are_simpler():
    formula = Expression.from_text("x1/3 + x2 + (x1 + x2)/6", get_library("physics", 2))
    assert str(_collected(formula)) == "x1/2 + 7*x2/6"


# --- columns of 0 and 1 ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x1*(1 + 0.58*x2)**2", "exp(0.4*x2)/x1", "x1 + x2*exp(0.2*x2)"])
def test_a_function_of_a_column_of_0_and_1_is_a_line(text):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1.0, 5.0, 40), rng.integers(0, 2, 40)])
    program = Expression.from_text(text, get_library("physics", 2))
    data = DataSet.from_arrays(X, program(X))
    (formula,) = finish(Population.from_expressions([program]), np.ones(2), data, 1e-20)
    np.testing.assert_allclose(formula(X), data.y, rtol=1e-12)
    x1, x2 = sorted(formula.sympy.free_symbols, key=str)
    assert sympy.simplify(sympy.diff(formula.sympy, x2, 2).subs(x1, 1.3)) == 0
