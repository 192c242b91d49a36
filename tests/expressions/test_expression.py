"""What a person sees of a program agrees with what the kernels compute."""

from __future__ import annotations

import json
import pickle
import re

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from dgsr.data.population import Population
from dgsr.expressions import PRESETS, Constraints, Expression, Library, get_library
from dgsr.expressions.trees.simple_numbers import recognised
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import PAPER_WEIGHTS, Prior
from searches import with_own

TEXTS = [
    "x1**3 - x2/2",
    "exp(-x1**2/2)",
    "2*sin(x1)*cos(x2)",
    "log(x1 + 1)/(x2 - 3)",
    "x1**x2",
    "sqrt(x1)",
    "x2/sqrt(x1**3)",
]


@pytest.fixture
def X():
    return np.random.default_rng(0).uniform(0.5, 2.0, (200, 2))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("library", ["koza", "koza-const", "physics"])
def test_call_sympy_text_and_numpy_function_agree(text, library, X):
    expression = Expression.from_text(text, get_library(library, 2))
    expected = expression(X)
    assert np.isfinite(expected).all()
    symbols = sympy.symbols("x1 x2")
    assert np.allclose(sympy.lambdify(symbols, expression.sympy)(*X.T), expected, rtol=1e-10)
    assert np.allclose(expression.numpy_function()(*X.T), expected, rtol=1e-10)
    again = Expression.from_text(expression.text, get_library("koza-const", 2))
    assert np.allclose(again(X), expected, rtol=1e-10)


@pytest.mark.search
@pytest.mark.parametrize("name", ["koza", "koza-const", "synth", "physics"])
def test_programs_of_the_prior_print_what_they_predict(name):
    library = get_library(name, 2)
    prior = Prior()
    if name == "physics":
        more = dict.fromkeys(library.operators[8:], 4.0)
        prior = Prior(weights={**PAPER_WEIGHTS, **more}, domains=((0.5, 1.0, 1.0),))
    reading = library if name == "physics" else get_library("koza-const", 2)
    drawn = prior.draw(60, 20, 2, library, Constraints(), new_state(3))
    n_compared = 0
    for i in range(len(drawn.programs)):
        expression = drawn.programs[i]
        predicted = expression(drawn.X[i])
        assert np.allclose(predicted, drawn.y[i], rtol=1e-9)
        # The sine of 1e14 is whatever the last digit of its argument makes it.
        nudged = expression(drawn.X[i] * (1.0 + 1e-13))
        at = np.abs(nudged - predicted) <= 1e-7 * np.abs(predicted)
        n_compared += at.sum()
        assert np.allclose(expression.numpy_function()(*drawn.X[i].T)[at], predicted[at], rtol=1e-9)
        read = Expression.from_text(str(expression), reading)
        assert np.allclose(read(drawn.X[i])[at], predicted[at], rtol=1e-6, atol=1e-9)
    assert n_compared > 0.8 * drawn.y.size


def test_sympy_keeps_integers_exact_and_cancels():
    expression = Expression.from_text("x1/3 + 2*x1", get_library("koza", 1))
    assert expression.sympy == sympy.Rational(7, 3) * sympy.Symbol("x1")
    assert expression.latex == r"\frac{7 x_{1}}{3}"


def test_whole_constants_are_integers_in_sympy_and_others_floats():
    library = get_library("koza-const", 1)
    tokens = [library.index[name] for name in ("add", "const", "mul", "const", "x1")]
    expression = Expression(library, tokens, [2.0, 0.25, 99.0])
    assert expression.sympy == 2 + sympy.Float(0.25) * sympy.Symbol("x1")
    assert list(expression.constants) == [2.0, 0.25]
    assert str(expression) == "2 + 0.25*x1"


@pytest.mark.parametrize(
    ("text", "printed"),
    [("(0.36*x1)**3", "0.046656*x1**3"), ("1.28*1.28*x1", "1.6384*x1"), ("x1 - 0.68*x1", "0.32*x1")],
)
def test_a_product_or_sum_of_numbers_is_printed_with_the_digits_that_it_has(text, printed):
    assert Expression.from_text(text, get_library("physics", 1)).text == printed


def test_feature_names_name_the_symbols():
    names = ["I", "a name"]
    library = get_library("koza", 2)
    tokens = [library.index[name] for name in ("mul", "x1", "x2")]
    expression = Expression(library, tokens, (), names)
    assert expression.sympy == sympy.Symbol("I") * sympy.Symbol("a name")
    assert str(expression) == "I*`a name`"
    assert str(expression.with_feature_names(None)) == "x1*x2"
    assert Expression.from_text("b - a", library, ["a", "b"]).text == "b - a"


