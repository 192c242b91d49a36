"""The contract of the finders: each of them on the same problems."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.units import Units
from dgsr.finders import Budget
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION
from dgsr.finders.exact import ExactStages
from dgsr.finders.fewer_columns.finder import FewerColumns
from dgsr.finders.finder import Found, never
from dgsr.finders.forms import CommonForms
from dgsr.finders.linear.quotients import quotients_of_polynomials
from dgsr.finders.linear.two_terms import two_terms
from dgsr.finders.lines import linear_models
from dgsr.finders.longer.finder import Longer
from dgsr.finders.scheduler import Scheduler
from dgsr.finders.terms import population_of
from dgsr.kernels.grammar import are_valid
from dgsr.search import Search, SearchConfig
from searches import problem_for


def table(n, d, seed=0, low=0.5, high=3.0):
    return np.random.default_rng(seed).uniform(low, high, (n, d))


def noise(n, size=0.02):
    return size * np.random.default_rng(1).normal(size=n)


def rate_law():
    X = table(60, 2)
    return X, X[:, 0] * X[:, 1] / (1.3 + X[:, 1]) + noise(60), Constraints()


def few_rows():
    x = np.array([0.1, 0.4, 1.0, 1.7, 2.5, 3.0, 4.1, 6.0])
    return x[:, None], 2.0 * np.exp(-0.7 * x) + 0.3, Constraints()


def with_units():
    X = table(40, 3)
    units = Units.of({"m": "kg", "v": "m/s", "t": "s"}, "J", ["m", "v", "t"], unitless_constants=True)
    return X, 0.5 * X[:, 0] * X[:, 1] ** 2 + noise(40), Constraints(units=units)


def with_demands():
    X = table(80, 3, low=0.5, high=2.0)
    y = np.sin(X[:, 1] - X[:, 2]) * X[:, 1] + X[:, 0]
    return X, y, Constraints(forbidden_columns=(0,), min_length=2, max_length=20)


def extreme():
    X = np.column_stack([1e150 * table(30, 1)[:, 0], np.full(30, 7.0), np.arange(30) % 2])
    return X, 1e-120 * (X[:, 2] + noise(30)), Constraints()


PROBLEMS = {made.__name__: made for made in (rate_law, few_rows, with_units, with_demands, extreme)}


def problem_of(name, library="physics"):
    X, y, constraints = PROBLEMS[name]()
    return problem_for(DataSet.from_arrays(X, y), get_library(library, X.shape[1]), constraints), constraints


def search_in(data, symmetries):
    """What stands for a search among fewer columns: the line of the first of them."""
    library = get_library("physics", len(data.columns))
    return linear_models(problem_for(data, library)).programs


def longer(problem, constraints):
    config = SearchConfig(max_evaluations=300, batch_size=50)
    search = Search(problem.data, problem.library, constraints, config, None)
    search.tell(search.ask())
    return Longer(search.archive, search.evolved, search.long.programs)


def exact(problem, constraints):
    """Exact search in a small bank, at its second stage."""
    stages = ExactStages(problem, Budget(10**9, None))
    stages.solver.size = 256
    return stages


def repairs(problem, constraints):
    index = problem.library.index
    near_misses = population_of(problem.library, [((index["add"], index["x1"], index["x1"]), ())])
    near_misses = near_misses.of_width(problem.grammar.max_length, 0)
    return partial(exact(problem, constraints).repaired, near_misses)


FINDERS = {
    "two terms": lambda *_: two_terms,
    "common forms": lambda *_: CommonForms(),
    "whole common forms": lambda *_: CommonForms().whole,
    "quotients of polynomials": lambda *_: quotients_of_polynomials,
    "fewer columns": lambda *_: FewerColumns(search_in, Budget(10**6, None)),
    "linear models": lambda *_: linear_models,
    "longer": longer,
    "exact search": exact,
    "repairs": repairs,
}
WITHOUT_CONSTANTS = ("exact search", "repairs")
finders = pytest.mark.parametrize("finder", FINDERS)
problems = pytest.mark.parametrize("name", PROBLEMS)


def called(finder, name, deadline=never):
    problem, constraints = problem_of(name, "koza" if finder in WITHOUT_CONSTANTS else "physics")
    with np.errstate(all="ignore"):
        return problem, FINDERS[finder](problem, constraints)(problem, deadline)


def test_every_finder_that_the_scheduler_calls_before_the_rounds_is_checked_here():
    def kind(finder):
        return getattr(finder, "__name__", type(finder).__name__)

    given = problem_of("rate_law")
    checked = {kind(make(*given)) for name, make in FINDERS.items() if name not in WITHOUT_CONSTANTS}
    scheduler = Scheduler(given[0], Budget(10, None), True, search_in)
    assert {kind(finder) for finder in scheduler.finders} <= checked


@finders
@problems
def test_programs_are_valid_and_what_was_examined_is_counted(finder, name):
    problem, (programs, are_complete, n_examined) = called(finder, name)
    assert isinstance(programs, Population)
    assert n_examined >= 0
    assert n_examined == int(n_examined)
    assert programs.library is problem.library
    assert np.isfinite(programs.constants).all()
    arity, forbidden = problem.library.table.arity, ~problem.grammar.is_variable
    forbidden[: problem.library.first_variable] = False
    for tokens, length in zip(programs.tokens, programs.lengths):
        own = tokens[:length]
        assert 1 + arity[own].sum() == length  # one whole tree
        assert not forbidden[own].any()
    assert programs.is_constant.sum(axis=1).max(initial=0) <= programs.constants.shape[1]
    if finder in WITHOUT_CONSTANTS:
        assert are_complete
        assert are_valid(programs.tokens, programs.lengths, problem.grammar).all()


@finders
@problems
def test_the_same_problem_has_the_same_answer(finder, name):
    (_, first), (_, second) = called(finder, name), called(finder, name)
    assert first.n_examined == second.n_examined
    np.testing.assert_array_equal(first.programs.tokens, second.programs.tokens)
    np.testing.assert_array_equal(first.programs.constants, second.programs.constants)


class Clock:
    """A deadline that passes when it is asked for the n-th time."""

    def __init__(self, n):
        self.n_left = n
        self.n_late = 0

    def __call__(self):
        self.n_left -= 1
        self.n_late += self.n_left < 0
        return self.n_left < 0


@finders
@problems
@pytest.mark.parametrize("n", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_little_is_asked_once_the_deadline_is_over(finder, name, n):
    """A finder ends soon after the time is over: it asks again a few times at the most."""
    clock = Clock(n)
    _, late = called(finder, name, clock)
    assert isinstance(late, Found)
    assert clock.n_late <= 16


@finders
def test_the_deadline_is_asked(finder):
    clock = Clock(10**9)
    called(finder, "rate_law", clock)
    assert clock.n_left < 10**9


def test_a_small_budget_keeps_nine_tenths_for_the_rounds():
    problem, _ = problem_of("rate_law")
    budget = Budget(1_000, None)
    scheduler = Scheduler(problem, budget, True, search_in)
    for finder in scheduler.finders:
        scheduler.before_rounds(finder, is_exact=False)
    assert budget.n_examined > 1_000 * CANDIDATES_PER_EVALUATION  # more than all that the budget allows
    assert 900 < budget.n_left < 1_000


def test_candidates_are_charged_where_the_budget_has_room():
    problem, _ = problem_of("rate_law")
    budget = Budget(10**9, None)
    scheduler = Scheduler(problem, budget, True, None)
    for finder in scheduler.finders:
        scheduler.before_rounds(finder, is_exact=False)
    assert budget.n_counted == budget.n_examined // CANDIDATES_PER_EVALUATION > 0


def test_after_an_exact_fit_pairs_alone_are_compared():
    problem, _ = problem_of("few_rows")
    scheduler = Scheduler(problem, Budget(10**6, None), True, search_in)
    asked = [scheduler.before_rounds(finder, is_exact=True) is not None for finder in scheduler.finders]
    assert asked == [finder is two_terms for finder in scheduler.finders]


def test_nothing_is_asked_once_the_budget_is_spent():
    problem, _ = problem_of("few_rows")
    scheduler = Scheduler(problem, Budget(10**6, 0.0), True, search_in)
    assert all(scheduler.before_rounds(finder, is_exact=False) is None for finder in scheduler.finders)


def test_found_formulas_of_a_search_are_evaluated_and_recorded_once():
    X, y, constraints = few_rows()
    search = Search(DataSet.from_arrays(X, y), get_library("physics", 1), constraints, SearchConfig(), None)
    search.find(quotients_of_polynomials)
    assert len(search.history) == 1
    assert search.history[0]["evaluations"] == search.n_evaluations > 0
    assert isinstance(search.long, Scored)
