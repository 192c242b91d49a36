"""Separability: sums and products of smooth functions, what they say of tables, and the search for parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from dgsr import find_symmetries
from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.gaussian_process import LINEAR, fit_surrogate
from dgsr.finders.fewer_columns.products import fit_product, nearest_product
from dgsr.finders.fewer_columns.separation import separation_of
from dgsr.finders.fewer_columns.tables import whole_table
from searches import flat_regressor

pytestmark = pytest.mark.search


def table(n_rows, n_columns, seed=0, low=1.0, high=3.0):
    return np.random.default_rng(seed).uniform(low, high, (n_rows, n_columns))


def noisy(y, noise, seed=1):
    return y + noise * y.std() * np.random.default_rng(seed).normal(size=len(y))


def separated(X, y):
    return separation_of(whole_table(X, y, [f"x{i + 1}" for i in range(X.shape[1])]), np.arange(len(y)))


# --- sums of processes ----------------------------------------------------------------------------


def test_the_error_of_a_sum_is_that_of_leaving_out_each_row():
    X = table(30, 2)
    found = fit_surrogate(X, noisy(np.sin(2 * X[:, 0]) + X[:, 1] ** 2, 0.05), groups=[[0], [1]])
    values = noisy(np.sin(2 * X[:, 0]) + X[:, 1] ** 2, 0.05)
    values = (values - values.mean()) / values.std()
    kernel = LINEAR * (1.0 + found.Z @ found.Z.T) + found.noise * np.eye(30)
    for i in range(2):
        column = found.relevance[i] * found.Z[:, [i]]
        kernel += np.exp(-(cdist(column, column) ** 2) / (2.0 * found.length**2))
    errors = []
    for i in range(30):
        rest = np.delete(np.arange(30), i)
        errors.append(kernel[i, rest] @ np.linalg.solve(kernel[np.ix_(rest, rest)], values[rest]) - values[i])
    assert found.error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-6)


def test_the_parts_of_a_sum_are_its_terms():
    X = table(120, 3)
    terms = np.sin(2.0 * X[:, 0]), X[:, 1] * X[:, 2]
    found = fit_surrogate(X, sum(terms), groups=[[0], [1, 2]])
    for part, term in zip(found.parts, terms):
        np.testing.assert_allclose(part, term - term.mean(), atol=1e-3)
    np.testing.assert_allclose(found.parts.sum(axis=0) + found.middle, sum(terms), atol=1e-4)


def test_the_grid_has_the_function_at_columns_of_two_rows():
    X = table(200, 3)
    found = fit_surrogate(X, X[:, 0] * np.sin(X[:, 1]) + X[:, 2])
    grid = found.on_grid(np.array([1]))
    np.testing.assert_allclose(grid, X[:, 0] * np.sin(X[:, [1]]) + X[:, 2], atol=0.05)
    np.testing.assert_allclose(np.diag(grid), X[:, 0] * np.sin(X[:, 1]) + X[:, 2], atol=1e-3)


# --- products of processes ------------------------------------------------------------------------


def test_the_nearest_product_has_the_largest_singular_value():
    random = np.random.default_rng(0)
    grid = np.outer(random.normal(size=30), random.normal(size=30)) + 0.05 * random.normal(size=(30, 30))
    left, sizes, _ = np.linalg.svd(grid)
    vector, square = nearest_product(grid)
    assert square == pytest.approx(sizes[0] ** 2, rel=1e-9)
    np.testing.assert_allclose(np.abs(vector), sizes[0] * np.abs(left[:, 0]), atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_parts_of_a_product_are_its_factors_whatever_their_signs(noise):
    X = table(150, 2, low=-2.0, high=2.0)
    factors = np.sin(1.5 * X[:, 0]), X[:, 1] ** 2 - 1.0
    y = noisy(np.prod(factors, axis=0), noise)
    found = fit_product(y, fit_surrogate(X, y), [[0], [1]])
    for part, factor in zip(found.parts, factors):
        unit = factor / np.sqrt(np.mean(factor**2))
        np.testing.assert_allclose(part * np.sign(part @ unit), unit, atol=max(1.5 * noise, 1e-3))
    np.testing.assert_allclose(
        found.constant * np.prod(found.parts, axis=0), np.prod(factors, axis=0), atol=max(noise, 1e-3)
    )
    assert 0.9 * noise <= found.error <= max(1.15 * noise, 1e-3)


# --- what is said of tables -----------------------------------------------------------------------

#: Laws, their groups of columns, and whether they are products.
LAWS = {
    "a/(1.7 + a)*exp(-b)": ([[0], [1]], True),
    "sin(2*a)*(b*c + c**2)": ([[0], [1, 2]], True),
    "a/(1.7 + a)*exp(-b)*log(c)": ([[0], [1], [2]], True),
    "a**2 + 3*log(b)": ([[0], [1]], False),
    "sqrt(a**2 + 3*b**2) + exp(c)/(2 + c)": ([[0, 1], [2]], False),
    "sin(2*a) + b**2 - exp(-c)": ([[0], [1], [2]], False),
}
FUNCTIONS = {name: getattr(np, name) for name in ("exp", "sin", "log", "sqrt")}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_law_separates_as_it_is_written(law, noise):
    groups, is_product = LAWS[law]
    X = table(150, 1 + max(map(max, groups)), low=0.5, high=4.0)
    y = noisy(eval(law, {**FUNCTIONS, **dict(zip("abc", X.T))}), noise)
    found = separated(X, y)
    assert (list(map(list, found.groups)), found.is_product) == (groups, is_product)
    assert found.error <= max(1.2 * noise, 1e-3)


@pytest.mark.parametrize("law", ["sin(a*b) + a/b", "a**b", "exp(-a*b) + b"])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_does_not_separate_is_not_said_to(law, noise):
    X = table(150, 2)
    assert separated(X, noisy(eval(law, {**FUNCTIONS, **dict(zip("ab", X.T))}), noise)) is None


def test_noise_alone_and_what_the_rows_do_not_show_are_not_said_to_separate():
    X = table(100, 3)
    assert separated(X, np.random.default_rng(0).normal(size=100)) is None
    assert separated(X, np.sin(40.0 * X[:, 0]) * X[:, 1]) is None
    assert separated(X[:, :1], X[:, 0] ** 2) is None


def test_statements_name_the_columns_of_every_function():
    X = table(120, 3, low=0.5, high=4.0)
    y = X[:, 0] / (1.7 + X[:, 0]) * (X[:, 1] + np.exp(X[:, 2]) * X[:, 1] ** 2)
    (symmetry,) = find_symmetries(X, y, ["S", "p", "T"], "rate")
    assert str(symmetry) == "rate is a function of S, times a function of p and T"
    assert (symmetry.kind, symmetry.groups) == ("product", (("S",), ("p", "T")))
    y = np.exp(X[:, 0]) + np.log(X[:, 1]) - 1.0 / (1.0 + X[:, 2])
    (symmetry,) = find_symmetries(X, y)
    assert str(symmetry) == "y is a function of x1, plus a function of x2, plus a function of x3"
    assert symmetry.kind == "sum"


# --- the search for the parts ---------------------------------------------------------------------


def rates(n_rows=120, noise=0.01):
    """Return light times nutrient times temperature."""
    random = np.random.default_rng(7)
    X = random.uniform([5.0, 0.1, 5.0], [400.0, 6.0, 30.0], (n_rows, 3))
    y = X[:, 0] * np.exp(-X[:, 0] / 120.0) * X[:, 1] / (0.7 + X[:, 1]) * np.exp(0.07 * X[:, 2])
    return X, noisy(y, noise), y


@pytest.mark.slow
def test_a_product_of_three_named_forms_is_found_through_noise():
    X, y, truth = rates()
    settings = {"generator": None, "max_evaluations": 25_000, "random_state": 0}
    model = flat_regressor(**settings).fit(X, y)
    assert np.mean((model.predict(X) - truth) ** 2) < 3e-5 * truth.var()
    without = flat_regressor(**settings, look_up=False).fit(X, y)
    assert np.mean((without.predict(X) - truth) ** 2) > 3e-5 * truth.var()


@pytest.mark.slow
def test_formulas_of_more_constants_than_the_rounds_have_are_kept():
    X = table(150, 3, low=0.1, high=4.0)
    truth = 3.1 * X[:, 0] / (1.2 + X[:, 0]) - 2.3 * np.exp(-0.7 * X[:, 1]) + 1.4 * np.sin(1.9 * X[:, 2])
    settings = {"generator": None, "max_evaluations": 40_000, "random_state": 0}
    model = flat_regressor(**settings).fit(X, noisy(truth, 0.01))
    assert np.mean((model.predict(X) - truth) ** 2) < 2e-5 * truth.var()
    assert len(model.expression_.constants) >= 6


def test_a_share_of_a_budget_ends_after_most_evaluations_and_leaves_the_limits_as_they_were():
    budget = Budget(10**9, None)
    with budget.share_of_rest(0.3, most=1_000):
        assert budget.n_left == 1_000
        with budget.share_of_rest(0.5, most=1_000):
            assert budget.n_left == 500
        assert budget.n_left == 1_000
    assert (budget.n_left, budget.max_time) == (10**9, np.inf)
