"""The exhaustive search for laws with a number inside, on laws of every form it knows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dgsr.data.dataset import DataSet
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.finders.finder import Problem
from dgsr.finders.linear.one_number import _FUNCTIONS, _refined, one_number
from dgsr.search import Search, SearchConfig

LAWS = {
    "an exponential": lambda x: 3.1 * np.exp(-0.37 * x[0] * x[1]) + 0.4,
    "Planck's law": lambda x: 2.0 / (np.exp(0.71 * x[0] / x[1]) - 1.0),
    "a root of a sine": lambda x: np.sqrt(3.0 + 1.2 * np.sin(7.3 * x[1])),
    "a square of a cosine": lambda x: (0.2 + np.cos(2.9 * (x[0] - x[2]))) ** 2,
    "a hyperbolic tangent": lambda x: 4.0 * np.tanh(0.83 * x[2] ** 2) - 1.0,
    "a logarithm": lambda x: 1.5 * np.log(x[0] + 0.61) + 2.0,
    "the reciprocal of a root of a logarithm": lambda x: 1.0 / np.sqrt(2.0 + 0.5 * np.log(x[1] + 3.3)),
}


def search_of(X, y, library="physics", **settings):
    library = get_library(library, X.shape[1])
    return Search(DataSet.from_arrays(X, y), library, Constraints(), SearchConfig(**settings), None)


@pytest.mark.parametrize("law", LAWS)
def test_laws_with_a_number_inside_are_exact_before_anything_evolves(law):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 3))
    search = search_of(X, LAWS[law](X.T))
    search.find(one_number)
    assert search.archive.best_nmse() <= 1e-18
    assert search.n_evaluations <= 75


@pytest.mark.parametrize("law", LAWS)
def test_noise_does_not_hide_them(law):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (100, 3))
    y = LAWS[law](X.T)
    noisy = y + 0.02 * y.std() * np.random.default_rng(1).normal(size=100)
    search = search_of(X, noisy)
    search.find(one_number)
    assert search.archive.best_nmse() < 1.2 * 0.02**2


@pytest.mark.parametrize("library", ["physics", "koza-const"])
def test_the_programs_are_the_laws_but_for_scale_and_offset(library):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 2))
    data = DataSet.from_arrays(X, 2.0 / (np.exp(0.71 * X[:, 0]) - 1.0))
    tokens = get_library(library, 2)
    programs = one_number(Problem.of(data, tokens)).programs
    errors = []
    for i in range(len(programs)):
        with np.errstate(all="ignore"):
            values = evaluate(programs[i].tree, {"x1": X[:, 0], "x2": X[:, 1]})
        if np.isfinite(values).all():  # a root of what is negative on some rows is no law
            errors.append(1.0 - np.corrcoef(values, data.y)[0, 1] ** 2)
    # The library without a reciprocal can write the exponential alone.
    assert (min(errors) < 1e-12) == ("inv" in tokens.index)


def test_only_columns_that_may_be_used_are():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 3))
    library = get_library("physics", 3)
    data = DataSet.from_arrays(X, np.exp(-2.0 * X[:, 0]))
    programs = one_number(Problem.of(data, library, Constraints(forbidden_columns=(0,)))).programs
    assert len(programs)
    assert library.first_variable not in programs.tokens


def test_too_few_rows_and_what_is_not_finite_give_nothing_and_no_error():
    library = get_library("physics", 1)
    few = DataSet.from_arrays(np.arange(5.0)[:, None], np.arange(5.0) ** 2)
    assert len(one_number(Problem.of(few, library)).programs) == 0
    huge = DataSet.from_arrays(np.geomspace(1e-150, 1e150, 20)[:, None], np.geomspace(1e-150, 1e150, 20))
    one_number(Problem.of(huge, library))
    zeros = DataSet.from_arrays(np.linspace(-1.0, 1.0, 21)[:, None], np.linspace(-1.0, 1.0, 21) ** 3)
    assert len(one_number(Problem.of(zeros, library)).programs) > 0


def test_a_function_that_explains_nothing_gives_no_program_and_no_error():
    x = np.arange(-7.0, 8.0)  # odd targets, and functions of x**2 that are even
    data = DataSet.from_arrays(x[:, None], x * np.exp(-np.abs(x)) + np.sin(x))
    library = get_library("physics", 1)
    programs = one_number(Problem.of(data, library)).programs
    assert np.isfinite(programs.constants).all()


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_refined_numbers_leave_no_more_unexplained_than_those_of_scipy(name):
    function, rng = _FUNCTIONS[name], np.random.default_rng(0)
    terms, truth = rng.uniform(0.2, 1.0, (6, 50)), rng.uniform(1.1, 1.9, (6, 1))
    y = 3.0 * function.value(truth * terms) + 0.01 * rng.normal(size=(6, 50))
    y[0] = 3.0 * function.value(truth[0] * terms[0])  # without noise
    spreads = y - y.mean(axis=1, keepdims=True)
    numbers, unexplained = _refined(function, terms, spreads, np.ones(6), np.full(6, 2.0))
    for i in range(6):

        def unexplained_by(number, i=i):
            return 1.0 - np.corrcoef(function.value(number * terms[i]), y[i])[0, 1] ** 2

        best = minimize_scalar(unexplained_by, bounds=(1.0, 2.0), method="bounded", options={"xatol": 1e-9})
        assert unexplained[i] == pytest.approx(unexplained_by(numbers[i]), rel=1e-6, abs=1e-13)
        assert unexplained[i] <= best.fun * (1.0 + 1e-9) + 1e-13
    assert numbers[0] == pytest.approx(truth[0, 0], rel=1e-6)
