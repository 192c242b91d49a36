"""Fits of a form: what they find, and what they may be combined with."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel
from scipy.optimize import curve_fit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dgsr import DGSRRegressor, get_library, load
from dgsr.expressions.programs.form import Form
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import variables_of
from dgsr.fitting import checkpoint as module
from dgsr.fitting.saved_states import _check_form
from searches import flat_regressor

pytestmark = pytest.mark.search

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(0.5, 3.0, (60, 3)), columns=["T", "p", "c"])
NOISE = 0.01 * RNG.normal(size=60)
POTENTIAL = X["T"] ** 2 + X["T"] - X["p"] ** 2 - X["p"]


def fitted(form, y=POTENTIAL, table=X, **settings):
    settings = {"max_evaluations": 3000, "batch_size": 100, "gp_generations": 5, "max_length": 20, **settings}
    return flat_regressor(form=form, random_state=0, **settings).fit(table, y)


@pytest.fixture(scope="module")
def model():
    return fitted("f(T) - f(p)", POTENTIAL + NOISE)


def test_a_function_that_stands_twice_is_found(model):
    expected = X["T"] ** 2 + X["T"] - X["p"] ** 2 - X["p"]
    assert np.mean((model.predict(X) - expected) ** 2) < 1e-4
    (name, text), = model.pareto_front_.candidate_of(model.expression_).parts.items()  # fmt: skip
    assert (name, text) == ("f(T)", "T + T**2")


def test_every_formula_of_the_front_is_of_the_form(model):
    swapped = X[["p", "T", "c"]].set_axis(X.columns, axis=1)
    for i, candidate in enumerate(model.pareto_front_):
        assert list(candidate.parts) == ["f(T)"]
        np.testing.assert_allclose(model.predict(swapped, index=i), -model.predict(X, index=i), atol=1e-9)
    assert "[f(T) = " in repr(model.pareto_front_)


def test_functions_have_their_own_columns_alone():
    model = fitted("f(T)*g(p, c) + k", np.exp(-X["T"]) * X["p"] / (X["c"] + 1.5) + 2.0 + NOISE)
    for candidate in model.pareto_front_:
        assert list(candidate.parts) == ["f(T)", "g(p, c)", "k"]
        assert variables_of(parse(candidate.parts["f(T)"])) <= {"T"}
        assert variables_of(parse(candidate.parts["g(p, c)"])) <= {"p", "c"}
    assert model.score(X, np.exp(-X["T"]) * X["p"] / (X["c"] + 1.5) + 2.0) > 0.9


def test_a_form_without_functions_has_its_constants_fitted_with_their_errors():
    y = 5.0 - 3.0 * X["T"] / (2.5 + X["p"]) + NOISE
    model = fitted("a - b*T/(c0 + p)", y, max_evaluations=1e6)

    def law(x, a, b, c):
        return a - b * x[0] / (c + x[1])

    expected, covariance = curve_fit(law, X[["T", "p"]].to_numpy().T, y, p0=(1, 1, 1))
    (candidate,) = model.pareto_front_
    values = [float(text) for text in candidate.parts.values()]
    errors = np.sqrt(np.diag(covariance))
    assert list(candidate.parts) == ["a", "b", "c0"]
    assert (np.abs(values - expected) < errors).all()
    np.testing.assert_allclose(candidate.standard_errors, errors, rtol=0.05)


def test_the_errors_of_a_constant_that_stands_twice_are_those_of_one():
    y = np.exp(-0.7 * X["T"]) - np.exp(-0.7 * X["p"]) + NOISE
    (candidate,) = fitted("exp(k*T) - exp(k*p)", y).pareto_front_
    expected, covariance = curve_fit(
        lambda x, k: np.exp(k * x[0]) - np.exp(k * x[1]), X[["T", "p"]].to_numpy().T, y, p0=(-1,)
    )
    assert candidate.expression.constants[0] == candidate.expression.constants[1]
    assert abs(candidate.expression.constants[0] - expected[0]) < covariance[0, 0] ** 0.5
    np.testing.assert_allclose(candidate.standard_errors, covariance[0, 0] ** 0.5, rtol=0.05)


def test_numbers_of_the_form_stay():
    model = fitted("2.5*T + f(p)*1.75", 2.4 * X["T"] + 1.75 * X["p"] ** 2)
    assert all(
        str(c.expression).startswith("2.5*T") or "2.5*T" in str(c.expression) for c in model.pareto_front_
    )
    (candidate,) = fitted("2.5*T + k", 2.4 * X["T"] + 1.0).pareto_front_
    assert candidate.expression.constants.tolist()[0] == 2.5
    assert candidate.standard_errors[0] == 0.0


def test_a_saved_fit_has_its_parts(model, tmp_path):
    model.save(tmp_path / "fit.dgsr")
    read = load(tmp_path / "fit.dgsr")
    assert read.form == "f(T) - f(p)"
    assert repr(read.pareto_front_) == repr(model.pareto_front_)


def test_the_same_seed_gives_the_same_fit(model):
    again = clone(model).fit(X, POTENTIAL + NOISE)
    assert repr(again.pareto_front_) == repr(model.pareto_front_)


def test_several_targets_have_one_form():
    model = fitted("f(T) - f(p)", np.column_stack([POTENTIAL, np.exp(X["T"]) - np.exp(X["p"])]))
    assert [list(front[-1].parts) for front in model.pareto_front_] == [["f(T)"]] * 2


def test_forms_are_compared_by_cross_validation():
    forms = ["f(c)", "f(T) - f(p)"]
    one = flat_regressor(max_evaluations=500, batch_size=100, gp_generations=2, max_length=12, random_state=0)
    search = GridSearchCV(one, {"form": forms}, cv=2).fit(X, POTENTIAL + NOISE)
    assert search.best_params_ == {"form": "f(T) - f(p)"}


class Killed(Exception):
    """What a callback raises in place of the process being killed."""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fit_that_was_killed_ends_as_if_it_had_not_been(n_jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    monkeypatch.setattr("dgsr.search.islands._MOST_ROUNDS", 1)
    monkeypatch.setattr("dgsr.search.islands._Parallel", partial(Parallel, backend="sequential"))
    settings = {"form": "f(T)*g(p) + k*c", "n_jobs": n_jobs, "loss": "squared", "max_evaluations": 900}
    whole = fitted(**settings, y=POTENTIAL + NOISE)

    def kill(progress):
        raise Killed

    path = tmp_path / "fit.checkpoint"
    for _ in range(2):
        with pytest.raises(Killed):
            fitted(**settings, y=POTENTIAL + NOISE, checkpoint=path, callback=kill)
    resumed = fitted(**settings, y=POTENTIAL + NOISE, checkpoint=path)
    assert repr(resumed.pareto_front_) == repr(whole.pareto_front_)
    assert resumed.n_evaluations_ == whole.n_evaluations_


def test_units_and_rules_hold_for_whole_formulas():
    units = {"T": "s", "p": "s", "c": "m"}
    rules = {"required": ["c"], "nested": {"exp": {"exp": 0}}}
    model = fitted("c*f(T, p)", X["c"] * X["T"] / X["p"] + NOISE, units=units, y_units="m",
                   unitless_constants=True, **rules)  # fmt: skip
    for candidate in model.pareto_front_:
        assert "c" in str(candidate.expression)
        assert candidate.handicap == 1.0
    assert model.score(X, X["c"] * X["T"] / X["p"]) > 0.99


@pytest.mark.parametrize("loss", ["relative", "absolute"])
def test_other_losses_judge_formulas_of_the_form(loss):
    model = fitted("f(T)*g(p)", np.exp(X["T"]) * X["p"] * (1 + NOISE), loss=loss, max_evaluations=1000)
    assert all(list(candidate.parts) == ["f(T)", "g(p)"] for candidate in model.pareto_front_)


def test_a_further_pass_keeps_rules_for_whole_formulas():
    y, rules = X["c"] * X["T"] ** 2 * (1 + NOISE), {"exp": {"log": 0}}
    model = fitted("c*f(T)", y, loss="absolute", max_evaluations=1000, nested=rules)
    assert all(list(candidate.parts) == ["f(T)"] for candidate in model.pareto_front_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"initial_formulas": ["T"]}, "initial_formulas=.* cannot be used with a form.*leave out"),
        ({"warm_start": True}, "warm_start=True cannot be used with a form"),
        ({"gp": "deap"}, "gp='deap' cannot be used with a form"),
        ({"forbidden": ["p"]}, "has 'p', which is forbidden"),
        ({"library": "koza"}, "needs fitted constants, which library='koza' lacks"),
        ({"operators": ["+", "*"], "form": "f(T) - f(p)"}, "it needs sub, which this library lacks; use one"),
        ({"operators": ["+", "*"], "form": "f(T)*abs(k*p)"}, r"'abs\(k\*p\)' cannot be written"),
        ({"max_length": 6}, "leaves f fewer than 3 of the max_length=6 tokens"),
        ({"form": "f(T) +"}, "position 6, 'the end'"),
        ({"form": "f(Tx) + f(p)"}, "position 2, 'Tx': an argument has no column; the columns are T, p, c"),
    ],
)
def test_what_makes_no_sense_with_a_form_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        fitted(**{"form": "f(T)*c + f(p)", **settings})


def test_states_that_kernels_could_not_read_are_refused():
    form = Form("f(x1)*g(x2) + k", get_library("physics", 3))
    x1 = form.tokens.first_variable

    def check(tokens, are_forests):
        arrays = {"tokens": tokens, "lengths": len(tokens), "constants": np.ones(len(tokens))}
        _check_form({name: np.array([value]) for name, value in arrays.items()}, form, are_forests)

    check(form.forest([[x1], [x1]]), True)
    with pytest.raises(ValueError, match="functions of other arguments"):
        check(form.forest([[x1], [x1 + 1]]), True)
    with pytest.raises(ValueError, match="functions of other arguments"):
        check([x1, *form.forest([[x1], [x1]])[1:]], True)
    with pytest.raises(ValueError, match="programs of another form"):
        check([x1], False)


def test_common_forms_stand_in_a_form_before_anything_evolves():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (60, 2))
    y = X[:, 1] * 3.0 * X[:, 0] / (0.7 + X[:, 0])
    model = DGSRRegressor(form="x2*f(x1)", random_state=0).fit(X, y)
    assert model.n_evaluations_ < 100
    assert model.score(X, y) == pytest.approx(1.0)
