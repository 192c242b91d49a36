"""Every operator's value and derivatives, and operators of the user's own."""

from __future__ import annotations

import copy
import math
import pickle

import joblib
import mpmath
import numba
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from dgsr import DGSRRegressor
from dgsr.expressions import OPERATORS, Constraints, Expression, get_library
from dgsr.expressions.programs.library import Opcode
from dgsr.expressions.trees import syntax
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.kernels import operators
from dgsr.kernels.operators import apply, differentiate
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from dgsr.search.evolution.with_deap import primitive_set
from searches import with_own

EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "pow": mpmath.power, "exp": mpmath.exp, "log": mpmath.log, "sin": mpmath.sin, "cos": mpmath.cos,
    "sqrt": mpmath.sqrt, "square": lambda a: a * a, "cube": lambda a: a**3, "neg": lambda a: -a,
    "inv": lambda a: 1 / a, "tanh": mpmath.tanh, "abs": abs, "arcsin": mpmath.asin, "arccos": mpmath.acos,
}  # fmt: skip
operands = st.floats(-3.0, 3.0)


def values_of(name, left, right):
    """Value, derivative by left and by right of one operator, from the kernels."""
    left, right = np.array([left], dtype=float), np.array([right], dtype=float)
    token = OPERATORS[name]
    out, result = np.empty(1), np.empty((2, 1))
    apply(token.opcode, 0, left, right, out, 1)
    for side in range(token.arity):
        differentiate(token.opcode, 0, side, left, right, out, np.array([3.0]), result[side], 1)
    return out[0], result[:, 0] / 3.0


def test_the_kernels_know_the_opcodes_by_the_same_numbers():
    assert {code.name: int(code) for code in Opcode} == {
        code.name: getattr(operators, code.name) for code in Opcode
    }


