"""A target of several columns: one formula each."""

from __future__ import annotations

import copy
import html
import json
import re

import numpy as np
import pandas as pd
import pytest
import sympy
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

import dgsr
from dgsr import Units
from dgsr.cli import app
from dgsr.files.container import TEXT, packed, unpacked
from dgsr.reporting.displays import ParetoFrontDisplay, SearchHistoryDisplay
from searches import flat_regressor

pytestmark = [
    pytest.mark.search,
    # Some rows of NOISY are far from the others, because it is divided by little there.
    pytest.mark.filterwarnings("ignore:The chosen formula has constants that single rows determine"),
    pytest.mark.filterwarnings("ignore:loss=.auto. left out"),
]

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(0.5, 2.0, (40, 2)), columns=["a", "b"])
LAWS = np.column_stack([X["a"] * X["b"], X["a"] + X["b"]])
NOISY = np.column_stack(
    [
        X["a"] * np.exp(-X["b"]) + 0.05 * np.sin(7 * X["a"]),
        np.sin(X["a"] * X["b"]) / (X["a"] + np.cos(3 * X["b"])),
    ]
)


def small(**parameters):
    # Without constants, as formulas with some take a tenth of a second to finish.
    usual = {"library": "koza", "generator": None, "max_evaluations": 1_000, "random_state": 0}
    usual |= {"look_up": False}
    return flat_regressor(**usual | parameters)


@pytest.fixture(scope="module")
def laws():
    return small(look_up=True).fit(X, LAWS)


@pytest.fixture(scope="module")
def noisy():
    return small().fit(X, NOISY)


def test_every_column_has_a_formula_and_predictions(laws):
    assert [str(expression) for expression in laws.expression_] == ["a*b", "a + b"]
    assert laws.sympy_expr_ == [sympy.sympify("a*b"), sympy.sympify("a + b")]
    np.testing.assert_allclose(laws.predict(X), LAWS, rtol=1e-12)
    assert laws.score(X, LAWS) == pytest.approx(1.0)


def test_the_attributes_of_a_fit_are_lists_over_the_outputs(laws):
    for name in ("pareto_front_", "loss_", "n_evaluations_", "history_", "stop_reason_", "generator_"):
        assert getattr(laws, name) == [getattr(one, name) for one in laws.estimators_]
    assert laws.stop_reason_ == ["exact fit", "exact fit"]
    assert laws.random_state_ == 0
    assert laws.library_.n_variables == laws.n_features_in_ == 2
    assert list(laws.feature_names_in_) == ["a", "b"]


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_an_output_is_fitted_as_it_would_be_alone_with_its_share_of_the_budget(noisy, order):
    model = small().fit(X, NOISY[:, order])
    for column, front in zip(order, model.pareto_front_):
        alone = small(max_evaluations=500).fit(X, NOISY[:, column])
        assert str(front) == str(alone.pareto_front_)
    np.testing.assert_array_equal(model.predict(X), noisy.predict(X)[:, order])
    assert model.stop_reason_ == ["max_evaluations"] * 2
    assert sum(model.n_evaluations_) <= 1_000


def test_a_drawn_random_state_repeats_a_fit_of_several_outputs(noisy):
    drawn = small(random_state=np.random.RandomState(3)).fit(X, NOISY)
    again = small(random_state=drawn.random_state_).fit(X, NOISY)
    assert str(again.pareto_front_) == str(drawn.pareto_front_) != str(noisy.pareto_front_)


def test_the_seconds_are_those_of_all_outputs_together():
    limits = []
    model = small(max_evaluations=10**9, max_time=0.2, callback=lambda progress: limits.append(progress))
    model.fit(X, NOISY)
    assert model.stop_reason_ == ["max_time", "max_time"]
    assert [one.max_time for one in model.estimators_] == [0.1, 0.1]
    assert limits


def raising(error):
    def callback(progress):
        raise error

    return callback


