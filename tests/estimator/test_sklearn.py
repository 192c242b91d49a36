"""The estimator among scikit-learn's tools."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dgsr import Expression, get_library, load
from dgsr.constants.uncertainty import Uncertainty
from dgsr.data.dataset import DataSet
from dgsr.expressions import Constraints
from dgsr.fitting import plan
from dgsr.fitting.outcome import Outcome
from dgsr.pareto import Candidate, ParetoFront
from searches import flat_regressor

pytestmark = pytest.mark.search

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])


def small(**parameters):
    return flat_regressor(**{"generator": None, "max_evaluations": 2_000, "random_state": 0, **parameters})


def quick(**parameters):
    """A regressor of a tenth of that time, for what does not hang on which formulas are found.

    It has no constants: formulas with some take a tenth of a second to finish.
    """
    return small(**{"library": "koza", "max_evaluations": 500, "look_up": False, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(X, Y)


@pytest.mark.parametrize("y", [np.log(X[:, 0]), np.column_stack([X[:, 1], np.log(X[:, 0])])])
def test_a_score_where_the_formula_is_undefined_says_in_how_many_rows(y):
    model = small(library="koza", look_up=True).fit(X, y)
    assert model.score(X, y, X[:, 1]) > 0.999
    below = np.where(np.arange(40)[:, None] < 3, -X, X)
    assert np.isnan(model.predict(below)).sum() == 3
    with pytest.raises(ValueError, match=r"no finite value in 3 of 40 rows\. Leave these out, or"):
        model.score(below, y)


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame])
def test_frames_give_the_formula_their_names(frame, fitted):
    table = frame({"a mass": X[:, 0], "x_{1}": X[:, 1]})
    model = quick().fit(table, Y)
    np.testing.assert_array_equal(model.predict(table), fitted.predict(X))
    assert {str(symbol) for symbol in model.sympy_expr_.free_symbols} <= {"a mass", "x_{1}"}
    assert list(model.feature_names_in_) == ["a mass", "x_{1}"]
    assert "a mass" in str(model.pareto_front_)


def test_a_pipeline_that_sets_its_output_gives_the_formula_its_names():
    steps = ColumnTransformer([("size", StandardScaler(), ["a"]), ("raw", FunctionTransformer(), ["b"])])
    pipeline = make_pipeline(steps, quick()).set_output(transform="pandas")
    pipeline.fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert list(pipeline[-1].feature_names_in_) == ["size__a", "raw__b"]
    assert {str(s) for s in pipeline[-1].sympy_expr_.free_symbols} <= {"size__a", "raw__b"}


def test_weights_are_routed_through_a_pipeline_and_a_grid_search():
    weight = np.where(X[:, 0] > 1.0, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        regressor = quick().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), regressor)
        if hasattr(pipeline, "set_score_request"):  # scikit-learn before 1.8 asks it of the pipeline too
            pipeline.set_score_request(sample_weight=True)
        pipeline.fit(X, Y, sample_weight=weight)
        expected = quick().fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(pipeline.predict(X), expected.predict(X))
        grid = GridSearchCV(pipeline, {"dgsrregressor__max_evaluations": [50, 500]}, cv=2)
        grid.fit(X, Y, sample_weight=weight)
        assert np.isfinite(grid.best_score_)


@pytest.mark.slow
def test_a_grid_search_over_seconds_runs_on_two_processes():
    grid = GridSearchCV(small(max_evaluations=10**9), {"max_time": [0.1, 0.3]}, cv=2, n_jobs=2).fit(X, Y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert grid.best_estimator_.stop_reason_ == "max_time"


def test_several_targets_in_scikit_learns_way_are_those_of_our_own():
    targets = np.column_stack([X[:, 0] * X[:, 1], X[:, 0] + X[:, 1]])
    model = MultiOutputRegressor(small(library="koza")).fit(X, targets)
    np.testing.assert_allclose(model.predict(X), targets, rtol=1e-9)
    assert [e.expression_ for e in model.estimators_] == small(library="koza").fit(X, targets).expression_


def test_a_transformed_target_and_cross_validation():
    model = TransformedTargetRegressor(small(), func=np.log, inverse_func=np.exp)
    assert cross_val_score(model, X, np.exp(X[:, 0] - X[:, 1]), cv=2).min() > 0.99


# --- what is no number ----------------------------------------------------------------------------

TABLE = pd.DataFrame(X, columns=["size", "age"])
DAYS = pd.date_range("2020-01-01", periods=len(X))
NO_NUMBERS = {
    "text": (TABLE.assign(colour="red"), r"Column 'colour' of X has text, such as 'red'; .* OneHotEncoder"),
    "categories": (TABLE.assign(colour=pd.Categorical(["red"] * len(X))), "Column 'colour' of X has text"),
    "one cell": (TABLE.astype(object).replace(X[3, 0], "n/a"), "Column 'size' of X .* 'n/a'"),
    "polars": (polars.DataFrame({"size": X[:, 0], "colour": ["red"] * len(X)}), "Column 'colour' of X"),
    "array": (np.column_stack([X.astype(str), ["red"] * len(X)]), "Column 2 of X has text, such as 'red'"),
    "list": ([[1.0, "red"]] * len(X), "Column 1 of X has text"),
    "dates": (TABLE.assign(day=DAYS), r"Column 'day' of X has dates .* 2020-01-01.*timedelta64"),
    "only dates": (pd.DataFrame({"day": DAYS}), "Column 'day' of X has dates"),
    "zoned": (TABLE.assign(day=DAYS.tz_localize("UTC")), "Column 'day' of X has dates"),
    "spans": (TABLE.assign(span=DAYS - DAYS[0]), "Column 'span' of X has dates or times"),
    "periods": (
        TABLE.assign(month=pd.period_range("2020-01", periods=len(X), freq="M")),
        r"Column 'month' of X has dates .* such as 2020-01; make dates of them, t.dt.to_timestamp\(\), and",
    ),
    "missing": (
        TABLE.astype(object).replace(X[3, 1], pd.NA),
        r"Column 'age' of X has no value \(NaN\) in 1 of",
    ),
    "dates in polars": (polars.DataFrame({"day": DAYS.to_numpy()}), "Column 'day' of X has dates"),
}


@pytest.mark.parametrize(("table", "message"), NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_text_and_dates_are_refused_by_the_name_of_their_column(table, message):
    with pytest.raises(ValueError, match=message):
        small().fit(table, Y)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            pd.Series(["red"] * len(X), name="colour"),
            "Column 'colour' of y has text, such as 'red'; give numbers",
        ),
        (["red"] * len(X), "y has text, such as 'red'"),
        (DAYS.to_numpy(), "y has dates or times"),
        (pd.DataFrame({"mass": Y, "day": DAYS}), "Column 'day' of y has dates or times"),
    ],
    ids=["series", "list", "dates", "frame"],
)
def test_targets_that_are_no_numbers_are_refused_by_name(target, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X, target)


def test_missing_and_infinite_values_are_told_with_their_columns_rows_and_the_mend(fitted):
    table = TABLE.copy()
    table.iloc[5:, 1] = np.nan
    message = (
        f"X has no value (NaN) in {len(X) - 5} of {len(X)} rows of column 'age' (counted from 0: 5, 6, 7, 8, "
        "9, 10, 11, 12, ...). Leave these rows out, or fill in the cells with scikit-learn's SimpleImputer."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        small().fit(table, Y)
    with pytest.raises(ValueError, match=r"^X has an infinite value \(inf\) in 1 .* columns 0, 1 .* 2\)\. "):
        fitted.predict(np.where(np.arange(len(X)) == 2, np.inf, X.T).T)
    with pytest.raises(ValueError, match=r"^y has no value .* rows \(counted from 0: 3\)\. Leave .* out\.$"):
        small().fit(X, np.where(np.arange(len(X)) == 3, np.nan, Y))


def test_a_prediction_for_text_names_the_column():
    model = quick().fit(TABLE, Y)
    with pytest.raises(ValueError, match="Column 'age' of X has text, such as 'old'"):
        model.predict(TABLE.assign(age="old"))


def test_numbers_written_as_text_and_nullable_numbers_are_numbers():
    expected = quick().fit(TABLE, Y).predict(TABLE)
    for table in (TABLE.astype(str), TABLE.astype(object), TABLE.convert_dtypes()):
        np.testing.assert_array_equal(quick().fit(table, Y).predict(table), expected)


# --- another candidate, and another rule ----------------------------------------------------------


def test_another_candidate_predicts_by_its_number(fitted):
    for i, candidate in enumerate(fitted.pareto_front_):
        np.testing.assert_array_equal(fitted.predict(X, index=i), candidate.expression(X))
    np.testing.assert_array_equal(fitted.predict(X, index=-1), fitted.predict(X, index="accuracy"))
    np.testing.assert_array_equal(fitted.predict(X, index="mdl"), fitted.predict(X))


def test_another_candidate_is_chosen_by_its_number_or_a_rule_and_never_by_assignment(fitted):
    model, front = copy.copy(fitted), fitted.pareto_front_
    with pytest.raises(AttributeError, match=r"cannot be assigned; choose\(3\)"):
        model.expression_ = front[0].expression
    for index, number in ((0, 0), (-2, len(front) - 2), ("accuracy", len(front) - 1)):
        assert model.choose(index) is model
        assert model.expression_ == front[number].expression
        np.testing.assert_array_equal(model.predict(X), fitted.predict(X, index=number))
        assert f"\n>{number:>3} " in str(model.pareto_front_)
    with pytest.raises(ValueError, match="index=99 is no candidate"):
        model.choose(99)
    assert fitted.pareto_front_ is front  # a copy leaves the original as it was


@pytest.mark.parametrize("rule", ["mdl", "bic", "score", "accuracy"])
def test_a_rule_chooses_what_it_would_have_chosen_in_the_fit(rule, fitted):
    np.testing.assert_array_equal(fitted.predict(X, index=rule), quick(selection=rule).fit(X, Y).predict(X))


def test_held_out_rows_choose_only_where_there_are_some(fitted):
    model = quick(selection="holdout").fit(X, Y)
    np.testing.assert_array_equal(model.predict(X, index="holdout"), model.predict(X))
    assert len(model.pareto_front_[1:].held_out) == len(model.pareto_front_) - 1
    with pytest.raises(ValueError, match="selection='holdout'"):
        fitted.predict(X, index="holdout")


def test_of_a_few_rows_none_are_held_out_and_the_lowest_loss_chooses():
    with pytest.warns(UserWarning, match="too few different rows to hold some out"):
        model = small(selection="holdout").fit(X[:4], Y[:4])
    assert model.expression_ == model.pareto_front_[-1].expression


def test_where_a_quarter_of_the_rows_cannot_vary_the_reason_is_told():
    y = np.where(np.arange(len(X)) == 3, 1.0, 0.0)
    with pytest.warns(UserWarning, match="The target differs in too few of the 40 rows to hold some out"):
        small(selection="holdout").fit(X, y)


def test_an_exact_fit_is_chosen_by_held_out_rows_also_where_there_are_none():
    exact = small(library="koza").fit(X, X[:, 0] * X[:, 1])
    np.testing.assert_array_equal(exact.predict(X, index="holdout"), exact.predict(X))


def test_held_out_rows_count_the_violations_of_units():
    candidates = [
        Candidate(3, 0.2, Expression.from_text("x1", get_library("koza", 2))),
        Candidate(9, 0.1, Expression.from_text("x1 + x2", get_library("koza", 2)), handicap=9.0),
    ]
    front = ParetoFront(candidates, held_out=np.array([0.2, 0.1]))
    assert front.select("holdout") == 0
    assert front.select("accuracy") == 1


@pytest.mark.parametrize("random_state", [0, None])
def test_a_warm_start_holds_out_the_same_rows_again(monkeypatch, random_state):
    seen, prepare = [], plan.prepare

    def watched(*data, **settings):
        seen.append(prepare(*data, **settings))
        return seen[-1]

    monkeypatch.setattr(plan, "prepare", watched)
    model = quick(selection="holdout", warm_start=True, random_state=random_state)
    for _ in range(3):
        model.fit(X, Y)
    first, *others = [sorted(one.held_out.y.tolist()) for one in seen]
    assert others == [first, first]


def test_a_row_without_weight_may_lie_anywhere_in_a_warm_start():
    X_of_days = np.column_stack([1.7e9 + 1e5 * X[:, 0], X[:, 1]])
    X_of_days[0, 0] = 0.0
    weight = np.where(np.arange(len(X)) == 0, 0.0, 1.0)
    model = quick(library="physics", warm_start=True).fit(X_of_days, Y, weight)
    assert model._last_fit.coordinates.origins.any()
    model.fit(X_of_days, Y, weight)


@pytest.mark.parametrize("weights", [(1.0, 5e-324), (1e300, 1e-300)])
def test_a_weight_that_is_nothing_beside_the_others_is_none(weights):
    heavy, light = weights
    weight = np.where(np.arange(len(X)) == 7, light, heavy)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        front = quick(library="physics").fit(X, Y, weight).pareto_front_
        expected = quick(library="physics").fit(X, Y, np.where(weight == light, 0.0, 1.0)).pareto_front_
    assert str(front) == str(expected)
    assert np.isfinite(front[-1].uncertainty.noise)


@pytest.mark.parametrize("loss", ["huber", "squared", "relative"])
def test_a_loss_that_forgives_outliers_is_only_recommended_to_another(loss):
    formula, data = Expression.from_text("2.5*x1", get_library("physics", 2)), DataSet.from_arrays(X, Y)
    left_out = Uncertainty(1.0, np.eye(1), np.ones(1), leave_one_out=1.5)
    chosen = Candidate(formula.complexity, 0.1, formula, left_out)
    rows = SimpleNamespace(data=data, search=data, fitted=data)
    outcome = Outcome(ParetoFront([chosen], len(Y)), chosen, loss, rows, 0.0)
    (message,) = outcome.caveats(Constraints(), "max_evaluations")
    assert "constants that single rows determine" in message
    assert ("loss='huber'" in message) == (loss != "huber")


@pytest.mark.parametrize("index", [99, -99, 1.5, "best"])
def test_a_candidate_that_is_not_there_is_refused(index, fitted):
    with pytest.raises(ValueError, match=r"index=|selection="):
        fitted.predict(X, index=index)


# --- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", [None, "untrained"])
@pytest.mark.parametrize("library", ["koza", "physics"])
def test_a_warm_start_goes_on_from_the_formulas_of_the_last_fit(library, generator):
    # The first fit may look at so little that the others find something better, whatever the seed.
    settings = {"max_evaluations": 100, "selection": "accuracy", "look_up": False}
    settings |= {"loss": "squared", "random_state": 1}
    model = small(library=library, generator=generator, warm_start=True, **settings).fit(X, Y)
    losses, lowest = [model.pareto_front_[-1].loss], [model._last_fit.search["archive"]["nmse"].min()]
    model.set_params(max_evaluations=500)
    for _ in range(3):
        model.fit(X, Y)
        losses.append(model.pareto_front_[-1].loss)
        lowest.append(model._last_fit.search["archive"]["nmse"].min())
    # What a search goes on from; of this, finishing may leave out what is hardly better than a short formula.
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(lowest))
    assert losses[-1] < losses[0]
    assert model.n_evaluations_ <= 500


def test_without_a_warm_start_a_fit_begins_anew():
    model = quick().fit(X, Y)
    first = str(model.pareto_front_)
    assert str(model.fit(X, Y).pareto_front_) == first
    assert not hasattr(model, "_last_fit")


def test_a_warm_start_on_other_rows_begins_with_the_formulas_that_were_found():
    model = small(library="koza", max_evaluations=50_000, warm_start=True).fit(X, X[:, 0] * np.exp(X[:, 1]))
    assert model.stop_reason_ == "exact fit"
    Z = np.random.default_rng(1).uniform(0.5, 2.0, (25, 2))
    model.set_params(max_evaluations=600, look_up=False).fit(Z, Z[:, 0] * np.exp(Z[:, 1]))
    assert model.stop_reason_ == "exact fit"
    assert model.n_evaluations_ <= 600


@pytest.mark.slow
def test_a_warm_start_on_other_data_knows_the_law_that_exact_search_finds():
    x = np.random.default_rng(0).uniform(0.5, 2.0, (50, 1))
    model = small(library="koza", generator=None, max_evaluations=600, warm_start=True)
    model.fit(x, np.random.default_rng(1).normal(size=50))
    law = (x[:, 0] ** 5 - 3 * x[:, 0] ** 3 + 1) / (x[:, 0] ** 2 + 1)
    assert model.fit(x, law).stop_reason_ == "exact fit"


def test_a_fit_that_fails_leaves_nothing_of_the_last_one():
    model = quick().fit(X, Y)
    with pytest.raises(ValueError):
        model.fit(X[:1], Y[:1])
    assert not [name for name in vars(model) if name.endswith("_") and name != "n_features_in_"]


def test_a_warm_start_on_other_columns_or_with_another_library_is_refused():
    model = quick(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="warm_start=True goes on with the columns"):
        model.fit(X[:, :1], Y)
    model = quick(warm_start=True).fit(X, Y).set_params(library="physics")
    with pytest.raises(ValueError, match="warm_start=True"):
        model.fit(X, Y)


def test_a_warm_start_goes_on_after_an_error_in_the_callback():
    def fails(progress):
        raise RuntimeError("full")

    model = small(library="koza-const", warm_start=True, max_evaluations=20_000, callback=fails)
    with pytest.raises(RuntimeError, match="full"):
        model.fit(X, Y)
    before = model._last_fit.search["archive"]["nmse"].min()
    model.set_params(callback=None, max_evaluations=100, look_up=False).fit(X, Y)
    assert model._last_fit.n_fits == 2
    assert model._last_fit.search["archive"]["nmse"].min() <= before * (1 + 1e-9) < np.inf


@pytest.mark.slow
def test_a_clone_and_a_shorter_warm_start_know_what_to_leave():
    model = small(warm_start=True).fit(X, Y)
    assert not hasattr(clone(model), "_last_fit")
    model.set_params(max_length=8).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()
    known = "a*exp(b*x1) + c*sin(d*x2 + e)/(f + x1)"
    model.set_params(max_length=30, initial_formulas=[known]).fit(X, Y)
    model.set_params(initial_formulas=None).fit(X, Y)  # with room for fewer constants
    assert np.isfinite(model.predict(X)).all()


def test_a_warm_start_begins_with_initial_formulas_too():
    law = "exp(sin(x1*x2) - x2)/(x1 + x2*x2)"
    y = np.exp(np.sin(X[:, 0] * X[:, 1]) - X[:, 1]) / (X[:, 0] + X[:, 1] ** 2)
    model = small(library="koza", warm_start=True, max_evaluations=300, look_up=False).fit(X, y)
    assert model.stop_reason_ != "exact fit"
    model.set_params(initial_formulas=[law], max_evaluations=1_000).fit(X, y)
    assert model.stop_reason_ == "exact fit"
    assert model.n_evaluations_ < 1_000


# --- pickles ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("warm_start", "most"), [(False, 20_000), (True, 1_000_000)])
def test_the_pickle_of_a_fit_to_a_large_table_is_small(warm_start, most):
    table = np.random.default_rng(1).uniform(1.0, 2.0, (100_000, 5))
    targets = np.column_stack([table[:, 0] * table[:, 1], table[:, 2]])
    model = small(library="koza", warm_start=warm_start, max_evaluations=400).fit(table, targets)
    kept = pickle.dumps(model)
    assert len(kept) < most
    rows = [one._rows[0] for one in model.estimators_]
    assert all(row.tobytes() not in kept for row in np.concatenate(rows))
    again = pickle.loads(kept)
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


def test_a_pickle_and_a_copy_say_that_they_have_no_rows_for_a_report(tmp_path):
    model = quick().fit(X, Y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        with pytest.raises(ValueError, match="pickle or a copy, which have no rows; give X and y"):
            other.report(tmp_path / "fit.html")
        other.report(tmp_path / "fit.html", X, Y)
    model.with_feature_names(["mass", "time"]).report(tmp_path / "named.html")


# --- what is shown --------------------------------------------------------------------------------


def test_the_picture_of_a_fitted_estimator_has_the_formula_and_the_front():
    model = quick()
    assert "<math" not in model._repr_html_()
    page = model.fit(pd.DataFrame(X, columns=["<b>", "b&c"]), Y)._repr_html_()
    assert page.count("<math") == len(model.pareto_front_) + 1
    assert page.count('<tr style="font-weight: bold">') == 1
    assert "sk-estimator" in page or "sk-top-container" in page
    assert "<b>" not in page.split("sk-")[0]
    ours, theirs = page.split("<style>", 1)[0], model._repr_mimebundle_()["text/html"]
    assert theirs.startswith(ours)


def captions(estimator):
    """What stands below the names in scikit-learn's picture of an estimator."""
    return re.findall('<div class="caption">(.*?)</div>', estimator._repr_html_())