def test_complexity_and_length_are_those_of_the_population():
    library = get_library("koza", 2)
    expression = Expression.from_text("x1/sin(x2)", library)
    population = Population(
        library, expression.tokens[None], np.array([expression.length]), expression.constants[None]
    )
    assert expression.complexity == population[0].complexity == 2 + 1 + 3 + 1
    assert expression.length == 4
    assert population[0] == expression


def test_equal_programs_are_equal_and_hash_alike():
    library = get_library("koza-const", 1)
    make = Expression.from_text
    same = {make("x1 + 0.5", library), make("x1 + 0.5", library)}
    assert len(same) == 1
    assert make("x1 + 0.25", library) not in same
    assert make("0.5 + x1", library) not in same
    assert make("x1", get_library("koza", 1)) != make("x1", library)
    assert make("x1", library) != "x1"


def test_constants_cannot_be_changed_from_outside():
    library = get_library("koza-const", 1)
    constants = np.array([1.5])
    expression = Expression(library, [library.index["const"]], constants)
    constants[0] = 3.0
    assert expression.text == "1.5"
    with pytest.raises(ValueError, match="read-only"):
        expression.constants[0] = 2.0


def test_an_expression_and_its_function_survive_pickling(X):
    expression = Expression.from_text("x1*sin(x2)", get_library("koza", 2))
    for original, arguments in ((expression, (X,)), (expression.numpy_function(), tuple(X.T))):
        copy = pickle.loads(pickle.dumps(original))
        assert np.array_equal(copy(*arguments), original(*arguments))


def test_an_undefined_expression_still_prints(X):
    library = get_library("koza-const", 2)
    for name, value in (("log", -1.0), ("exp", np.nan), ("exp", np.inf)):
        expression = Expression(library, [library.index[name], library.index["const"]], [value])
        assert not np.isfinite(expression(X)).any()
        assert expression.text
        assert expression.latex


@pytest.mark.parametrize(
    ("text", "library"),
    [
        ("9**9**9**9", "koza"),
        ("x1 + 9**9**9**9*x2", "koza"),
        ("tan(tan(tan(tan(tan(tan(9*x1))))))", "koza"),
        ("cosh(sinh(cosh(sinh(9))))*x1", "koza"),
        ("cosh(sinh(cosh(sinh(x1 + x2))))", "physics"),
        ("(3*x1)**9000000000", "physics"),
        ("tanh(x1**1000000)", "physics"),
        ("tanh(tanh(tanh((x1 + x2)**9) + x1)**9 + x2)**tanh(tanh(x1**1000))", "physics"),
        ("sinh(exp((cos(17) + log(2*x1 + 9)**3)*exp(cos(x2 + tanh((-x2)**137)))))", "physics"),
        ("arcsin(" * 120 + "x1" + ")" * 120, "physics"),
    ],
)
def test_any_formula_is_typeset_soon(text, library):
    expression = Expression.from_text(text, get_library(library, 2))
    assert expression.latex
    assert expression.mathml


@pytest.mark.parametrize(
    "text", ["exp(sin(x1) + 1) + x2**cos(3*x1)", "sin((x1 + 1)**20)/x2", "tanh(exp(-x1**12))"]
)
def test_what_is_hidden_from_the_printers_is_shown(text):
    expression = Expression.from_text(text, get_library("physics", 2))
    assert expression.latex == sympy.latex(expression.sympy)
    assert "Dummy" not in expression.mathml


@given(st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3))
def test_constants_reach_sympy_with_all_their_digits(constants):
    library = get_library("koza-const", 1)
    tokens = [library.index[n] for n in ("add", "const", "mul", "const", "sin", "add", "const", "x1")]
    expression = Expression(library, tokens, constants)
    written = {float(str(number)) for number in expression.sympy.atoms(sympy.Float)}
    assert written <= set(map(float, expression.sympy.atoms(sympy.Float))) | {0.0}
    for value in constants:
        named = float(recognised(value)) if isinstance(recognised(value), float) else None
        assert named is None or value == int(value) or value in written


