"""Fits with groups: one form, and constants by group where these describe the data more shortly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import dgsr
from dgsr import DGSRRegressor
from dgsr.data.groups import labels_of

N = 8
SCALES = {"A": 2.0, "B": 3.5, "C": 5.0, "D": 1.0, "E": 7.0}
# A form leaves constants alone to be fitted.
SHORT = {"generator": None, "form": "k*exp(-r*x)", "random_state": 0}
QUICK = {"generator": None, "max_evaluations": 6_000, "random_state": 0}


def table(law, seed=0, noise=1e-3):
    """Rows of a law of x and the scale of a subject, in random order."""
    rng = np.random.default_rng(seed)
    subjects = rng.permutation(np.repeat(list(SCALES), N))
    x = rng.uniform(0.5, 3.0, len(subjects))
    scales = np.array([SCALES[one] for one in subjects])
    y = law(x, scales) + noise * rng.standard_normal(len(x))
    return pd.DataFrame({"x": x, "Subject": subjects}), y


def decay(x, scale):
    return scale * np.exp(-0.7 * x)


@pytest.fixture(scope="module")
def data():
    return table(decay)


@pytest.fixture(scope="module")
def fitted(data):
    return DGSRRegressor(groups="Subject", **QUICK).fit(*data)


def test_the_scale_of_each_subject_and_one_rate_are_found(fitted, data):
    assert fitted.expression_.text == "a*exp(-0.7*x)"
    constants = fitted.constants_by_group_
    assert constants.index.name == "Subject"
    assert list(constants.columns) == ["a", "a_error"]
    for subject, scale in SCALES.items():
        value, error = constants.loc[subject]
        assert abs(value - scale) < 5.0 * error < 0.05
    assert fitted.score(*data) > 0.99999


def test_a_law_of_all_rows_has_no_constants_by_group():
    X, y = table(lambda x, _: 2.0 * np.exp(-0.7 * x))
    found = DGSRRegressor(groups="Subject", **QUICK).fit(X, y)
    assert found.expression_.text == "2*exp(-0.7*x)"
    assert found.constants_by_group_.shape[1] == 0
    assert list(found.predict(X))


def test_a_constant_within_a_function_may_be_by_group():
    X, y = table(lambda x, scale: 4.0 * np.exp(-0.3 * scale * x))
    found = DGSRRegressor(groups="Subject", **QUICK).fit(X, y)
    assert found.expression_.text in ("4*exp(x*a)", "4*exp(-x*a)")
    assert found.constants_by_group_["a"].abs().to_numpy() == pytest.approx(
        [0.3 * scale for scale in SCALES.values()], rel=0.01
    )


def test_an_exact_law_of_targets_with_few_digits_is_chosen():
    group = np.arange(12) % 2
    X = pd.DataFrame({"group": np.array(["a", "b"])[group], "x": np.arange(12) + 0.5})
    found = DGSRRegressor(groups="group", **QUICK | {"max_evaluations": 500}).fit(X, (1 + group) * X["x"])
    assert found.expression_.text == "x*a"
    assert found.pareto_front_.candidate_of(found.expression_).loss < 1e-30


def test_without_groups_the_form_stays_hidden(data):
    X, y = data
    pooled = DGSRRegressor(**QUICK).fit(X[["x"]], y)
    assert pooled.score(X[["x"]], y) < 0.9


def test_groups_apart_from_X_give_the_same_fit(fitted, data):
    X, y = data
    apart = DGSRRegressor(form="k*exp(-r*x1)", **QUICK).fit(X[["x"]].to_numpy(), y, groups=X["Subject"])
    rows = {"X": X[["x"]].to_numpy(), "groups": X["Subject"]}
    np.testing.assert_allclose(apart.predict(**rows), fitted.predict(X), rtol=1e-5)
    assert apart.constants_by_group_.index.name == "group"
    assert apart.score(y=y, **rows) == pytest.approx(fitted.score(X, y), rel=1e-5)
    np.testing.assert_allclose(apart.plot(y=y, **rows).y_pred, fitted.predict(X), rtol=1e-5)


@pytest.mark.parametrize("labels", ["text", "numbers"])
def test_the_column_may_be_a_number_of_an_array(data, labels):
    X, y = data
    subjects = X["Subject"].to_numpy(object)
    if labels == "numbers":
        subjects = np.array([10.0 * list(SCALES).index(one) for one in subjects])
    array = np.column_stack([subjects, X["x"].to_numpy(object if labels == "text" else float)])
    found = DGSRRegressor(groups=0, form="k*exp(-r*x2)", **QUICK).fit(array, y)
    assert found.expression_.text == "k*exp(-0.7*x2)"
    assert found.predict(array).shape == y.shape


@pytest.mark.parametrize("kind", ["bools", "categories", "integers", "numpy texts in a list"])
def test_labels_of_every_kind_are_kept_in_a_file(data, kind, tmp_path):
    X, y = data
    codes = X["Subject"].map(list(SCALES).index).to_numpy()
    labels = {
        "bools": codes > 1,
        "categories": pd.Categorical(X["Subject"]),
        "integers": pd.array(codes, dtype="Int64"),
        "numpy texts in a list": [*X["Subject"].to_numpy(np.str_)],
    }[kind]
    X = X.assign(Subject=labels)
    found = DGSRRegressor(groups="Subject", **SHORT).fit(X, y)
    found.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert again.groups_ == found.groups_
    assert all(type(label) in (bool, str, int) for label in found.groups_)


def test_the_order_of_labels_of_several_types_is_that_of_the_rows_where_their_texts_are_equal():
    assert labels_of(["b", 1, "1", 1], "groups") == (1, "1", "b")
    assert labels_of(["1", "b", 1], "groups") == ("1", 1, "b")
    assert labels_of([("a", 2), ("a", 1)], "groups") == (("a", 1), ("a", 2))


def test_groups_apart_from_X_have_a_name_that_no_column_has(data, tmp_path):
    X, y = data
    X, labels = X[["x"]].set_axis(["group"], axis=1), X["Subject"]
    found = DGSRRegressor(**SHORT | {"form": "k*exp(-r*group)"}).fit(X, y, groups=labels)
    assert found.constants_by_group_.index.name == "group_2"
    found.report(tmp_path / "own.html")
    found.report(tmp_path / "given.html", X, y, groups=labels)
    for name in ("own.html", "given.html"):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert "Constants by group_2: A: k = " in page
        assert "regressor.fit(X, y, groups=groups)" in page
    renamed = found.with_feature_names(["t"])
    np.testing.assert_array_equal(
        renamed.predict(X.set_axis(["t"], axis=1), groups=labels), found.predict(X, groups=labels)
    )


def test_a_constant_target_with_groups_apart_from_X_is_that_number(data):
    X, _ = data
    with pytest.warns(UserWarning, match="y is 3 in every row"):
        found = DGSRRegressor(**SHORT).fit(X[["x"]], np.full(len(X), 3.0), groups=X["Subject"])
    assert found.predict(X[["x"]].head(2), groups=["A", "B"]).tolist() == [3.0, 3.0]


def test_bad_tables_to_predict_are_refused_as_without_groups(fitted, data):
    X, y = data
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(X[["Subject", "x"]])
    with pytest.raises(ValueError, match="now missing:\n- Subject"):
        fitted.predict(X[["x"]])
    with pytest.raises(ValueError, match="the fit had none apart from X"):
        fitted.predict(X, groups=X["Subject"])
    apart = DGSRRegressor(**SHORT).fit(X[["x"]], y, groups=X["Subject"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        apart.predict(X[["x"]], groups=["A"])


def test_a_group_without_weight_is_like_a_new_one(data):
    X, y = data
    found = DGSRRegressor(groups="Subject", form="k*exp(-r*x)", **QUICK)
    found.fit(X, y, sample_weight=1.0 * (X["Subject"] != "B"))
    others = [scale for subject, scale in SCALES.items() if subject != "B"]
    value, error = found.constants_by_group_.loc["B"]
    assert value == pytest.approx(np.mean(others), rel=0.01)
    assert error == pytest.approx(np.std(others, ddof=1), rel=0.01)


@pytest.mark.slow
def test_a_fit_that_goes_on_begins_by_group_with_the_formulas_of_the_last_one():
    X, _ = table(decay)
    X.insert(1, "z", np.random.default_rng(4).uniform(0.5, 3.0, len(X)))
    y = X["Subject"].map(SCALES) * np.exp(-0.7 * X["x"] * X["z"]) * np.sqrt(X["z"] + 1.3) / (1 + X["x"] ** 2)
    settings = {"warm_start": True, "look_up": False, "max_length": 12}
    model = DGSRRegressor(groups="Subject", **QUICK | settings).fit(X, y)
    lowest = model.history_[-1]["best_nmse"]
    model.set_params(max_evaluations=400).fit(X, y)
    assert model.history_[-1]["best_nmse"] <= lowest * (1.0 + 1e-6)


def test_new_groups_are_predicted_by_means_with_a_warning_or_refused(fitted, data):
    X = data[0].head(3).assign(Subject="Z")
    with pytest.warns(UserWarning, match="3 rows are of groups that were not in the fit, 'Z'"):
        values = fitted.predict(X)
    np.testing.assert_allclose(values, np.mean([*SCALES.values()]) * np.exp(-0.7 * X["x"]), rtol=1e-2)
    strict = fitted.set_params(config={"new_groups": "raise"})
    with pytest.raises(ValueError, match="not in the fit, 'Z'"):
        strict.predict(X)
    fitted.set_params(config=None)


def test_a_new_group_is_less_certain_by_the_spread_of_the_groups(fitted, data):
    X = data[0].head(1)
    _, of_known = fitted.predict(X, return_std=True)
    with pytest.warns(UserWarning, match="groups that were not in the fit"):
        _, of_new = fitted.predict(X.assign(Subject="Z"), return_std=True)
    spread = np.std([*SCALES.values()], ddof=1) * np.exp(-0.7 * X["x"].iloc[0])
    assert of_known[0] < 0.01
    assert of_new[0] == pytest.approx(spread, rel=0.05)


def test_a_fit_is_kept_in_a_file_and_a_pickle(fitted, data, tmp_path):
    X, _ = data
    fitted.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    for one in (again, clone(fitted, safe=False)):
        assert one.get_params() == fitted.get_params()
    np.testing.assert_array_equal(again.predict(X, return_std=True), fitted.predict(X, return_std=True))
    pd.testing.assert_frame_equal(again.constants_by_group_, fitted.constants_by_group_)
    assert repr(again.pareto_front_) == repr(fitted.pareto_front_)


def test_the_report_names_the_constants_of_each_group(fitted, data, tmp_path):
    fitted.report(tmp_path / "own.html")
    fitted.report(tmp_path / "given.html", *data)
    for name in ("own.html", "given.html"):
        assert "Constants by Subject: A: a = 2 ±" in (tmp_path / name).read_text(encoding="utf-8")


def test_the_front_says_which_constants_are_by_group(fitted):
    assert "for each Subject." in repr(fitted.pareto_front_)


@pytest.mark.slow
def test_cross_validation_and_a_grid_take_whole_and_split_groups(data):
    X, y = data
    model = DGSRRegressor(groups="Subject", **{**QUICK, "max_evaluations": 1_000})
    with pytest.warns(UserWarning, match="were not in the fit"):
        scores = cross_val_score(model, X, y, groups=X["Subject"], cv=GroupKFold(2))
    assert np.isfinite(scores).all()
    grid = GridSearchCV(model, {"max_evaluations": [500, 1_000]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.99


@pytest.mark.slow
def test_several_targets_checkpoints_and_processes_know_groups(data, tmp_path):
    X, y = data
    model = DGSRRegressor(groups="Subject", **QUICK).fit(X, np.column_stack([y, 2.0 * y]))
    assert [one.text for one in model.expression_] == ["a*exp(-0.7*x)"] * 2
    model.save(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(dgsr.load(tmp_path / "fit.dgsr").predict(X), model.predict(X))
    settings = QUICK | {"n_jobs": 2, "checkpoint": tmp_path / "fit.ckpt"}
    first = DGSRRegressor(groups="Subject", **settings).fit(X, y)
    assert DGSRRegressor(groups="Subject", **settings).fit(X, y).expression_ == first.expression_


def test_units_weights_and_relative_errors_work_with_groups(data):
    X, y = data
    form = {"form": "k*exp(-r*x)", "units": {"x": "s"}}
    found = DGSRRegressor(groups="Subject", loss="relative", **form, **QUICK)
    found.fit(X, y, sample_weight=np.ones(len(y)))
    assert found.loss_ == "relative"
    assert found.expression_.text in ("k*exp(-0.7*x)", "k*exp(-0.699*x)")
    assert found.pareto_front_[found.pareto_front_.chosen].units[-1] == "1/s"


def test_the_formula_of_every_group_keeps_signs_and_slopes(data):
    X, y = data
    rules = {"monotone": {"x": "decreasing"}, "lower": 0.0}
    found = DGSRRegressor(groups="Subject", constraints=rules, **QUICK).fit(X, y)
    x = np.column_stack([np.linspace(0.5, 3.0, 50), np.zeros(50)])
    for candidate in found.pareto_front_:
        formula = candidate.expression
        each = map(formula.of_group, SCALES) if hasattr(formula, "by_group") else [formula]
        for one in each:
            assert np.diff(one(x)).max() <= 1e-6
            assert one(x).min() >= -1e-6
    assert found.expression_.text == "a*exp(-0.7*x)"


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        ({"groups": "Object"}, {}, "groups='Object' is no column of X; choose from x, Subject"),
        ({"groups": 7}, {}, "groups=7 is no column of X"),
        ({"groups": "Subject"}, {"Subject": "A"}, "has the same label in every row"),
        ({"groups": "Subject"}, {"Subject": None}, "has no label in 40 of 40 rows"),
        ({"groups": "Subject"}, {"Subject": pd.NA}, "has no label in 40 of 40 rows"),
        ({"groups": "Subject", "loss": "huber"}, {}, "loss='huber' cannot be used with groups"),
        ({"groups": "Subject", "library": "koza"}, {}, "constants apart, which library='koza' lacks"),
        ({"groups": "Subject", "constraints": {"required": ["Subject"]}}, {}, "has the column of groups"),
        (
            {"groups": "Subject", "constraints": {"monotone": {"Subject": "increasing"}}},
            {},
            "at or monotone",
        ),
        ({"groups": "Subject", "constraints": {"at": {"Subject": 0, "value": 0}}}, {}, "at or monotone"),
        ({"groups": "Subject", "config": {"new_groups": "guess"}}, {}, "new_groups"),
    ],
)
def test_bad_groups_are_refused_with_the_mend(data, parameters, change, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        DGSRRegressor(**QUICK, **parameters).fit(X.assign(**change), y)


def test_a_table_without_inputs_or_of_one_dimension_is_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="no column beside the groups"):
        DGSRRegressor(groups="Subject", **SHORT).fit(X[["Subject"]], y)
    with pytest.raises(ValueError, match=r"X has the shape \(40,\)"):
        DGSRRegressor(**SHORT).fit(X["x"], y, groups=X["Subject"])


def test_groups_are_given_once(data):
    X, y = data
    with pytest.raises(ValueError, match="both given"):
        DGSRRegressor(groups="Subject", **QUICK).fit(X, y, groups=X["Subject"])


def test_the_constants_of_a_form_are_shared_or_by_group_and_the_form_stays(data):
    X, y = data
    found = DGSRRegressor(groups="Subject", form="k*exp(-r*x)", **QUICK).fit(X, y)
    assert found.expression_.text == "k*exp(-0.7*x)"
    with_function = DGSRRegressor(groups="Subject", form="k*f(x)", **QUICK).fit(X, y)
    assert with_function.expression_.text == "k*exp(-0.7*x)"
    chosen = with_function.pareto_front_[with_function.pareto_front_.chosen]
    assert chosen.parts["f(x)"] == "exp(-0.7*x)"


def test_a_constant_by_group_has_the_name_that_the_form_gives_it(data, tmp_path):
    X, _ = data
    found = DGSRRegressor(**QUICK, form="a*exp(-k*x) + b", groups="Subject")
    found.fit(X, 2.0 + 3.0 * np.exp(-0.2 * X["Subject"].map(SCALES) * X["x"]))
    found.save(tmp_path / "fit.dgsr")
    for one in (found, dgsr.load(tmp_path / "fit.dgsr")):
        assert one.expression_.text == "3*exp(-k*x) + 2"
        assert [*one.constants_by_group_] == ["k", "k_error"]
        assert one.pareto_front_.candidate_of(one.expression_).parts == {"a": "3", "b": "2"}


def test_a_constant_twice_in_a_form_is_one_constant_and_its_numbers_stay(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"Subject": rng.choice(["A", "B"], 80), "x": rng.uniform(0.5, 3.0, 80)})
    scale = X["Subject"].map({"A": 2.0, "B": 5.0}).to_numpy()
    x, is_b = X["x"].to_numpy(), (X["Subject"] == "B").to_numpy()
    y = scale * np.exp(-0.73 * x) + 0.73 + 3.0 + 0.05 * rng.normal(size=80)
    found = DGSRRegressor(**QUICK, form="a*exp(-k*x) + k + 3", groups="Subject").fit(X, y)
    chosen = found.pareto_front_.candidate_of(found.expression_)
    assert [*found.constants_by_group_] == ["a", "a_error"]
    assert [*chosen.parts] == ["k"]

    def law(_, k, a, b):
        return np.where(is_b, b, a) * np.exp(-k * x) + k + 3.0

    values, covariance = scipy.optimize.curve_fit(law, x, y, [1.0, 1.0, 1.0])
    own, errors = found.constants_by_group_.loc[["A", "B"]], np.sqrt(np.diag(covariance))
    estimates = [float(chosen.parts["k"]), *own["a"]]
    assert (np.abs(estimates - values) < 0.5 * errors).all()  # k is rounded to the digits that it has
    np.testing.assert_allclose([*own["a_error"]], errors[1:], rtol=0.02)
    found.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    assert again.expression_ == found.expression_
    assert again.pareto_front_.candidate_of(again.expression_).parts == chosen.parts


def test_every_formula_of_a_form_by_group_is_of_the_form():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (40, 2))
    y = 2.5 * X[:, 0] ** 2 + np.exp(X[:, 1]) + 0.1 * rng.normal(size=40)
    found = DGSRRegressor(form="f(x1 + k)*f(x2 + k) + 2*k", **QUICK)
    found.fit(X, y, groups=rng.choice(["A", "B"], 40))
    assert all(one.parts for one in found.pareto_front_)
