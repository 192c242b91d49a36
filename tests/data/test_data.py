"""What a search sees of the data: equal rows once, a sample of many, columns near 1."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from dgsr import DGSRRegressor
from dgsr.data import prepare, redundant_columns, row_ranks
from dgsr.data.checks import data_warnings
from dgsr.data.dataset import DataSet
from dgsr.data.table import Table
from searches import flat_regressor


def data(n_samples=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 2.0, (n_samples, 2)), rng.normal(size=n_samples)


def prepared(X, y, weight=None, *, rescale=True, max_rows=None, seed=0):
    table = Table(X, y, None if weight is None else np.asarray(weight))
    return prepare(table, with_scales=rescale, with_origins=rescale, max_rows=max_rows, seed=seed)


def assert_equal(one, other):
    for name, a, b in zip(DataSet._fields, one, other, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


def rows(dataset):
    """The rows of a data set, in its order."""
    return [tuple(row) for row in np.column_stack([*dataset.columns, dataset.y])]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any), st.integers(0, 99))
def test_repeated_rows_in_any_order_are_weights_exactly(weights, seed):
    X, y = data(12, seed)
    at = np.random.default_rng(seed).permutation(np.repeat(np.arange(12), weights))
    one, other = prepared(X, y, weights), prepared(X[at], y[at])
    assert_equal(one.data, other.data)
    assert_equal(one.search, other.search)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_ranks_of_rows_are_those_of_numpy(n_rows, n_columns, n_values, seed):
    table = np.random.default_rng(seed).integers(0, n_values, (n_rows, n_columns)) - 1.0
    table[table == 0.0] = np.random.default_rng(seed).choice([0.0, -0.0])
    distinct, row_of = np.unique(table, axis=0, return_inverse=True)
    _, first, found = np.unique(row_ranks(table), return_index=True, return_inverse=True)
    np.testing.assert_array_equal(found, row_of.ravel())
    np.testing.assert_array_equal(table[first], distinct)


def test_the_data_are_all_rows_of_a_weight_each_once():
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    weight[:5] = 0.0
    both = prepared(np.concatenate([X, X]), np.concatenate([y, y]), np.concatenate([weight, 2 * weight]))
    expected = {(*X[i], y[i]): weight[i] for i in range(5, 40)}
    assert sorted(rows(both.data)) == sorted(expected)
    shares = both.data.weights / both.data.weights.sum()
    np.testing.assert_allclose(shares, [expected[row] / weight.sum() for row in rows(both.data)], rtol=1e-12)


@pytest.mark.parametrize("factor", [2.0**1023, 2.0**-1000, 2.0**-1074])
def test_weights_of_any_size_may_be_those_of_repeated_rows(factor):
    X, y = data(12)
    at = np.repeat(np.arange(12), np.arange(12) % 3 + 1)
    assert_equal(prepared(X[at], y[at], np.full(24, factor)).data, prepared(X[at], y[at]).data)


def test_rows_that_differ_in_y_alone_stay_two():
    dataset = prepared(np.ones((3, 1)), np.array([1.0, 2.0, 2.0])).data
    assert rows(dataset) == [(1.0, 1.0), (1.0, 2.0)]
    np.testing.assert_allclose(dataset.weights, [2 / 3, 4 / 3])


@pytest.mark.parametrize(("max_rows", "n"), [(2, 2), (39, 39), (40, 40), (41, 40), (None, 40)])
def test_the_search_has_a_sample_of_so_many_rows(max_rows, n):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    result = prepared(X, y, weight, max_rows=max_rows)
    assert len(result.data.y) == 40
    assert len(result.search.y) == len(set(rows(result.search))) == n


def test_rows_are_in_the_sample_by_their_weights_and_sums_over_it_are_those_of_all_on_average():
    X, y = data()
    weight = np.maximum(2.0 ** -np.arange(40.0), 0.01)
    factor = brentq(lambda c: np.minimum(c * weight, 1.0).sum() - 10.0, 1.0, 1e6)
    chances = np.minimum(factor * weight, 1.0)
    assert 2 <= np.sum(chances == 1.0) <= 8
    drawn, shares = [], []
    for seed in range(400):
        one = prepared(X, y, weight, max_rows=10, seed=seed)
        place = [int(np.flatnonzero(y == target)[0]) for target in one.search.y]
        assert len(set(place)) == 10
        drawn += place
        shares.append(np.bincount(place, one.search.weights, minlength=40) / 10)
    counts = np.bincount(drawn, minlength=40)
    assert np.all(np.abs(counts - 400 * chances) <= 5 * np.sqrt(400 * chances * (1 - chances)))
    of_all, error = weight / weight.sum(), np.std(shares, axis=0) / 20
    assert np.all(np.abs(np.mean(shares, axis=0) - of_all) <= 5 * error + 1e-12)


def test_rows_that_hardly_count_do_not_crowd_out_those_that_do():
    X, y = data(5000)
    weight = np.where(np.arange(5000) % 100 == 0, 1.0, 1e-9)
    one = prepared(X, y, weight, max_rows=100)
    assert one.fitted.n_effective == pytest.approx(50.0, rel=1e-3)
    for sample in (one.fitted, one.search):
        assert np.isin(y[weight == 1.0], sample.y).all()


def test_a_target_that_differs_in_one_row_differs_in_the_sample():
    X = data(5000)[0]
    y = np.where(np.arange(5000) == 1234, 1.0, 0.0)
    for weight in (None, np.where(np.arange(5000) < 2500, 0.5, 1.0)):
        one = prepared(X, y, weight, max_rows=50)
        assert (len(one.fitted.y), len(one.search.y)) == (2000, 50)
        assert one.fitted.y.sum() == one.search.y.sum() == 1.0
    # It has its own weight, which is a share of 1/5000 in all rows, and not that of the row it replaces.
    shares = [one.mean for one in (prepared(X, y, max_rows=50, seed=seed).search for seed in range(100))]
    assert np.mean(shares) < 5 / 5000


def test_the_sample_is_of_the_seed():
    X, y = data()
    samples = [rows(prepared(X, y, max_rows=20, seed=seed).search) for seed in (0, 0, 1)]
    assert samples[0] == samples[1] != samples[2]


def test_each_row_is_as_likely_in_the_sample():
    X, y = data()
    drawn = [row for seed in range(400) for row in rows(prepared(X, y, max_rows=10, seed=seed).search)]
    counts = np.array([drawn.count((*X[i], y[i])) for i in range(40)])
    assert np.all(np.abs(counts - 100) < 5 * np.sqrt(400 * 0.25 * 0.75))


@pytest.mark.parametrize(
    ("factor", "scale"),
    [
        (1.0, 1.0), (5e2, 1.0), (1e-2, 1.0), (1e4, 1e4), (1e9, 1e9), (1e-9, 1e-9), (-1e9, 1e9),
        (1e300, 1e300), (1e-300, 1e-300), (5e307, 1e300), (1e-307, 1e-300), (1e-320, 1e-300),
    ],
)  # fmt: skip
def test_a_column_of_extreme_scale_is_divided_by_a_power_of_ten(factor, scale):
    X, y = data()
    moved = X * [factor, 1.0]
    result = prepared(moved, y)
    np.testing.assert_allclose(result.coordinates.scales, [scale, 1.0], rtol=1e-12)
    assert np.isfinite(1.0 / result.coordinates.scales).all()
    np.testing.assert_allclose(
        result.search.columns[0] * scale, result.data.columns[0], rtol=1e-12, atol=1e-323
    )
    assert sorted(result.data.columns[0]) == sorted(moved[:, 0])  # as given
    if 1e-300 <= abs(factor) <= 1e300:
        assert 1e-3 <= np.sqrt(np.mean(result.search.columns[0] ** 2)) <= 1e3


def test_columns_are_left_alone_where_no_constant_can_undo_it_or_all_are_zero():
    X, y = data()
    np.testing.assert_array_equal(prepared(X * 1e9, y, rescale=False).coordinates.scales, 1.0)
    result = prepared(X * [0.0, 1.0], y)
    np.testing.assert_array_equal(result.coordinates.scales, 1.0)
    np.testing.assert_array_equal(result.search.columns[0], 0.0)


# A data set -----------------------------------------------------------------------------------------


def test_a_data_set_has_weighted_moments():
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.0, 2.0, 40)
    dataset = DataSet.from_arrays(X, y, weight)
    np.testing.assert_allclose(dataset.weights, weight / weight.mean())
    assert dataset.mean == pytest.approx(np.average(y, weights=weight))
    assert dataset.variance == pytest.approx(np.average((y - dataset.mean) ** 2, weights=weight))
    plain = DataSet.from_arrays(X, y)
    assert (plain.mean, plain.variance) == (y.mean(), y.var())


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_weights_of_any_scale_are_shares(factor):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    dataset, scaled = DataSet.from_arrays(X, y, weight), DataSet.from_arrays(X, y, weight * factor)
    np.testing.assert_allclose(scaled.weights, dataset.weights)
    assert scaled.variance == pytest.approx(dataset.variance)


def test_the_effective_number_of_rows():
    X, y = data()
    assert DataSet.from_arrays(X, y).n_effective == pytest.approx(40)
    assert DataSet.from_arrays(X, y, np.full(40, 7.0)).n_effective == pytest.approx(40)
    assert DataSet.from_arrays(X, y, np.arange(40) < 10).n_effective == pytest.approx(10)
    # Of two weights, Kish's formula by hand: (10*3 + 30)**2 / (10*9 + 30).
    assert DataSet.from_arrays(X, y, np.where(np.arange(40) < 10, 3.0, 1.0)).n_effective == pytest.approx(30)


def test_equal_rows_without_weights_are_as_many_measurements():
    X, y = np.repeat([[1.0], [2.0], [4.0]], [50, 200, 50], axis=0), np.repeat([1.0, 3.0, 2.0], [50, 200, 50])
    one = prepared(X, y)
    assert len(one.data.y) == 3
    for rows in (one.data, one.fitted, one.search):
        assert rows.n_effective == pytest.approx(300)
        np.testing.assert_array_equal(rows.counts, [50, 200, 50])
        assert rows.n_independent == 3
    assert prepared(X, y, np.full(300, 0.1)).data.n_effective == pytest.approx(300)


def test_whole_weights_are_counts_and_of_others_the_ratios_matter():
    X, y = data(3)
    assert prepared(X, y, np.array([1, 2, 5])).data.n_effective == pytest.approx(8)
    assert prepared(X, y, np.array([1.0, 2.0, 5.0])).data.n_effective == pytest.approx(64 / 30)
    assert prepared(X, y, np.array([10.0, 20.0, 50.0])).data.n_effective == pytest.approx(64 / 30)


def test_weights_of_all_sizes_leave_an_effective_number_of_rows():
    X, y = data(3)
    one = prepared(
        np.vstack([X, X]), np.tile(y, 2), np.array([1.0, 1e-200, 1e-300, 1.0, 1e-200, 3e-300])
    ).data
    np.testing.assert_allclose(np.sort(one.counts), [1.6, 2.0, 2.0])
    assert one.n_effective == pytest.approx(2)


def test_the_rows_of_a_sample_stand_for_their_own_measurements():
    X, y = data(40)
    weight = np.random.default_rng(0).integers(1, 9, 40)
    one = prepared(X, y, weight, max_rows=10)
    assert one.data.n_effective == pytest.approx(weight.sum())
    assert one.search.n_effective == pytest.approx(weight[np.isin(y, one.search.y)].sum())


def test_large_whole_weights_are_asked_about():
    X, _ = data(20)
    with pytest.warns(UserWarning, match="counts as so many equal measurements"):
        DGSRRegressor(generator=None, max_evaluations=200).fit(X, X[:, 0] * X[:, 1], np.full(20, 100))


def test_an_index_of_the_rows_among_the_columns_is_asked_about():
    X = pd.DataFrame({"row": np.arange(1, 9), "a": np.random.default_rng(0).normal(size=8)})
    y = np.ones(8)  # so that nothing is searched
    with (
        pytest.warns(UserWarning, match=r"Column 'row' of X is 1, 2, 3 and so on .*; if it is their index"),
        pytest.warns(UserWarning, match="y is 1 in every row"),
    ):
        DGSRRegressor().fit(X, y)
    # The only column, another order, fewer rows, another beginning and gaps are measurements.
    for others in (X[["row"]], X[::-1], X[:7], X[1:], X.assign(row=[1, 2, 3, 4, 5, 6, 7, 9])):
        assert list(data_warnings(Table(others.to_numpy(), np.zeros(len(others))), others.columns)) == []


def test_the_numbers_of_groups_are_no_index_of_the_rows():
    X = np.column_stack([np.arange(12.0), np.arange(1.0, 13.0)])
    assert list(data_warnings(Table(X, np.zeros(12)), ["subject", "x"], group_column=0)) == []
    assert len([*data_warnings(Table(X, np.zeros(12)), ["subject", "x"])]) == 2


def test_rows_that_are_held_out_and_the_others_have_targets_that_vary():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) < 3, 1.0, 0.0)
    settings = {"with_scales": False, "with_origins": False, "max_rows": None, "held_out": 0.25}
    for seed in range(30):
        one = prepare(Table(X, y), **settings, seed=seed)
        assert np.ptp(one.held_out.y) == np.ptp(one.data.y) == 1.0
    y[1:3] = 0.0
    one = prepare(Table(X, y), **settings, seed=0)
    assert one.held_out is None
    assert len(one.data.y) == 60


@pytest.mark.slow
def test_a_fit_takes_the_memory_of_three_and_a_half_tables_at_the_most():
    """Besides the caller's, and apart from what any fit takes."""

    def peak(n):
        rng = np.random.default_rng(0)
        X = rng.uniform(0.5, 2.0, (n, 20))
        y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=n)
        tracemalloc.start()
        try:
            model = flat_regressor(generator=None, max_evaluations=300, batch_size=50, random_state=0)
            model.fit(X, y)
            assert len(model.predict(X)) == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2_000)  # loads what any fit needs
    few, many = 5_000, 60_000
    assert peak(many) - peak(few) <= 3.5 * (many - few) * 21 * 8