@pytest.mark.parametrize("name", OPERATORS)
@settings(max_examples=60, deadline=None)
@given(operands, operands, st.booleans())
def test_values_and_derivatives_are_those_of_fifty_digits(name, left, right, is_whole):
    if name == "pow" and is_whole:  # negative bases have whole powers
        right = float(round(right))
    value, slopes = values_of(name, left, right)
    with mpmath.workdps(50):
        point = [mpmath.mpf(left), mpmath.mpf(right)][: OPERATORS[name].arity]
        try:
            exact = EXACT[name](*point)
        except ZeroDivisionError:
            assert not np.isfinite(value)
            return
        if isinstance(exact, mpmath.mpc) or not mpmath.isfinite(exact):
            assert not np.isfinite(value)
            return
        assert math.isclose(value, exact, rel_tol=1e-14, abs_tol=1e-300)
        for side in range(len(point)):
            if (name == "pow" and side == 1 and left <= 0.0) or min(map(abs, point)) < 1e-4 or value == 0.0:
                continue  # see the special values below
            if name in ("arcsin", "arccos") and abs(left) > 0.9999:
                continue

            def along(x, side=side, point=point):
                return EXACT[name](*point[:side], x, *point[side + 1 :])

            exact = mpmath.diff(along, point[side])
            assert math.isclose(slopes[side], mpmath.re(exact), rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize(
    ("name", "left", "right", "expected"),
    [
        ("pow", 0.0, 1.0, (1.0, 0.0)),
        ("pow", 0.0, 2.0, (0.0, 0.0)),
        ("pow", 0.0, 0.0, (0.0, -np.inf)),
        ("pow", -2.0, 3.0, (12.0, np.nan)),
        ("pow", -2.0, -1.0, (-0.25, np.nan)),
        ("pow", 3.0, 0.0, (0.0, np.log(3.0))),
        ("abs", 0.0, 0.0, (0.0,)),
        ("abs", -2.0, 0.0, (-1.0,)),
        ("sqrt", 0.0, 0.0, (np.inf,)),
        ("square", 0.0, 0.0, (0.0,)),
        ("cube", 0.0, 0.0, (0.0,)),
        ("tanh", 0.0, 0.0, (1.0,)),
        ("tanh", 40.0, 0.0, (0.0,)),
        ("arcsin", 1.0, 0.0, (np.inf,)),
        ("arccos", -1.0, 0.0, (-np.inf,)),
        ("sin", 1e6, 0.0, (np.cos(1e6),)),
        ("cos", 1e6, 0.0, (-np.sin(1e6),)),
    ],
)
def test_derivatives_at_special_operands(name, left, right, expected):
    slopes = values_of(name, left, right)[1][: len(expected)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-12)


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_not_finite_stays_so(name):
    for bad in (np.inf, -np.inf, np.nan):
        for other in (-1.0, 0.0, 1.0, 2.5):
            assert not np.isfinite(values_of(name, bad, other)[0])
            if OPERATORS[name].arity == 2:
                assert not np.isfinite(values_of(name, other, bad)[0])


@pytest.mark.parametrize(
    ("name", "operand"), [("tanh", np.inf), ("inv", -np.inf), ("arcsin", 1.5), ("sqrt", -1.0)]
)
def test_an_undefined_value_is_nan(name, operand):
    assert np.isnan(values_of(name, operand, 0.0)[0])
    assert np.isnan(values_of("pow", 2.0, -np.inf)[0])
    assert np.isnan(values_of("pow", -2.0, 0.5)[0])


# ---- operators of the user's own ----------------------------------------------------------------


def gauss(x):
    return math.exp(-x * x)


def gauss_of_sympy(x):
    return sympy.exp(-(x**2))


def gauss_slope(x):
    return -2.0 * x * math.exp(-x * x)


def hypotenuse(a, b):
    return math.sqrt(a * a + b * b)


def picky(x):
    if x < 0.0:
        raise ValueError("no")
    return math.sqrt(x)


@numba.njit
def sinc(x):
    return 1.0 if x == 0.0 else math.sin(x) / x


def with_gauss(name, n_variables, derivative=None):
    return with_own(get_library(name, n_variables), "gauss", gauss, gauss_of_sympy, derivative=derivative)


@pytest.fixture(scope="module")
def own():
    """Return a library with operators of a user's own, compiled where a test asks for it."""
    return with_own(with_gauss("physics", 2), "hypotenuse", hypotenuse, complexity=5)


TEXT = "2*gauss(x1 - 0.5) + hypotenuse(x1, x2**2)/hypotenuse(gauss(3), x1)"


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(0.5, 2.0, (300, 2))


def expected_of(X):
    x1, x2 = X.T
    return 2 * np.exp(-((x1 - 0.5) ** 2)) + np.hypot(x1, x2**2) / np.hypot(np.exp(-9.0), x1)


def test_a_users_operator_is_written_read_and_computed_like_any_other(X, own):
    expression = Expression.from_text(TEXT, own)
    assert "gauss(x1 - 0.5) + hypotenuse(x1, x2**2)/" in str(expression)
    assert Expression.from_text(str(expression), own) == expression
    np.testing.assert_allclose(expression(X), expected_of(X), rtol=1e-13)
    np.testing.assert_allclose(expression.numpy_function()(*X.T), expression(X), rtol=1e-13)
    assert expression.numpy_function()(X[0, 0], X[:, :1]).shape == (300, 1)
    x1 = sympy.Symbol("x1")
    assert Expression.from_text("gauss(x1)", own).sympy == sympy.exp(-(x1**2))
    assert Expression.from_text("hypotenuse(x1, 2)", own).sympy == sympy.Function("hypotenuse")(x1, 2)
    assert Expression.from_text("hypotenuse(x1, x1)", own).complexity == 5 + 1 + 1


def test_a_users_operator_takes_the_place_before_the_leaves_and_is_in_no_other_library(own):
    assert own.operators == (*get_library("physics", 2).operators, "gauss", "hypotenuse")
    assert [token.name for token in own.tokens[-5:]] == ["gauss", "hypotenuse", "const", "x1", "x2"]
    assert "gauss" not in get_library("physics", 2).index
    assert own.with_variables(3).functions == own.functions
    assert own.with_variables(3).with_variables(2) == own


@pytest.mark.parametrize("derivative", [None, gauss_slope])
def test_derivatives_of_a_users_operator(derivative):
    operator = with_gauss("koza", 1, derivative).functions["gauss"]
    x = np.array([-2.0, 0.0, 0.3, 1.0, 1e3])
    out, result = np.empty(5), np.empty(5)
    apply(Opcode.USER_UNARY, operator.address, x, x, out, 5)
    np.testing.assert_array_equal(out, operator(x))
    differentiate(Opcode.USER_UNARY, operator.address, 0, x, x, out, np.full(5, 2.0), result, 5)
    np.testing.assert_allclose(result, -4.0 * x * np.exp(-x * x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["hypotenuse", "power"])
def test_derivatives_of_a_users_operator_of_two(name, own):
    """By differences, and by functions that are given."""
    given = lambda a, b: b * a ** (b - 1), lambda a, b: a**b * math.log(a)
    if name == "power":
        own = get_library("koza", 1).with_operator("power", lambda a, b: a**b, derivative=given)
    operator = own.functions[name]
    a, b = np.random.default_rng(0).uniform(0.5, 3.0, (2, 9))
    out, result = operator(a, b), np.empty(9)
    slopes = {
        "hypotenuse": (a / np.hypot(a, b), b / np.hypot(a, b)),
        "power": (b * a ** (b - 1), a**b * np.log(a)),
    }
    for side, slope in enumerate(slopes[name]):
        differentiate(Opcode.USER_BINARY, operator.address, side, a, b, out, np.ones(9), result, 9)
        np.testing.assert_allclose(result, slope, rtol=1e-8)


def test_the_difference_at_the_edge_of_a_domain_is_that_of_one_side():
    operator = get_library("koza", 1).with_operator("edge", lambda x: (x - 1.0) ** 1.5).functions["edge"]
    x, result = np.array([1.0, 1.0 + 1e-9, 0.0]), np.empty(3)
    differentiate(Opcode.USER_UNARY, operator.address, 0, x, x, operator(x), np.ones(3), result, 3)
    assert (abs(result[:2]) < 1e-2).all()
    assert np.isnan(result[2])


@pytest.mark.parametrize(
    "function",
    [
        gauss,
        lambda x: 1.0 if x > 0.0 else 0.0,
        pytest.param(picky, marks=pytest.mark.slow),
        pytest.param(lambda x: x > 0.0, marks=pytest.mark.slow),
    ],
)
def test_what_is_not_finite_stays_so_whatever_a_users_operator_makes_of_it(function):
    base = get_library("koza", 1)
    library = with_own(base, "own", function) if function is not gauss else with_gauss("koza", 1)
    X = np.array([[4.0], [np.inf], [-np.inf], [np.nan], [9.0]])
    expression = Expression.from_text(f"{library.operators[-1]}(x1)", library)
    assert list(np.isfinite(expression(X))) == [True, False, False, False, True]
    np.testing.assert_array_equal(expression(X), expression.numpy_function()(X[:, 0]))


def test_a_row_for_which_a_users_operator_raises_is_undefined_and_no_other():
    expression = Expression.from_text("picky(x1)", get_library("koza", 1).with_operator("picky", picky))
    np.testing.assert_array_equal(expression([[4.0], [-1.0], [9.0]]), [2.0, np.nan, 3.0])


def test_a_function_that_is_compiled_already_can_be_an_operator():
    expression = Expression.from_text("sinc(x1)", get_library("koza", 1).with_operator("sinc", sinc))
    np.testing.assert_allclose(expression([[0.0], [2.0]]), [1.0, np.sin(2.0) / 2.0])


@pytest.mark.slow
def test_a_library_with_users_operators_survives_pickling_and_copying(X, own):
    expression = Expression.from_text(TEXT, own)
    again = pickle.loads(pickle.dumps(expression))
    assert again == expression
    assert hash(again.library) == hash(own)
    assert again.library.functions["gauss"] is not own.functions["gauss"]
    np.testing.assert_array_equal(again(X), expression(X))
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(expression.numpy_function()))(*X.T), expression.numpy_function()(*X.T)
    )
    assert copy.deepcopy(own).functions["gauss"] is own.functions["gauss"]
    address = own.table.argument[own.index["gauss"]]
    assert str(address).encode() not in pickle.dumps(own, protocol=0)


