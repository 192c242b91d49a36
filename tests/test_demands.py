"""Columns and operators that every formula must have, or must not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from dgsr import DGSRRegressor
from dgsr.evolution import random_population
from dgsr.expressions import Constraints, get_library
from dgsr.kernels.random import new_state
from dgsr.passes.demands import Demands
from dgsr.population import DataSet
from dgsr.search import Search, SearchConfig
from dgsr.search.terms import columns_of, simple_terms

rng = np.random.default_rng(0)
X = rng.uniform(0.5, 2.0, (60, 3))
# Two columns that hardly differ, so that either explains y.
X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=60)
Y = X[:, 0] ** 2 * X[:, 2] + 0.05 * rng.normal(size=60)


def small(**settings):
    usual = {"generator": None, "max_evaluations": 10_000, "batch_size": 50, "random_state": 0}
    return DGSRRegressor(**(usual | settings)).fit(X, Y)


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
        {"generator": "auto"},
        {"gp": "deap"},
        {"library": "koza"},
        {"library": "koza", "generator": "auto", "look_up": False},
    ],
)
def test_no_formula_has_what_is_forbidden(settings):
    settings = settings | {"max_evaluations": 1_000, "gp_generations": 5}
    for tokens in tokens_of(small(forbidden=["x1", "sin", "sub"], **settings)):
        assert not tokens & {"x1", "sin", "sub"}


@pytest.mark.parametrize("settings", [{}, {"library": "koza", "max_evaluations": 2_000}, {"n_jobs": 2}])
def test_every_formula_has_what_is_required(settings):
    with parallel_config("sequential"):
        fronts = tokens_of(small(required=["x2", "exp"], **settings))
    assert fronts
    for tokens in fronts:
        assert {"x2", "exp"} <= tokens


def test_columns_go_by_their_names():
    table = pd.DataFrame(X, columns=["mass", "weight", "speed"])
    model = DGSRRegressor(
        generator=None, max_evaluations=5_000, random_state=0, required=["speed"], forbidden=["mass"]
    ).fit(table, Y)
    for candidate in model.pareto_front_:
        assert "speed" in str(candidate.expression)
        assert "mass" not in str(candidate.expression)
    assert model.predict(table).shape == (60,)


def test_a_forbidden_column_changes_nothing_that_is_predicted():
    model = small(forbidden=["x1"])
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
    for term in simple_terms(library, grammar, 200):
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
    ],
)
def test_demands_that_cannot_be_met_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        small(**settings)


def test_a_name_of_a_column_and_an_operator_is_the_columns():
    library = get_library("physics", 2)
    demands = Demands.of(["log"], None, library, ["log", "b"])
    assert demands.required == ("x1",)
    assert demands.library == library


@pytest.mark.parametrize(
    ("required", "law"),
    [("inv", 2.5 / X[:, 0]), ("neg", 2.5 - X[:, 1]), ("exp", np.exp(0.4 * X[:, 2]))],
)
def test_a_required_operator_is_not_written_otherwise(required, law):
    model = DGSRRegressor(generator=None, max_evaluations=20_000, random_state=0, required=[required]).fit(
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
    model = DGSRRegressor(**settings, random_state=0, warm_start=True).fit(X, Y)
    assert any("x1" in str(candidate.expression) for candidate in model.pareto_front_)
    model.set_params(forbidden=["x1"], required=["x2"]).fit(X, Y)
    for candidate in model.pareto_front_:
        assert "x1" not in str(candidate.expression)
        assert "x2" in str(candidate.expression)


def test_targets_that_do_not_vary_need_nothing():
    with pytest.raises(ValueError, match=r"y is 2\.5 in every row.*required=\['x1'\].*require nothing"):
        DGSRRegressor(required=["x1"]).fit(X, np.full(len(X), 2.5))
