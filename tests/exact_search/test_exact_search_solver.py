"""The exact solver where the grammar forbids columns, and where it goes on at another stage."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr import DGSRRegressor
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.exact_search import ExactSolver
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from searches import flat_regressor

pytestmark = pytest.mark.search

SIZE = 1 << 16  # subprograms of the large bank: enough for these laws, and enumerated at once
FORBIDDEN = pytest.mark.parametrize("forbidden", [(0,), (1,), (2,), (0, 2), (0, 3)])


def columns_of(n_columns):
    return np.random.default_rng(0).uniform(1.0, 3.0, (n_columns, 40))


def solver_of(columns, y, forbidden=(), size=SIZE):
    library = get_library("koza", len(columns))
    grammar = Constraints(1, 30, forbidden_columns=forbidden).grammar(library)
    return ExactSolver(library, DataSet.from_arrays(columns.T, y), grammar, size)


def population(library, *texts):
    """Return programs written as names of tokens, in arrays of 30 tokens."""
    tokens, lengths = np.zeros((len(texts), 30), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
    for b, text in enumerate(texts):
        program = [library.index[name] for name in text.split()]
        tokens[b, : len(program)], lengths[b] = program, len(program)
    return Population(library, tokens, lengths, np.ones((len(texts), 0)))


def texts_of(programs, usable=None):
    """Return programs as names of tokens; `usable` has the names of the columns x1, x2, ..."""
    names = [token.name for token in programs.library.tokens]
    if usable is not None:
        names[programs.library.first_variable :] = usable
    return [" ".join(names[t] for t in row[:n]) for row, n in zip(programs.tokens, programs.lengths)]


def with_forbidden(columns, y, forbidden):
    """Return the table with forbidden columns put in, the last of which is y, and the names of the others."""
    wide = np.empty((len(columns) + len(forbidden), len(y)))
    usable = [i for i in range(len(wide)) if i not in forbidden]
    wide[usable] = columns
    wide[list(forbidden)] = np.sin(columns[: len(forbidden)] + 1.0)
    wide[forbidden[-1]] = y
    return wide, [f"x{i + 1}" for i in usable]


@FORBIDDEN
@pytest.mark.parametrize(
    ("stage", "law"),
    [
        (0, lambda a, b: np.sin(a) * np.exp(b)),
        (0, lambda a, b: 3.0 / (a + b)),
        (0, lambda a, b: a * b + 5.0),
        (1, lambda a, b: np.log(np.exp(a * b) / 2.0) / np.log(b)),
        (1, lambda a, b: 3.0 / ((b + 1.0) ** 2 - np.cos(b))),
    ],
)
def test_forbidden_columns_change_nothing_that_is_found(forbidden, stage, law):
    """Not even where one of them is the target, which is found before every law."""
    columns = columns_of(2)
    y = law(*columns)
    wide, usable = with_forbidden(columns, y, forbidden)
    expected = texts_of(solver_of(columns, y).solve(stage), usable)
    assert len(expected) == 1
    assert texts_of(solver_of(wide, y, forbidden).solve(stage)) == expected


@FORBIDDEN
def test_forbidden_columns_change_nothing_that_is_repaired(forbidden):
    columns = columns_of(2)
    y = columns[0] * np.exp(columns[1]) + columns[0] / (columns[1] + 3.0)
    wide, usable = with_forbidden(columns, y, forbidden)
    near_misses = "add mul x1 exp x2 div x1 add x2 x2", "add sin x1 div x1 x2", "mul x1 exp x2"
    narrow = population(get_library("koza", 2), *near_misses)
    same = population(get_library("koza", len(wide)), *texts_of(narrow, usable))
    expected = texts_of(solver_of(columns, y).repair(narrow), usable)
    assert expected
    assert texts_of(solver_of(wide, y, forbidden).repair(same)) == expected


def test_a_forbidden_column_of_a_near_miss_is_exchanged():
    columns = columns_of(3)
    y = columns[1] * np.exp(columns[2])
    near_miss = population(get_library("koza", 3), "mul x2 exp x1")
    assert "mul x2 exp x3" in texts_of(solver_of(columns, y, (0,)).repair(near_miss))


@pytest.mark.parametrize("law", [lambda b, c: 3.0 / (b + c), lambda b, c: b * c + 5.0])
def test_a_fit_with_a_forbidden_column_finds_the_law_at_once(law):
    X = columns_of(3).T
    y = law(X[:, 1], X[:, 2])
    settings = {"library": "koza", "generator": None, "random_state": 0, "max_evaluations": 2_000}
    regressor = flat_regressor(**settings, forbidden=["x1"]).fit(X, y)
    assert regressor.n_evaluations_ == 1
    assert regressor.n_examined_ > 0
    assert regressor.stop_reason_ == "exact fit"
    np.testing.assert_allclose(regressor.predict(X), y, rtol=1e-9)


def test_candidates_of_stages_and_repairs_are_counted():
    columns = columns_of(2)
    y = np.sin(np.random.default_rng(0).normal(size=len(columns[0])))
    library = get_library("koza", 2)
    data = DataSet.from_arrays(columns.T, y)
    solver = ExactSolver(library, data, Constraints().grammar(library), 256)
    solver.solve(0)
    n_first = solver.n_examined
    solver.solve(1)
    n_more = solver.n_examined
    solver.repair(population(library, "add x1 x2"))
    assert 0 < n_first < n_more < solver.n_examined


@pytest.mark.parametrize("stage", [1, 2])
def test_going_on_at_a_stage_is_the_same_whatever_was_searched_before(stage):
    """The near miss is one that the large bank repairs and the small one does not."""
    columns = columns_of(2)
    y = np.log(columns[0]) * (columns[1] + np.exp(columns[0] + np.exp(columns[1])))
    near_miss = population(get_library("koza", 2), "mul log x1 sin x2")
    expected = ["mul log x1 add x2 exp add x1 exp x2"] if stage > 1 else []
    fresh, loaded, searched = (solver_of(columns, y) for _ in range(3))
    loaded.go_on(2)
    searched.solve(1)
    for solver in (fresh, loaded, searched):
        solver.go_on(stage)
        assert texts_of(solver.repair(near_miss)) == expected


def test_where_every_column_is_forbidden_nothing_is_found():
    columns = columns_of(2)
    solver = solver_of(columns, columns[0] + columns[1], (0, 1))
    assert len(solver.solve(0)) == 0
    assert len(solver.repair(population(get_library("koza", 2), "mul x1 x2"))) == 0


def test_a_row_of_next_to_no_weight_hides_no_law():
    columns = columns_of(2)
    y = columns[0] * np.exp(columns[1])
    y[3] += 100.0
    weights = np.ones(len(y))
    weights[3] = 1e-9
    library = get_library("koza", 2)
    data = DataSet.from_arrays(columns.T, y, weights)
    found = ExactSolver(library, data, Constraints().grammar(library), SIZE).solve(0)
    assert len(found) == 1


@pytest.mark.parametrize("n_levels", [2, 3])
def test_a_column_of_a_few_whole_numbers_is_no_error(n_levels):
    X = np.tile(np.arange(float(n_levels)), 10)[:, None]
    y = np.random.default_rng(0).normal(size=len(X))
    model = DGSRRegressor("koza", generator=None, max_evaluations=200, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("factor", [22.0, 1.0 / 23.0])
def test_numbers_that_a_library_cannot_write_are_left_out(factor):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 1))
    model = DGSRRegressor("koza", generator=None, max_evaluations=500, random_state=0).fit(
        X, factor * X[:, 0]
    )
    assert np.isfinite(model.predict(X)).all()