@pytest.mark.slow
def test_a_users_operator_works_in_other_processes(X):
    scale = 2.0
    library = get_library("koza", 2).with_operator("scaled", lambda x: scale * x)
    expression = Expression.from_text("scaled(x1)*x2", library)

    def work():
        return expression, expression(X)

    [(again, values)] = joblib.Parallel(n_jobs=2)(joblib.delayed(work)() for _ in range(1))
    np.testing.assert_array_equal(values, 2.0 * X[:, 0] * X[:, 1])
    assert again == expression  # though its function is another object: it has no name to be found by


@pytest.mark.slow
def test_operators_are_equal_if_all_that_they_are_made_of_is():
    def scaled(factor):
        return lambda x: factor * x

    base = get_library("koza", 1)
    library, same = (base.with_operator("f", scaled(2.0)) for _ in range(2))
    assert library == same
    assert hash(library) == hash(same)
    for other in (
        base.with_operator("f", scaled(3.0)),
        base.with_operator("g", scaled(2.0)),
        base.with_operator("f", scaled(2.0), complexity=4),
        base.with_operator("f", scaled(2.0), sympy=sympy.sin),
        base.with_operator("f", scaled(2.0), derivative=gauss),
        base,
    ):
        assert library != other


@pytest.mark.parametrize(
    "name", ["x1", "x12", "sin", "Abs", "ln", "pow", "const", "pi", "a b", "1a", "", "lambda", 3]
)
def test_a_name_that_formulas_use_otherwise_is_refused(name, own):
    with pytest.raises(ValueError, match="name="):
        own.with_operator(name, gauss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gauss", gauss), "already"),
        (("f", lambda: 1.0), "one or two floats"),
        (("f", lambda a, b, c: a), "one or two floats"),
        (("f", lambda *a: 1.0), "one or two floats"),
        (("f", math.erf), "def or lambda"),
        (("f", "x + 1"), "def or lambda"),
        (("f", lambda x: input(x)), "'f' cannot be compiled by numba .*input.*use floats"),
        (("f", lambda x: None), "it returns none, not a float"),
        (("f", lambda x: x * 1j), "it returns complex128"),
        (("f", gauss, "x"), "sympy="),
        (("f", gauss, None, 0), "complexity=0"),
        (("f", gauss, None, 1.5), "complexity=1.5"),
        (("f", gauss, None, 3, hypotenuse), "derivative=.*one function of one float"),
        (("f", hypotenuse, None, 3, hypotenuse), "derivative=.*a tuple of two"),
        (("f", gauss, None, 3, lambda x: [x]), "'f' cannot be compiled"),
    ],
)
def test_a_function_that_cannot_be_an_operator_is_refused_with_the_mend(arguments, message, own):
    with pytest.raises(ValueError, match=message):
        own.with_operator(*arguments)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gauss", "'gauss': not a variable"),
        ("hypotenuse(x1)", "hypotenuse takes 2 arguments"),
        ("hypotenuse(x1, x2, x1)", "position 17, ','"),
        ("gaus(x1)", "use one of .*hypotenuse"),
    ],
)
def test_a_wrong_use_of_a_users_operator_in_a_text_is_named(text, message, own):
    with pytest.raises(ValueError, match=message):
        Expression.from_text(text, own)