def test_a_small_difference_of_constants_survives_sympy():
    library = get_library("koza-const", 1)
    tokens = [library.index[name] for name in ("sub", "mul", "x1", "const", "mul", "sin", "x1", "const")]
    expression = Expression(library, tokens, [1234567.8901234567, 1234567.8901234569])
    x = np.array([1e-5])
    value = sympy.lambdify(sympy.Symbol("x1"), expression.sympy)(x)
    np.testing.assert_allclose(value, expression(x[:, None]), rtol=1e-9)
    assert str(sympy.sympify(Expression.from_text("0.1*x1*3.3", library).sympy)) == "0.33*x1"


def test_numpy_function_broadcasts_and_counts_its_arguments():
    function = Expression.from_text("x1", get_library("koza", 2)).numpy_function()
    assert function(np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    with pytest.raises(TypeError, match="1 arrays"):
        function(np.ones(3))


@pytest.mark.parametrize("name", PRESETS)
def test_a_library_comes_back_from_json(name):
    library = get_library(name, 3)
    entry = json.loads(json.dumps(library.to_json()))
    assert list(entry) == ["name", "operators", "has_constants", "n_variables"]
    assert Library.from_json(entry) == library
    library = library.with_complexities({"add": 5, "x2": 2})
    assert Library.from_json(json.loads(json.dumps(library.to_json()))) == library
    assert library.with_complexities({"add": 1, "x2": 1}) == get_library(name, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_variables": "3"}, "n_variables"),
        ({"n_variables": True}, "n_variables"),
        ({"n_variables": 0}, "n_variables"),
        ({"has_constants": 1}, "has_constants"),
        ({"operators": "add"}, "operators"),
        ({"operators": [1]}, "operators"),
        ({"operators": ["add", "no such"]}, "no such"),
        ({"more": 1}, "no others"),
        ({"complexities": [["sin", 2]]}, "complexities"),
        ({"complexities": {"sin": True}}, "complexity=True of 'sin'"),
        ({"complexities": {"sin": 1e9}}, "from 1 to 100"),
    ],
)
def test_an_entry_that_is_no_library_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Library.from_json({**get_library("koza", 2).to_json(), **changes})
    with pytest.raises(ValueError, match="must have the entries"):
        Library.from_json({"name": "koza"})


def test_a_library_with_operators_of_the_users_own_is_not_written():
    library = with_own(get_library("koza", 1), "gauss")
    with pytest.raises(ValueError, match="gauss"):
        library.to_json()


def test_wrong_input_is_named():
    library = get_library("koza", 2)
    expression = Expression.from_text("x1*x2", library)
    with pytest.raises(ValueError, match="X has 1 features; the expression uses 2"):
        expression(np.ones((3, 1)))
    with pytest.raises(ValueError, match="dimensions"):
        expression(np.ones(3))
    with pytest.raises(ValueError, match="feature_names has 1"):
        Expression(library, expression.tokens, (), ["a"])
    with pytest.raises(ValueError, match="feature_names has 1"):
        Expression.from_text("a", library, ["a"])
    for repeated in (["a", "a"], ["1", 1]):
        with pytest.raises(
            ValueError, match=f"feature_names repeats {repeated[0]!r}; name each variable once"
        ):
            expression.with_feature_names(repeated)
    with pytest.raises(ValueError, match="feature_names repeats 'a'"):
        Expression.from_text("a*b", library, ["a", "a"])
    with_constants = get_library("koza-const", 1)
    with pytest.raises(ValueError, match="constants has 0 values"):
        Expression(with_constants, [with_constants.index["const"]])


@pytest.mark.parametrize("text", ["0.05*sin(exp(x1) - sin(x2))", "sin(sqrt(x1) - exp(x2)) + x1"])
def test_a_formula_has_one_form_however_many_sympy_has_made_before(text, monkeypatch):
    def forms(n_dummies):
        monkeypatch.setattr(sympy.Dummy, "_count", n_dummies)  # the number of the next one, and its name
        expression = Expression.from_text(text, get_library("physics", 2))
        return expression.sympy, expression.latex, expression.mathml

    assert all(forms(n) == forms(50) for n in range(90, 101))


@pytest.mark.parametrize("text", ["1e200*x1*(1e200*x2)", "1e-200*x1*(1e-200*x2)", "x1*1e200*(x1*1e200) + x2"])
def test_numbers_whose_product_is_no_float_stay_apart_in_the_text(text):
    expression = Expression.from_text(text, get_library("physics", 2))
    again = Expression.from_text(str(expression), expression.library)
    X = np.array([[3e-200, 2e-200], [1e-201, 4e-190], [5e200, 2e200]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(again(X), expression(X), rtol=1e-12)
    assert re.search(r"\binf\b", expression.to_python() + str(expression)) is None
