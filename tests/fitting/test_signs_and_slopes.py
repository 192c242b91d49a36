"""Fits with bounds, monotone columns and known points."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from typer.testing import CliRunner

import dgsr
from dgsr import DGSRRegressor
from dgsr.cli import app
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.table import Table
from dgsr.estimator.parameters import flat
from dgsr.expressions import Expression, get_library
from dgsr.fitting.shape import shape_of

RNG = np.random.default_rng(3)
DOSE = np.linspace(0.4, 5.0, 24)
EFFECT = 10.0 * DOSE / (1.5 + DOSE)
EFFECT = EFFECT + 0.1 * EFFECT.std() * RNG.normal(size=len(DOSE))
TABLE = pd.DataFrame({"dose": DOSE, "age": RNG.uniform(1.0, 2.0, len(DOSE))})
GRID = pd.DataFrame({"dose": np.repeat(np.linspace(0.4, 5.0, 200), 3), "age": np.tile([1.0, 1.5, 2.0], 200)})
ZERO = pd.DataFrame({"dose": [0.0, 0.0], "age": [1.0, 2.0]})
RULES = {"lower": 0, "upper": 12, "monotone": {"dose": "increasing"}, "at": {"dose": 0, "value": 0}}


def model(rules=RULES, **settings):
    usual = {"generator": None, "max_evaluations": 2_000, "random_state": 0, "constraints": rules}
    usual["config"] = {"batch_size": 100, "gp_generations": 10}
    return DGSRRegressor(**(usual | settings))


def are_kept(candidate, table=GRID):
    expression = candidate.expression
    values = expression(GRID.to_numpy()[:, : table.shape[1]]).reshape(200, 3)
    is_bounded = values.min() >= 0.0 and values.max() <= 12.0
    is_exact = np.abs(expression(ZERO.to_numpy()[:, : table.shape[1]])).max() <= 1e-3 * EFFECT.std()
    return is_bounded and is_exact and np.diff(values, axis=0).min() >= -1e-9


@pytest.fixture(scope="module")
def fitted():
    return model().fit(TABLE, EFFECT)


def test_every_formula_of_the_front_keeps_the_rules(fitted):
    assert len(fitted.pareto_front_) > 1
    assert all(are_kept(candidate) for candidate in fitted.pareto_front_)
    free = model(None).fit(TABLE, EFFECT)
    assert not all(are_kept(candidate) for candidate in free.pareto_front_)


def test_the_law_is_found_from_its_known_point(fitted):
    assert any("/(" in str(candidate.expression) for candidate in fitted.pareto_front_)
    assert fitted.pareto_front_[-1].loss < 0.05


@pytest.mark.parametrize(
    "settings",
    [
        {"n_jobs": 2},
        {"operators": ["+", "-", "*", "/", "exp"]},
        {"gp": "deap", "max_evaluations": 800},
        {"loss": "relative"},
        pytest.param({"generator": "auto"}, marks=pytest.mark.slow),
        pytest.param({"selection": "holdout"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_rules_hold_with_other_settings(settings):
    with parallel_config("sequential"):
        front = model(**settings).fit(TABLE, EFFECT).pareto_front_
    assert len(front)
    assert all(are_kept(candidate) for candidate in front)


def test_the_rules_hold_without_constants_and_in_other_coordinates():
    X = np.column_stack([np.linspace(1e6, 2e6, 30), np.linspace(1990.0, 2019.0, 30)])
    y = 3e-6 * X[:, 0] + 0.1 * (X[:, 1] - 1990.0) + 0.3 * RNG.normal(size=30)
    rules = {"lower": 0, "monotone": {"x1": "increasing", "x2": "increasing"}}
    points = np.column_stack([np.linspace(1e6, 2e6, 50), np.full(50, 2000.0)])
    for front in (
        model(rules).fit(X, y).pareto_front_,
        model(rules, library="koza", max_evaluations=500).fit(X / [1e6, 1e3], y).pareto_front_,
    ):
        scale = [1.0, 1.0] if front[0].expression.library.has_constants else [1e6, 1e3]
        for candidate in front:
            values = candidate.expression(points / scale)
            assert values.min() >= -1e-5
            assert np.diff(values).min() >= -1e-5


def test_rules_stand_beside_units_and_weights():
    units = {"dose": "mg", "age": "yr"}
    fit = model(units=units).fit(TABLE, EFFECT, np.r_[np.zeros(4, dtype=int), np.ones(20, dtype=int)])
    assert all(are_kept(candidate) for candidate in fit.pareto_front_)


def test_rows_without_weight_are_not_in_the_box():
    settings = flat(DGSRRegressor(constraints={"lower": 0}).get_params())
    X, y = TABLE.to_numpy(), EFFECT
    shape = shape_of(settings, [*TABLE], Table(X, y, np.r_[0.0, np.ones(23)]))
    np.testing.assert_array_equal(shape.low, X[1:].min(axis=0))
    assert shape.spread == y[1:].std()
    assert shape_of(flat(DGSRRegressor().get_params()), [*TABLE], Table(X, y)) is None


def test_known_points_may_be_a_list_or_an_array_or_none():
    points = [{"dose": 0, "value": 0}, {"dose": 1, "age": 2, "value": 3}]
    for given, n in ((points, 2), (np.array(points), 2), (points[0], 1), ([], 0), ({}, 0)):
        settings = flat(DGSRRegressor(constraints={"lower": 0, "at": given}).get_params())
        shape = shape_of(settings, [*TABLE], Table(TABLE.to_numpy(), EFFECT))
        assert [one.value for one in shape.known] == [0.0, 3.0][:n]


def test_a_fit_is_the_same_again_and_goes_on_from_a_checkpoint(fitted, tmp_path):
    # A smaller budget would cut its last round short, and so begin another search.
    model(checkpoint=tmp_path / "fit", callback=lambda progress: progress.share > 0.4).fit(TABLE, EFFECT)
    fit = model(checkpoint=tmp_path / "fit").fit(TABLE, EFFECT)
    assert str(fit.pareto_front_) == str(fitted.pareto_front_)
    with pytest.raises(ValueError, match="another lower"):
        model(RULES | {"lower": -1}, checkpoint=tmp_path / "fit").fit(TABLE, EFFECT)


def test_a_saved_fit_has_its_rules(fitted, tmp_path):
    rules = RULES | {"at": [{"dose": 0, "value": np.float64(0)}]}
    fit = clone(fitted).set_params(constraints=rules, max_evaluations=300).fit(TABLE, EFFECT)
    fit.save(tmp_path / "fit.dgsr")
    loaded = dgsr.load(tmp_path / "fit.dgsr")
    assert loaded.constraints == rules
    assert str(loaded.expression_) == str(fit.expression_)


@pytest.mark.slow
def test_rules_are_chosen_by_a_grid():
    grid = {"constraints": [None, {"lower": 0}]}
    search = GridSearchCV(model(max_evaluations=200), grid, cv=2).fit(TABLE, EFFECT)
    assert search.best_params_["constraints"] in grid["constraints"]
    assert len(cross_val_score(model(max_evaluations=200), TABLE, EFFECT, cv=2)) == 2


@pytest.mark.slow
def test_rules_are_for_every_target_and_for_a_further_fit():
    fit = model(max_evaluations=600).fit(TABLE, np.column_stack([EFFECT, 0.5 * EFFECT]))
    for front in fit.pareto_front_:
        assert all(are_kept(candidate) for candidate in front)
    again = model(None, max_evaluations=600, warm_start=True).fit(TABLE, EFFECT)
    again.set_params(constraints=RULES).fit(TABLE, EFFECT)
    assert all(are_kept(candidate) for candidate in again.pareto_front_)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"lower": 2, "upper": 1}, "lower=2 is above upper=1"),
        ({"lower": np.nan}, "lower"),
        ({"upper": "high"}, "upper"),
        ({"monoton": {}}, "did you mean 'monotone'"),
        ({"monotone": {"doses": "increasing"}}, "did you mean 'dose'"),
        ({"monotone": {"dose": "up"}}, "must be 'increasing' or 'decreasing'"),
        ({"monotone": {"dose": ["increasing"]}}, "must be 'increasing' or 'decreasing'"),
        ({"at": {"dose": 0}}, "'value': 0"),
        ({"at": {"value": 0}}, "'value': 0"),
        ({"at": [3]}, "at=3"),
        ({"at": {"dos": 0, "value": 0}}, "did you mean 'dose'"),
        ({"at": {"dose": "zero", "value": 0}}, "must be a finite number"),
        ({"at": {"dose": 0, "value": np.inf}}, "must be a finite number"),
        ({"at": {"dose": 0, "value": -1}, "lower": 0}, "not between lower=0"),
    ],
)
@pytest.mark.parametrize("targets", [EFFECT, np.ones(24)], ids=["varying", "one number"])
def test_what_cannot_be_meant_is_refused(rules, message, targets):
    with pytest.raises(ValueError, match=message):
        model(rules).fit(TABLE, targets)


def test_a_column_named_value_is_refused():
    with pytest.raises(ValueError, match="rename the column"):
        model({"at": {"value": 0, "dose": 1}}).fit(TABLE.rename(columns={"age": "value"}), EFFECT)


def test_rules_that_no_formula_keeps_end_with_what_to_do():
    with pytest.raises(ValueError, match="check these constraints against the data"):
        model({"lower": 100}, max_evaluations=200, library="koza", look_up=False).fit(TABLE, EFFECT)


def test_rules_that_the_rows_contradict_are_warned_of():
    with pytest.warns(UserWarning, match="check these constraints against the data"):
        fit = model({"lower": 9}, max_evaluations=500).fit(TABLE, EFFECT)
    assert fit.predict(GRID).min() >= 9.0 - 1e-5


def test_a_target_that_does_not_vary_keeps_the_rules_or_is_refused():
    with pytest.warns(UserWarning, match="the formula is that number"):
        assert model({"lower": 0}).fit(TABLE, np.ones(24)).predict(TABLE)[0] == 1.0
    for rules in ({"lower": 2}, {"upper": 0}, {"at": {"dose": 0, "value": 0}}):
        with pytest.raises(ValueError, match="in every row"):
            model(rules).fit(TABLE, np.ones(24))


def test_anchors_leave_the_errors_of_formulas_that_pass_them():
    library = get_library("physics", 1)
    formulas = [Expression.from_text(text, library) for text in ("2*x1", "x1**2", "1 + x1")]
    data = DataSet.from_arrays(DOSE[:, None], EFFECT, np.linspace(1.0, 2.0, 24))
    anchored = data.with_anchors(np.zeros((1, 2)), np.zeros(2))
    before, after = (Population.from_expressions(formulas).nmse(each) for each in (data, anchored))
    np.testing.assert_allclose(before[:2], after[:2], rtol=1e-12)
    assert after[2] > 100.0 * before[2]
    assert anchored.weights.mean() == pytest.approx(1.0)
    assert anchored.n_effective == data.n_effective
    assert data.with_anchors(np.zeros((1, 0)), np.zeros(0)) is data


def test_the_command_line_takes_rules(tmp_path):
    TABLE.assign(effect=EFFECT).to_csv(tmp_path / "table.csv", index=False)
    command = ["fit", str(tmp_path / "table.csv"), "--target", "effect", "--columns", "dose", "--json"]
    command += ["--max-evaluations", "500", "--generator", "none", "--random-state", "0", "--quiet"]
    command += ["--lower", "0", "--upper", "12", "--monotone", "dose=increasing", "--at", "dose=0,value=0"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    for row in json.loads(result.stdout)["pareto_front"]:
        formula = Expression.from_text(row["formula"], get_library("physics", 1), ["dose"])
        assert abs(formula(np.zeros((1, 1)))[0]) <= 1e-3 * EFFECT.std()
        assert np.diff(formula(np.linspace(0.4, 5.0, 100)[:, None])).min() >= -1e-9
    for option in (["--at", "dose"], ["--at", "dose=x,value=0"], ["--monotone", "dose"]):
        assert CliRunner().invoke(app, [*command, *option]).exit_code != 0
