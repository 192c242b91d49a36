"""Symmetries of a table: the gradient of the surrogate, the steps, and the searches among fewer columns."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

from dgsr import DGSRRegressor, find_symmetries
from dgsr.data.dataset import DataSet
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.trees.syntax import to_text
from dgsr.finders.fewer_columns.finder import FewerColumns, lifted
from dgsr.finders.fewer_columns.gaussian_process import fit_surrogate
from dgsr.finders.fewer_columns.symmetries import reductions_of
from dgsr.finders.fewer_columns.tables import Reduction
from dgsr.finders.terms import population_of
from dgsr.search import Search, SearchConfig
from searches import flat_regressor

pytestmark = pytest.mark.search


def sentences(*arguments):
    return [str(symmetry) for symmetry in find_symmetries(*arguments)]


def table(n_rows, n_columns, seed=0, low=1.0, high=3.0):
    return np.random.default_rng(seed).uniform(low, high, (n_rows, n_columns))


# --- the surrogate --------------------------------------------------------------------------------


def test_the_error_of_a_surrogate_is_that_of_leaving_out_each_row():
    X = table(30, 2)
    y = np.sin(X[:, 0]) * X[:, 1] + 0.05 * np.random.default_rng(1).normal(size=30)
    Z, values = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    found = fit_surrogate(X, y)
    # With relevances unknown to the test, only one that is the same for all columns can be checked.
    kernels = [
        np.exp(-(cdist(Z, Z) ** 2) / (4.0 * length**2)) + 100.0 * (1.0 + Z @ Z.T)
        for length in (1.5, 3.0, 6.0, 12.0)
    ]
    errors = []
    for kernel in kernels:
        for noise in (1e-10, 1e-6, 1e-3, 1e-1):
            left_out = []
            for i in range(30):
                rest = np.delete(np.arange(30), i)
                covariance = kernel[np.ix_(rest, rest)] + noise * np.eye(29)
                left_out.append(kernel[i, rest] @ np.linalg.solve(covariance, values[rest]) - values[i])
            errors.append(np.sqrt(np.mean(np.square(left_out))))
    assert found.error <= min(errors) * (1.0 + 1e-6)
    assert found.error > 0.2 * min(errors)


def test_the_gradient_of_a_surrogate_is_that_of_the_function():
    X = table(150, 3)
    found = fit_surrogate(X, X[:, 0] ** 2 * np.sin(X[:, 1]) + 5.0 * X[:, 2])
    assert found.error < 1e-3
    true = np.column_stack([2 * X[:, 0] * np.sin(X[:, 1]), X[:, 0] ** 2 * np.cos(X[:, 1]), np.full(150, 5.0)])
    # Covariances of a function without noise are nearly singular, and leave the gradient some three digits.
    np.testing.assert_allclose(found.gradient, true, atol=0.01 * np.abs(true).max())


def test_a_straight_line_costs_a_surrogate_nothing():
    X = table(12, 3)
    found = fit_surrogate(X, X @ [1.0, -2.0, 3.0])
    assert found.error < 1e-4
    np.testing.assert_allclose(found.gradient, np.tile([1.0, -2.0, 3.0], (12, 1)), atol=1e-3)


# --- what is found --------------------------------------------------------------------------------


FUNCTIONS = {"exp": np.exp, "sin": np.sin, "log": np.log, "sqrt": np.sqrt}
#: A law, its factor, and the combinations of columns that the rest depends on.
LAWS = [
    ("a*exp(-b*c/d)", "a", ["b*c/d"]),
    ("sin(a - b) + c", "1", ["a - b", "c"]),
    ("exp(a + b)/c + log(c)", "1", ["a + b", "c"]),
    ("a**2*sqrt(b)/(1 + c)", "a**2*sqrt(b)", ["c"]),
    ("log(a) + 2*a", "1", ["a"]),
]


@pytest.mark.parametrize(("law", "factor", "columns"), LAWS)
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_the_first_reduction_has_the_factor_and_the_combinations_of_a_law(law, factor, columns, noise):
    X = table(120, 4)
    values = {**FUNCTIONS, **dict(zip("abcd", X.T))}
    y = eval(law, values)
    y = y + noise * y.std() * np.random.default_rng(1).normal(size=120)
    first = reductions_of(X, y, list("abcd"))[0]
    # Which of equal products is written depends on the last digits: a ratio may stand upside down.
    ratios = y / first.y / eval(factor, values)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    assert first.X.shape[1] == len(columns)
    for column in columns:
        alike = [abs(spearmanr(eval(column, values), own).statistic) for own in first.X.T]
        assert max(alike) == pytest.approx(1.0)


def test_a_statement_names_factor_combinations_and_target():
    X = table(60, 3)
    named = pd.DataFrame(X, columns=["m", "s", "t"])
    (symmetry,) = find_symmetries(named, X[:, 0] * np.exp(X[:, 1] - X[:, 2]))
    assert str(symmetry) == repr(symmetry) == "y/m depends on s - t alone"
    assert (symmetry.kind, symmetry.target, symmetry.groups) == ("combinations", "y/m", (("s - t",),))
    force = pd.Series(np.sin(X[:, 0]) + X[:, 1] ** 2 * X[:, 0], name="force")
    assert sentences(X, force) == ["force depends on x1 and x2 alone"]


def test_names_may_be_those_of_other_columns_and_of_the_target():
    X = table(60, 3)
    y = X[:, 0] * np.exp(X[:, 1] - X[:, 2])
    assert sentences(X, y, ["y", "s", "t"]) == ["y/y depends on s - t alone"]
    assert sentences(X, y, ["a", "a", "x1"], "a") == ["a/a depends on a - x1 alone"]


def test_an_exact_symmetry_holds_for_the_values_of_the_table():
    X = table(200, 6)
    y = X[:, 0] * X[:, 1] / np.sqrt((X[:, 2] - X[:, 3] - 3.0) ** 2 + X[:, 4] ** 2 * X[:, 5] ** 2)
    found = reductions_of(X, y, [f"x{i + 1}" for i in range(6)])
    assert [reduction.X.shape[1] for reduction in found][-1] <= 3
    for reduction in found:
        library = get_library("physics", 6)
        for column, values in zip(reduction.columns, reduction.X.T):
            tree = Reduction((column,), {}, X, y).lifted("x1")
            written = Expression.from_text(to_text(tree), library)
            np.testing.assert_allclose(written(X), values, rtol=1e-12)
        factor = Reduction((), reduction.factor, X, y).lifted(1)
        np.testing.assert_allclose(
            Expression.from_text(to_text(factor), library)(X) * reduction.y, y, rtol=1e-12
        )


def test_where_there_is_no_symmetry_none_is_found():
    X = table(150, 3)
    assert sentences(X, np.random.default_rng(0).normal(size=150)) == []
    assert sentences(X, np.sin(X[:, 0]) + X[:, 1] ** (0.5 * X[:, 0]) + np.exp(-X[:, 2]) * X[:, 0]) == []
    assert sentences(X, np.sin(X[:, 0]) * X[:, 1] + np.exp(X[:, 2] - 2 * X[:, 0]) * X[:, 1] ** 2) == []
    assert sentences(X[:10], X[:10, 0] * X[:10, 1]) == []  # too few rows
    assert sentences(X[:, :1], X[:, 0] ** 2) == []  # too few columns
    assert sentences(table(150, 13), X[:, 0] ** 2) == []  # too many


def test_the_columns_of_a_grid_are_no_copies_of_one_another():
    X = np.array(list(itertools.product(np.linspace(1.0, 3.0, 20), repeat=4)))
    y = X[:, 0] ** 2 * np.sin(2.0 * X[:, 3]) + X[:, 1]
    assert sentences(X, y) == [
        "y depends on x1, x2 and x4 alone",
        "y is a function of x1 and x4, plus a function of x2",
    ]


def test_a_column_that_does_not_count_goes():
    X = table(120, 3)
    assert sentences(X, np.exp(X[:, 0]) + np.log(X[:, 1]) * X[:, 0]) == ["y depends on x1 and x2 alone"]


def test_constant_columns_copies_and_values_of_any_size_are_no_error():
    X = table(100, 3)
    y = X[:, 0] * np.exp(X[:, 1] - X[:, 2])
    said = ["y/x1 depends on x2 - x3 alone"]
    assert sentences(np.column_stack([X, np.ones(100), X[:, 1]]), y) == said
    assert sentences(np.repeat(X[:20], 5, axis=0), np.repeat(y[:20], 5)) == said
    assert sentences(X - 2.0, (X[:, 0] - 2.0) * np.exp(X[:, 1] - X[:, 2])) == said
    for size in (1e-200, 1e200):
        find_symmetries(size * X, y)
        find_symmetries(X, size * y)
    find_symmetries(X, np.ones(100))
    find_symmetries(X[:1], y[:1])


@pytest.mark.parametrize(
    ("X", "y", "names", "message"),
    [
        (np.ones((3, 2)), np.ones(2), None, "X of shape"),
        (np.ones(3), np.ones(3), None, "X of shape"),
        (np.full((3, 2), np.nan), np.ones(3), None, "finite"),
        (np.ones((3, 2)), np.ones(3), ["a"], "feature_names"),
    ],
)
def test_what_is_no_table_is_named(X, y, names, message):
    with pytest.raises(ValueError, match=message):
        find_symmetries(X, y, names)


# --- the searches ---------------------------------------------------------------------------------


def test_a_formula_of_fewer_columns_becomes_one_of_all():
    X = table(40, 4)
    columns = {"x1": Fraction(1), "x2": Fraction(-2)}, {("sub", "x3", "x4"): Fraction(1)}
    factor = {"x2": Fraction(1, 2)}
    few = np.column_stack([X[:, 0] / X[:, 1] ** 2, X[:, 2] - X[:, 3]])
    reduction = Reduction(columns, factor, few, few[:, 0])
    short, long = get_library("physics", 2), get_library("physics", 4)
    formula = Expression.from_text("1.5*exp(x1)*x2 + 0.25", short)
    programs = population_of(long, lifted([formula.tree], reduction, long))
    assert len(programs) == 1
    np.testing.assert_allclose(programs[0](X), np.sqrt(X[:, 1]) * formula(few), rtol=1e-12)


def searched(X, y):
    """The lowest NMSE among the fewer columns of a table, where no column is forbidden beforehand."""
    library = get_library("physics", X.shape[1])
    constraints = Constraints(max_length=20)
    config = SearchConfig(max_evaluations=3_000, batch_size=50)
    search = Search(DataSet.from_arrays(X, y), library, constraints, config, None)
    search.find(next(finder for finder in search.scheduler.finders if isinstance(finder, FewerColumns)))
    return search.archive.best_nmse()


def test_a_target_of_zero_in_a_row_keeps_no_table_of_fewer_columns_from_being_searched():
    X = table(60, 3)
    X[7, 1] = X[7, 2]
    y = X[:, 0] ** 2 * np.sin(X[:, 1] - X[:, 2])
    assert y[7] == 0.0
    assert searched(X, y) < 1e-20


def test_a_constant_column_keeps_no_table_of_fewer_columns_from_being_searched():
    X = np.column_stack([table(60, 3), np.full(60, 9.81)])
    assert searched(X, X[:, 0] ** 2 * np.sin(X[:, 1] - X[:, 2]) * X[:, 3]) < 1e-20


def gravity(seed=0):
    X = table(200, 9, seed) + np.array([0, 0, 0, 3, 3, 3, 0, 0, 0])
    squares = [(X[:, i] - X[:, i + 3]) ** 2 for i in (3, 4, 5)]
    return X, X[:, 0] * X[:, 1] * X[:, 2] / sum(squares)


@pytest.mark.slow
def test_a_law_of_many_columns_is_found_among_few():
    X, y = gravity()
    model = DGSRRegressor(generator=None, max_evaluations=25_000, random_state=0).fit(X, y)
    assert model.stop_reason_ == "exact fit"
    other, target = gravity(seed=1)
    np.testing.assert_allclose(model.predict(other), target, rtol=1e-8)


@pytest.mark.slow
def test_a_law_of_many_columns_is_not_found_without_symmetries():
    X, y = gravity()
    settings = {"generator": None, "max_evaluations": 25_000, "random_state": 0, "look_up": False}
    assert flat_regressor(**settings).fit(X, y).stop_reason_ == "max_evaluations"


@pytest.mark.slow
def test_the_searches_keep_within_the_budget():
    X, y = (values[:100] for values in gravity())
    y = y + np.sin(7.0 * X[:, 0] * X[:, 3])  # no law is found
    model = DGSRRegressor(generator=None, max_evaluations=1_500, max_length=15, random_state=0).fit(X, y)
    assert model.n_evaluations_ <= 1_500
    assert model.stop_reason_ == "max_evaluations"
    assert max(entry["evaluations"] for entry in model.history_) == model.n_evaluations_


@pytest.mark.slow
def test_forbidden_columns_and_required_operators_are_kept():
    X, y = (values[:80] for values in gravity())
    model = flat_regressor(
        generator=None,
        max_evaluations=1_500,
        max_length=15,
        random_state=0,
        forbidden=["x1"],
        required=["exp"],
    )
    model.fit(X, y)
    first = model.expression_.library.first_variable
    for candidate in model.pareto_front_:
        assert first not in candidate.expression.tokens
        assert candidate.expression.library.index["exp"] in candidate.expression.tokens
