"""Forms: what their texts mean, and whole programs from functions and back."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from dgsr.expressions import Constraints, Expression, get_library
from dgsr.expressions.formulas.grouped import ByGroup, GroupedExpression
from dgsr.expressions.formulas.parts import parts_of, with_names_in
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.syntax import parse, parse_form
from dgsr.kernels.programs import Programs
from dgsr.kernels.random import new_state
from dgsr.search.evolution import Forests

LIBRARY = get_library("physics", 3)
WIDE = 200


def filled(form, functions, outside=None, around=False):
    """The expression that a form makes of texts of functions, and the origins of its constants."""
    programs = [to_program(parse(text), form.library) for text in functions]
    row = form.forest([tokens.tolist() for tokens, _ in programs])
    outside = np.ones(form.n_outside) if outside is None else np.asarray(outside, dtype=float)
    constants = np.concatenate([outside, *(own for _, own in programs)])
    forest = Programs(np.array([row]), np.array([len(row)]), constants[None])
    found = form.filled(forest, WIDE, WIDE, np.full((1, len(functions), 2), around))
    tokens = found.programs.tokens[0, : found.programs.lengths[0]]
    return Expression(form.library, tokens, found.programs.constants[0]), found.origins[0]


def value(text):
    return sympy.sympify(text, locals={name: sympy.Symbol(name) for name in ("x1", "x2", "x3")})


FORMS = {
    "product and a constant": ("f(x1)*g(x2, x3) + k", ["exp(2.5*x1)", "x1/(x2 + 3.5)"],
                               "exp(2.5*x1)*x2/(x3 + 3.5) + 7"),
    "twice": ("f(x1) - f(x2)", ["log(x1) + 1.5*x1"], "log(x1) + 1.5*x1 - log(x2) - 1.5*x2"),
    "of a formula": ("x3*f(x1/(x2 + k))", ["sin(x1)*x1"], "x3*sin(x1/(x2 + 7))*x1/(x2 + 7)"),
    "known numbers": ("2.5*pi*f(x1)**2 + x2", ["sqrt(x1)"], "2.5*pi*x1 + x2"),
    "arguments in another order": ("f(x3, x1)", ["x1 - 2*x2"], "x3 - 2*x1"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_with_its_functions_is_the_formula_that_a_substitution_gives(name):
    text, functions, expected = FORMS[name]
    form = Form(text, LIBRARY)
    expression, _ = filled(form, functions, outside=[7.0] * len(form.constants) + [1.0, 0.0] * len(functions))
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 3))
    reference = sympy.lambdify(sympy.symbols("x1 x2 x3"), value(expected))(*X.T)
    np.testing.assert_allclose(expression(X), reference, rtol=1e-12)


def test_a_scale_and_an_offset_stand_around_every_use_of_a_function():
    form = Form("f(x1) - f(x2)*x3", LIBRARY)
    expression, origins = filled(form, ["x1**2"], outside=[3.0, 5.0], around=True)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (20, 3))
    x1, x2, x3 = X.T
    np.testing.assert_allclose(expression(X), 3 * x1**2 + 5 - (3 * x2**2 + 5) * x3, rtol=1e-12)
    assert origins[:4].tolist() == [0, 1, 0, 1]


@given(seed=st.integers(0, 10_000), text=st.sampled_from([text for text, *_ in FORMS.values()]))
def test_functions_are_read_back_from_the_whole_program(seed, text):
    form = Form(text, LIBRARY)
    grammar = Constraints(max_length=40).grammar(LIBRARY)
    widths = form.n_outside + 40 * len(form.functions), form.n_outside + 3 * len(form.functions)
    forests = Forests(form, LIBRARY, grammar, widths)
    population = forests.random(5, new_state(seed))
    trees = forests.trees(population)
    around = np.zeros((5, len(form.functions), 2), dtype=bool)
    found = form.filled(population.arrays, WIDE, WIDE, around)
    assert found.has_room.all()
    for i in range(5):
        parts = form.read(found.programs.tokens[i, : found.programs.lengths[i]], found.programs.constants[i])
        assert parts is not None
        assert parts.functions == [tree.tokens[i, : tree.lengths[i]].tolist() for tree in trees]
        assert parts.origins.tolist() == found.origins[i, : len(parts.origins)].tolist()


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("f(x1, x2) - f(x1, x1)", "x2"),
        ("f(x1, x1) - f(x2, x3)", "x2/x1"),
        ("f(x1, x1 + 2) - f(x2, x3)", "exp(x1 + 2)"),
        ("f(x1, x2, x1*x2)/f(x2, x3, x1)", "x1*x2 + x3"),
    ],
)
def test_arguments_that_are_alike_in_one_use_of_a_function_are_told_apart_by_the_others(text, function):
    form = Form(text, LIBRARY)
    expression, origins = filled(form, [function])
    parts = form.read(expression.tokens, expression.constants)
    assert parts is not None
    assert parts.functions == [to_program(parse(function), LIBRARY)[0].tolist()]
    assert parts.origins.tolist() == origins[: len(parts.origins)].tolist()


def test_a_program_of_another_form_has_no_parts():
    form = Form("f(x1) - f(x2)", LIBRARY)
    for text in ("exp(x1) - log(x2)", "exp(x1) + exp(x2)", "exp(x1*x2) - exp(x2)", "x1"):
        assert parts_of(Expression.from_text(text, LIBRARY), form) == {}


@pytest.mark.parametrize(
    ("text", "formula", "parts"),
    [
        ("f(x1, x1 + 2)", "x1*(x1 + 2)", {"f(x1, x1 + 2)": "x1*(x1 + 2)"}),
        ("f(x1, x1 + 2)", "(x1 + 3.7)*(x1 + 2)", {"f(x1, x1 + 2)": "(x1 + 3.7)*(x1 + 2)"}),
        (
            "f(x1, x1 + k) + k*x2",
            "x1*(x1 + 3.7) + 2.5*x2",
            {"f(x1, x1 + 2.5)": "x1*(x1 + 3.7)", "k": "2.5"},
        ),
        ("k*x1 + k*x2", "2.5*x1 + 3.7*x2", {}),
        ("f(x1) - f(x2)", "exp(2.5*x1) - exp(3.7*x2)", {}),
    ],
)
def test_an_argument_has_the_numbers_of_the_form(text, formula, parts):
    form, expression = Form(text, LIBRARY), Expression.from_text(formula, LIBRARY)
    assert parts_of(expression, form) == parts
    read = form.read(expression.tokens, expression.constants)
    # A number of the function is fitted, and one of the form is not.
    assert read is None or [n for n, of in zip(expression.constants.tolist(), read.origins) if of < 0] == (
        [2.0] if "2)" in text else []
    )


def test_a_program_without_room_is_marked():
    form = Form("f(x1) - f(x2)", LIBRARY)
    programs = [to_program(parse("exp(x1)*x1 + 2.5"), LIBRARY)]
    row = form.forest([tokens.tolist() for tokens, _ in programs])
    forest = Programs(np.array([row]), np.array([len(row)]), np.full((1, 3), 2.5))
    around = np.zeros((1, 1, 2), dtype=bool)
    assert form.filled(forest, 13, 2, around).has_room[0]
    for width, n_constants in ((12, 2), (13, 1)):
        assert not form.filled(forest, width, n_constants, around).has_room[0]


def test_a_constant_that_the_formula_lacks_is_shown_by_its_name():
    form = Form("x3*f(x1/(x2 + k)) + c", LIBRARY)
    assert parts_of(Expression.from_text("x3*1.5 + 2.0", LIBRARY), form) == {
        "f(x1/(x2 + k))": "1.5",
        "c": "2",
    }


def test_parts_have_the_names_of_constants_by_group():
    form = Form("a*f(x1/(x2 + k))", LIBRARY)
    plain = Expression.from_text("3.5*exp(1.5*(x1/(x2 + 0.5)))", LIBRARY)
    values = np.array([[1.0, 2.0], [0.25, 0.75]])
    by_group = ByGroup.of_values(2, ("A", "B"), np.array([-1, 0, 1]), values)
    formula = with_names_in(form, GroupedExpression(LIBRARY, plain.tokens, plain.constants, by_group))
    assert formula.by_group.names == ("b", "k")
    assert parts_of(formula, form) == {"f(x1/(x2 + k))": "exp(b*x1/(x2 + k))", "a": "3.5"}


def test_parts_are_texts_in_the_names_of_the_columns():
    names = ["T", "p", "m/s"]
    form = Form("f(T, `m/s`/p)*k", LIBRARY, names)
    expression, _ = filled(form, ["exp(x1)*x2"], outside=[2.5, 1.0, 0.0])
    parts = parts_of(expression.with_feature_names(names), form)
    assert parts == {"f(T, `m/s`/p)": "exp(T)*`m/s`/p", "k": "2.5"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x1", r"position 4, 'the end': close the '\(' of position 1"),
        ("x1(x2) + f(x3)", r"position 0, 'x1': a column and no function; write '\*'"),
        ("k + k(x2)", r"position 4, 'k': a constant and no function"),
        ("f(x1) + f(x2, x3)", "position 8, 'f': it has 2 arguments here and 1 before"),
        ("f(x1) + f", "position 8, 'f': an unknown function; write its arguments"),
        ("f(g(x1))", "position 2, 'g': an unknown function inside another one, f"),
        ("f(x1, 3*k)", "position 6, '3': an argument has no column"),
        ("f(pressure) + presure", "position 14, 'presure': no column; did you mean 'pressure'"),
        ("f(x1) + #", "position 8, '#'"),
        ("f()", "position 2, '\\)'"),
        ("x1 + x2", "neither an unknown function nor a constant"),
        ("f(x1, x1**2, x2, x3, pressure, x1*x2)", "it has f of 6 arguments, and there are 5 columns"),
    ],
)
def test_an_unusable_form_is_refused_at_its_place(text, message):
    names = ["x1", "x2", "x3", "pressure", "x5"]
    with pytest.raises(ValueError, match=message):
        Form(text, get_library("physics", 5), names)


def test_a_form_has_the_functions_and_constants_in_the_order_of_the_text():
    tree, functions, constants = parse_form("g(a)*k - f(a, b)**m", ["a", "b"])
    assert (functions, constants) == ({"g": 1, "f": 2}, ["k", "m"])
    assert tree == ("sub", ("mul", ("g", "a"), "k"), ("pow", ("f", "a", "b"), "m"))