@pytest.mark.parametrize("callback", [lambda progress: True, raising(StopIteration)], ids=["true", "stop"])
def test_a_callback_ends_the_search_of_one_output_and_the_next_begins(callback):
    model = small(max_evaluations=1e6, callback=callback).fit(X, NOISY)
    assert model.stop_reason_ == ["callback", "callback"]
    assert np.isfinite(model.predict(X)).all()


def test_an_interrupt_ends_the_search_of_one_output_and_the_next_begins():
    with pytest.warns(UserWarning, match="The search was interrupted") as caught:
        model = small(callback=raising(KeyboardInterrupt)).fit(X, NOISY)
    assert model.stop_reason_ == ["interrupted", "interrupted"]
    assert {warning.filename for warning in caught} == {__file__}
    interrupted = [str(warning.message) for warning in caught if "interrupted" in str(warning.message)]
    assert [message[-14:] for message in interrupted] == ["column 0 of y.", "column 1 of y."]


def test_another_candidate_of_every_output_is_chosen(noisy):
    model = copy.deepcopy(noisy).choose(0)
    assert model.expression_ == [front[0].expression for front in noisy.pareto_front_]
    assert [front.chosen for front in model.pareto_front_] == [0, 0]
    assert model.sympy_expr_ == [one.sympy for one in model.expression_]


def test_another_candidate_and_deviations_are_those_of_every_output():
    noisy = small(library="physics", max_evaluations=400, max_length=10).fit(X, NOISY)
    of_each = [one.predict(X, index="accuracy") for one in noisy.estimators_]
    np.testing.assert_array_equal(noisy.predict(X, index="accuracy"), np.column_stack(of_each))
    values, deviations = noisy.predict(X, return_std=True)
    assert values.shape == deviations.shape == NOISY.shape
    np.testing.assert_array_equal(deviations[:, 1], noisy.estimators_[1].predict(X, return_std=True)[1])


def test_weights_cross_validation_and_a_frame_of_targets():
    weight = np.where(X["a"] > 1.0, 1.0, 0.0)
    model = small().fit(X, pd.DataFrame(NOISY, columns=["p", "q"]), weight)
    kept = X["a"] > 1.0
    np.testing.assert_array_equal(model.predict(X), small().fit(X[kept], NOISY[kept]).predict(X))
    assert cross_val_score(small(look_up=True), X, LAWS, cv=2).min() > 0.999


def test_a_copy_with_other_names_renames_the_formula_of_every_output(laws):
    named = laws.with_feature_names(["mass", "time"])
    assert [str(expression) for expression in named.expression_] == ["mass*time", "mass + time"]
    assert [str(one.expression_) for one in named.estimators_] == ["mass*time", "mass + time"]
    assert [str(expression) for expression in laws.expression_] == ["a*b", "a + b"]


def test_the_picture_has_the_formula_and_the_front_of_every_output(laws):
    page = laws._repr_html_()
    assert page.count("<math") == sum(len(front) + 1 for front in laws.pareto_front_)


def test_a_saved_fit_of_several_outputs_is_what_it_was(noisy, tmp_path):
    path = tmp_path / "fit.dgsr"
    noisy.save(path, target=["force", "power"])
    again = dgsr.load(path)
    assert again.target_name_ == [one.target_name_ for one in again.estimators_] == ["force", "power"]
    assert str(again.pareto_front_) == str(noisy.pareto_front_)
    np.testing.assert_array_equal(again.predict(X), noisy.predict(X))
    for name in ("loss_", "n_evaluations_", "history_", "stop_reason_", "generator_", "random_state_"):
        assert getattr(again, name) == getattr(noisy, name)
    assert again.get_params() == noisy.get_params()
    assert [one.max_evaluations for one in again.estimators_] == [500, 500]
    assert list(again.feature_names_in_) == ["a", "b"]
    again.save(path)
    assert dgsr.load(path).target_name_ == ["y1", "y2"]
    with pytest.raises(ValueError, match=r"target=\['force'\] has 1 names, not one for each of 2 columns"):
        noisy.save(path, target=["force"])


