"""Sums and products of short programs: against numpy's least squares, and on laws that are some."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor
from dgsr.constants import fit_constants
from dgsr.expressions import get_library
from dgsr.expressions.constraints import Constraints
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.sums import explain, find_partners, standardise
from dgsr.population import DataSet
from dgsr.search import Search, SearchConfig, run
from dgsr.sums import COVERS, Sums

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3.0, (64, 3))


def weighted_r2(columns, target, weights):
    """Share of the variance a regression with an offset explains: the reference."""
    root = np.sqrt(weights)
    columns = np.column_stack([columns, np.ones(len(target))]) * root[:, None]
    rest = target * root - columns @ np.linalg.lstsq(columns, target * root, rcond=None)[0]
    mean = np.average(target, weights=weights)
    return 1.0 - (rest @ rest) / np.sum(weights * (target - mean) ** 2)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), n_basis=st.integers(0, 2))
def test_partners_are_those_of_least_squares(seed, n_basis):
    rng = np.random.default_rng(seed)
    values, target = rng.normal(size=(30, 20)), rng.normal(size=20)
    weights = rng.uniform(0.1, 2.0, 20)
    functions, y = np.empty((30, 20), dtype=np.float32), np.empty((1, 20), dtype=np.float32)
    standardise(values, weights, functions)
    standardise(target[None], weights, y)
    alone = np.empty(30, dtype=np.float32)
    explain(functions, y[0], alone)
    expected = [weighted_r2(values[i][:, None], target, weights) for i in range(30)]
    np.testing.assert_allclose(alone, expected, atol=1e-5)

    members = list(range(n_basis))
    q, _ = np.linalg.qr(functions[members].T.astype(float)) if members else (np.empty((20, 0)), None)
    rest = y[0] - q @ (q.T @ y[0])
    partner, explained = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.float32)
    basis = np.ascontiguousarray(q.T[:, :, None], dtype=np.float32)
    find_partners(functions, basis, np.ascontiguousarray(rest[:, None], dtype=np.float32), partner, explained)
    others = [i for i in range(30) if i not in members]
    r2 = {i: weighted_r2(values[[*members, i]].T, target, weights) for i in others}
    best = max(r2, key=r2.get)
    assert r2[int(partner[0])] == pytest.approx(r2[best], abs=1e-5)
    assert 1.0 - rest @ rest + explained[0] == pytest.approx(r2[best], abs=1e-5)


def test_what_does_not_vary_or_is_not_finite_explains_nothing():
    values = np.array([[1.0, 1.0, 1.0], [np.nan, 1.0, 2.0], [1e200, -1e200, 0.0], [1.0, 2.0, 4.0]])
    functions = np.empty((4, 3), dtype=np.float32)
    standardise(values, np.ones(3), functions)
    assert not functions[:3].any()
    assert np.linalg.norm(functions[3]) == pytest.approx(1.0)


x1, x2, x3 = X.T
LAWS = {
    "a sum": 3.7 * np.exp(x1) - 0.21 * x2 / x3 + 5.0,
    "of three": 4.0 * x1 - x1**2 - 0.3 * x1 * x2 / x3,
    "a product": 2.6 * x1 * np.exp(x2) * np.log(x3 + 1.0),
    "a simple product": 2.6 * x1 * np.exp(x2) / x3,
    "a quotient": 0.7 * x1 / (x2 * np.log(x3 + 1.0)),
    "an inverse": 1.3 / (0.4 * x1 * x2 + x3 + 0.9),
    "an exponential": 0.2 * np.exp(-0.7 * x1**2 + 1.9 * x2 / x3),
    "a root": np.sqrt(2.5 * x1 * x2 + 0.3 * x3 + 1.1),
    "a square": 1.7 * (x1 * x3 + 0.8 * x2 + 2.2) ** 2,
    "an inverse root": 1.0 / np.sqrt(2.2 * x1 * x2 + 0.7 * x3),
    "the negative of a root": -np.sqrt(0.8 * x1 * x2 + 3.3 * x3 + 0.1),
    "a falling root": np.sqrt(40.0 - 1.3 * x1 * x2 - 0.2 * x3),
    "a factor of a sum": 0.4 * np.exp(x1) * (x2 / x3 + 7.0),
    "a factor of an inverse": 0.4 * np.exp(x1) / (x2 * x3 + 7.0),
    "a factor of a root": 3.1 / np.sqrt(60.0 - 1.7 * x2**2 * x3) / x1,
    "powers": 0.023 * x1**0.8 * x2**0.4 / x3**0.25,
}


def told(y, library="physics", weights=None, rows=slice(None)):
    library = get_library(library, 3)
    data = DataSet.from_arrays(X[rows], y[rows], weights)
    grammar = Constraints().grammar(library)
    sums = Sums(library, data, grammar, Constraints().max_constants)
    return data, grammar, [look(cover) for cover in COVERS for look in (sums.under, sums.factored)]


@pytest.mark.parametrize("name", LAWS)
def test_a_law_that_is_a_sum_or_a_product_is_told(name):
    data, grammar, populations = told(LAWS[name])
    assert min(fit_constants(p, data, n_iterations=0).nmse.min(initial=np.inf) for p in populations) < 1e-12
    for p in populations:
        assert are_valid(p.tokens, p.lengths, grammar).all()


@pytest.mark.parametrize("name", ["a sum", "a product", "a quotient", "an inverse", "an exponential"])
def test_fewer_operators_suffice(name):
    data, _, populations = told(LAWS[name], "koza-const")
    assert min(fit_constants(p, data, n_iterations=0).nmse.min(initial=np.inf) for p in populations) < 1e-12


@pytest.mark.parametrize("name", ["a simple product", "an exponential", "powers"])
def test_noise_does_not_hide_the_law(name):
    _, _, populations = told(LAWS[name] * (1.0 + 0.02 * np.random.default_rng(1).normal(size=64)))
    clean = DataSet.from_arrays(X, LAWS[name])
    assert min(fit_constants(p, clean).nmse.min(initial=np.inf) for p in populations) < 1e-12


def test_rows_without_weight_do_not_matter():
    y, weights = LAWS["a sum"].copy(), np.ones(64)
    y[::7], weights[::7] = 1e3, 0.0
    data, _, populations = told(y, weights=weights)
    assert fit_constants(populations[0], data, n_iterations=0).nmse.min() < 1e-12


@pytest.mark.parametrize(("n", "most"), [(7, 0), (15, 1), (23, 2), (24, 3)])
def test_sums_have_no_more_functions_than_the_rows_allow(n, most):
    """Some of millions of pairs fit any ten numbers."""
    _, _, populations = told(np.random.default_rng(2).normal(size=64), rows=slice(n))
    n_told = len(populations[0])
    assert 16 * (most - 1) < n_told <= 16 * most or n_told == most == 0


@pytest.mark.parametrize(
    "y", [np.where(np.arange(64) % 5 == 0, 0.0, x1), x1 - 1.7, 1e-100 * x1, 1e150 * x1**3]
)
def test_no_target_is_an_error(y):
    data, _, populations = told(y)
    for p in populations:
        assert np.isfinite(p.constants).all()
    best = min(fit_constants(p, data).nmse.min(initial=np.inf) for p in populations)
    assert best < 0.5


def test_sums_are_for_the_front_and_leave_the_rest_of_the_search_alone():
    library = get_library("physics", 3)
    data = DataSet.from_arrays(X, LAWS["a sum"] + 0.1 * RNG.normal(size=64))

    def generations(look_up):
        search = Search(data, library, Constraints(), SearchConfig(look_up=look_up), None, seed=3)
        for _ in range(3):
            search.look_further()
            search.tell(search.ask())
        return search.generation_nmse, search.archive.best_nmse(), search.n_evaluations

    nmse, best, n = generations(False)
    told_nmse, told_best, told_n = generations(True)
    np.testing.assert_array_equal(nmse, told_nmse)
    assert told_best < best
    assert n < told_n < n + 3 * 64


def test_a_search_that_is_interrupted_goes_on_with_the_next_cover():
    library = get_library("physics", 3)
    data = DataSet.from_arrays(X, LAWS["a sum"] + 0.1 * RNG.normal(size=64))

    def search():
        return Search(data, library, Constraints(), SearchConfig(max_evaluations=20_000), None, seed=3)

    whole = search()
    whole.look_further()
    state = whole.state_dict()
    run(whole)
    other = search()
    other.load_state_dict(state)
    run(other)
    assert other.n_evaluations == whole.n_evaluations
    assert [str(p) for p in other.archive.population()] == [str(p) for p in whole.archive.population()]


def test_a_law_of_engineers_is_found_in_a_second():
    """Nu = 0.023 Re^0.8 Pr^0.4: no simple powers."""
    rng = np.random.default_rng(1)
    reynolds, prandtl = rng.uniform(1e4, 1e5, 100), rng.uniform(0.7, 7.0, 100)
    y = 0.023 * reynolds**0.8 * prandtl**0.4
    regressor = DGSRRegressor(max_evaluations=15_000, generator=None, random_state=0)
    regressor.fit(np.column_stack([reynolds, prandtl]), y)
    assert regressor.score(np.column_stack([reynolds, prandtl]), y) > 1.0 - 1e-9
    without = DGSRRegressor(max_evaluations=15_000, generator=None, look_up=False, random_state=0)
    without.fit(np.column_stack([reynolds, prandtl]), y)
    assert without.score(np.column_stack([reynolds, prandtl]), y) < 1.0 - 1e-9
