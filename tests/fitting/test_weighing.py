"""What float weights mean, which the residuals decide, and the errors of constants of weighted rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from dgsr import DGSRRegressor
from dgsr.data import prepare
from dgsr.data.population import Population
from dgsr.data.table import Table
from dgsr.expressions import Expression, get_library
from dgsr.fitting.weighing import noise_exponent

pytestmark = pytest.mark.search

LIBRARY = get_library("physics", 1)
# The mean, the law, and a longer formula.
FORMULAS = [
    Expression.from_text(text, LIBRARY) for text in ("14.2", "1.7 + 2.5*x1", "1.7 + 2.5*x1 + 0.01*sin(3*x1)")
]
PROGRAMS = Population.from_expressions(FORMULAS)


def effective_number(X, y, weights, programs=PROGRAMS, precision=None):
    rows = prepare(Table(X, y, weights), with_scales=False, with_origins=False, max_rows=None, seed=0)
    precision = np.ones(len(rows.data.y)) if precision is None else precision
    return rows.data.with_noise_exponent(noise_exponent(rows, programs, precision)).n_effective


def table(deviations, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, len(deviations))
    return x[:, None], 1.7 + 2.5 * x + deviations * rng.normal(size=len(x))


def kish(weights):
    return weights.sum() ** 2 / (weights**2).sum()


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_one_over_the_variance_leave_all_rows_and_shares_those_that_kish_counts(seed):
    deviations = 10.0 ** np.random.default_rng(seed).uniform(-2.0, 0.0, 100)
    weights = 1.0 / deviations**2
    for noise, expected in ((deviations, 100.0), (np.full(100, 0.3), kish(weights))):
        X, y = table(noise, seed)
        found = effective_number(X, y, weights)
        assert found == pytest.approx(expected, rel=0.25)


def test_two_rows_that_are_far_more_exact_do_not_stand_for_all():
    deviations = np.where(np.arange(60) < 2, 0.003, 0.3)
    X, y = table(deviations)
    weights = 1.0 / deviations**2
    assert kish(weights) < 2.1
    assert effective_number(X, y, weights) > 55.0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(-200.0, 200.0), st.integers(2, 60))
def test_the_number_is_between_that_of_kish_and_all_rows_whatever_the_unit_of_the_weights(seed, unit, n):
    rng = np.random.default_rng(seed)
    X, y = table(10.0 ** rng.uniform(-3.0, 1.0, n), seed)
    weights = 10.0 ** rng.uniform(-4.0, 4.0, n)
    found = effective_number(X, y, weights)
    assert kish(weights) * (1 - 1e-9) <= found <= n * (1 + 1e-9)
    assert effective_number(X, y, weights * 10.0**unit) == pytest.approx(found)


def test_errors_in_proportion_to_the_target_are_no_matter_of_weights_where_the_loss_is_relative():
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 10.0, 200))[:, None]
    law = 1.7 + 2.5 * x[:, 0]
    y = law * (1.0 + 0.1 * rng.normal(size=200))
    weights = 1.0 / law  # heavy rows have less noise, but not for their weights
    assert effective_number(x, y, weights, precision=1.0 / law**2) == pytest.approx(kish(weights), rel=0.05)
    assert effective_number(x, y, weights) > 180.0


@pytest.mark.slow
@pytest.mark.parametrize("n", [3_000, 20_000])
def test_in_a_large_table_the_heavy_rows_are_looked_at_and_samples_have_the_number_too(n):
    deviations = np.where(np.arange(n) < 2, 0.003, 0.3)
    X, y = table(deviations)
    assert effective_number(X, y, 1.0 / deviations**2) > 0.9 * n
    model = DGSRRegressor(max_evaluations=2_000, random_state=0, generator=None)
    model.fit(X, y, 1.0 / deviations**2)
    chosen = model.pareto_front_.candidate_of(model.expression_)
    _, covariance = curve_fit(lambda x, a, b: a + b * x, X[:, 0], y, sigma=deviations)
    assert len(chosen.expression.constants) == 2
    np.testing.assert_allclose(chosen.standard_errors, np.sqrt(np.diag(covariance)), rtol=0.25)


def test_counts_are_counts_and_equal_weights_are_all_rows():
    X, y = table(np.full(20, 0.3))
    counts = np.arange(1, 21)
    assert effective_number(X, y, counts) == pytest.approx(210.0)
    assert effective_number(X, y, np.full(20, 3.0)) == pytest.approx(20.0)
    weights = counts.astype(float)
    assert effective_number(X, y, weights, PROGRAMS[:0]) == pytest.approx(kish(weights))


def test_with_errors_of_measurement_the_law_is_chosen_and_its_constants_have_the_errors_of_scipy():
    deviations = np.where(np.arange(60) < 2, 0.003, 0.3)
    X, y = table(deviations)
    model = DGSRRegressor(max_evaluations=5_000, random_state=0, generator=None)
    model.fit(X, y, 1.0 / deviations**2)
    chosen = model.pareto_front_.candidate_of(model.expression_)
    values, covariance = curve_fit(lambda x, a, b: a + b * x, X[:, 0], y, sigma=deviations)
    assert len(chosen.expression.constants) == 2
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(chosen.standard_errors, errors, rtol=0.05)
    assert np.all(np.abs(chosen.expression.constants - values) < 2.0 * errors)