def test_the_units_of_several_outputs_are_saved(laws, tmp_path):
    model = copy.copy(laws).set_params(units=Units({"a": "m"}, target=["m", None]))
    model.save(tmp_path / "fit.dgsr")
    assert dgsr.load(tmp_path / "fit.dgsr").units == model.units


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.update(outputs=header["outputs"][:1]),
        lambda header: header.update(outputs=[header["outputs"][0]] * 3),
        lambda header: header.update(outputs=[header["outputs"][0], dict(header)]),
        lambda header: header.update(outputs={}),
        lambda header: header["outputs"][1].update(feature_names_in=["a", "c"]),
    ],
    ids=["one", "three", "nested", "no list", "other columns"],
)
def test_a_damaged_file_of_several_outputs_is_refused(laws, tmp_path, change):
    path = tmp_path / "fit.dgsr"
    laws.save(path)
    texts, arrays, _ = unpacked(path)
    header = json.loads(texts[TEXT])
    change(header)
    path.write_bytes(packed({TEXT: json.dumps(header)}, arrays))
    with pytest.raises(ValueError, match="is damaged"):
        dgsr.load(path)


def test_the_command_line_says_that_a_file_is_of_several_outputs(laws, tmp_path):
    laws.save(tmp_path / "fit.dgsr")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "fit.dgsr")])
    assert shown.exit_code == 2
    assert "has formulas of 2 targets; use dgsr.load" in shown.stderr


def test_a_report_has_the_pages_of_every_output_and_their_formulas_above(laws, tmp_path):
    path = tmp_path / "report.html"
    laws.report(path, target=["area", "<sum>"], title="Two laws")
    page = path.read_text(encoding="utf-8")
    assert "<h1>Two laws</h1>" in page
    assert '<a href="#target-1"><code>&lt;sum&gt; = a + b</code></a>' in page
    frames = [html.unescape(frame) for frame in re.findall('srcdoc="([^"]*)"', page)]
    for name, one, frame in zip(["area", "<sum>"], laws.estimators_, frames, strict=True):
        one.report(path, target=name)
        assert frame == path.read_text(encoding="utf-8")
    laws.report(path, X[:10], LAWS[:10])
    page = path.read_text(encoding="utf-8")
    assert page.count("<iframe") == 2
    assert "A formula for y2" in page
    with pytest.raises(ValueError, match=r"y has shape \(40,\); give a column for each of 2 targets"):
        laws.report(path, X, LAWS[:, 0])


def test_the_report_of_every_output_has_its_own_rows_held_out(laws, tmp_path):
    path = tmp_path / "report.html"
    laws.report(path, target=["area", "sum"], test=(X[:10], LAWS[:10]))
    frames = re.findall('srcdoc="([^"]*)"', path.read_text(encoding="utf-8"))
    for name, one, y, frame in zip(["area", "sum"], laws.estimators_, LAWS.T, frames, strict=True):
        one.report(path, target=name, test=(X[:10], y[:10]))
        assert html.unescape(frame) == path.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"y has shape \(10,\); give a column for each of 2 targets"):
        laws.report(path, test=(X[:10], LAWS[:10, 0]))


@pytest.mark.parametrize("display", [ParetoFrontDisplay, SearchHistoryDisplay])
def test_a_display_is_of_one_output(laws, display):
    with pytest.raises(ValueError, match=r"2 outputs; give one of its estimators_"):
        display.from_estimator(laws)
    display.from_estimator(laws.estimators_[1])


def test_a_plot_is_of_one_output(laws):
    with pytest.raises(ValueError, match=r"2 outputs; give one of its estimators_"):
        laws.plot()
    assert laws.estimators_[1].plot().y_true.tolist() == LAWS[:, 1].tolist()


