"""Quotients of polynomials: the fits against brute force, the laws that are found, and what is left alone."""

import numpy as np
import pytest
import scipy.optimize
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor
from dgsr.data.dataset import DataSet
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.units import Units
from dgsr.finders.finder import never
from dgsr.finders.linear.elimination import RationalFit, _most_needed, _step, eliminated
from dgsr.finders.linear.quotients import quotients_of_polynomials
from dgsr.search import Search, SearchConfig, begin_with_search
from searches import problem_for

seeds = st.integers(0, 2**32 - 1)
FREE = Constraints()


def programs_of(X, y, library="physics", constraints=FREE, weights=None):
    tokens = get_library(library, X.shape[1])
    problem = problem_for(DataSet.from_arrays(X, y, weights), tokens, constraints)
    return quotients_of_polynomials(problem).programs


def search_of(X, y, constraints=FREE, **settings):
    library = get_library("physics", X.shape[1])
    return Search(DataSet.from_arrays(X, y), library, constraints, SearchConfig(**settings), None)


# --- the fits -------------------------------------------------------------------------------------


def problem(seed, n_rows=40, n_above=3, n_below=4, noise=0.1):
    """Terms, a noisy target and root weights."""
    rng = np.random.default_rng(seed)
    terms = np.column_stack([np.ones(n_rows), rng.uniform(0.2, 1.0, (n_rows, 4))])
    above, below = np.arange(n_above), np.arange(n_below)
    p, q = terms[:, above] @ rng.uniform(0.5, 1.0, n_above), terms[:, below] @ rng.uniform(0.5, 1.0, n_below)
    y = p / q + noise * rng.normal(size=n_rows)
    return terms, y, rng.uniform(0.5, 1.5, n_rows), above, below


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_a_step_is_the_least_squares_fit_under_its_constraint(seed):
    terms, y, root, above, below = problem(seed)
    denominator = np.random.default_rng(seed).uniform(0.5, 2.0, len(y))
    found = _step(terms, y, root, above, below, denominator).coefficients
    design = np.hstack([terms[:, above], -y[:, None] * terms[:, below]]) * (root / denominator)[:, None]
    means = np.concatenate([np.zeros(len(above)), (root**2 / denominator) @ terms[:, below] / sum(root**2)])
    # Lagrange's equations of the same problem.
    n = len(means)
    equations = np.block([[design.T @ design, means[:, None]], [means[None], np.zeros((1, 1))]])
    expected = np.linalg.solve(equations, np.append(np.zeros(n), 1.0))[:n]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_the_size_of_the_weights_does_not_count(size):
    terms, y, root, above, _ = problem(0)
    fits = [list(eliminated(terms, y, factor * root, above, np.arange(1))) for factor in (1.0, size)]
    assert len(fits[0]) == 3
    for one, other in zip(*fits):
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_the_term_that_is_left_out_first_costs_the_least_of_all(seed):
    terms, y, root, above, below = problem(seed)
    ones = np.ones(len(y))
    step = _step(terms, y, root, above, below, ones)
    kept = _most_needed(step, len(step.means) - 1)
    (least,) = set(range(len(step.means))) - set(kept.tolist())

    def smallest_sum(without):
        """S, by brute force."""
        own_above = np.array([i for i in above if i != without], dtype=int)
        own_below = np.array([i for i in below if i + len(above) != without], dtype=int)
        v = _step(terms, y, root, own_above, own_below, ones).coefficients
        numerator, denominator = RationalFit(own_above, own_below, v).values(terms)
        return np.sum((root * (numerator - y * denominator)) ** 2)

    sums = [smallest_sum(i) for i in range(len(step.means))]
    assert least == int(np.argmin(sums))


def test_leaving_out_several_terms_at_once_is_leaving_out_one_after_the_other():
    terms, y, root, above, below = problem(3, n_above=5, n_below=5)
    step = _step(terms, y, root, above, below, np.ones(len(y)))
    kept = np.arange(10)
    for n in range(9, 4, -1):
        own_above, own_below = above[kept[kept < 5]], below[kept[kept >= 5] - 5]
        own = _step(terms, y, root, own_above, own_below, np.ones(len(y)))
        kept = kept[_most_needed(own, n)]
    assert _most_needed(step, 5).tolist() == kept.tolist()


def test_with_little_noise_nearly_all_fits_are_those_of_nonlinear_least_squares():
    """The iteration does not minimise the squares themselves, so that few fits are clearly worse."""

    def ratio(seed):
        terms, y, root, above, below = problem(seed, n_above=2, n_below=2, noise=0.002)

        def residuals(v):
            numerator, denominator = RationalFit(above, below, v).values(terms)
            return root * (numerator / denominator - y)

        found = next(eliminated(terms, y, root, above, below)).coefficients
        return np.sum(residuals(found) ** 2) / (2.0 * scipy.optimize.least_squares(residuals, found).cost)

    ratios = np.array([ratio(seed) for seed in range(100)])
    assert np.median(ratios) < 1.005
    assert np.mean(ratios > 1.05) <= 0.05