# --- columns that say nothing, and targets in single precision -------------------------------------


@pytest.mark.parametrize(
    ("candidates", "with_constants", "idle"),
    [
        ([0, 1, 2, 3, 4], True, (2, 3, 4)),
        ([0, 1, 2, 3, 4], False, (2, 4)),
        ([2, 1, 3], True, (3,)),
        ([2, 0], False, (0,)),
        ([3], True, ()),
        ([3, 4], True, ()),
    ],
)
def test_copies_and_with_constants_equal_values_are_idle(candidates, with_constants, idle):
    columns = np.random.default_rng(0).normal(size=(5, 20))
    columns[0, 0] = 0.0
    columns[2] = columns[0]
    columns[2, 0] = -0.0
    columns[3:] = 7.0
    assert redundant_columns(columns, candidates, with_constants) == idle


def test_the_rounding_of_single_precision_is_recognised_and_that_of_short_numbers_is_not():
    y = np.random.default_rng(0).uniform(0.5, 2.0, 200)

    def rounding(values):
        return DataSet.from_arrays(np.zeros((200, 1)), values).rounding_nmse

    single = y.astype(np.float32).astype(np.float64)
    error = np.mean((single - y) ** 2) / y.var()
    assert error < rounding(single) < 100.0 * error
    assert rounding(y) < 1e-30
    for short in (np.round(y, 1), np.round(1e6 * y), np.round(64.0 * y) / 64.0, 9e6 + np.round(40.0 * y)):
        assert rounding(short) < 1e-14
    far = (1e5 + y).astype(np.float32).astype(np.float64)
    assert rounding(far) == 1e-10


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_drawn_of_many_rows_does_not_depend_on_their_order(weighted):
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(100_001, 2)), rng.permutation(100_001)
    y = X[:, 0] * X[:, 1]
    weights = rng.uniform(0.5, 2.0, len(y)) if weighted else None
    settings = {"with_scales": True, "with_origins": True, "max_rows": 200, "held_out": 0.1, "seed": 0}
    one = prepare(Table(X, y, weights), **settings)
    other = prepare(Table(X[order], y[order], None if weights is None else weights[order]), **settings)
    for name in ("fitted", "search", "held_out"):
        for own, others in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(own, others)
    settings["held_out"] = 0.0
    for own, table in (
        (prepare(Table(X, y, weights), **settings), X),
        (prepare(Table(X[order], y[order]), **settings), X[order]),
    ):
        np.testing.assert_array_equal(own.data.columns, table.T)


def test_constants_are_fitted_on_rows_of_every_group():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(300), 12)
    X, y = np.column_stack([rng.random(len(groups)), groups]), rng.random(len(groups))
    ready = prepare(Table(X, y), with_scales=True, with_origins=True, max_rows=200, group_column=1, seed=0)
    assert np.array_equal(np.unique(ready.fitted.columns[1]), np.arange(300))
    assert len(ready.fitted.y) == 3_000
    assert np.unique(ready.search.columns[1], return_counts=True)[1].tolist() == [10] * 20
    few = prepare(Table(X, groups), with_scales=True, with_origins=True, max_rows=10, group_column=1, seed=0)
    assert few.search.variance > 0.0  # rows of two groups, since the target is the same in all rows of one
    y = np.where(np.arange(len(groups)) == 1234, 1.0, 0.0)
    one = prepare(Table(X, y), with_scales=True, with_origins=True, max_rows=200, group_column=1, seed=0)
    assert one.fitted.y.sum() == one.search.y.sum() == 1.0
