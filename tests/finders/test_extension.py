"""Formulas extended by terms at any node: which extensions are promised, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.finders.longer import extension as module
from dgsr.finders.longer.extension import Extender, _gains, _least_gains, extended
from dgsr.finders.terms import population_of, terms_of
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from searches import problem_for

LIBRARY = get_library("physics", 3)
GRAMMAR = Constraints().grammar(LIBRARY)
X = np.random.default_rng(0).uniform(0.5, 3.0, (120, 3))
seeds = st.integers(0, 2**32 - 1)


def programs(*texts):
    return Population.from_expressions([Expression.from_text(text, LIBRARY) for text in texts])


def dataset(y, weights=None):
    return DataSet.from_arrays(X, y, weights)


@settings(max_examples=20)
@given(seeds)
def test_gains_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    tangents, target, fitted = rng.normal(size=(5, 40)), rng.normal(size=40), rng.normal(size=(40, 4))

    def squares(design):
        return np.sum((target - design @ np.linalg.lstsq(design, target, rcond=None)[0]) ** 2)

    expected = [1.0 - squares(np.column_stack([fitted, t])) / squares(fitted) for t in tangents]
    np.testing.assert_allclose(_gains(tangents, target, fitted), expected, atol=1e-10)
    least = _least_gains(np.ones((1, 40)), tangents, target, fitted)[0]
    assert np.all(least <= np.array(expected) + 1e-12)
    # Without what is fitted already, both are the same.
    nothing = np.zeros((40, 0))
    least = _least_gains(tangents[:2], tangents[2:], target, nothing)
    np.testing.assert_allclose(least[1], _gains(tangents[1] * tangents[2:], target, nothing))


@pytest.mark.parametrize(
    ("start", "law"),
    [
        ("2.5*x1*x2 + 1.5", lambda x: 3.0 * x[0] * x[1] - 1.7 * np.log(x[2]) + 0.4),
        ("sqrt(1.5*x1*x2 + 0.5)", lambda x: np.sqrt(2.0 * x[0] * x[1] + 0.7 * x[2] ** 2)),
        ("1.3*exp(1.2*x1)/(x2 + 0.8)", lambda x: 1.5 * np.exp(0.6 * x[0]) / (x[1] + 0.7 + 0.2 * x[2])),
        ("1.7*x1*exp(0.9*x2)", lambda x: x[0] * np.exp(x[1]) * (1.0 + 0.5 * np.sin(x[2]))),
    ],
    ids=["sum", "inside a root", "inside a denominator", "factor"],
)
def test_a_missing_term_is_found_wherever_it_is_missing(start, law):
    data = dataset(law(X.T))
    found = extended(programs(start), problem_for(data, LIBRARY), 60)
    assert found.nmse(data).min() < 1e-12


def test_rows_of_next_to_no_weight_do_not_choose_the_terms():
    rng = np.random.default_rng(0)
    law = 3.0 * X[:, 0] * X[:, 1] - 1.7 * np.log(X[:, 2]) + 0.4
    table = np.vstack([X, 1e4 * rng.uniform(0.5, 3.0, X.shape)])
    y = np.concatenate([law, 1e4 * rng.normal(size=len(X))])
    data = DataSet.from_arrays(table, y, np.repeat([1.0, 1e-25], len(X)))
    found = extended(programs("2.5*x1*x2 + 1.5"), problem_for(data, LIBRARY), 60)
    assert found.nmse(data).min() < 1e-12


@settings(max_examples=15)
@given(seeds)
@example(2_210_309_506)  # a node of 1e200 times its derivative
def test_extensions_begin_with_the_values_of_the_program(seed):
    rng = np.random.default_rng(seed)
    drawn = random_population(3, LIBRARY, Constraints().grammar(LIBRARY), new_state(seed))
    population = Population(LIBRARY, drawn.tokens, drawn.lengths, rng.uniform(0.5, 2.0, (3, 10)))
    extender = Extender(problem_for(dataset(rng.normal(size=120)), LIBRARY), 200)
    turning = {LIBRARY.index["sin"], LIBRARY.index["cos"]}
    for i, program in enumerate(terms_of(population)):
        values = population.predict(X)[i]
        if not np.isfinite(values).all():
            continue
        for tokens, constants in extender.candidates(program):
            extension = population_of(LIBRARY, [(tokens, constants)])
            np.testing.assert_allclose(extension.predict(X)[0], values, rtol=1e-9)
            assert len(constants) == sum(token == LIBRARY.index["const"] for token in tokens)
            if not any(token in turning for token in program[0]):
                assert sum(token in turning for token in tokens) <= 1


def test_no_sine_is_put_under_a_sine(monkeypatch):
    monkeypatch.setattr(module, "_N_FITTED", 60)
    y = np.sin(X[:, 0] + 0.5 * np.sin(X[:, 1]))
    extender = Extender(problem_for(dataset(y), LIBRARY), 60)
    candidates = extender.candidates(terms_of(programs("sin(1.1*x1 + 0.3)"))[0])
    assert len(candidates) > 0
    for tokens, _ in candidates:
        assert tokens.count(LIBRARY.index["sin"]) < 2 or tokens[0] != LIBRARY.index["sin"]


def test_noise_is_not_extended():
    rng = np.random.default_rng(1)
    start = programs("2.5*x1*x2")
    data = dataset(2.0 * X[:, 0] * X[:, 1] + rng.normal(size=len(X)))
    fit_constants(start, data, scaled=False)
    assert len(extended(start, problem_for(data, LIBRARY), 120)) == 0
    assert len(extended(programs("0.5"), problem_for(dataset(rng.normal(size=len(X))), LIBRARY), 120)) == 0


def test_few_rows_allow_few_constants_and_no_extension_is_longer_than_allowed():
    y = 2.0 * X[:, 0] ** 2 - 3.0 * np.sin(X[:, 1]) + 0.5 * X[:, 0] * X[:, 2] + 4.0 * np.log(X[:, 2])
    for n in (8, 12, 40):
        found = extended(programs("1.5"), problem_for(DataSet.from_arrays(X[:n], y[:n]), LIBRARY), 120)
        assert max((found[i].constants.size for i in range(len(found))), default=0) <= n / 4
    assert len(found) > 0
    lengths = extended(programs("1.5"), problem_for(dataset(y), LIBRARY), 13).lengths
    assert 0 < lengths.max() <= 13


def test_a_program_without_a_value_is_not_extended():
    data = dataset(X[:, 0])
    assert len(extended(programs("log(0 - x1)", "1/(x1 - x1)"), problem_for(data, LIBRARY), 60)) == 0


@settings(max_examples=20)
@given(seeds)
def test_degenerate_tables_are_no_fault(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.choice([2, 5, 8, 30])), int(rng.choice([1, 2, 4]))
    table = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-200, 200)
    if rng.uniform() < 0.5:
        table = rng.integers(0, 2, (n, d)).astype(float)
    y = rng.normal(size=n) * 10.0 ** rng.integers(-100, 100)
    library = get_library("physics", d)
    start = Population.from_expressions([Expression.from_text(t, library) for t in ("1.5", "exp(x1)")])
    data = DataSet.from_arrays(table, y)
    found = extended(start, problem_for(data, library), 60)
    assert np.isfinite(found.nmse(data)).all()
