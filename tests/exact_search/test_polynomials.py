"""Polynomials and their quotients on exact data: what is found, what is not, and how it is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.exact_search.limits import CANDIDATES_OF_POLYNOMIALS
from dgsr.exact_search.polynomials import as_polynomial, as_rational, relation
from dgsr.exact_search.quotients import _rising, rational_trees, written
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.rewriting.polynomials import _shortest, polynomial_tree, quotient_tree
from searches import flat_regressor

RNG = np.random.default_rng(0)


def values_of(tree, columns):
    """The values of a tree as a program of a library without constants, and its number of tokens."""
    library = get_library("synth", len(columns))
    tokens, constants = to_program(tree, library)
    return Expression(library, tokens, constants)(columns.T), len(tokens)


def polynomial_values(polynomial, columns):
    return sum(c * np.prod(columns ** np.array(term)[:, None], axis=0) for term, c in polynomial.items())


@st.composite
def polynomials(draw):
    """A polynomial of one to six columns with one to eight terms, degree 3 at most."""
    n_columns = draw(st.integers(1, 6))
    term = st.lists(st.integers(0, n_columns - 1), max_size=3).map(
        lambda chosen: tuple(chosen.count(i) for i in range(n_columns))
    )
    coefficients = st.integers(-5, 5).filter(bool)
    found = draw(st.dictionaries(term, coefficients, min_size=1, max_size=8))
    return {term: c for term, c in found.items() if any(term)} or {(1,) + (0,) * (n_columns - 1): 1}


@settings(max_examples=50, deadline=None)
@given(polynomials(), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_a_polynomial_with_whole_coefficients_is_found_and_written(polynomial, divisor, seed):
    columns = np.random.default_rng(seed).uniform(-2.0, 2.0, (len(next(iter(polynomial))), 120))
    y = polynomial_values(polynomial, columns) / divisor
    found = as_polynomial(columns, y)
    assert found is not None
    np.testing.assert_allclose(
        polynomial_values(found[0], columns) / found[1], y, atol=1e-8 * np.abs(y).max()
    )
    predicted, _ = values_of(polynomial_tree(*found), columns)
    np.testing.assert_allclose(predicted, y, atol=1e-8 * np.abs(y).max())


@pytest.mark.parametrize("seed", range(5))
def test_a_few_terms_of_hundreds_are_found_in_fewer_rows(seed):
    columns = np.random.default_rng(seed).normal(size=(12, 150))  # 455 monomials
    y = columns[:6].sum(axis=0) - columns[6] * columns[7] + 2.0 * columns[8] * columns[9] * columns[10]
    found, divisor = as_polynomial(columns, y)
    assert divisor == 1
    assert len(found) == 8
    np.testing.assert_allclose(polynomial_values(found, columns), y, atol=1e-9)


@pytest.mark.parametrize(
    ("polynomial", "n_tokens"),
    [
        (
            {
                (2, 0, 0, 0): 1,
                (1, 1, 0, 0): -2,
                (0, 2, 0, 0): 1,
                (0, 0, 2, 0): 1,
                (0, 0, 1, 1): 2,
                (0, 0, 0, 2): 1,
            },
            15,
        ),
        ({(3, 1): 1, (2, 1): 3, (1, 1): 3, (0, 1): 1}, 19),  # x2*(x1 + 1)**3
        ({(2, 0): -1, (0, 2): 1}, 7),  # (x2 - x1)*(x2 + x1) and x2*x2 - x1*x1 are as long
        ({(1, 0): 1.5, (0, 1): -2.5}, 7),
        ({(0, 0): -0.5}, 2),  # a library without constants has no -0.5, one with constants has neg
    ],
)
def test_parts_that_share_no_column_are_written_as_products_of_their_factors(polynomial, n_tokens):
    tree = polynomial_tree(polynomial)
    columns = RNG.uniform(0.5, 2.0, (len(next(iter(polynomial))), 20))
    library = get_library(
        "koza" if isinstance(next(iter(polynomial.values())), int) else "physics", len(columns)
    )
    tokens, constants = to_program(tree, library)
    expected = polynomial_values(polynomial, columns)
    np.testing.assert_allclose(Expression(library, tokens, constants)(columns.T), expected, rtol=1e-12)
    assert len(tokens) <= n_tokens


def test_equal_signs_of_a_quotient_cancel():
    above, below = {(1, 0): -2}, {(0, 1): -1, (0, 2): -1}
    columns = RNG.uniform(0.5, 2.0, (2, 10))
    for numerator, has_sign in ((above, False), ({(1, 0): 2}, True)):
        tree = quotient_tree(numerator, below)
        expected = polynomial_values(numerator, columns) / polynomial_values(below, columns)
        np.testing.assert_allclose(values_of(tree, columns)[0], expected, rtol=1e-12)
        assert (tree[0] == "neg") == has_sign


@pytest.mark.parametrize(
    "others",
    [
        lambda rng, x: [rng.integers(0, 2, 80)],
        lambda rng, x: [rng.choice([-1.0, 1.0], 80)],
        lambda rng, x: [rng.choice([0.5, 2.5], 80)],
        lambda rng, x: [np.zeros(80)],
        lambda rng, x: [np.full(80, 2.0)],
        lambda rng, x: [np.full(80, -3.0)],
        lambda rng, x: list(np.eye(3)[rng.integers(0, 3, 80)].T),
        lambda rng, x: [x[0] + x[1]],
        lambda rng, x: [x[0] + 1.0],
        lambda rng, x: [x[0] * (1.0 + 1e-13 * rng.normal(size=80))],
    ],
)
@pytest.mark.parametrize(
    "law", [lambda x: x[0] / (x[0] + x[1] ** 2), lambda x: x[0] * x[1] / (1.0 + x[0] ** 2)]
)
def test_columns_that_depend_on_each_other_hide_no_quotient(others, law):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 2.0, (2, 80))
    columns = np.vstack([x, np.array(others(rng, x), dtype=float)])
    found = as_rational(columns, law(x))
    assert found is not None
    quotient = polynomial_values(found[0], columns) / polynomial_values(found[1], columns)
    np.testing.assert_allclose(quotient, law(x), rtol=1e-9)
    assert as_rational(columns[1:], rng.normal(size=80)) is None


def test_a_table_of_many_columns_is_left_alone():
    columns = RNG.uniform(1.0, 2.0, (200, 100))
    assert as_rational(columns, columns[0] / columns[1]) is None


def test_a_sum_of_many_terms_is_written_soon():
    rng = np.random.default_rng(0)
    terms = [tuple(np.bincount(rng.integers(20, size=3), minlength=20).tolist()) for _ in range(40)]
    columns = rng.uniform(0.5, 2.0, (20, 10))
    polynomial = dict.fromkeys(terms, 1)
    predicted, _ = values_of(polynomial_tree(polynomial), columns)
    np.testing.assert_allclose(predicted, polynomial_values(polynomial, columns), rtol=1e-12)


def test_a_relation_is_the_null_vector_and_two_of_them_are_none():
    matrix = RNG.normal(size=(30, 4))
    matrix[:, 2] = 2.0 * matrix[:, 0] - 3.0 * matrix[:, 1]
    found = relation(matrix)
    np.testing.assert_allclose(found / found[2], [-2.0, 3.0, 1.0, 0.0], atol=1e-9)
    assert relation(np.column_stack([matrix, matrix[:, 0]])) is None
    assert relation(RNG.normal(size=(30, 4))) is None


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5), st.integers(0, 2**32 - 1))
def test_quotients_of_polynomials_of_several_columns_are_found(n_columns, seed):
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0.5, 3.0, (n_columns, 120))

    def drawn(n_terms):
        factors = [rng.integers(n_columns, size=rng.integers(3)) for _ in range(n_terms)]
        terms = [tuple(np.bincount(of, minlength=n_columns).tolist()) for of in factors]
        return {term: int(rng.integers(1, 4)) for term in terms}

    above, below = drawn(rng.integers(1, 4)), drawn(rng.integers(1, 4))
    y = polynomial_values(above, columns) / polynomial_values(below, columns)
    found = as_rational(columns, y)
    assert found is not None
    for polynomial in found:
        assert all(isinstance(c, int) and c != 0 for c in polynomial.values())
    quotient = polynomial_values(found[0], columns) / polynomial_values(found[1], columns)
    np.testing.assert_allclose(quotient, y, rtol=1e-8)
    np.testing.assert_allclose(values_of(quotient_tree(*found), columns)[0], y, rtol=1e-8)


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_a_product_over_a_polynomial_of_many_columns_needs_few_rows(noise):
    x = np.random.default_rng(0).uniform(1.0, 2.0, (9, 80))
    y = x[0] * x[1] * x[2] / ((x[3] - x[4]) ** 2 + (x[5] - x[6]) ** 2 + (x[7] + x[8]) ** 2)
    y *= 1.0 + noise * np.random.default_rng(1).normal(size=80)
    trees = list(rational_trees(x, y))
    assert len(trees) == (noise == 0.0)
    if trees:
        predicted, n_tokens = values_of(trees[0], x)
        np.testing.assert_allclose(predicted, y, rtol=1e-9)
        assert n_tokens == 29


@settings(max_examples=50, deadline=None)
@given(polynomials())
def test_what_is_written_has_as_many_tokens_as_the_choice_counts(polynomial):
    n, tree, _ = _shortest(tuple(sorted(polynomial.items())))
    columns = RNG.uniform(0.5, 2.0, (len(next(iter(polynomial))), 10))
    assert values_of(tree, columns)[1] == n


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-4, 4), min_size=2, max_size=6).filter(lambda c: any(c[1:])),
    st.lists(st.integers(-4, 4), min_size=2, max_size=5).filter(lambda c: any(c[1:])),
    st.sampled_from([(0.3, 2.0), (-1.0, 1.0), (-10.0, 10.0), (1e-3, 1e-2)]),
    st.integers(0, 2**32 - 1),
)
def test_a_quotient_of_polynomials_is_found_and_written(above, below, limits, seed):
    x = np.random.default_rng(seed).uniform(*limits, 40)
    p, q = (np.polynomial.polynomial.polyval(x, each) for each in (above, below))
    if np.abs(q).min() < 1e-3 * np.abs(q).max() or np.ptp(p / q) < 1e-6 * np.abs(p / q).max():
        return
    found = as_rational(x[None], p / q)
    if found is None:  # rounding hides a term that is tiny on these rows
        assert limits == (1e-3, 1e-2) or as_polynomial(x[None], p / q) is not None or np.ptp(q) < 1e-6
        return
    found = [_rising(each) for each in found]
    p, q = (np.polynomial.polynomial.polyval(x, each) for each in found)
    y = np.polynomial.polynomial.polyval(x, above) / np.polynomial.polynomial.polyval(x, below)
    np.testing.assert_allclose(p / q, y, rtol=1e-6, atol=1e-8 * np.abs(y).max())
    for tree in list(written(*found))[:20]:
        predicted, _ = values_of(tree, x[None])
        finite = np.isfinite(predicted)  # a factor that both are multiplied with may be 0 at a row
        np.testing.assert_allclose(predicted[finite], y[finite], rtol=1e-5, atol=1e-7 * np.abs(y).max())


def test_the_shortest_is_written_first():
    lengths = [
        values_of(tree, RNG.uniform(1.5, 2.0, (1, 5)))[1] for tree in written((0, 0, 0, 0, 0, 1, 1), (1,) * 5)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] == 21  # (x**3 - x)/(x - 1/x**4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sin(x[0]),
        lambda x: np.exp(x[0]) / (x[0] ** 2 + 1.0),
        lambda x: np.sqrt(2.0) * x[0] ** 2 + x[0],
        lambda x: x[0] ** 2 / (x[0] + np.pi),
        lambda x: x[0] ** 2 + 1e-6 * np.random.default_rng(1).normal(size=x.shape[1]),
        lambda x: np.zeros(x.shape[1]),
        lambda x: np.full(x.shape[1], np.nan),
        lambda x: x[0] * 1e300,
    ],
)
def test_nothing_is_found_where_there_is_nothing(function):
    columns = np.random.default_rng(0).uniform(0.5, 3.0, (1, 60))
    with np.errstate(all="ignore"):
        assert list(rational_trees(columns, function(columns))) == []


def test_noise_and_few_rows_are_no_polynomial_of_many_terms():
    for n_rows in (2, 8, 20, 60):
        columns = np.random.default_rng(n_rows).normal(size=(12, n_rows))
        assert list(rational_trees(columns, np.random.default_rng(1).normal(size=n_rows))) == []


LAWS = [
    ("koza", lambda x: (x[0] ** 5 - 3.0 * x[0] ** 3 + 2.0) / (x[0] ** 2 + 1.0), 1),
    ("koza", lambda x: x[3] * (x[0] ** 2 + x[1] ** 2 + x[2] ** 2) / 3.0, 4),
    ("synth", lambda x: x.sum(axis=0) - x[3] * (x[4] - x[5] * x[6]), 8),
    ("koza", lambda x: x[0] * x[1] / ((x[2] - x[3]) ** 2 + (x[4] - x[5]) ** 2 + x[6] ** 2), 7),
]


@pytest.mark.search
@pytest.mark.parametrize(("library", "law", "n_columns"), LAWS)
@pytest.mark.parametrize("forbidden", [False, True])
def test_a_fit_finds_it_at_once(library, law, n_columns, forbidden):
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (200, n_columns + forbidden))
    y = law(X[:, forbidden:].T)
    regressor = flat_regressor(
        library, None, random_state=0, max_evaluations=1000, forbidden=["x1"] if forbidden else None
    )
    regressor.fit(X, y)
    assert regressor.stop_reason_ == "exact fit"
    assert regressor.n_evaluations_ == 1
    assert regressor.n_examined_ > CANDIDATES_OF_POLYNOMIALS
    np.testing.assert_allclose(regressor.predict(X), y, rtol=1e-9, atol=1e-9)


def test_a_fit_of_noise_with_a_column_of_zeros_and_ones_ends():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 60), rng.uniform(size=60)])
    regressor = DGSRRegressor("koza", None, random_state=0, max_evaluations=100, max_time=4)
    assert np.isfinite(regressor.fit(X, rng.normal(size=60)).predict(X)).all()


@pytest.mark.search
@pytest.mark.parametrize("size", [1e-200, 1e120])
def test_powers_of_extreme_columns_make_no_noise(size, recwarn):
    X = size * np.random.default_rng(0).uniform(1.0, 2.0, (40, 1))
    DGSRRegressor("koza", None, random_state=0, max_evaluations=100, max_time=4).fit(
        X, np.sin(X[:, 0] / size)
    )
    assert not [warning for warning in recwarn if issubclass(warning.category, RuntimeWarning)]


@pytest.mark.slow
@pytest.mark.search
def test_what_is_too_long_or_cannot_be_written_is_left_to_the_rest_of_the_search():
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 3))
    y = X.sum(axis=1) * X[:, 0] + X[:, 1] * X[:, 2]
    short = DGSRRegressor("koza", None, random_state=0, max_evaluations=500, max_length=5).fit(X, y)
    assert short.expression_.length <= 5
    other = flat_regressor("koza", None, random_state=0, max_evaluations=500, forbidden=["div"])
    assert other.fit(X, y).stop_reason_ == "exact fit"


@pytest.mark.search
def test_a_warm_start_leaves_out_laws_that_have_become_too_long():
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (60, 2))
    y = X[:, 0] ** 3 + X[:, 0] * X[:, 1] + X[:, 1] ** 2
    regressor = DGSRRegressor("koza", None, warm_start=True, max_evaluations=500, random_state=0).fit(X, y)
    assert regressor.stop_reason_ == "exact fit"
    regressor.set_params(max_length=7, max_evaluations=100, look_up=False).fit(X, y)
    assert regressor.expression_.length <= 7
    assert regressor.stop_reason_ == "max_evaluations"