@pytest.mark.parametrize("seed", range(10))
def test_the_terms_of_an_exact_law_are_left_in_the_end(seed):
    rng = np.random.default_rng(seed)
    terms = np.column_stack([np.ones(60), rng.uniform(-1.0, 1.0, (60, 9))])
    above, below = rng.choice(10, 3, replace=False), np.array([0, *1 + rng.choice(9, 2, replace=False)])
    y = (terms[:, above] @ rng.uniform(0.5, 2.0, 3)) / (terms[:, below] @ np.array([3.0, 0.6, -0.7]))
    fits = {len(fit.coefficients): fit for fit in eliminated(terms, y, np.ones(60), *2 * (np.arange(10),))}
    assert sorted(fits[6].above) == sorted(above)
    assert sorted(fits[6].below) == sorted(below)
    assert min(fits) < 6


# --- the laws -------------------------------------------------------------------------------------

LAWS = {
    "a rate law": (2, lambda x: 12.0 * x[0] * x[1] / (6.5 + 2.1 * x[0] + 0.8 * x[1] + x[0] * x[1])),
    "a difference above": (3, lambda x: (2.2 * x[0] - 0.6 * x[1]) / (1.0 + 0.9 * x[0] + 0.15 * x[2])),
    "a Pade approximant": (2, lambda x: (1.0 + 0.5 * x[0]) / (1.0 + 0.3 * x[1] + 0.4 * x[1] ** 2)),
    "a polynomial": (3, lambda x: 2.3 * x[0] ** 2 - 1.7 * x[0] * x[1] + 0.4 * x[1] * x[2] ** 2 + 5.0),
    "a product above": (5, lambda x: 6.7 * x[0] * x[1] / (x[2] ** 2 + 2.0 * x[3] ** 2 + x[4] ** 2)),
    "a product below": (4, lambda x: (x[0] ** 2 - 3.0 * x[1] + x[2] * x[3] - 0.3) / (x[0] * x[1] * x[2])),
    "a root": (2, lambda x: np.sqrt(x[0] ** 2 + 19.6 * x[1])),
    "a negative root": (2, lambda x: -np.sqrt(3.0 + x[0] ** 2 / x[1])),
    "an exponential": (1, lambda x: 3.0 * np.exp(-7.0 * x[0] / (3.0 + x[0]))),
    "one column": (1, lambda x: (2.0 + x[0] ** 3) / (1.0 + 3.0 * x[0] + x[0] ** 2)),
    "a root of a column": (
        2,
        lambda x: 3.1 * np.sqrt(x[0]) * x[1] / (1.0 + 0.8 * np.sqrt(x[0]) + 0.5 * x[1]),
    ),
    "a cosine of a column": (3, lambda x: np.sqrt(x[0] ** 2 + x[1] ** 2 - 2.0 * x[0] * x[1] * np.cos(x[2]))),
    "a logarithm of a column": (2, lambda x: (2.0 + 0.7 * x[1] * np.log(x[0])) / (3.0 + x[1])),
    "a negative denominator": (2, lambda x: 3.0 / (0.7 - 2.0 * x[0] - x[1] ** 2 - 5.0)),
}


@pytest.mark.parametrize("law", LAWS)
def test_exact_laws_are_among_the_formulas(law):
    d, function = LAWS[law]
    X = np.random.default_rng(0).uniform(0.2, 5.0, (80, d))
    y = function(X.T)
    assert programs_of(X, y).nmse(X, y).min() < 1e-25


def test_a_root_has_no_factor_that_it_does_not_need():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (80, 2))
    programs = programs_of(X, np.sqrt(3.0 + X[:, 0] ** 2 / X[:, 1]))
    assert programs[0].library.tokens[programs[0].tokens[0]].name == "sqrt"


# Every second law is left to the slow tests: one takes a third of a second, and has been found without noise.
@pytest.mark.parametrize(
    "law", [pytest.param(law, marks=[pytest.mark.slow] * (i % 2)) for i, law in enumerate(LAWS)]
)
def test_with_noise_a_formula_is_as_close_to_the_law_as_its_numbers_allow(law):
    d, function = LAWS[law]
    rng = np.random.default_rng(1)
    X = rng.uniform(0.2, 5.0, (150, d))
    clean = function(X.T)
    y = clean + 0.01 * clean.std() * rng.normal(size=len(X))
    found = programs_of(X, y)
    first = found[0]  # of the shortest description
    assert np.mean((first(X) - clean) ** 2) / clean.var() < 1e-5  # of noise of 1e-4
    assert first.tokens.tolist() != found[1].tokens.tolist()


