"""Formulas that a search begins with: what is read, what is refused, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dgsr
from dgsr import DGSRRegressor, Expression
from dgsr.data.dataset import DataSet
from dgsr.expressions import get_library
from dgsr.expressions.formulas.coordinates import Coordinates
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import library_of
from dgsr.fitting.initial import initial_programs
from searches import flat_regressor

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3.0, (60, 3))
# A law that no search finds in a few hundred evaluations.
Y = 2.3 * X[:, 0] * np.exp(-1.7 * X[:, 1] / (0.4 + X[:, 2] ** 2)) - 0.8 * np.log(X[:, 2] + X[:, 0] * X[:, 1])
LAW = "a*x1*exp(b*x2/(c + x3**2)) + d*log(x3 + x1*x2)"


def fitted(*formulas, table=X, target=Y, **parameters):
    settings = {
        "generator": None,
        "max_evaluations": 300,
        "batch_size": 100,
        "random_state": 0,
        "look_up": False,
    }
    return flat_regressor(**{**settings, "initial_formulas": formulas, **parameters}).fit(table, target)


@pytest.mark.search
def test_the_constants_of_a_known_law_are_fitted():
    assert fitted(LAW).score(X, Y) > 1.0 - 1e-12
    assert fitted().score(X, Y) < 1.0 - 1e-6


@pytest.mark.search
def test_columns_have_their_names_and_their_units():
    table = pd.DataFrame(X * [1e6, 1.0, 1e-5], columns=["mass", "speed", "width"])
    y = 2.3e-6 * table["mass"] * np.exp(-1.7 * X[:, 1]) + 0.3 * X[:, 2]
    model = fitted("mass*exp(a*speed) + b*width", table=table, target=y)
    assert model.score(table, y) > 1.0 - 1e-12


def test_columns_whose_names_are_no_words_stand_in_backticks():
    table = pd.DataFrame(X, columns=["m/s^2", "pi", "x 3"])
    y = 2.0 * X[:, 0] * np.exp(-X[:, 1]) + np.pi * X[:, 2]
    model = fitted("a*`m/s^2`*exp(b*`pi`) + pi*`x 3`", table=table, target=y)
    assert model.score(table, y) > 1.0 - 1e-12
    again = Expression.from_text(str(model.expression_), model.library_, table.columns)
    np.testing.assert_allclose(again(X), y, rtol=1e-6)


def test_a_difference_is_written_with_the_operators_that_there_are():
    library = library_of(["+", "*", "^"]).with_variables(2)
    coordinates = Coordinates(np.zeros(2), np.ones(2))
    initial, _ = initial_programs(["a*(x1 - 3*x2)/x2"], library, ["x1", "x2"], coordinates, Constraints())
    expected = (X[:, 0] - 3.0 * X[:, 1]) / X[:, 1]
    np.testing.assert_allclose(initial.programs.predict(X[:, :2])[0], expected)


def test_formulas_compete_with_their_exact_values():
    expression = Expression.from_text("x1*x2 - sin(x3)/x2", get_library("koza", 3))
    y = expression(X)
    model = fitted(expression, "x1 + x2", library="koza", target=y, look_up=False)
    assert model.stop_reason_ == "exact fit"
    assert model.n_evaluations_ == 2
    assert model.expression_ == expression


def test_what_the_constraints_forbid_is_evaluated_and_not_bred_from():
    y = np.sin(np.sin(2.0 * X[:, 0]))
    model = fitted("sin(sin(a*x1))", target=y)
    assert model.score(X, y) > 1.0 - 1e-12


def test_programs_are_written_for_scaled_columns():
    library = get_library("physics", 2)
    coordinates = Coordinates(np.zeros(2), np.array([100.0, 1.0]))
    initial, _ = initial_programs(["2*x1 + x2"], library, library.variable_names, coordinates, Constraints())
    table = X[:, :2]
    np.testing.assert_allclose(
        initial.programs.predict(table / coordinates.scales)[0], 2.0 * table[:, 0] + table[:, 1]
    )
    assert initial.is_allowed.all()
    assert initial_programs([], library, library.variable_names, coordinates, Constraints()) == (
        None,
        Constraints(),
    )
    assert initial_programs(None, library, library.variable_names, coordinates, Constraints()) == (
        None,
        Constraints(),
    )


@pytest.mark.parametrize(
    ("formula", "core"),
    [
        ("a*x1/(b + x1)", "x1/(1.0 + x1)"),
        ("2 - 3*(x1*x2 + 0.5)/7", "x1*x2"),
        ("a/(b + x1)", "1/(1.0 + x1)"),
        ("exp(a*x1)", "exp(1.0*x1)"),
    ],
)
def test_scale_and_offset_are_left_to_the_search(formula, core):
    library = get_library("physics", 2)
    initial, _ = initial_programs(
        [formula], library, library.variable_names, Coordinates(np.zeros(2), np.ones(2)), Constraints()
    )
    expected = Expression.from_text(core, library)(X[:, :2])
    np.testing.assert_allclose(initial.programs.predict(X[:, :2])[0], expected)
    assert initial.is_allowed.all()


def test_there_is_room_for_as_many_constants_as_a_formula_has():
    library, law = get_library("physics", 2), "exp(a*x1) + exp(b*x2) + c*sin(d*x1 + e)"
    _, constraints = initial_programs(
        [law, "x1"], library, library.variable_names, Coordinates(np.zeros(2), np.ones(2)), Constraints()
    )
    assert constraints == Constraints(max_constants=5)


REFUSED = {
    "unreadable": (
        ["x1", "x1 +* 2"],
        r"initial_formulas\[1\]: Cannot read the formula 'x1 \+\* 2': position 4",
    ),
    "no column": (["a + b"], r"initial_formulas\[0\]: it has no column; the columns are x1, x2, x3\."),
    "unknown function": (["zeta(x1)"], r"initial_formulas\[0\]: Cannot read .* position 0, 'zeta'"),
    "beyond a float": (["1e400*x1"], r"\[0\]: '1e\+400' cannot be .*: its value is .* beyond the largest"),
    "division by 0": (["x1 + a*x2/0"], r"initial_formulas\[0\]: it divides by the number 0; write another"),
    "too long": (
        [" + ".join(["x1*x2"] * 12)],
        r"initial_formulas\[0\]: it has \d+ tokens, and max_length is 30",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_formula_that_cannot_be_used_is_refused(case):
    formulas, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        fitted(*formulas)


def test_what_cannot_be_written_is_named_by_the_columns():
    table = pd.DataFrame(X, columns=["mass", "speed", "width"])
    with pytest.raises(ValueError, match=r"\[0\]: 'abs\(speed\)' cannot be written with library 'koza'"):
        fitted("abs(speed)*mass", table=table, library="koza")


def test_a_misspelt_column_is_no_constant():
    table = pd.DataFrame(X, columns=["mass", "speed", "width"])
    with pytest.raises(ValueError, match=r"'masss' is no column\. Did you mean 'mass'\?"):
        fitted("2*masss*speed", table=table)


def test_a_library_without_constants_has_none_to_fit():
    with pytest.raises(ValueError, match=r"'a' is no column, and a library without constants has none"):
        fitted("a*x1", library="koza")


def test_a_text_alone_is_refused():
    with pytest.raises(ValueError, match="'initial_formulas' parameter of DGSRRegressor must be"):
        DGSRRegressor(initial_formulas="a*x1").fit(X, Y)


def test_formulas_are_kept_with_a_fit_and_told_apart_by_a_checkpoint(tmp_path):
    model = fitted("a*x1 + x2", checkpoint=tmp_path / "fit.checkpoint")
    model.save(tmp_path / "fit.dgsr")
    assert dgsr.load(tmp_path / "fit.dgsr").initial_formulas == ["a*x1 + x2"]
    with pytest.raises(ValueError, match="is of a fit with another initial_formulas"):
        fitted("a*x1 + x3", checkpoint=tmp_path / "fit.checkpoint")


def test_every_search_of_a_fit_begins_with_them():
    y = np.exp(4.0 * X[:, 0] - 2.0 * X[:, 1] / (0.3 + X[:, 2])) * (1.0 + 0.01 * RNG.normal(size=60))
    model = fitted("a*exp(b*x1 - c*x2/(d + x3))", target=y, loss="auto")
    assert model.loss_ == "relative"
    assert np.mean((model.predict(X) / y - 1.0) ** 2) < 1e-3


def test_nothing_is_evaluated_beyond_the_budget():
    y = DataSet.from_arrays(X, Y).y
    assert fitted("x1", "x2", "x3", target=y, max_evaluations=2).n_evaluations_ == 2
