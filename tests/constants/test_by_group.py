"""Fits of constants by group are those of dense least squares, with their uncertainty and their bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from dgsr.constants.by_group import GroupedProgram, assessed, noise_of
from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.grouped import ByGroup, GroupedExpression

LIBRARY = get_library("physics", 1)
N_GROUPS = 4


def table(own=(True, False, True), noise=0.05, seed=0, n=9):
    """Rows of a*exp(-c*x) + b with some constants by group, of unequal weights."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(N_GROUPS), n)
    x, weights = rng.uniform(0.0, 3.0, n * N_GROUPS), rng.uniform(0.5, 2.0, n * N_GROUPS)
    spreads = np.array([1.0, 0.1, 2.0]) * own
    a, c, b = rng.normal([[3.0], [0.7], [0.5]], spreads[:, None], (3, N_GROUPS))[:, groups]
    y = a * np.exp(-c * x) + b + noise * rng.standard_normal(len(x))
    return DataSet.from_arrays(x[:, None], y, weights)._replace(groups=groups)


def program(data, text="2.5*exp(-0.4*x1) + 0.3"):
    formula = Expression.from_text(text, LIBRARY)
    parts = list(np.arange(len(formula.constants))[:, None])
    fits = GroupedProgram(LIBRARY, formula.tokens, formula.constants, parts, data, N_GROUPS)
    return fits, np.tile(formula.constants[:, None], (1, N_GROUPS))


def dense_slopes(fits, constants, is_own):
    """The Jacobian with a column for each value: those by group, then the shared ones."""
    slopes, groups = fits.slopes(constants), fits.data.groups
    own = [slopes[:, i] * (groups == g) for i in np.flatnonzero(is_own) for g in range(N_GROUPS)]
    return np.column_stack([*own, slopes[:, ~is_own]])


@pytest.mark.parametrize("own", [(0, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 0)])
def test_a_fit_by_blocks_is_that_of_scipy(own):
    data, is_own = table(own), np.array(own, dtype=bool)
    fits, start = program(data)
    found = fits.fit(start, is_own, 100)

    def constants_of(values):
        n = is_own.sum() * N_GROUPS
        constants = np.empty((3, N_GROUPS))
        constants[is_own] = values[:n].reshape(-1, N_GROUPS)
        constants[~is_own] = values[n:, None]
        return constants

    first = np.concatenate([start[is_own].ravel(), start[~is_own, 0]])
    best = least_squares(lambda values: fits.residuals(constants_of(values)), first)
    assert fits.nmse(fits.residuals(found)) == pytest.approx(np.mean(best.fun**2) / data.variance, rel=1e-6)
    assert np.ptp(found[~is_own], axis=1) == pytest.approx(0.0, abs=1e-12)


def test_covariances_and_bits_are_those_of_the_dense_jacobian():
    data, is_own = table(), np.array([True, False, True])
    fits, start = program(data)
    constants = fits.fit(start, is_own, 50)
    apart = fits.directions(constants, is_own)
    dense = dense_slopes(fits, constants, is_own)
    covariance, spread = 0.09 * np.linalg.inv(dense.T @ dense), np.eye(2)
    for group in range(N_GROUPS):
        at = [group, 2 * N_GROUPS, N_GROUPS + group]  # scale, rate, offset
        found = apart.covariances(0.3, spread)[group]
        np.testing.assert_allclose(found, covariance[np.ix_(at, at)], rtol=1e-6)
    assert apart.n_constants == 2 * N_GROUPS + 1

    # The bits are half the logarithm of det(I + S A S) over all values, and seven for each spread.
    noise = noise_of(fits.nmse(fits.residuals(constants)), apart.n_constants, data)
    own = dense[:, : 2 * N_GROUPS] / noise
    spread = np.repeat(constants[is_own].std(axis=1), N_GROUPS)
    expected = 0.5 * np.log2(np.linalg.det(np.eye(len(spread)) + spread[:, None] * (own.T @ own) * spread))
    assert fits.bits_of_values(constants, is_own, noise) == pytest.approx(expected + 2 * 7.0)