@pytest.mark.parametrize("size", [1e-120, 1e-6, 1e9, 1e140])
def test_sizes_of_columns_and_target_do_not_count(size):
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    y = (2.0 * X[:, 0] + 1.0) / (1.0 + X[:, 1])
    for columns, target in ((size * X, y), (X, size * y)):
        assert programs_of(columns, target).nmse(columns, target).min() < 1e-24


def test_rows_of_hardly_any_weight_do_not_count():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    y = 3.0 * X[:, 0] / (1.0 + X[:, 0] + 2.0 * X[:, 1])
    weights = np.ones(60)
    y[::7], weights[::7] = 100.0, 1e-6
    counted = weights == 1.0
    assert programs_of(X, y, weights=weights).nmse(X[counted], y[counted]).min() < 1e-25


def test_forbidden_columns_are_not_used():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 3))
    y = X[:, 2] / (1.0 + 0.5 * X[:, 0])
    found = programs_of(X, y, constraints=Constraints(forbidden_columns=(1,)))
    assert found.nmse(X, y).min() < 1e-25
    assert not any("x2" in str(found[i]) for i in range(len(found)))


def test_a_column_of_zeros_and_a_constant_one_are_no_trouble():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 4))
    X[:, 1], X[:, 2] = 0.0, 3.0
    y = X[:, 0] / (1.0 + 0.5 * X[:, 3])
    assert programs_of(X, y).nmse(X, y).min() < 1e-25


@pytest.mark.parametrize(("n_rows", "n_columns"), [(7, 2), (60, 13), (2, 1)])
def test_few_rows_and_many_columns_are_left_alone(n_rows, n_columns):
    X = np.random.default_rng(0).uniform(0.2, 5.0, (n_rows, n_columns))
    assert len(programs_of(X, X[:, 0] / (1.0 + X[:, -1]))) == 0


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div"])
def test_a_library_that_lacks_an_operator_is_left_alone(operator):
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    library = get_library("physics", 2).without([operator])
    data = DataSet.from_arrays(X, X[:, 0] / (1.0 + X[:, 1]))
    assert len(quotients_of_polynomials(problem_for(data, library)).programs) == 0


# --- in the search --------------------------------------------------------------------------------


def test_they_are_entered_and_counted_and_end_the_search_if_exact():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    search = search_of(X, LAWS["a rate law"][1](X.T))
    search.find(quotients_of_polynomials)
    assert search.stop_reason() == "exact fit"
    assert search.n_evaluations > 0
    assert search.history[-1]["best_nmse"] <= 1e-20


def test_a_law_too_long_for_the_archive_ends_the_search_and_is_returned():
    X = np.random.default_rng(0).uniform(1.1, 5.0, (100, 4))
    y = lens(X)
    search = search_of(X, y)
    search.find(quotients_of_polynomials)
    assert search.archive.best_nmse() > 1e-12
    assert search.stop_reason() == "exact fit"
    assert search.history[-1]["best_nmse"] <= 1e-20
    at_the_end = [found.nmse(search.data).min(initial=1.0) for found in search.at_the_end(search.data, never)]
    assert min(at_the_end) < 1e-20
    # Others that come later do not replace it, and other searches go on with it.
    search.enter(search.long.programs[:0])
    assert search.stop_reason() == "exact fit"
    for goes_on in (Search.load_state_dict, begin_with_search):
        other = search_of(X, y)
        goes_on(other, search.state_dict())
        assert other.stop_reason() == "exact fit"


def test_nothing_is_fitted_where_it_is_not_asked_or_there_is_no_time():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    search = search_of(X, LAWS["a rate law"][1](X.T), max_time=1e-9)
    search.find(quotients_of_polynomials)
    assert search.n_evaluations == 0
    assert quotients_of_polynomials in search.scheduler.finders
    assert search_of(X, X[:, 0], look_up=False).scheduler.finders == ()


def lens(X):
    """Seven terms, with numbers that no law of optics has."""
    n, r, s, d = X.T
    return (n - 1.1) * (1.0 / r - 0.7 / s + (n - 1.3) * d / (n * r * s))