def test_a_tree_of_a_users_operator_has_no_value_without_it(own):
    tree = syntax.parse("gauss(x1)", functions=own.functions)
    with pytest.raises(ValueError, match="'gauss'"):
        evaluate(tree, {"x1": np.ones(1)})
    with pytest.raises(ArithmeticError, match="gauss"):
        evaluate(tree, {"x1": mpmath.mpf(1)}, mpmath.mp)
    with pytest.raises(ValueError, match="in parentheses"):
        syntax.parse("gauss*x1", functions=own.functions)


def test_random_programs_with_users_operators_print_what_they_predict(X, own):
    library, state = own, new_state(1)
    population = random_population(200, library, Constraints().grammar(library), state)
    values = population.predict(X)
    used = np.isin(population.tokens, [library.index["gauss"], library.index["hypotenuse"]]).any(axis=1)
    compared = 0
    for i in np.flatnonzero(used & np.isfinite(values).all(axis=1)):
        if np.abs(values[i]).max() < 1e3:
            read = Expression.from_text(str(population[i]), library)
            compared += np.allclose(read(X), values[i], rtol=1e-6)
            assert np.allclose(population[i].numpy_function()(*X.T), values[i], rtol=1e-6, atol=1e-9)
    assert compared >= 30


@pytest.mark.search
def test_a_search_finds_a_formula_of_a_users_operator_and_the_estimator_pickles():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 1] * np.exp(-(X[:, 0] ** 2))
    library = with_gauss("koza", 2)
    regressor = DGSRRegressor(library=library, generator=None, max_evaluations=5000, random_state=0)
    regressor = clone(regressor).fit(X, y)
    assert "gauss" in str(regressor.expression_)
    assert regressor.score(X, y) > 0.999999
    again = pickle.loads(pickle.dumps(regressor))
    np.testing.assert_array_equal(again.predict(X), regressor.predict(X))


def test_the_primitive_set_of_deap_has_users_operators(own):
    from deap import gp

    pset = primitive_set(own, Constraints().grammar(own))
    function = gp.compile("hypotenuse(gauss(x1), x2)", pset)
    assert function(0.0, 2.0) == pytest.approx(np.sqrt(5.0))
