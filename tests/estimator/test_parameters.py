"""The parameters, what they group, and what becomes of the names that they had before."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from dgsr import DGSRRegressor, Units, get_library
from dgsr.estimator.parameters import CONFIG, CONSTRAINTS, flat, grouped
from dgsr.fitting.demands import demanded

X = np.random.default_rng(0).uniform(1.0, 5.0, (20, 2))
Y = X[:, 0] * X[:, 1]
NAMES = [*inspect.signature(DGSRRegressor).parameters]


def words_of():
    """The number of words that the docstring has for each parameter."""
    section = DGSRRegressor.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    entries = re.split(r"\n    (?=\w[\w, ]* : )", section)[1:]
    return {entry.split(" : ")[0]: len(entry.split("\n", 1)[1].split()) for entry in entries}


def test_there_are_few_parameters_each_with_a_text_that_is_read_at_once():
    assert len(NAMES) == 23
    assert [*words_of()] == NAMES
    assert {name: n for name, n in words_of().items() if n > 40} == {}


SETTINGS = {
    "library": "koza",
    "required": ["x1"],
    "forbidden": ["sin"],
    "nested": {"exp": {"log": 0}},
    "min_length": 3,
    "batch_size": 50,
    "gp_generations": 3,
    "max_rows": None,
    "tolerance": 1e-9,
    "units": {"x1": "m"},
    "y_units": "m^2",
    "unitless_constants": True,
    "unit_penalty": 2.0,
    "objective": "vpg",
    "refine": True,
    "complexity": {"cos": 9},
    "max_time": 1.0,
}


def test_settings_are_grouped_and_parameters_flat():
    parameters = grouped(SETTINGS)
    assert set(parameters) == {"library", "constraints", "config", "units", "refine", "max_time"}
    model = DGSRRegressor(**parameters)
    found = flat(clone(model).get_params())
    assert {name: found[name] for name in SETTINGS if name != "library"} == {
        name: value for name, value in SETTINGS.items() if name != "library"
    }
    assert found["library"] == get_library("koza").with_complexities({"cos": 9})
    assert set(CONSTRAINTS) | set(CONFIG) < set(found)
    assert grouped(flat(DGSRRegressor().get_params())).keys().isdisjoint({"constraints", "config", "units"})


def test_no_evolution_is_none_of_its_engines():
    assert flat(DGSRRegressor(gp=None).get_params())["gp_generations"] == 0
    model = DGSRRegressor("koza", None, gp=None, look_up=False, max_evaluations=200, random_state=0).fit(X, Y)
    assert model.n_evaluations_ <= 200


@pytest.mark.parametrize(("parameters", "why"), [({}, "generator=None"), ({"form": "f(x1)"}, "a form")])
def test_refinement_without_a_decoder_is_said_to_have_no_effect(parameters, why):
    generator = None if why == "generator=None" else "auto"
    model = DGSRRegressor(
        "physics", generator, refine="vpg", max_evaluations=200, random_state=0, **parameters
    )
    with pytest.warns(UserWarning, match=f"refine='vpg' has no effect with {why}, since there is no decoder"):
        model.fit(X, Y)


def test_units_of_columns_may_be_a_dict_of_their_own():
    given = DGSRRegressor(units={"x1": "kg"}), DGSRRegressor(units=Units({"x1": "kg"}))
    assert flat(given[0].get_params()) == flat(given[1].get_params())


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("objective", "vpg", "refine='vpg'"),
        ("gp_generations", 3, r'config={"gp_generations": 3}'),
        ("batch_size", 50, r'config={"batch_size": 50}'),
        ("max_rows", 50, r'config={"max_rows": 50}'),
        ("tolerance", 0.1, r'config={"tolerance": 0.1}'),
        ("required", ["x1"], r'constraints={"required": \[' + "'x1'" + r"\]}"),
        ("forbidden", ["x1"], r'constraints={"forbidden": '),
        ("nested", {}, r'constraints={"nested": '),
        ("min_length", 4, r'constraints={"min_length": 4}'),
        ("complexity", {"sin": 9}, r"with_complexities\("),
        ("y_units", "J", "target='J'"),
        ("unitless_constants", True, "unitless_constants=True"),
        ("unit_penalty", 2.0, r"penalty=2\.0"),
    ],
)
def test_a_name_of_an_earlier_version_says_where_it_stands_now(name, value, mend):
    with pytest.raises(TypeError, match=f"no parameter '{name}' any more; write .*{mend}"):
        DGSRRegressor(**{name: value})


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"config": {"batchsize": 9}}, r"config\['batchsize'\] is unknown; did you mean 'batch_size'\?"),
        (
            {"constraints": {"x": 9}},
            r"constraints\['x'\] is unknown; choose from required, forbidden, nested",
        ),
        ({"config": {"batch_size": 1}}, "'batch_size' parameter of `config` must be .*Got 1"),
        ({"constraints": {"min_length": 0}}, "'min_length' parameter of `constraints` .*Got 0"),
        ({"units": Units({"x1": "m"}, penalty=-1.0)}, "'penalty' parameter of Units .*Got -1.0"),
        ({"units": ["m"]}, "'units' parameter of DGSRRegressor must be"),
        ({"config": 3}, "'config' parameter of DGSRRegressor must be"),
    ],
)
def test_what_a_group_cannot_hold_is_refused_by_name_and_value(parameters, said):
    with pytest.raises(ValueError, match=said):
        DGSRRegressor(**parameters).fit(X, Y)


def test_operators_are_named_by_symbols_and_take_the_place_of_a_library():
    model = DGSRRegressor(operators=["+", "*", "^", "exp"], max_evaluations=200, random_state=0).fit(X, Y)
    assert set(model.library_.operators) == {"add", "mul", "square", "cube", "pow", "sqrt", "exp"}
    assert model.generator_ == "physics-d16"
    assert clone(model).get_params()["operators"] == ["+", "*", "^", "exp"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"operators": ["+", "*", "foo"]}, "operators has 'foo', which is unknown; choose from add, "),
        ({"operators": ["*", "exp"]}, r"operators lacks '\+'"),
        ({"operators": ["+", "*"], "library": "koza"}, "operators and library are both given"),
        ({"selection": "best"}, "{'mdl', 'bic', 'score', 'accuracy', 'holdout'}"),
        ({"loss": "mse"}, "write loss='squared'"),
    ],
)
def test_an_error_about_a_parameter_lists_the_choices_in_order(parameters, message):
    with pytest.raises(ValueError, match=message):
        DGSRRegressor(max_evaluations=200, **parameters).fit(X, Y)


def test_symbols_are_accepted_where_operators_are_named():
    constraints = {"forbidden": ["/"], "nested": {"^": {"exp": 0}}}
    settings = flat(DGSRRegressor(constraints=constraints).get_params())
    library, found = demanded(settings, get_library("physics", 2), None)
    assert "div" not in library.operators
    assert found.nested == (("pow", "exp", 0),)


@pytest.mark.parametrize(
    ("name", "mend"), [("max_evalutions", "did you mean 'max_evaluations'?"), ("niterations", "")]
)
def test_an_unknown_parameter_points_to_the_page_on_other_packages(name, mend):
    with pytest.raises(TypeError) as raised:
        DGSRRegressor(**{name: 3})
    assert f"DGSRRegressor has no parameter {name!r}; {mend}" in str(raised.value)
    assert "Coming from PySR" in str(raised.value)


def test_a_fitted_estimator_prints_as_its_formula():
    model = DGSRRegressor("koza", max_evaluations=200, random_state=0)
    assert str(model).startswith("DGSRRegressor(")
    assert str(model.fit(X, Y)) == str(model.expression_) == "x1*x2"
    assert repr(model).startswith("DGSRRegressor(")
