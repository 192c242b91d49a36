"""The budget of a fit: its evaluations, its clock, and what is finished when that has run out."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr import DGSRRegressor
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.exact_search import ExactSolver
from dgsr.expressions import Expression, get_library
from dgsr.finders import Budget
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION
from dgsr.finishing import finish
from dgsr.finishing.digits import with_measured_digits
from dgsr.finishing.fits import Fits
from dgsr.pareto import ParetoFront, promising
from searches import X, Y, flat_regressor

LIBRARY = get_library("physics", 2)
DATA = DataSet.from_arrays(X, Y)


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("dgsr.finders.budget.time.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


# --- evaluations ----------------------------------------------------------------------------------


def test_candidates_of_exact_search_count_as_evaluations():
    budget = Budget(100, None)
    budget.count(np.zeros(40))
    budget.count_candidates(59 * CANDIDATES_PER_EVALUATION, 10**9)
    assert (budget.n_left, budget.share, budget.spent()) == (1, 0.99, None)
    budget.count_candidates(CANDIDATES_PER_EVALUATION, 10**9)
    assert (budget.n_left, budget.spent()) == (0, "max_evaluations")
    assert budget.n_evaluations == 40


@pytest.mark.slow
def test_exact_search_ends_with_the_evaluations(monkeypatch):
    stages = []
    solve = ExactSolver.solve

    def noted(self, stage, *arguments):
        stages.append(stage)
        return solve(self, stage, *arguments)

    monkeypatch.setattr(ExactSolver, "solve", noted)
    noise = np.random.default_rng(0).normal(size=len(Y))
    settings = {"library": "koza", "generator": None, "batch_size": 20, "random_state": 0}
    model = flat_regressor(max_evaluations=500, **settings).fit(X, noise)
    assert 250 <= model.n_evaluations_ <= 500  # the first stage counts as half of them at most
    assert stages == [0]  # the others fill a bank of a million subprograms
    model = flat_regressor(max_evaluations=60_000, **settings).fit(X, noise)
    assert 1 in stages
    # The last candidates are counted after they were examined.
    assert model.n_evaluations_ + model.n_examined_ // CANDIDATES_PER_EVALUATION <= 60_000 + 20_000


# --- seconds --------------------------------------------------------------------------------------


def test_a_fit_ends_a_tenth_of_its_seconds_and_one_more_after_them(clock):
    budget = Budget(10**9, 20.0, 0.0)
    clock.now = 20.0
    assert budget.spent() == "max_time"
    is_over, half_is_over = budget.finishing(1.0), budget.finishing(0.5)
    clock.now = 21.4
    assert (is_over(), half_is_over()) == (False, True)
    clock.now = 23.0
    assert is_over()


def test_between_two_searches_finishing_takes_of_the_seconds_of_the_next_one(clock):
    budget = Budget(10**9, 20.0, 0.0)
    clock.now = 10.0
    is_over = budget.finishing(1.0, is_last=False)
    clock.now = 19.9
    assert not is_over()
    clock.now = 20.1
    assert is_over()


def test_without_a_limit_finishing_takes_what_it_takes(clock):
    is_over = Budget(100, None).finishing(0.1)
    clock.now = 1e9
    assert not is_over()


def test_several_targets_share_the_second_of_finishing(clock):
    alone, of_ten = (Budget(100, 1.0, 0.0, n_targets).finishing(1.0) for n_targets in (1, 10))
    clock.now = 1.5
    assert (alone(), of_ten()) == (False, True)


def test_a_search_is_left_time_where_preparing_took_all(clock):
    budget = Budget(100, 0.1, 0.0)
    clock.now = 0.2
    budget.leave_time()
    assert budget.spent() is None
    clock.now = 1.1
    assert budget.spent() == "max_time"


@pytest.mark.parametrize("loss", ["squared", "huber", "auto"])
def test_a_fit_ends_in_time_however_long_its_formulas_take(clock, monkeypatch, loss):
    evaluate, refit = Population.nmse, Fits.refitted

    def slow(self, *data):
        clock.now += 0.01
        return evaluate(self, *data)

    def very_slow(self, *arguments, **options):
        fit = refit(self, *arguments, **options)
        clock.now += 0.1
        return fit

    monkeypatch.setattr(Population, "nmse", slow)
    monkeypatch.setattr(Fits, "refitted", very_slow)
    y = 10.0 ** (3.0 * Y) if loss == "auto" else Y  # over decades, which takes two searches
    settings = {"generator": None, "batch_size": 20, "look_up": False, "random_state": 0}
    model = flat_regressor(max_time=3.0, max_evaluations=3_000, loss=loss, **settings).fit(X, y)
    assert clock.now <= 1.1 * 3.0 + 1.0
    assert np.isfinite(model.predict(X)).all()


# --- what is not finished -------------------------------------------------------------------------


def test_programs_that_are_not_finished_are_formulas_as_they_are():
    found = [Expression.from_text(text, LIBRARY) for text in ("1.23456789*x1*exp(-0.98765*x2)", "x1 + 0*x2")]
    programs = Population.from_expressions(found)
    formulas = finish(programs, np.array([1.0, 10.0]), DATA, 1e-20, is_over=lambda: True)
    for program, formula in zip(found, formulas, strict=True):
        np.testing.assert_allclose(formula(X), program(X / [1.0, 10.0]), rtol=1e-14)
    assert with_measured_digits(found[0], DATA, 1e-20, lambda: True) is found[0]


def test_formulas_without_their_uncertainties_are_on_the_front():
    found = [Expression.from_text(text, LIBRARY) for text in (f"{Y.mean():.4f}", "1.1*x1*exp(-x2)")]
    front = ParetoFront.from_expressions(found, DATA, assess=lambda _: None)
    assert len(front) == 2
    assert np.isnan(front[1].leave_one_out)
    assert np.isnan(front[1].standard_errors).all()
    assert front.select("mdl") == 1


def test_a_large_table_without_a_formula_that_has_what_is_required_is_an_error_with_a_mend(monkeypatch):
    monkeypatch.setattr("dgsr.fitting.ending.MANY_ROWS", 10)
    monkeypatch.setattr("dgsr.fitting.ending._finished", lambda *_: [])
    rules = {"required": ["exp"]}
    with pytest.raises(ValueError, match=r"required=.*require less"):
        DGSRRegressor(generator=None, max_evaluations=300, random_state=0, constraints=rules).fit(X, Y)


def test_formulas_that_a_sample_rules_out_are_not_judged_by_all_rows():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.5, 2.0, (4_000, 2))
    y = rows[:, 0] * np.exp(-rows[:, 1]) + 0.05 * rng.normal(size=len(rows))
    everyone, sample = DataSet.from_arrays(rows, y), DataSet.from_arrays(rows[::2], y[::2])
    texts = ("0.3", "x1", "x1*exp(-x2)", "x1*exp(-x2) + 0.001*x1", "1.5*sin(x1*x2) + 0.3*x1 + x2**2")
    found = [Expression.from_text(text, LIBRARY) for text in texts]
    kept, nmse = promising(found, sample, everyone)
    assert [str(formula) for formula in kept] != [str(formula) for formula in found]
    np.testing.assert_array_equal(nmse, Population.from_expressions(kept).nmse(everyone))
    fronts = [
        ParetoFront.from_expressions(found, everyone),
        ParetoFront.from_expressions(kept, everyone, nmse=nmse),
    ]
    assert [str(each.expression) for each in fronts[0]] == [str(each.expression) for each in fronts[1]]
    # Without time it is the formula of the shortest description alone.
    assert promising(found, sample, everyone, is_over=lambda: True)[0] == [found[2]]


def test_a_formula_that_some_row_leaves_undefined_or_that_has_a_pole_rules_none_out():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.5, 2.0, (300, 2))
    y = np.log(rows[:, 0]) + 0.01 * rng.normal(size=len(rows))
    sample = DataSet.from_arrays(rows, y)
    with_one = DataSet.from_arrays(np.vstack([rows, [[-1.0, 1.0]]]), np.append(y, 0.0))
    short, long = (Expression.from_text(text, LIBRARY) for text in ("log(x1)", "0.6666*x1 - 0.7123"))
    assert promising([short, long], sample, sample)[0] == [short]
    assert promising([short, long], sample, with_one)[0] == [short, long]
    pole = Expression.from_text("1/(x2 - 1)", LIBRARY)
    of_pole = DataSet.from_arrays(rows, pole(rows) + 0.01 * rng.normal(size=len(rows)))
    longer = Expression.from_text("0.123*x1 + 0.4567*x2 + 1.234", LIBRARY)
    assert promising([pole, longer], of_pole, of_pole)[0] == [pole, longer]