@pytest.mark.parametrize(
    "constraints",
    [
        {"required": ("sin",)},
        {"forbidden_columns": (0,)},
        {"units": Units.of(dict.fromkeys("nrsd", "m"), "kg", list("nrsd"), unitless_constants=True)},
        {"min_length": 29, "max_length": 30},
    ],
)
def test_what_is_not_allowed_ends_no_search(constraints):
    X = np.random.default_rng(0).uniform(1.1, 5.0, (100, 4))
    free, bound = search_of(X, lens(X)), search_of(X, lens(X), Constraints(**constraints))
    free.find(quotients_of_polynomials)
    bound.enter(free.long.programs)
    bound.find(quotients_of_polynomials)
    assert (bound.stop_reason() == "exact fit") == ("min_length" in constraints)
    lengths = bound.archive.population().lengths
    assert np.all((lengths == 1) | (lengths >= bound.grammar.min_length))  # the mean is always kept


def test_a_search_among_fewer_columns_returns_what_its_archive_has_no_room_for():
    X = np.random.default_rng(0).uniform(1.1, 5.0, (100, 4))
    search = search_of(X, X[:, 0])
    found = search._search_in_table(DataSet.from_arrays(X, lens(X)), False)
    assert found.nmse(X, lens(X)).min() < 1e-20


@pytest.mark.slow
def test_what_fits_a_few_large_rows_alone_is_left_out_and_the_law_is_not():
    n_laws = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = 10 ** rng.uniform(-1.0, 2.0, (60, 2))
        law = 3.7 * X[:, 0] / X[:, 1] ** 2
        y = law * np.exp(0.05 * rng.normal(size=60))
        programs = programs_of(X, y)
        error = np.mean((law - y) ** 2) / y.var()
        assert programs.nmse(X, y).min(initial=1.0) > 0.01 * error
        n_laws += bool(np.any((programs.lengths <= 9) & (programs.nmse(X, y) < 2.0 * error)))
    assert n_laws >= 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "limits"),
    [
        (lambda x: 13.1 + 0.62 * x[0] + (0.4 * x[0] - 11.4) * x[1] ** 0.16, (1.0, 2.0)),
        (lambda x: np.exp(0.1 * np.sin(0.3 * x[0])) * x[1], (1.0, 2.0)),
        (lambda x: np.tanh(0.2 * x[0] + 0.1 * x[1]), (1.0, 2.0)),
        (lambda x: x[1] * np.exp(-(x[0] ** 2)) + 0.3 * x[2], (-0.1, 0.1)),
        (lambda x: np.sqrt(np.expm1(x[0] ** 2)), (-0.05, 0.05)),
        (lambda x: np.sqrt(np.expm1(x[0] ** 2)), (-0.1, 0.1)),
        (lambda x: np.sqrt(np.expm1(x[0] ** 2)), (-0.15, 0.15)),
    ],
)
def test_an_approximation_is_no_law(function, limits):
    X = np.random.default_rng(0).uniform(*limits, (150, 3))
    search = search_of(X, function(X.T))
    search.find(quotients_of_polynomials)
    assert search.stop_reason() is None
    assert search.best_nmse < 1e-4


def test_no_more_equations_are_counted_than_are_allowed():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (60, 2))
    search = search_of(X, np.sin(X).sum(axis=1), max_evaluations=5)
    search.find(quotients_of_polynomials)
    assert search.n_evaluations == 5


@pytest.mark.search
def test_a_form_that_has_a_name_keeps_it():
    x = np.random.default_rng(0).uniform(0.2, 5.0, 60)
    y = 0.7 + 3.1 / (0.53 + (x - 2.3) ** 2)
    regressor = DGSRRegressor(generator=None, max_evaluations=5_000, random_state=0).fit(x[:, None], y)
    assert str(regressor.expression_) == "0.7 + 3.1/(0.53 + (x1 - 2.3)**2)"


@pytest.mark.parametrize("n_columns", [1, 3])
def test_noise_alone_makes_no_warnings(n_columns, recwarn):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, n_columns)), rng.normal(size=40)
    X[0], y[1] = 0.0, 0.0
    programs_of(X, y)
    assert not recwarn.list


@pytest.mark.slow
@pytest.mark.search
def test_a_fit_writes_the_law_with_its_numbers():
    X = np.random.default_rng(0).uniform(0.2, 5.0, (100, 3))
    y = (2.2 * X[:, 0] - 0.6 * X[:, 1]) / (1.0 + 0.9 * X[:, 0] + 0.35 * X[:, 1] + 0.15 * X[:, 2])
    y += 0.002 * y.std() * np.random.default_rng(1).normal(size=100)
    regressor = DGSRRegressor(generator=None, max_evaluations=5_000, random_state=0).fit(X, y)
    law = sympy.sympify("(2.2*x1 - 0.6*x2)/(1 + 0.9*x1 + 0.35*x2 + 0.15*x3)")
    assert sympy.simplify(sympy.nsimplify(regressor.sympy_expr_) - sympy.nsimplify(law)) == 0