def test_the_picture_of_a_pipeline_or_a_search_has_the_formula_below_the_name():
    table, targets = pd.DataFrame(X, columns=["<b>", "b&c"]), X[:, 0] * X[:, 1]
    pipeline = make_pipeline(FunctionTransformer(), small(library="koza"))
    assert "x1" not in str(captions(pipeline))
    formula = "`&lt;b&gt;`*`b&amp;c`"
    assert captions(pipeline.fit(table, targets))[-1] == formula
    assert (
        captions(GridSearchCV(small(library="koza"), {"max_length": [9]}, cv=2).fit(table, targets))[-1]
        == formula
    )
    pipeline.fit(table, np.column_stack([targets, X[:, 0]]))
    assert captions(pipeline)[-1] == f"{formula}; `&lt;b&gt;`"


def test_a_front_is_a_table_in_text_and_html(fitted):
    front = fitted.pareto_front_
    lines = str(front).splitlines()
    assert lines[0].split() == ["complexity", "bits", "loss", "leave-one-out", "formula"]
    assert [int(line[1:].split()[0]) for line in lines[1:]] == list(range(len(front)))
    assert front._repr_html_().count("<math") == len(front)
    numbers = ["complexity", "description_length", "loss", "leave_one_out"]
    assert list(front.to_frame().columns) == [*numbers, "standard_errors", "formula"]


