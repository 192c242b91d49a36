"""Skeletons and the common forms of one column: what is one form, and what it saves in bits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.cli import app
from dgsr.expressions.formulas.common_forms import COMMON_FORMS, named_parts
from dgsr.expressions.formulas.description_length import description_length, structure_bits
from dgsr.expressions.formulas.skeletons import parts_of
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.trees.simple_numbers import cost
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from searches import with_own

LIBRARY = get_library("physics", 2)


def formula(text, library=LIBRARY):
    return Expression.from_text(text, library)


def skeleton(text):
    expression = formula(text)
    return parts_of(LIBRARY, expression.tokens.tolist(), expression.constants.tolist())[0].skeleton


SAME = [
    ("12.3*x1/(6.7 + x1)", "x1/(0.5 + 0.08*x1)"),
    ("x1/(3 + x1)", "0.2*x1*(1.1 + 4.3*x1)**-1"),
    ("5*exp(-0.3*x1)", "exp(2.3 - 1.7*x1)"),
    ("exp(-0.3*x1)", "1/exp(0.7*x1)"),
    ("exp(-0.3*x1)", "1.7**x1"),
    ("98/(1 + 4.4*exp(-0.6*x1))", "0.485/(0.005 + exp(-0.7*x1))"),
    ("sin(1.3*x1 + 0.4)", "3*cos(0.2 - 1.7*x1)"),
    ("x1**2.3", "4*x1**(-0.7)"),
    ("1.3 - x1", "2.1 + 3*x1"),
    ("3*exp(-1.7*x1) + 1.2*exp(-0.2*x1)", "exp(-1.1*x1) - 5*exp(-0.3*x1)"),
    ("2.5*x1 + 1.3*x1", "x1"),
    ("x1*x1**2.3", "x1**1.7"),
]
DIFFERENT = [
    ("exp(-0.3*x1)", "3*exp(-1.7*x1) + 1.2*exp(-0.2*x1)"),  # one exponential and two
    ("1/(1.3 + x1)**2", "1/((1.3 + x1)*(2.7 + x1))"),
    ("x1**2", "x1**2.3"),
    ("x1", "1.3 + x1"),
    ("sin(1.3*x1)", "sin(1.3*x1 + 0.4)"),
    ("log((1.3 + x1)**3)", "log(1.3 + x1)"),
    ("exp(-0.3*x1)**2", "exp(-0.3*x1)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_skeleton(one, other):
    assert skeleton(one) == skeleton(other) is not None


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_skeletons(one, other):
    assert skeleton(one) != skeleton(other)


@pytest.mark.parametrize("name", ["sum", "product"])
def test_an_operator_of_the_users_own_may_be_called_as_a_kind_of_skeleton(name):
    library = with_own(LIBRARY, name)
    expression = formula(f"3.1*{name}(x1) + {name}(2.3*x1)*x1", library)
    parts = parts_of(library, expression.tokens.tolist(), expression.constants.tolist())
    assert parts[0].skeleton is not None
    assert len({part.skeleton for part in parts}) > 4


@pytest.mark.parametrize("text", ["x1**20.5", "x1**12", "x1**x1", "2.3 + x1**15"])
def test_what_nobody_takes_for_a_power_law_has_no_skeleton(text):
    library = get_library("physics", 1)
    expression = formula(text, library)
    assert named_parts(library, expression.tokens.tolist(), expression.constants.tolist())[0] is None


@given(st.integers(0, 10_000))
def test_the_values_of_numbers_and_the_column_do_not_matter(seed):
    """Random programs: neither other numbers nor the other column change a skeleton."""
    rng = np.random.default_rng(seed)
    programs = random_population(5, LIBRARY, Constraints().grammar(LIBRARY, 2), new_state(seed))
    swapped = {
        LIBRARY.first_variable: LIBRARY.first_variable + 1,
        LIBRARY.first_variable + 1: LIBRARY.first_variable,
    }
    for i in range(len(programs)):
        tokens = programs[i].tokens.tolist()
        n = len(programs[i].constants)
        # No multiples of a half, which stand for themselves as exponents, and none that is too large for one.
        one, other = (rng.uniform(0.51, 0.99, n).tolist() for _ in range(2))
        first = [part.skeleton for part in parts_of(LIBRARY, tokens, one)]
        assert first == [part.skeleton for part in parts_of(LIBRARY, tokens, other)]
        turned = [swapped.get(token, token) for token in tokens]
        assert first == [part.skeleton for part in parts_of(LIBRARY, turned, one)]


def test_every_form_is_known_by_its_skeleton_and_no_two_are_one():
    library = get_library("physics", 1)
    column = library.first_variable
    for form in COMMON_FORMS:
        tokens, numbers = form.program(library, column)
        constants = [0.37 + 0.51 * "abc".find(n) if isinstance(n, str) else n for n in numbers]
        assert named_parts(library, tokens, constants)[0].form == form
        offset = Expression(
            library, [library.index["add"], library.index["const"], *tokens], [2.0, *constants]
        )
        assert named_parts(library, offset.tokens.tolist(), offset.constants.tolist())[0].form in COMMON_FORMS


def test_the_bits_of_the_forms_are_those_of_a_distribution():
    assert sum(2.0**-form.bits for form in COMMON_FORMS) == pytest.approx(1.0)


@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_name_never_lengthens_a_description(seed, n_variables):
    library = get_library("physics", n_variables)
    programs = random_population(5, library, Constraints().grammar(library, n_variables), new_state(seed))
    for i in range(len(programs)):
        expression = programs[i]
        n = len(expression.constants)
        if n == len(expression.tokens):
            continue
        digits = np.log2(10.0) * sum(max(cost(value), 0.0) for value in expression.constants.tolist())
        structure = structure_bits(
            library, expression.tokens[None].astype(np.int64), np.array([len(expression.tokens)])
        )
        assert description_length(expression) <= structure[0] - 7.0 * n + digits + 1e-9


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("7*x1**1.5", "power law"),
        ("250/(1.25 + x1)**2", "shifted power law"),
        ("5 - 2/x1**3", "power law"),
    ],
)
def test_a_simple_exponent_stands_for_a_free_one(text, name):
    assert formula(text).common_forms == ((name, "x1"),)


def test_one_column_in_simple_proportion_is_no_longer_than_any_named_form():
    line = description_length(formula("0.5*x1"))
    assert line <= description_length(formula("exp(-0.5*x1)"))
    assert description_length(formula("0.5*x1 + 3")) <= description_length(formula("3 + exp(-0.5*x1)"))


def test_a_known_form_is_shorter_than_an_unknown_one_as_long():
    known, unknown = formula("x1/(3 + x1)"), formula("x1/(3 + tanh(x1))")
    assert description_length(known) < description_length(unknown) - 5.0


def test_a_form_costs_as_much_more_as_its_operators_do():
    dear = LIBRARY.with_complexities({"exp": 12})
    text = "2*exp(-3*x1)"
    assert description_length(formula(text, dear)) > 10.0 + description_length(formula(text))


def test_a_library_without_constants_has_no_forms():
    library = get_library("koza", 1)
    assert formula("exp(x1)", library).common_forms == ()
    tokens = formula("exp(x1)", library).tokens
    structure = structure_bits(library, tokens[None].astype(np.int64), np.array([2]))
    assert description_length(formula("exp(x1)", library)) == pytest.approx(structure[0])


TWO_FORMS = (("Arrhenius, vapour pressure", "T"), ("damped oscillation", "S"))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("12.3*S/(6.7 + S)", (("Michaelis-Menten, Langmuir, Monod", "S"),)),
        ("2*exp(-3/T) + 7*exp(-0.2*S)*cos(4*S)", TWO_FORMS),
        ("T + 2/sqrt(1 - 0.3*S**2)", (("Lorentz factor, low-pass of first order", "S"),)),
        ("2*S + 3", ()),
        ("S*T", ()),
    ],
)  # fmt: skip
def test_a_formula_names_its_forms(text, forms):
    expression = Expression.from_text(text, LIBRARY, ["S", "T"])
    assert sorted(expression.common_forms) == sorted(forms)


def test_the_guide_lists_every_form_that_has_a_name():
    page = (Path(__file__).parents[2] / "docs/guide/common_forms.md").read_text()
    assert all(f"| `{form.text}` | {form.name} |" in page for form in COMMON_FORMS if form.name)


def test_the_command_line_and_the_report_name_the_form(tmp_path):
    S = np.linspace(0.5, 20.0, 30)
    table = tmp_path / "rates.csv"
    rows = "\n".join(f"{s!r},{r!r}" for s, r in zip(S.tolist(), (12.3 * S / (6.7 + S)).tolist()))
    table.write_text(f"S,rate\n{rows}\n")
    arguments = ["fit", str(table), "--target", "rate", "--random-state", "0", "--max-evaluations", "3000"]
    shown = CliRunner().invoke(app, arguments)
    assert "in S it has a form known as: Michaelis-Menten, Langmuir, Monod" in shown.output
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert found["common_forms"] == [{"name": "Michaelis-Menten, Langmuir, Monod", "column": "S"}]
    regressor = DGSRRegressor(max_evaluations=3000, random_state=0).fit(S[:, None], 12.3 * S / (6.7 + S))
    regressor.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Known form: Michaelis-Menten, Langmuir, Monod, in x1." in page
