"""Columns and operators that every formula must have, or must not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

import dgsr
from dgsr.data.dataset import DataSet
from dgsr.estimator.parameters import flat
from dgsr.expressions import Constraints, Expression, get_library
from dgsr.expressions.programs.nesting import Nesting
from dgsr.finders.terms import columns_of, simple_terms
from dgsr.fitting.demands import demanded
from dgsr.kernels.random import new_state
from dgsr.search import Search, SearchConfig
from dgsr.search.evolution import random_population
from searches import flat_regressor

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2.0, (60, 3))
# Two columns that hardly differ, so that either explains y.
X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=60)
Y = X[:, 0] ** 2 * X[:, 2] + 0.05 * rng.normal(size=60)


def small(**settings):
    usual = {"generator": None, "max_evaluations": 2_000, "batch_size": 50, "random_state": 0}
    return flat_regressor(**(usual | settings)).fit(X, Y)


def tokens_of(model):
    """The names of the tokens of every formula of the front."""
    library = model.library_
    return [
        {library.tokens[token].name for token in candidate.expression.tokens}
        for candidate in model.pareto_front_
    ]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"generator": "auto", "look_up": False},
        {"gp": "deap", "look_up": False},
        pytest.param({"library": "koza", "max_evaluations": 300}, marks=pytest.mark.slow),
        {"library": "koza", "generator": "auto", "look_up": False},
    ],
)
def test_no_formula_has_what_is_forbidden(settings):
    settings = {"max_evaluations": 400, "gp_generations": 5} | settings
    for tokens in tokens_of(small(forbidden=["x1", "sin", "sub"], **settings)):
        assert not tokens & {"x1", "sin", "sub"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"library": "koza", "max_evaluations": 600}, marks=pytest.mark.slow),
        pytest.param({"n_jobs": 2}, marks=pytest.mark.slow),
    ],
)
def test_every_formula_has_what_is_required(settings):
    with parallel_config("sequential"):
        fronts = tokens_of(small(**{"required": ["x2", "exp"], "max_evaluations": 600} | settings))
    assert fronts
    for tokens in fronts:
        assert {"x2", "exp"} <= tokens


def test_columns_go_by_their_names():
    table = pd.DataFrame(X, columns=["mass", "weight", "speed"])
    model = flat_regressor(
        generator=None, max_evaluations=400, random_state=0, required=["speed"], forbidden=["mass"]
    ).fit(table, Y)
    for candidate in model.pareto_front_:
        assert "speed" in str(candidate.expression)
        assert "mass" not in str(candidate.expression)
    assert model.predict(table).shape == (60,)


def test_a_forbidden_column_changes_nothing_that_is_predicted():
    model = small(forbidden=["x1"], max_evaluations=400, look_up=False)
    changed = X.copy()
    changed[:, 0] = 17.0
    np.testing.assert_array_equal(model.predict(X), model.predict(changed))


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.sets(st.integers(0, 3), min_size=1, max_size=3))
def test_random_programs_and_terms_have_no_forbidden_column(seed, columns):
    library = get_library("physics", 4)
    grammar = Constraints(forbidden_columns=tuple(columns)).grammar(library)
    forbidden = {library.first_variable + i for i in columns}
    programs = random_population(50, library, grammar, new_state(seed))
    inside = np.arange(programs.tokens.shape[1]) < programs.lengths[:, None]
    assert not forbidden & set(programs.tokens[inside].tolist())
    for term, _ in simple_terms(library, grammar, 200):
        assert not forbidden & set(term)
    assert {token for (token,) in columns_of(grammar)} == set(
        range(len(library) - 4, len(library))
    ) - forbidden


def test_a_program_without_what_is_required_counts_and_is_worth_nothing():
    library = get_library("physics", 3)
    constraints = Constraints(required=("x2", "exp"))
    config = SearchConfig(max_evaluations=10_000)
    search = Search(DataSet.from_arrays(X, Y), library, constraints, config, None, seed=0)
    assert len(search.archive.population()) == 0  # not even the mean of y
    programs = random_population(400, library, constraints.grammar(library), new_state(1))
    has = np.array([{"x2", "exp"} <= names(programs, i) for i in range(400)])
    assert 0 < has.sum() < 400
    nmse = search.evaluate(programs, 400)
    assert search.n_evaluations == 400
    assert np.isinf(nmse[~has]).all()
    assert np.isfinite(nmse[has]).any()
    free = Search(DataSet.from_arrays(X, Y), library, Constraints(), config, None, seed=0)
    with_required = random_population(400, library, constraints.grammar(library), new_state(1))
    with_required = with_required[np.flatnonzero(has)]
    np.testing.assert_array_equal(nmse[has], free.evaluate(with_required, len(with_required)))


def names(programs, i):
    return {programs.library.tokens[token].name for token in programs.tokens[i, : programs.lengths[i]]}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"required": ["x9"]}, r"required\[0\]='x9' is neither a column nor an operator .*choose from add"),
        ({"forbidden": ["x1", "sine"]}, r"forbidden\[1\]='sine' .* did you mean 'sin'\?"),
        ({"forbidden": ["const"]}, r"forbidden\[0\]='const' is a fitted number, .* library without con"),
        ({"forbidden": ["?"]}, r"forbidden\[0\]='\?' .* choose from add, sub"),
        ({"forbidden": "x1"}, "forbidden.*array-like"),
        ({"forbidden": ["x1", "x2", "x3"]}, "forbidden names every column; leave at least one"),
        ({"required": ["sin"], "forbidden": ["sin"]}, "'sin' is both required and forbidden"),
        ({"forbidden": ["add"]}, "forbidden names 'add', which writes the scale or the offset"),
        ({"initial_formulas": ["a*x1"], "required": ["x2"]}, r"initial_formulas\[0\]: it lacks 'x2'"),
        (
            {"initial_formulas": ["2*x1"], "required": ["mul"]},
            r"initial_formulas\[0\]: it lacks 'mul' inside its scale and offset",
        ),
        ({"initial_formulas": ["a*x1"], "forbidden": ["x1"]}, r"initial_formulas\[0\]: .*forbidden"),
        ({"initial_formulas": ["sin(x1)"], "forbidden": ["sin"]}, r"initial_formulas\[0\]: .*sin"),
        ({"required": ["arcsin", "arccos", "tanh"], "max_evaluations": 20}, "require less, or raise"),
        ({"complexity": {"sine": 3}}, r"complexity\['sine'\] is neither .*; did you mean 'sin'\?"),
        ({"complexity": {"x1": 0}}, "complexity=0 of 'x1' must be a whole number from 1 to 100"),
        ({"complexity": {"sin": 2.5}}, r"complexity=2\.5 of 'sin' must be a whole number"),
        ({"nested": {"sn": {"sin": 0}}}, r"nested\['sn'\] is no operator .*; did you mean 'sin'\?"),
        ({"nested": {"sin": {"x1": 0}}}, r"nested\['sin'\]\['x1'\] is no operator of the library"),
        ({"nested": {"sin": {"sin": -1}}}, r"\['sin'\]=-1 must be a whole number from 0 to 9 or None"),
        ({"nested": {"sin": 0}}, r"nested\['sin'\]=0 must be a dict of inner operators"),
        ({"nested": {"mul": {"sin": 0}}}, "below 'mul', which writes the scale or the offset"),
        (
            {"initial_formulas": ["sin(x1*exp(x2))"], "nested": {"sin": {"exp": 0}}},
            r"initial_formulas\[0\]: it has 'exp' under 'sin' more often than nested=\{'sin': \{'exp': 0",
        ),
    ],
)
def test_demands_that_cannot_be_met_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        small(**settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"required": ["mass"], "forbidden": ["mass"]}, "'mass' is both required and forbidden"),
        (
            {"required": ["mass", "arcsin", "arccos", "tanh"], "max_evaluations": 20},
            r"required=\['mass', 'arcsin', .*require less",
        ),
    ],
)
def test_a_demand_that_cannot_be_met_is_told_by_the_name_of_its_column(settings, said):
    with pytest.raises(ValueError, match=said):
        flat_regressor(generator=None, random_state=0, **settings).fit(
            pd.DataFrame(X, columns=["mass", "b", "c"]), Y
        )


def test_a_name_of_a_column_and_an_operator_is_the_columns():
    library = get_library("physics", 2)
    settings = {"required": ["log"], "forbidden": None, "nested": None}
    allowed, constraints = demanded(settings, library, ["log", "b"])
    assert constraints.required == ("x1",)
    assert allowed == library


@pytest.mark.parametrize(
    ("required", "law"), [("inv", 2.5 / X[:, 0]), ("neg", 2.5 - X[:, 1]), ("exp", np.exp(0.4 * X[:, 2]))]
)
def test_a_required_operator_is_not_written_otherwise(required, law):
    model = flat_regressor(generator=None, max_evaluations=20_000, random_state=0, required=[required]).fit(
        X, law
    )
    assert model.pareto_front_[-1].loss < 1e-20
    for candidate in model.pareto_front_:
        assert required in [
            candidate.expression.library.tokens[token].name for token in candidate.expression.tokens
        ]


@pytest.mark.parametrize("library", ["koza", "physics"])
def test_a_warm_start_begins_with_nothing_that_is_forbidden_now(library):
    settings = {"library": library, "generator": None, "max_evaluations": 2_000, "batch_size": 100}
    settings["look_up"] = False
    model = flat_regressor(**settings, random_state=0, warm_start=True).fit(X, Y)
    assert any("x1" in str(candidate.expression) for candidate in model.pareto_front_)
    model.set_params(constraints={"forbidden": ["x1"], "required": ["x2"]}).fit(X, Y)
    for candidate in model.pareto_front_:
        assert "x1" not in str(candidate.expression)
        assert "x2" in str(candidate.expression)


def test_targets_that_do_not_vary_need_nothing():
    with pytest.raises(ValueError, match=r"y is 2\.5 in every row.*required=\['x1'\].*require nothing"):
        flat_regressor(required=["x1"]).fit(X, np.full(len(X), 2.5))


def keeps(expression, outer, inner, most=0):
    """Whether a formula keeps a limit of `nested`."""
    library = expression.library
    return Nesting.of({(outer, inner): most}, library).holds(expression.tokens.tolist(), library)


@pytest.mark.parametrize(
    "settings",
    [
        {"generator": "auto", "look_up": False},
        {"gp": "deap", "look_up": False},
        pytest.param({"library": "koza", "max_evaluations": 500}, marks=pytest.mark.slow),
        {"library": "koza", "generator": "auto", "look_up": False},
        pytest.param({"n_jobs": 2, "max_evaluations": 600}, marks=pytest.mark.slow),
    ],
)
def test_no_formula_breaks_a_limit(settings):
    settings = {"max_evaluations": 400, "gp_generations": 5} | settings
    nested = {"exp": {"add": 0, "mul": 0, "div": 0, "sub": 0, "exp": 0}}
    law = np.exp(X[:, 0] / X[:, 2]) + 0.5 * X[:, 1]
    usual = {"generator": None, "batch_size": 50, "random_state": 0}
    with parallel_config("sequential"):
        model = flat_regressor(**(usual | settings), nested=nested).fit(X, law)
    for candidate in model.pareto_front_:
        for inner in nested["exp"]:
            assert keeps(candidate.expression, "exp", inner)


@pytest.mark.slow
@pytest.mark.search
def test_a_law_of_a_sine_inside_a_sine_is_found_where_that_is_allowed():
    law = np.sin(3.0 * np.sin(X[:, 2]))
    settings = {"generator": None, "max_evaluations": 20_000, "random_state": 0}
    model = flat_regressor(**settings, nested={"sin": {"sin": 1}}).fit(X, law)
    assert model.pareto_front_[-1].loss < 1e-20
    assert not keeps(model.pareto_front_[-1].expression, "sin", "sin")
    usual = flat_regressor(**settings | {"max_evaluations": 2_000}).fit(X, law)
    assert all(keeps(candidate.expression, "sin", "sin") for candidate in usual.pareto_front_)


@pytest.mark.slow
@pytest.mark.search
def test_a_complex_operator_is_chosen_no_longer():
    law = np.sin(X[:, 0]) + 0.01 * rng.normal(size=60)
    settings = {"generator": None, "max_evaluations": 5_000, "random_state": 0}
    usual = flat_regressor(**settings).fit(X, law)
    assert str(usual.expression_) == "sin(x1)"
    model = flat_regressor(**settings, complexity={"sin": 60, "cos": 60, "x1": 3}).fit(X, law)
    assert {"sin", "cos"}.isdisjoint(model.library_.tokens[token].name for token in model.expression_.tokens)
    again = Expression(model.library_, usual.expression_.tokens, usual.expression_.constants)
    assert (usual.expression_.complexity, again.complexity) == (4, 63)


def test_columns_have_complexities_by_their_names():
    library = get_library("physics", 2)
    own = library.with_complexities({"log": 7, "sin": 5})
    found, _ = demanded(dict.fromkeys(("required", "forbidden", "nested")), own, ["log", "b"])
    assert found == library.with_complexities({"x1": 7, "sin": 5})


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"nested": {"sin": {"sin": None}, "exp": {"log": 0}}},
        {"complexity": {"sin": 9, "x1": 2}},
        {"max_length": 40},
    ],
)
def test_rules_of_ones_own_keep_the_shipped_generator(settings):
    model = small(generator="auto", max_evaluations=200, gp_generations=0, look_up=False, **settings)
    assert model.generator_ == "physics-d16"


def test_rules_of_ones_own_are_saved_and_told_apart_by_a_checkpoint(tmp_path):
    rules = {"complexity": {"sin": 9, "x1": np.int64(2)}, "nested": {"exp": {"log": 0, "exp": None}}}
    settings = {"library": "koza", "max_evaluations": 500, "look_up": False}
    settings["checkpoint"] = tmp_path / "checkpoint"
    model = small(**settings, **rules)
    model.save(tmp_path / "fit.dgsr")
    read = dgsr.load(tmp_path / "fit.dgsr")
    assert {name: flat(read.get_params())[name] for name in rules} == rules
    assert read.library_ == model.library_
    assert str(read.pareto_front_) == str(model.pareto_front_)
    small(**settings, **rules)
    for name, value in {"complexity": {"sin": 9}, "nested": {"exp": {"log": 1, "exp": None}}}.items():
        where = "library" if name == "complexity" else name
        with pytest.raises(ValueError, match=f"another .*{where}"):
            small(**settings, **rules | {name: value})


def test_a_warm_start_begins_with_nothing_that_breaks_a_limit_now():
    settings = {"library": "koza", "generator": None, "max_evaluations": 2_000, "batch_size": 100}
    settings["look_up"] = False
    law = np.exp(X[:, 0] / X[:, 2])
    model = flat_regressor(**settings, random_state=0, warm_start=True).fit(X, law)
    assert not all(keeps(candidate.expression, "exp", "div") for candidate in model.pareto_front_)
    model.set_params(constraints={"nested": {"exp": {"div": 0}}}).fit(X, law)
    assert all(keeps(candidate.expression, "exp", "div") for candidate in model.pareto_front_)