def test_a_copy_has_other_names_of_the_features(fitted):
    named = fitted.with_feature_names(["mass", "time"])
    assert {str(s) for s in named.sympy_expr_.free_symbols} <= {"mass", "time"}
    np.testing.assert_array_equal(named.predict(X), fitted.predict(X))
    assert "mass" not in str(fitted.pareto_front_)
    assert not hasattr(named, "feature_names_in_")  # as in the fit, so that arrays predict without a warning
    with pytest.raises(ValueError, match="feature_names repeats 'mass'"):
        fitted.with_feature_names(["mass", "mass"])


@pytest.mark.parametrize("y", [Y, np.column_stack([Y, X[:, 0]])])
def test_a_copy_with_other_names_predicts_for_tables_that_have_them(y, tmp_path):
    table = pd.DataFrame(X, columns=["u", "v"])
    model = quick().fit(table, y)
    named = model.with_feature_names(["a", "b"])
    renamed = table.set_axis(["a", "b"], axis=1)
    np.testing.assert_array_equal(named.predict(renamed), model.predict(table))
    np.testing.assert_array_equal(model.with_feature_names(["b", "a"]).feature_names_in_, ["b", "a"])
    np.testing.assert_array_equal(model.feature_names_in_, ["u", "v"])
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(table)
    if y.ndim == 1:
        named.save(tmp_path / "named")
        np.testing.assert_array_equal(load(tmp_path / "named").predict(renamed), model.predict(table))
        named.report(tmp_path / "page.html", renamed, y)
