"""Powers with a column in the exponent: the laws that are found, and how they are written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr import DGSRRegressor
from dgsr.data.dataset import DataSet
from dgsr.expressions import get_library
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.finders.linear.powers import bases_of, product_of_powers
from dgsr.finders.linear.quotients import quotients_of_polynomials
from searches import problem_for

MONEY, RATE, YEARS = (100.0, 10_000.0), (0.01, 0.15), (2.0, 40.0)
LAWS = {
    "compound interest": ([MONEY, RATE, YEARS], lambda p, r, n: p * (1 + r) ** n),
    "an annuity": ([MONEY, RATE, YEARS], lambda p, r, n: p * (1 - (1 + r) ** -n) / r),
    "an annuity due": ([MONEY, RATE, YEARS], lambda p, r, n: p * ((1 + r) ** n - 1) / r * (1 + r)),
    "a bond": (
        [MONEY, RATE, YEARS, (5.0, 100.0)],
        lambda p, r, n, c: p / (1 + r) ** n + c * (1 - (1 + r) ** -n) / r,
    ),
    "a power beside its exponent": (
        [(10.0, 500.0), RATE, YEARS],
        lambda g, r, n: g * (1 + r) ** n / (2.5 + n),
    ),
    "percent": ([MONEY, (1.0, 15.0), YEARS], lambda p, r, n: p * (1 + r / 100) ** n),
    "a declining balance": ([MONEY, (0.05, 0.4), (1.0, 15.0)], lambda p, d, t: p * (1 - d) ** t),
    "a decline in percent": ([MONEY, (5.0, 40.0), (1.0, 15.0)], lambda p, d, t: p * (1 - d / 100) ** t),
    "at least once": ([(0.01, 0.4), (1.0, 20.0)], lambda p, n: 1 - (1 - p) ** n),
    "exactly one": ([(0.01, 0.4), (1.0, 20.0)], lambda p, n: n * p * (1 - p) ** (n - 1)),
    "orders of a reaction": (
        [(0.1, 9.0), (0.1, 3.0), (0.5, 2.5), (0.1, 3.0), (0.5, 2.5)],
        lambda k, a, m, b, n: k * a**m * b**n,
    ),
    "a root of any order": ([(0.5, 8.0), (0.1, 20.0), (1.0, 5.0)], lambda k, c, n: k * c ** (1 / n)),
    "an exponent with an offset": (
        [(0.5, 5.0), (1.5, 3.5), (5.0, 40.0)],
        lambda r, q, t: r * q ** ((t - 20) / 10),
    ),
    "a negative target": ([(0.5, 8.0), (0.1, 20.0), (1.0, 5.0)], lambda k, c, n: -k * c ** (1 / n)),
    "a negative exponent": ([(0.5, 8.0), (0.1, 20.0), (-5.0, -1.0)], lambda k, c, n: k * c ** (1 / n)),
}
LAWS_WITH_NOISE = ["compound interest", "an annuity", "a bond", "an exponent with an offset", "at least once"]


def every_second(laws):
    """The laws, each second of which is left to the slow tests: one takes a third of a second."""
    return [pytest.param(law, marks=[pytest.mark.slow] * (i % 2)) for i, law in enumerate(laws)]


def rows(limits, n=100, seed=0):
    low, high = np.array(limits).T
    return np.random.default_rng(seed).uniform(low, high, (n, len(low)))


def programs_of(X, y, library="physics"):
    tokens = get_library(library, X.shape[1])
    return quotients_of_polynomials(problem_for(DataSet.from_arrays(X, y), tokens)).programs


@pytest.mark.parametrize("law", every_second(LAWS))
def test_exact_laws_are_among_the_formulas(law):
    limits, function = LAWS[law]
    X = rows(limits)
    y = function(*X.T)
    assert programs_of(X, y).nmse(X, y).min() < 1e-25


@pytest.mark.parametrize(
    ("law", "n"), [("a root of any order", n) for n in (50, 57, 63)] + [("an annuity", 45)]
)
def test_more_rows_find_no_fewer_laws(law, n):
    limits, function = LAWS[law]
    X = rows(limits, n)
    y = function(*X.T)
    assert programs_of(X, y).nmse(X, y).min() < 1e-25


def test_a_library_without_powers_writes_them_with_exponentials():
    limits, function = LAWS["compound interest"]
    X = rows(limits)
    y = function(*X.T)
    assert programs_of(X, y, "koza-const").nmse(X, y).min() < 1e-25


def test_a_target_that_is_zero_on_all_rows_looked_at_has_no_programs():
    X = rows(LAWS["compound interest"][0], 1000)
    y = np.zeros(1000)
    y[7] = 1.0
    assert len(programs_of(X, y)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("law", every_second(LAWS_WITH_NOISE))
def test_with_noise_a_formula_is_as_close_to_the_law_as_its_numbers_allow(law):
    limits, function = LAWS[law]
    X, others = rows(limits), rows(limits, 1000, 1)
    y = function(*X.T)
    noisy = y + 0.01 * y.std() * np.random.default_rng(2).normal(size=len(y))
    assert programs_of(X, noisy).nmse(others, function(*others.T)).min() < 8 * 0.01**2 / len(y)


def test_fits_write_the_power():
    limits, function = LAWS["compound interest"]
    X = rows(limits)
    fit = DGSRRegressor(generator=None, max_evaluations=20_000, random_state=0).fit(X, function(*X.T))
    assert str(fit.expression_) == "x1*(1 + x2)**x3"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.1, 0.5], ["x1", ("add", 1.0, "x1"), ("sub", 1.0, "x1")]),
        ([-0.1, 0.5], [("add", 1.0, "x1"), ("sub", 1.0, "x1")]),
        ([2.0, 50.0], ["x1", ("add", 1.0, ("mul", 0.01, "x1")), ("sub", 1.0, ("mul", 0.01, "x1"))]),
        ([2.0, 500.0], ["x1", ("add", 1.0, ("mul", 0.01, "x1"))]),
        ([-200.0, 3.0, 200.0], []),
    ],
)
def test_bases_are_positive_columns_and_factors_of_growth_and_decay(values, texts):
    found = bases_of({"x1": np.array(values)})
    assert list(found) == texts
    for tree, own in found.items():
        np.testing.assert_allclose(own, evaluate(tree, {"x1": np.array(values)}))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_product_of_powers_is_the_exponential_of_its_quotient(seed):
    rng = np.random.default_rng(seed)
    columns = ["x1", "x4", ("log", "x4"), ("log", ("add", 1.0, "x1")), ("div", 1.0, "x1")]
    x = {"x1": rng.uniform(0.1, 1.0, 5), "x4": rng.uniform(0.5, 3.0, 5)}
    above = [
        [0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 1, 1],
    ]
    above = np.array(above)[rng.permutation(6)[: rng.integers(1, 7)]]
    below = np.array([[0, int(rng.integers(2)), 0, 0, 0]])
    coefficients = rng.normal(size=len(above))
    values = np.array([evaluate(column, x) for column in columns])
    p = coefficients @ np.prod(values ** above[:, :, None], axis=1)
    q = np.prod(values ** below[0][:, None], axis=0)
    tree = product_of_powers(above, below, coefficients, columns)
    np.testing.assert_allclose(np.broadcast_to(evaluate(tree, x), 5), np.exp(p / q), rtol=1e-9)


def test_what_is_no_product_of_powers_is_written_in_another_way():
    columns, one, two = ["x1", ("log", "x1")], np.array([[0, 0]]), np.array([[0, 0], [1, 0]])
    assert product_of_powers(two, two, np.ones(2), columns) is None
    assert product_of_powers(two, np.array([[0, 1]]), np.ones(2), columns) is None
    assert product_of_powers(np.array([[0, 2]]), one, np.ones(1), columns) is None
    assert product_of_powers(two, one, np.ones(2), columns) is not None
