"""Losses as weights of rows, and fits that are judged by them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import dgsr
from dgsr import DGSRRegressor
from dgsr.data import prepare
from dgsr.data.dataset import DataSet
from dgsr.data.table import Table
from dgsr.fitting.losses import LOSSES, check_loss, may_be_heteroscedastic, passes, precisions, residual_bits
from dgsr.search import Search, begin_with_search
from dgsr.search import run as run_search
from searches import flat_regressor

seeds = st.integers(0, 2**32 - 1)


def log_cosh(y, predicted):
    return np.log(np.cosh(y - predicted))


def rows_of(seed, n=20):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return rng.normal(size=(n, 2)), y, y + rng.normal(size=n)


def precisions_of(loss, X, y, predicted):
    with np.errstate(over="ignore", invalid="ignore"):
        data = DataSet.from_arrays(X, y)
    return precisions(loss, data, predicted)


@pytest.mark.parametrize(
    ("loss", "of_row"),
    [
        ("squared", lambda y, f: (y - f) ** 2),
        ("relative", lambda y, f: ((y - f) / y) ** 2),
        ("absolute", lambda y, f: np.abs(y - f)),
        (log_cosh, log_cosh),
        ("abs(target - prediction)", lambda y, f: np.abs(y - f)),
        ("(target - prediction)**4/(1 + target^2)", lambda y, f: (y - f) ** 4 / (1.0 + y**2)),
    ],
)
@settings(max_examples=20)
@given(seed=seeds)
def test_weighted_squares_are_the_loss(loss, of_row, seed):
    X, y, predicted = rows_of(seed)
    weighted = precisions_of(loss, X, y, predicted) * (y - predicted) ** 2
    # Residuals below a hundredth of the median one are taken for it.
    is_large = np.abs(y - predicted) > 0.01 * np.median(np.abs(y - predicted))
    shares = (weighted / of_row(y, predicted))[is_large]
    np.testing.assert_allclose(shares, shares[0], rtol=1e-9)


@settings(max_examples=20)
@given(seeds)
def test_the_slope_of_hubers_loss_ends_to_grow(seed):
    X, y, predicted = rows_of(seed)
    slopes = precisions_of("huber", X, y, predicted) * np.abs(y - predicted)
    limit = 1.345 * 1.4826 * np.median(np.abs(y - predicted))
    np.testing.assert_allclose(slopes, np.minimum(np.abs(y - predicted), limit))


def test_rows_that_fit_are_not_forgotten_by_a_loss_of_ones_own():
    X, y, _ = rows_of(0, 30)
    predicted = y + np.where(np.arange(30) < 25, 0.0, 5.0)
    found = precisions_of(lambda y, f: np.log1p((y - f) ** 2), X, y, predicted)
    assert found[:25].min() > found[25:].max()


def test_a_loss_may_forgive_all_residuals():
    X, y, _ = rows_of(0)
    found = precisions_of(lambda y, f: np.maximum(np.abs(y - f) - 0.1, 0.0), X, y, y + 0.05)
    np.testing.assert_array_equal(found, 1.0)


def test_a_loss_is_tried_on_the_targets_themselves():
    y = np.linspace(1.0, 10.0, 50)
    assert passes(lambda y, f: np.abs((y - f) / y), y)[0].loss == "neighbours"
    assert len(passes(lambda y, f: (np.sqrt(y) - np.sqrt(f)) ** 2, y)) == 3


def test_rows_far_from_their_neighbours_weigh_little():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    y = X[:, 0] + 0.05 * rng.normal(size=200)
    y[:10] += 5.0
    found = precisions_of("neighbours", X, y, y)
    assert found[:10].max() < 0.01
    assert np.median(found[10:]) == 1.0


def test_outliers_among_equal_inputs_are_not_their_own_neighbours():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(5.0), 40)
    y = 3.0 * x + 0.1 * rng.normal(size=200)
    is_far = np.tile(np.arange(40) < 8, 5)
    y[is_far] += rng.uniform(20.0, 30.0, is_far.sum())
    order = np.lexsort((y, x))  # as the rows of a fit are
    found = precisions_of("neighbours", x[order, None], y[order], y[order])
    assert np.mean(found[is_far[order]] > 0.5) < 0.1


def test_equal_rows_count_where_outliers_are_told():
    x = np.repeat(np.arange(1.0, 6.0), 100)
    y = 2.0 * x
    is_far = np.tile(np.arange(100) < 20, 5)
    y[is_far] += np.random.default_rng(0).uniform(5.0, 15.0, is_far.sum())
    data = prepare(Table(x[:, None], y), with_scales=False, with_origins=False, max_rows=None, seed=0).data
    assert len(data.y) == 105
    found = precisions("huber", data, 2.0 * data.columns[0])
    assert found[data.counts == 1].max() < 1e-4


def test_precisions_are_finite_and_positive_for_extreme_targets():
    X = np.arange(6.0)[:, None]
    y = np.array([1e-200, 1.0, 1e5, -1e200, 2.0, 3.0])
    for loss in ("relative", "absolute", "huber", "neighbours"):
        for predicted in (y, np.zeros(6)):
            found = precisions_of(loss, X, y, predicted)
            assert np.isfinite(found).all()
            assert found.min() > 0.0
            assert found.max() <= 1.0


def test_a_target_of_one_sign_over_a_decade_takes_a_pass_of_relative_errors():
    over_decades = np.logspace(-3, 3, 50)
    assert may_be_heteroscedastic(over_decades)
    assert may_be_heteroscedastic(-over_decades)
    for y in (np.linspace(1.0, 9.0, 50), np.append(over_decades, 0.0), np.append(over_decades, -1.0)):
        assert not may_be_heteroscedastic(y)
        assert [step.loss for step in passes("auto", y)] == ["squared"]
    assert [step.loss for step in passes("auto", over_decades)] == ["squared", "relative", "best"]
    for loss in ("auto", *LOSSES, log_cosh):
        shares = [step.until for step in passes(loss, over_decades)]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_a_callable_that_does_not_forgive_begins_with_squares():
    y = np.linspace(1.0, 2.0, 50)
    assert passes(lambda y, f: (y - f) ** 4, y)[0].loss == "squared"
    assert passes(lambda y, f: np.abs(y - f), y)[0].loss == "neighbours"


@settings(max_examples=20)
@given(seeds)
def test_the_description_is_a_likelihood(seed):
    X, y, predicted = rows_of(seed)
    data = DataSet.from_arrays(X, y)
    deviation = np.sqrt(np.mean((y - predicted) ** 2))
    constant = 0.5 * 20 * np.log2(2.0 * np.pi * np.e)
    expected = -norm.logpdf(y, predicted, deviation).sum() / np.log(2.0)
    assert residual_bits("squared", data, predicted) + constant == pytest.approx(expected)
    deviations = np.abs(predicted) * np.sqrt(np.mean(((y - predicted) / predicted) ** 2))
    expected = -norm.logpdf(y, predicted, deviations).sum() / np.log(2.0)
    assert residual_bits("relative", data, predicted) + constant == pytest.approx(expected)
    assert residual_bits("relative", data, 0.0 * y) == np.inf


def test_a_precision_says_how_exact_a_row_is_and_not_how_often_it_was_measured():
    X, y, _ = rows_of(0)
    data = DataSet.from_arrays(X, y, np.repeat([1.0, 3.0], 10))
    other = data.with_precision(np.linspace(0.1, 1.0, 20))
    assert other.n_effective == data.n_effective == pytest.approx((10 + 30) ** 2 / (10 + 90))
    expected = data.weights * np.linspace(0.1, 1.0, 20)
    np.testing.assert_allclose(other.weights, expected / expected.mean())


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda y, f: np.mean((y - f) ** 2), "the loss of every row"),
        (lambda y, f: (y - f)[:, None] ** 2, r"array of shape \(20, 1\) for 20 rows"),
        (lambda y, f: y - f, "loss is negative for some predictions; write its size"),
        (lambda y, f: np.where(f > y + 5 * y.std(), -1.0, (y - f) ** 2), "negative for some predictions"),
        (
            lambda y, f: np.where(f == f, np.nan, 0.0),
            "no value in 20 rows where the prediction is the target",
        ),
        (lambda y, f: (y - f) ** 2 + 1, "must be 0 where the prediction is the target, and is up to 1 there"),
        (lambda y, f: 0 * y, "is 0 or has no value for all predictions .* write one that grows"),
        (lambda y, f: np.where(y == f, 0.0, np.inf), "is 0 or has no value for all predictions"),
        (lambda y: y, "loss raised TypeError: .*takes 1 positional argument"),
        (lambda y, f: {}[y[0]], "loss raised KeyError: .* must return the loss of every row"),
        (lambda y, f: None, "loss raised TypeError"),
        (lambda y, f: 1j * abs(y - f), "loss raised TypeError: Cannot cast"),
        (lambda y, f: ["much"] * len(y), "loss raised TypeError: Cannot cast"),
        ("cubic", "loss"),
        ("0*(target - prediction)", r"loss='0\*\(target - prediction\)' is 0 or has no value"),
        ("(target - prediction)**2*(9 - prediction)", "negative for some predictions"),
        ("abs(target - predicton)", "position 13, 'predicton': not a variable; the variables are prediction"),
        ("abs(target - prediction", "close the '\\(' of position 3"),
        ("hubr", "neither one of auto, .* nor a formula of target and prediction"),
        ("prediction**2", "lacks target"),
        ("__import__('os')", "position 11"),
        ("log(target - prediction)", "no value in 20 rows where the prediction is the target"),
        ("(prediction - 2*target)**2", "must be 0 where the prediction is the target"),
        ("target - prediction", "negative for some predictions"),
    ],
)
def test_what_is_no_loss_is_refused_before_the_search(loss, message, monkeypatch):
    monkeypatch.setattr(
        "dgsr.estimator.one_target.planned", lambda *arguments: pytest.fail("it was searched")
    )
    X, y, _ = rows_of(0)
    with pytest.raises(ValueError, match=message):
        DGSRRegressor(generator=None, max_evaluations=300, loss=loss).fit(X, y)


def test_a_row_where_a_loss_has_no_value_weighs_as_nearer_to_its_target():
    y, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.5, -6.0, 4.5])
    found = precisions_of("log(prediction/target)**2", y[:, None], y, predicted)
    # -6 is 8 below 2, and so are -2 and 0 too far; 1 is not.
    expected = np.log(np.array([1.5, 1.0, 4.5]) / y) ** 2 / np.array([0.5, 1.0, 0.5]) ** 2
    np.testing.assert_allclose(found, expected / expected.max())


@pytest.mark.search
def test_a_formula_judges_as_the_function_of_the_same_loss_and_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (80, 2))
    y = 2.5 * X[:, 0] / X[:, 1] * np.exp(0.1 * rng.standard_t(2, size=80))
    given = {"generator": None, "max_evaluations": 500, "max_length": 12, "look_up": False, "random_state": 0}
    text = "log(prediction/target)**2"
    model = flat_regressor(loss=text, checkpoint=tmp_path / "checkpoint", **given).fit(X, y)
    other = flat_regressor(loss=lambda y, f: np.log(f / y) ** 2, **given).fit(X, y)
    assert model.loss_ == text
    assert str(model.pareto_front_) == str(other.pareto_front_)
    model.save(tmp_path / "fit.dgsr")
    read = dgsr.load(tmp_path / "fit.dgsr")
    assert read.get_params()["loss"] == read.loss_ == text
    with pytest.raises(ValueError, match=r"another loss \(log\(prediction/target\)\*\*2 in the file"):
        model.set_params(loss="abs(target - prediction)").fit(X, y)


def test_relative_errors_need_targets_other_than_zero():
    with pytest.raises(ValueError, match="y is 0 in 2 rows"):
        check_loss("relative", np.array([1.0, 0.0, 2.0, 0.0]))


@pytest.mark.search
@pytest.mark.parametrize("loss", ["absolute", "huber", pytest.param(log_cosh, marks=pytest.mark.slow)])
def test_a_law_is_found_behind_outliers(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (80, 2))
    law = 2.5 * X[:, 0] / X[:, 1]
    y = law + 0.02 * rng.normal(size=80)
    y[::10] += 5.0 * rng.normal(size=8)
    model = DGSRRegressor(
        generator=None, max_evaluations=2_000, max_length=8, look_up=False, loss=loss, random_state=0
    ).fit(X, y)
    assert np.mean((model.predict(X) - law) ** 2) < 1e-4 * law.var()
    assert model.loss_ == (loss if isinstance(loss, str) else "callable")


@pytest.mark.slow
@pytest.mark.search
def test_a_law_over_decades_with_relative_noise_is_found_by_default(tmp_path):
    rng = np.random.default_rng(0)
    X = 10 ** rng.uniform(-1.0, 2.0, (60, 2))
    law = 3.7 * X[:, 0] / X[:, 1] ** 2
    y = law * np.exp(0.05 * rng.normal(size=60))
    model = DGSRRegressor(generator=None, max_evaluations=40_000, random_state=0).fit(X, y)
    assert model.loss_ == "relative"
    assert np.abs(model.predict(X) / law - 1.0).max() < 0.05
    model.save(tmp_path / "fit.dgsr")
    assert dgsr.load(tmp_path / "fit.dgsr").loss_ == "relative"


def test_a_target_of_zero_among_rows_held_out_leaves_no_pass_of_relative_errors(monkeypatch):
    judged_by = []

    def watched(loss, y):
        judged_by.append([step.loss for step in passes(loss, y)])
        return passes(loss, y)

    monkeypatch.setattr("dgsr.fitting.run.passes", watched)
    X = np.arange(1.0, 51.0)[:, None]
    y = X[:, 0] ** 8
    model = DGSRRegressor(
        generator=None, selection="holdout", max_evaluations=200, max_length=10, look_up=False, random_state=0
    ).fit(X, y)
    y[4] = 0.0  # in a row that this random_state holds out
    model.fit(X, y)
    assert "relative" in judged_by[0]
    assert not any("relative" in losses for losses in judged_by[1:])


@pytest.mark.slow
def test_relative_errors_are_not_judged_where_there_is_hardly_any_noise():
    rng = np.random.default_rng(0)
    X = 10 ** rng.uniform(-1.0, 2.0, (60, 2))
    y = 3.7 * X[:, 0] / X[:, 1] ** 2 * (1.0 + 1e-6 * rng.normal(size=60))
    model = DGSRRegressor(generator=None, max_evaluations=1_000, random_state=0).fit(X, y)
    assert model.loss_ == "squared"
    assert 900 <= model.n_evaluations_ <= 1_000  # what finders examine counts, too


@pytest.mark.search
def test_few_rows_that_long_formulas_fit_exactly_have_noise_all_the_same(monkeypatch):
    x = np.array([1.0, 5.0, 40.0, 2_000.0, 3_500.0, 4_500.0, 30_000.0, 40_000.0])
    y = 3.0 * x**0.32 * np.exp(0.4 * np.array([0.3, -0.2, -0.5, 1.6, 0.1, -0.3, 0.1, -0.4]))
    monkeypatch.setattr(Search, "best_nmse", property(lambda search: 1e-12))
    model = DGSRRegressor(max_evaluations=5_000, random_state=0).fit(x[:, None], y)
    assert model.loss_ == "relative"


@pytest.mark.parametrize("form", [None, "f(x1)*x2 + g(x2)"])
def test_a_pass_that_goes_on_begins_with_the_programs_of_the_last(monkeypatch, form):
    inherited = []

    def begin(search, saved):
        begin_with_search(search, saved)
        inherited.append(len(search.generation.programs))

    monkeypatch.setattr("dgsr.fitting.run.begin_with_search", begin)
    X, y, _ = rows_of(1, 40)
    flat_regressor(
        generator=None,
        max_evaluations=1_500,
        batch_size=50,
        loss="huber",
        max_length=12,
        look_up=False,
        random_state=0,
        form=form,
    ).fit(X, y)
    assert len(inherited) == 2
    assert max(inherited) > 10  # none if a search ended just as it began again


@pytest.mark.search
@pytest.mark.parametrize("grow", [True, False])
def test_where_errors_may_grow_the_better_search_goes_on(grow, monkeypatch):
    made, run = list[Search](), list[Search]()

    def watched(search, callback=None):
        made.extend([search] if search not in made else [])
        run.append(search)
        return run_search(search, callback)

    monkeypatch.setattr("dgsr.fitting.run.run_search", watched)
    x = np.linspace(1.0, 9.0, 40)
    errors, law = np.random.default_rng(0).normal(size=40), 0.7 * x**2.3
    y = 8.0 + law + (0.2 * law if grow else 2.0) * errors
    settings = {"generator": None, "look_up": False, "batch_size": 50, "random_state": 0}
    model = flat_regressor(max_evaluations=2_000, **settings).fit(x[:, None], y)
    assert model.loss_ == ("relative" if grow else "squared")
    assert run == [*made, made[grow]]
    assert len(made) == 2
    assert model.history_ == sorted(model.history_, key=lambda entry: entry["evaluations"])


def test_passes_share_one_budget():
    X, y, _ = rows_of(1, 40)
    model = flat_regressor(
        generator=None, max_evaluations=3_000, batch_size=50, loss="huber", look_up=False, random_state=0
    )
    model.fit(X, y)
    assert model.n_evaluations_ == 3_000
    done = [entry["evaluations"] for entry in model.history_]
    assert done == sorted(done)
    assert done[-1] == 3_000
    assert {1_200, 2_100} <= set(done)


def test_what_a_loss_raises_amid_a_search_passes_through():
    class Alarm(Exception):
        pass

    searching = []

    def loss(y, predicted):
        if searching:
            raise Alarm
        return (y - predicted) ** 2

    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3.0, (30, 1))
    model = DGSRRegressor(generator=None, max_evaluations=500, loss=loss, callback=searching.append)
    with pytest.raises(Alarm):
        model.fit(X, np.exp(X[:, 0]) + rng.normal(size=30))
