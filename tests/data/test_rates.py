"""Rates of change: the posterior of the process, the errors, the rows that are used, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz

import dgsr
from dgsr import rates
from dgsr.data.rates import _effective_number, _fitted, _surprise

TIMES = np.linspace(0.0, 6.0, 50)


def pendulum(noise=0.0, seed=0, t=TIMES):
    """Return the two states of a pendulum with small swings, and their derivatives."""
    rng = np.random.default_rng(seed)
    states = np.column_stack([np.sin(t), np.cos(t)])
    return states + noise * rng.normal(size=states.shape), np.column_stack([np.cos(t), -np.sin(t)])


def assert_same(one, other, rtol=1e-9):
    for name, a, b in zip(one._fields, one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol, err_msg=name)


def test_states_derivatives_and_errors_are_differences_of_what_scikit_learn_predicts():
    u, step = np.sort(np.random.default_rng(0).uniform(0, 1, 30)), 1e-4
    u = (u - u.min()) / np.ptp(u)
    z = np.sin(7 * u) + 0.05 * np.random.default_rng(1).normal(size=30)
    process, n = _fitted(u, (z - z.mean()) / np.ptp(z)), len(u)
    places = np.concatenate([u, u + step, u - step])[:, None]
    mean, covariance = process.predict(places, return_cov=True)
    covariance = np.ptp(z) ** 2 * (covariance - process.kernel_.k2.noise_level * np.eye(3 * n))
    mean = z.mean() + np.ptp(z) * mean
    difference = np.hstack([np.zeros((n, n)), np.eye(n), -np.eye(n)]) / (2 * step)
    found = rates(u, z[:, None])
    np.testing.assert_allclose(found.states[:, 0], mean[:n], rtol=1e-9)
    np.testing.assert_allclose(found.derivatives[:, 0], difference @ mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.state_errors[:, 0], np.sqrt(np.diag(covariance)[:n]), rtol=1e-6)
    of_slopes = np.sqrt(np.diag(difference @ covariance @ difference.T))
    np.testing.assert_allclose(found.errors[:, 0], of_slopes, rtol=1e-3)


def test_two_standard_errors_cover_the_true_states_and_derivatives_about_as_often_as_they_say():
    covered = []
    for seed in range(12):
        noisy, derivatives = pendulum(0.05, seed)
        found = rates(TIMES, noisy)
        states, _ = pendulum()
        covered.append(np.abs(found.derivatives - derivatives) < 2 * found.errors)
        covered.append(np.abs(found.states - states) < 2 * found.state_errors)
    assert 0.92 < np.mean(covered[::2]) < 0.99
    assert 0.92 < np.mean(covered[1::2]) < 0.99


def test_a_derivative_has_a_fraction_of_the_error_of_differences():
    noisy, derivatives = pendulum(0.05)
    of_differences = np.std(np.gradient(noisy, TIMES, axis=0) - derivatives)
    assert np.std(rates(TIMES, noisy).derivatives - derivatives) < 0.4 * of_differences


def test_the_ends_of_a_run_are_less_certain_than_its_middle():
    errors = rates(TIMES, pendulum(0.05)[0]).errors
    assert (errors[[0, -1]] > 1.5 * errors[25]).all()


def test_the_surprise_is_that_of_a_row_that_is_left_out():
    u, z = np.linspace(0, 1, 30), np.sin(8 * np.linspace(0, 1, 30))
    z[12] += 1.0
    process = _fitted(u, z)
    covariance = process.kernel_(u[:, None])
    off = np.empty(30)
    for i in range(30):
        others = np.arange(30) != i
        weights = np.linalg.solve(covariance[np.ix_(others, others)], covariance[others, i])
        off[i] = abs(z[i] - weights @ z[others]) / np.sqrt(covariance[i, i] - weights @ covariance[others, i])
    largest = np.array([off[max(i - 1, 0) : i + 2].max() for i in range(30)])
    assert largest[12] > 4.0
    np.testing.assert_allclose(_surprise(u, process), np.maximum(largest / 3.0, 1.0) ** 2, rtol=1e-5)


def test_a_change_that_is_over_in_a_few_rows_is_uncertain():
    t = np.arange(100) / 10
    states, derivatives = (np.exp(-9 * t) + np.sin(t))[:, None], (-9 * np.exp(-9 * t) + np.cos(t))[:, None]
    found = rates(t, states + 0.01 * np.random.default_rng(0).normal(size=states.shape))
    assert found.errors[0] > 10 * found.errors[50]
    assert abs(found.derivatives[0] - derivatives[0]) < 3 * found.errors[0]


def test_a_series_without_noise_is_kept_and_its_derivative_is_near():
    states, derivatives = pendulum()
    found = rates(TIMES, states)
    np.testing.assert_allclose(found.states, states, atol=1e-4)
    np.testing.assert_allclose(found.derivatives, derivatives, atol=5e-3)
    assert (np.abs(found.derivatives - derivatives) < 3 * found.errors).mean() > 0.95


def test_rows_in_any_order_have_the_same_rates():
    noisy, order = pendulum(0.02)[0], np.random.default_rng(3).permutation(len(TIMES))
    found, shuffled = rates(TIMES, noisy), rates(TIMES[order], noisy[order])
    assert_same(shuffled, type(found)(*(part[order] for part in found)), rtol=1e-6)


def test_each_run_is_smoothed_by_itself_whatever_it_is_called():
    (one, _), (other, _) = pendulum(0.02, 1), pendulum(0.1, 2, TIMES / 2)
    order = np.random.default_rng(0).permutation(2 * len(TIMES))
    runs = np.repeat(["wet year", "dry year"], len(TIMES))
    both = rates(
        np.concatenate([TIMES, TIMES / 2])[order], np.concatenate([one, other])[order], groups=runs[order]
    )
    for run, alone in (("wet year", rates(TIMES, one)), ("dry year", rates(TIMES / 2, other))):
        rows = np.flatnonzero(runs[order] == run)
        rows = rows[np.argsort(order[rows])]
        for part in ("states", "derivatives", "errors", "state_errors"):
            np.testing.assert_allclose(getattr(both, part)[rows], getattr(alone, part), rtol=1e-6)
        np.testing.assert_array_equal(both.sample_weight[rows] > 0, alone.sample_weight > 0)


@settings(max_examples=5, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(-10, 10))
def test_other_units_change_the_rates_by_their_factors_alone(per_time, start, size, offset):
    noisy = pendulum(0.05)[0][:, :1]
    found = rates(TIMES, noisy)
    other = rates(start + per_time * TIMES, size * (noisy + offset))
    factor = size / per_time
    np.testing.assert_allclose(other.derivatives / factor, found.derivatives, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.errors / factor, found.errors, rtol=1e-3)
    np.testing.assert_allclose(other.states / size - offset, found.states, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(other.sample_weight, found.sample_weight, rtol=1e-2)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_numbers_whose_squares_are_no_floats_have_the_same_weights(size):
    noisy = pendulum(0.05)[0]
    weights = rates(TIMES, size * noisy).sample_weight
    np.testing.assert_allclose(weights, rates(TIMES, noisy).sample_weight, rtol=1e-2)


def test_repeated_and_uneven_times_are_measurements_like_others():
    t = np.sort(np.random.default_rng(0).uniform(0, 6, 25)).repeat(2)
    noisy, derivatives = pendulum(0.02, t=t)
    found = rates(t, noisy)
    np.testing.assert_array_equal(found.derivatives[::2], found.derivatives[1::2])
    assert np.abs(found.derivatives - derivatives).max() < 0.25
    assert (np.abs(found.derivatives - derivatives) < 2 * found.errors).mean() > 0.85


def test_a_state_that_does_not_change_has_no_rate_and_finite_weights():
    states = np.column_stack([pendulum(0.02)[0][:, 0], np.full(len(TIMES), 3.0)])
    found = rates(TIMES, states)
    np.testing.assert_allclose(found.derivatives[:, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.states[:, 1], 3.0)
    assert np.isfinite(1.0 / found.errors**2).all()
    assert np.isfinite(found.sample_weight).all()
    assert found.sample_weight.any()


def test_a_dataframe_keeps_its_names_and_its_index():
    table = pd.DataFrame(pendulum(0.02)[0], columns=["hare", "lynx"], index=np.arange(1900, 1950))
    found, plain = rates(table.index, table), rates(table.index.to_numpy(), table.to_numpy())
    for part in ("states", "derivatives", "errors", "state_errors"):
        frame = getattr(found, part)
        assert list(frame.columns) == ["hare", "lynx"]
        assert frame.index.equals(table.index)
        np.testing.assert_array_equal(frame, getattr(plain, part))


def test_rows_have_a_weight_where_their_errors_are_independent():
    weights = rates(TIMES, pendulum(0.05)[0]).sample_weight
    used = np.flatnonzero(weights)
    assert 5 <= len(used) <= 15  # of 50 rows, over one turn of the pendulum
    assert np.ptp(np.diff(used)) <= 1
    assert weights[used].argmin() in (0, len(used) - 1)


@pytest.mark.parametrize(
    ("errors", "number"),
    [
        (np.eye(8), 8.0),
        (np.ones((8, 8)), 1.0),
        (np.kron(np.eye(4), np.ones((2, 2))), 4.0),
        (np.diag([1.0, 1.0, 1e-9, 1e-9]), 2.0),
        # A first-order autoregression: n (1 - r**2) / (1 + r**2) for many rows.
        (toeplitz(0.8 ** np.arange(800)), 800 * (1 - 0.64) / (1 + 0.64)),
    ],
)
def test_the_effective_number_is_that_of_independent_errors(errors, number):
    assert _effective_number(errors) == pytest.approx(number, rel=1e-2)


BAD = [
    ({"t": TIMES[:-1]}, "t has 49 rows and X has 50; give a time for each row"),
    ({"t": np.where(TIMES > 5.9, np.nan, TIMES)}, r"t has no value \(NaN\) in 1 of 50 rows"),
    ({"t": np.round(TIMES / 3)}, "t has 3 different times, and a rate of change needs 5"),
    ({"t": pd.date_range("2020", periods=50)}, "make numbers of them"),
    ({"X": np.full((50, 1), np.inf)}, "X has an infinite value"),
    ({"X": np.sin(TIMES)}, "Expected 2D array"),
    ({"X": np.full((50, 1), "many")}, "X has text, such as 'many'"),
    ({"groups": [1, 2]}, r"groups has the shape \(2,\) for 50 rows"),
    ({"groups": [None] + [1] * 49}, "groups has no value in row 0"),
    ({"groups": np.repeat(["a", "b"], [47, 3])}, "Run b of groups has 3 different times"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_refused_with_what_to_do(change, message):
    with pytest.raises(ValueError, match=message):
        rates(**{"t": TIMES, "X": pendulum()[0], **change})


def test_a_run_that_would_take_minutes_is_refused():
    t = np.arange(1_001.0)
    with pytest.raises(ValueError, match="t has 1001 rows, and a run may have 1000; take means"):
        rates(t, np.sin(t)[:, None])


def test_the_same_data_give_the_same_rates():
    noisy, _ = pendulum(0.05)
    for one, other in zip(rates(TIMES, noisy), rates(TIMES, noisy), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_is_a_public_name():
    assert dgsr.rates is rates
    assert {"rates", "Rates"} <= set(dgsr.__all__)