def test_the_error_of_rows_left_out_counts_the_values_by_group():
    """Without shared constants it is the unbiased estimate of the variance of the noise."""
    data, is_own = table(), np.array([True, True, True])
    fits, start = program(data)
    constants = fits.fit(start, is_own, 100)
    loss = fits.nmse(fits.residuals(constants))
    n, k = len(data.y), 3 * N_GROUPS
    assert fits.leave_one_out(constants, fits.directions(constants, is_own)) == pytest.approx(
        loss * n / (n - k)
    )


def test_a_search_scales_every_group_by_itself():
    """Levenberg-Marquardt with slopes and intercepts by group ends where scipy does."""
    data = table()
    programs = Population.from_expressions([Expression.from_text("exp(-0.3*x1)", LIBRARY)])
    found = fit_constants(programs, data, n_iterations=50, precision=1e-12)
    fits, start = program(data)
    best = fits.fit(start, np.array([True, False, True]), 100)
    assert found.nmse[0] == pytest.approx(fits.nmse(fits.residuals(best)), rel=1e-8)
    assert programs.constants[0, 0] == pytest.approx(best[1, 0], rel=1e-5)


def test_a_group_without_rows_or_with_a_single_one_is_fitted_too():
    data = table()
    data = data.at(np.flatnonzero((data.groups > 1) | (np.arange(len(data.y)) == 0)))
    fits, start = program(data)
    constants = fits.fit(start, np.array([True, False, True]), 50)
    assert np.isfinite(constants).all()
    np.testing.assert_array_equal(constants[[0, 2], 1], start[[0, 2], 1])  # the group without rows
    apart = fits.directions(constants, np.array([True, False, True]))
    assert apart.n_own == 5

    spread = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = apart.covariances(1e-6, spread)
    np.testing.assert_allclose(found[1][np.ix_([0, 2], [0, 2])], spread)  # as a new group
    slopes = fits.slopes(constants)[0, [0, 2]]  # of the single row, which determines one direction
    assert slopes @ found[0][np.ix_([0, 2], [0, 2])] @ slopes == pytest.approx(0.0, abs=1e-6)
    open_one = np.array([slopes[1], -slopes[0]])
    assert open_one @ found[0][np.ix_([0, 2], [0, 2])] @ open_one > 0.1
    assert found[2][0, 0] < 1e-6


def formula_of(data):
    """The fitted formula of a table with a scale by group, and its fits."""
    plain = Expression.from_text("2.5*exp(-0.4*x1)", LIBRARY.with_variables(2))
    by_group = ByGroup.of_values(1, tuple(range(N_GROUPS)), np.array([0, -1]), np.full((1, N_GROUPS), 2.5))
    formula = GroupedExpression(plain.library, plain.tokens, plain.constants, by_group)
    fits = GroupedProgram.of_expression(formula, data, N_GROUPS)
    scale, rate = fits.fit(np.array([[2.5], [-0.4]]).repeat(N_GROUPS, axis=1), np.array([True, False]), 50)
    return GroupedExpression(
        plain.library, plain.tokens, [0.0, rate[0]], by_group._replace(values=scale[None])
    )


def test_the_noise_is_that_of_one_measurement_where_rows_stand_for_several():
    data = table((1, 0, 0))
    columns = np.vstack([data.columns, data.groups])
    once = DataSet.from_arrays(columns.T, data.y)._replace(groups=data.groups)
    n = np.full(len(data.y), 4.0)
    four_times = DataSet.from_arrays(columns.T, data.y, n, n)._replace(groups=data.groups)
    formula, of_once = assessed(formula_of(once), once)
    again, of_four = assessed(formula_of(four_times), four_times)
    assert of_four.noise == pytest.approx(of_once.noise)
    errors = formula.by_group.standard_errors
    np.testing.assert_allclose(again.by_group.standard_errors, 0.5 * errors)


def test_the_noise_of_relative_errors_is_a_share_of_the_formula():
    rng = np.random.default_rng(0)
    groups, x = np.repeat(np.arange(N_GROUPS), 50), rng.uniform(0.0, 3.0, 50 * N_GROUPS)
    y = (1.0 + groups) * np.exp(-0.7 * x) * (1.0 + 0.05 * rng.standard_normal(len(x)))
    data = DataSet.from_arrays(np.column_stack([x, groups]), y, y**-2.0)._replace(groups=groups)
    assert assessed(formula_of(data), data, relative=True)[1].noise == pytest.approx(0.05, rel=0.15)
