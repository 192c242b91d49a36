"""Sums of what a search has found: which terms are taken, and what the sums compute."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr import DGSRRegressor, load
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.finders.longer import sums as module
from dgsr.finders.longer.sums import sums_of_terms
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from searches import flat_regressor, problem_for

LIBRARY = get_library("physics", 3)
GRAMMAR = Constraints().grammar(LIBRARY)
X = np.random.default_rng(0).uniform(0.5, 3.0, (120, 3))


def population_of(*texts):
    return Population.from_expressions([Expression.from_text(text, LIBRARY) for text in texts])


def dataset(y, weights=None):
    return DataSet.from_arrays(X, y, weights)


NOTHING = population_of("x1")


def greedy_by_least_squares(values, y, bits, n_terms):
    """The terms that orthogonal matching pursuit takes, each found by fitting every sum anew."""
    chosen: list[int] = []
    ones = np.ones(len(y))

    def squares(terms):
        design = np.column_stack([ones, *(values[i] for i in terms)])
        return np.sum((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2)

    for _ in range(n_terms):
        others = [i for i in range(len(values)) if i not in chosen]
        lengths = [0.5 * len(y) * np.log2(squares([*chosen, i])) + bits[i] for i in others]
        chosen.append(others[int(np.argmin(lengths))])
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_each_term_is_the_one_that_shortens_the_description_the_most(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(12, 60)) + rng.normal(size=(1, 60))
    y = np.array([3.0, -2.0, 2.0, 1.0, -1.0]) @ values[:5] + 0.1 * rng.normal(size=60)
    bits = rng.uniform(3.0, 12.0, 12)
    chosen = module._pursue(values, y, np.ones(60), bits, 60.0)
    assert len(chosen) >= 4
    assert chosen == greedy_by_least_squares(values, y, bits, len(chosen))


def test_a_sum_of_simple_functions_is_found_exactly():
    y = 2.0 * X[:, 0] ** 2 - 3.0 * np.sin(X[:, 1]) + 0.5 * X[:, 0] * X[:, 2] + 4.0 * np.log(X[:, 2]) - 1.0
    data = dataset(y)
    found = sums_of_terms([NOTHING], problem_for(data, LIBRARY), 120)
    assert found.nmse(data).min() < 1e-20


def test_the_parts_of_programs_are_terms_with_their_constants():
    term = "sin(2.5*x1 + x2)"
    y = 3.0 * np.sin(2.5 * X[:, 0] + X[:, 1]) + 2.0 * X[:, 2]
    data = dataset(y)
    found = sums_of_terms([population_of(f"exp({term})/x3")], problem_for(data, LIBRARY), 120)
    assert found.nmse(data).min() < 1e-20
    assert np.all(sums_of_terms([NOTHING], problem_for(data, LIBRARY), 120).nmse(data) > 1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_parts_compute_what_they_compute_in_their_program(seed):
    grammar = Constraints().grammar(LIBRARY)
    drawn = random_population(20, LIBRARY, grammar, new_state(seed))
    constants = np.random.default_rng(seed).normal(size=(20, 3))
    programs = Population(LIBRARY, drawn.tokens, drawn.lengths, constants)
    parts = module._parts(programs)
    expressions = [programs[i] for i in range(20)]
    wholes = {(tuple(e.tokens), tuple(e.constants)) for e in expressions if e.length <= 12}
    assert wholes <= set(parts)  # a short program is a part of itself
    trees = {str(expression.tree) for expression in expressions}
    for tokens, own in parts:
        part = Expression(LIBRARY, list(tokens), list(own))
        assert any(str(part.tree) in tree for tree in trees)


def test_noise_has_no_sum():
    y = np.random.default_rng(1).normal(size=len(X))
    assert len(sums_of_terms([NOTHING], problem_for(dataset(y), LIBRARY), 120)) == 0


def test_few_rows_allow_few_constants():
    rng = np.random.default_rng(4)
    programs = population_of("sin(2.5*x1 + x2)", "exp(0.7*x3)*x2", "(x1 + 0.3)**2/x3")
    for n in (6, 12, 30):
        data = DataSet.from_arrays(X[:n], 3.84 * X[:n, 0] + X[:n, 1] + 0.01 * rng.normal(size=n))
        found = sums_of_terms([programs], problem_for(data, LIBRARY), 120)
        n_constants = [found[i].constants.size for i in range(len(found))]
        assert max(n_constants, default=0) <= n / 4
    assert n_constants  # thirty rows have a sum


def test_no_sum_is_longer_than_allowed():
    y = 2.0 * X[:, 0] ** 2 - 3.0 * np.sin(X[:, 1]) + 0.5 * X[:, 0] * X[:, 2] + 4.0 * np.log(X[:, 2])
    lengths = sums_of_terms([NOTHING], problem_for(dataset(y), LIBRARY), 17).lengths
    assert len(lengths) > 0
    assert lengths.max() <= 17


def test_a_weight_counts_as_so_many_rows():
    rng = np.random.default_rng(2)
    weights = rng.integers(1, 4, len(X)).astype(float)
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.05 * rng.normal(size=len(X))
    weighted = sums_of_terms([NOTHING], problem_for(dataset(y, weights), LIBRARY), 120)
    rows = np.repeat(np.arange(len(X)), weights.astype(int))
    repeated = sums_of_terms([NOTHING], problem_for(DataSet.from_arrays(X[rows], y[rows]), LIBRARY), 120)
    # Fewer effective rows may allow fewer terms, but the sum of two is the same.
    np.testing.assert_array_equal(weighted[0].tokens, repeated[0].tokens)
    np.testing.assert_allclose(weighted[0].constants, repeated[0].constants, rtol=1e-6)


@pytest.mark.search
def test_a_fit_of_what_is_no_short_formula_has_sums_on_its_front(tmp_path):
    rng = np.random.default_rng(3)
    table = rng.uniform(0.5, 3.0, (200, 6))
    y = sum(c * f(table[:, i]) for i, (c, f) in enumerate(zip(range(1, 7), [np.sin, np.log, np.sqrt] * 2)))
    y = y + 0.01 * np.std(y) * rng.normal(size=200)
    settings = {"generator": None, "max_evaluations": 1_000, "max_length": 10, "random_state": 0}
    model = flat_regressor(**settings, look_up=False).fit(
        table, y
    )  # else it is found that the table separates
    assert model.score(table, y) > 0.99
    assert model.expression_.length > 10 + 4  # longer than a program of the search and its scale and offset
    for index, candidate in enumerate(model.pareto_front_):
        np.testing.assert_allclose(model.predict(table, index=index), candidate.expression(table))
    model.save(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(load(tmp_path / "fit.dgsr").predict(table), model.predict(table))
    again = Expression.from_text(model.expression_.text, model.library_)
    np.testing.assert_allclose(again(table), model.predict(table))


@pytest.mark.search
def test_an_exact_law_gets_no_sums():
    model = DGSRRegressor(generator=None, max_evaluations=50_000, random_state=0)
    model.fit(X, X[:, 0] * X[:, 1])
    assert model.stop_reason_ == "exact fit"
    assert max(candidate.expression.length for candidate in model.pareto_front_) <= 7