def test_every_output_has_a_checkpoint_of_its_own(tmp_path):
    path = tmp_path / "fit.checkpoint"
    model = small(checkpoint=path, random_state=None).fit(X, NOISY)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit.checkpoint.0", "fit.checkpoint.1"]
    further = small(checkpoint=path, random_state=None, max_evaluations=2_000).fit(X, NOISY)
    assert further.random_state_ == model.random_state_
    assert all(after > before for after, before in zip(further.n_evaluations_, model.n_evaluations_))


def test_a_warm_start_goes_on_with_every_output():
    model = small(warm_start=True).fit(X, NOISY)
    losses = [front[-1].loss for front in model.pareto_front_]
    model.fit(X, NOISY)
    assert [state.n_fits for state in model._last_fit] == [2, 2]
    assert all(front[-1].loss <= loss * (1 + 1e-6) for front, loss in zip(model.pareto_front_, losses))


@pytest.mark.parametrize(
    ("first", "then"), [(NOISY, NOISY[:, 0]), (NOISY[:, 0], NOISY), (NOISY, NOISY[:, [0, 1, 0]])]
)
def test_a_warm_start_with_another_number_of_outputs_is_refused(first, then):
    model = small(warm_start=True, max_evaluations=200).fit(X, first)
    with pytest.raises(ValueError, match="warm_start=True goes on with the columns of X and y"):
        model.fit(X, then)


def test_a_constant_output_is_a_number_beside_the_others():
    with pytest.warns(UserWarning, match="y is 2 in every row.*column 0 of y") as caught:
        model = small(look_up=True, random_state=None).fit(X, np.column_stack([np.full(40, 2.0), LAWS]))
    assert caught[0].filename == __file__
    assert model.stop_reason_ == ["constant target", "exact fit", "exact fit"]
    assert isinstance(model.random_state_, int)


def test_an_output_that_cannot_be_fitted_is_named_and_leaves_nothing():
    model = small().fit(X, NOISY)
    with pytest.raises(ValueError, match="values of y spread over") as caught:
        model.fit(X, NOISY * [1.0, 1e-300])
    assert caught.value.__notes__ == ["This happened in the fit of column 1 of y."]
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_fit_of_one_output_leaves_nothing_of_several():
    model = small().fit(X, NOISY).fit(X, NOISY[:, 0])
    assert not hasattr(model, "estimators_")
    assert model.predict(X).shape == (40,)


def test_a_column_of_targets_is_one_output():
    with pytest.warns(UserWarning, match="column-vector y"):
        model = small(look_up=True).fit(X, LAWS[:, :1])
    assert str(model.expression_) == "a*b"


def test_every_output_has_a_unit_of_its_own():
    units = {"units": {"a": "m", "b": "s"}, "unitless_constants": True}
    targets = np.column_stack([X["a"] / X["b"], X["a"] * X["b"], X["a"] + 2.0 * X["b"]])
    settings = units | {"library": "physics", "unit_penalty": 1e3, "look_up": True}
    model = small(**settings, y_units=("m/s", "m*s", None)).fit(X, targets)
    assert [one.units.target for one in model.estimators_] == ["m/s", "m*s", None]
    assert [str(formula) for formula in model.expression_[:2]] == ["a/b", "a*b"]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (LAWS, r"The units of the target, \['m'\], have 1 entries for 2 columns of y; give one for each"),
        (LAWS[:, 0], r"The units of the target, \['m'\], are for several columns of y; give the unit of"),
    ],
)
def test_a_list_of_units_has_one_for_each_of_several_outputs(targets, said):
    with pytest.raises(ValueError, match=said):
        small(units={"a": "m"}, y_units=["m"]).fit(X, targets)


@pytest.mark.parametrize("targets", [LAWS, LAWS[:, 0]])
@pytest.mark.parametrize("y_units", [{"m": "s"}, {"a": "m", "b": "s"}, {"m", "s"}])
def test_units_of_targets_by_name_are_refused(y_units, targets):
    with pytest.raises(ValueError, match=r"The unit of the target, .* must be a str, or a sequence with one"):
        small(units={"a": "m"}, y_units=y_units).fit(X, targets)
