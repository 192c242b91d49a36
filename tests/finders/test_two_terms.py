"""The exhaustive search for laws of two terms, against brute force and on laws of every form it knows."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.data.dataset import DataSet
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.units import Units
from dgsr.finders.linear.two_terms import _Pairs, _products, two_terms
from dgsr.finders.terms import TermPool, columns_of, functions_of, joined
from dgsr.search import Search, SearchConfig
from searches import problem_for

seeds = st.integers(0, 2**32 - 1)


def search_of(X, y, **settings):
    library = get_library("physics", X.shape[1])
    return Search(DataSet.from_arrays(X, y), library, Constraints(), SearchConfig(**settings), None)


LAWS = {
    "a sum": lambda x: 2.5 * x[0] * x[1] + 1.3 * np.exp(x[2]) - 4.0,
    "a reciprocal": lambda x: 3.0 * x[0] * x[1] / (0.7 * x[1] + 2.1 * x[0]),
    "a root": lambda x: np.sqrt(2.0 * x[0] ** 2 + 3.0 * x[1] / x[2]),
    "a root of a difference": lambda x: np.sqrt(9.0 - 0.5 * x[0] - 0.2 * x[1] * x[2]),
    "the reciprocal of a root": lambda x: 4.0 / np.sqrt(1.0 + x[0] * x[1] + 2.0 * x[2] ** 2),
    "a square": lambda x: (0.3 + 1.7 * np.log(x[0]) + x[1] / x[2]) ** 2,
    "a product of powers": lambda x: 6.2 * x[0] ** 0.37 * x[1] ** -1.4,
    "a power and an exponential": lambda x: 1.1 * x[0] ** 1.5 * np.exp(-0.8 * x[1] / x[2]),
    "a product": lambda x: 0.6 * x[0] * np.cos(x[1]) / (x[2] * (x[0] + x[1])),
}


@pytest.mark.parametrize("law", LAWS)
def test_laws_of_two_terms_are_exact_before_anything_evolves(law):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 3))
    search = search_of(X, LAWS[law](X.T))
    search.find(two_terms)
    assert search.archive.best_nmse() <= 1e-19
    assert 0 < search.n_evaluations <= 140
    assert search.stop_reason() == "exact fit"


def test_units_leave_laws_whose_scale_and_constants_carry_them():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    y = 3.0 * X[:, 0] ** 2 + 2.0 * np.sqrt(X[:, 1]) + 1.0
    units = Units.of({"t": "s", "q": "kg"}, "m", ["t", "q"])
    library = get_library("physics", 2)
    search = Search(DataSet.from_arrays(X, y), library, Constraints(units=units), SearchConfig(), None)
    search.find(two_terms)
    assert search.archive.best_nmse() <= 1e-19


@settings(max_examples=10)
@given(seeds)
def test_the_best_pair_is_that_of_least_squares_over_all_pairs(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(0.5, 2.0, (30, 2)), rng.normal(size=30)
    library = get_library("physics", 2)
    columns = columns_of(Constraints().grammar(library))
    tokens = [*columns, *functions_of(library, columns), *joined(library, columns, columns)]
    terms = TermPool.of(((term, ()) for term in tokens), problem_for(DataSet.from_arrays(X, y), library))
    lengths = {}
    for i, j in combinations(range(len(terms.terms)), 2):
        design = np.column_stack([terms.values[[i, j]].T, np.ones(30)])
        if np.linalg.cond(design) < 1e6:
            residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
            unexplained = residuals @ residuals / (30 * y.var())
            lengths[i, j] = 15.0 * np.log2(unexplained) + terms.bits[i] + terms.bits[j]
    found = {(i, j): (a, b, c) for i, j, a, b, c in _Pairs(terms).best(y)}
    best = min(lengths, key=lengths.get)
    assert best in found
    design = np.column_stack([terms.values[list(best)].T, np.ones(30)])
    np.testing.assert_allclose(found[best], np.linalg.lstsq(design, y, rcond=None)[0], rtol=1e-5)


def test_a_product_is_found_once():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    library, y = get_library("physics", 2), X[:, 0] * X[:, 1]
    columns = columns_of(Constraints().grammar(library))
    problem = problem_for(DataSet.from_arrays(X, y), library)
    terms = TermPool.of(((term, ()) for term in [*columns, *functions_of(library, columns)]), problem)
    found = [tokens for tokens, _ in _products(terms, y, library)]
    assert str(Expression(library, found[0])) == "x1*x2"
    products = [tuple(sorted(tokens)) for tokens in found if tokens[0] == library.index["mul"]]
    assert len(products) == len(set(products)) == 1


def test_terms_have_no_sine_under_another():
    library = get_library("physics", 1)
    columns = columns_of(Constraints().grammar(library))
    terms = functions_of(library, functions_of(library, columns))
    turning = {library.index["sin"], library.index["cos"]}
    assert terms
    assert max(sum(token in turning for token in term) for term in terms) == 1


@settings(max_examples=30)
@given(seeds)
def test_degenerate_tables_are_no_fault(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([2, 5, 6, 8, 30])), int(rng.choice([1, 2, 4]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-200, 200)
    if rng.uniform() < 0.5:
        X = rng.integers(0, 2, (n, d)).astype(float)
    y = rng.normal(size=n) * 10.0 ** rng.integers(-100, 100)
    if rng.uniform() < 0.3 and np.abs(X).max() < 1e100:
        y = X[:, 0].copy()
    library = get_library("physics", d)
    programs = two_terms(problem_for(DataSet.from_arrays(X, y), library)).programs
    assert len(programs) <= 140
    assert np.isfinite(programs.constants).all()


def test_a_law_of_repeated_values_is_found_among_many_columns():
    rng = np.random.default_rng(0)
    X = rng.integers(1, 3, (200, 120)).astype(float)
    y = X[:, 100] / X[:, 101] * X[:, 102]
    search = search_of(X, y)
    search.find(two_terms)
    assert search.archive.best_nmse() <= 1e-19


def test_outliers_are_left_out_of_the_comparison():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (60, 2))
    y = 2.0 * X[:, 0] ** 2 - 0.7 / X[:, 1]
    y[:5] += 100.0
    weights = np.where(np.arange(60) < 5, 1e-6, 1.0)
    data = DataSet.from_arrays(X, y, weights)
    library = get_library("physics", 2)
    search = Search(data, library, Constraints(), SearchConfig(), None)
    search.find(two_terms)
    assert search.archive.best_nmse() < 1e-3  # what the outliers' weights leave


def test_without_exact_search_no_pairs_are_compared():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 3))
    assert two_terms in search_of(X, LAWS["a sum"](X.T)).scheduler.finders
    assert search_of(X, LAWS["a sum"](X.T), look_up=False).scheduler.finders == ()


def test_constraints_hold_for_pairs_too():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 3))
    data, library = DataSet.from_arrays(X, LAWS["a sum"](X.T)), get_library("physics", 3)
    search = Search(data, library, Constraints(max_length=4), SearchConfig(), None)
    search.find(two_terms)
    assert search.archive.best_nmse() > 1e-19
