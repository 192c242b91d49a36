"""Fitting the constants of programs, against scipy on the same forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from dgsr.constants import fit_constants
from dgsr.expressions import get_library
from dgsr.population import DataSet, Population

LIBRARY = get_library("koza-const", 2)


def written(*programs, max_length=15, max_constants=3):
    """A population of programs given as text; its constants are nonsense that must not matter."""
    tokens = np.zeros((len(programs), max_length), dtype=np.int64)
    lengths = np.zeros(len(programs), dtype=np.int64)
    for i, program in enumerate(programs):
        ids = [LIBRARY.index[name] for name in program.split()]
        tokens[i, : len(ids)] = ids
        lengths[i] = len(ids)
    return Population(LIBRARY, tokens, lengths, np.full((len(programs), max_constants), 7.0))


def data(target):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
    return X, target(X[:, 0], X[:, 1])


# Programs, the same as functions of (X, constants), and constants behind the data.
FORMS = {
    "const": ("const", lambda X, a: a + 0.0 * X[0], [2.5]),
    "line": ("add mul const x1 const", lambda X, a, b: a * X[0] + b, [2.5, -1.25]),
    "plane": (
        "add add mul const x1 mul const x2 const",
        lambda X, a, b, c: a * X[0] + b * X[1] + c,
        [3, -2, 1],
    ),
    "decay": ("mul const exp mul const x1", lambda X, a, b: a * np.exp(b * X[0]), [2.0, -0.5]),
    "wave": ("mul const sin mul const x2", lambda X, a, b: a * np.sin(b * X[1]), [1.5, 1.25]),
    "ratio": ("div x1 add const x2", lambda X, a: X[0] / (a + X[1]), [0.75]),
}


@pytest.mark.parametrize(("program", "function", "truth"), FORMS.values(), ids=FORMS)
def test_the_constants_behind_exact_data_are_found(program, function, truth):
    X, _ = data(np.add)
    y = function(X.T, *truth) if program != "const" else 2.5 + np.linspace(-1, 1, len(X))
    population = written(program)
    nmse = fit_constants(population, DataSet.from_arrays(X, y))
    np.testing.assert_allclose(population.constants[0, : len(truth)], truth, rtol=2e-4)
    assert nmse[0] < (1e-7 if program != "const" else 1.0 + 1e-9)


@pytest.mark.parametrize(("program", "function", "truth"), FORMS.values(), ids=FORMS)
def test_noisy_data_get_the_least_squares_constants(program, function, truth):
    X, _ = data(np.add)
    y = function(X.T, *truth) + 0.1 * np.random.default_rng(1).normal(size=len(X))
    population = written(program)
    nmse = fit_constants(population, DataSet.from_arrays(X, y))
    best, _ = curve_fit(function, X.T, y, p0=np.ones(len(truth)))
    least = np.mean((y - function(X.T, *best)) ** 2) / y.var()
    assert nmse[0] == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(population.constants[0, : len(best)], best, rtol=1e-3)


def test_the_nmse_is_that_of_the_fitted_population():
    X, y = data(lambda a, b: a * b)
    population = written("mul const x1", "x2", "add const mul const x2", "log sub const x1")
    reported = fit_constants(population, DataSet.from_arrays(X, y))
    np.testing.assert_array_equal(reported, population.nmse(X, y))
    assert np.isfinite(reported[:3]).all()


def test_a_fit_is_never_worse_than_constants_of_one():
    X, y = data(lambda a, b: np.sin(9.0 * a) + b)
    programs = ["sin mul const x1", "exp exp mul const x1", "log sub const x1", "div const sub x1 const"]
    ones = written(*programs)
    ones.constants[:] = 1.0
    assert (fit_constants(written(*programs), DataSet.from_arrays(X, y)) <= ones.nmse(X, y)).all()


def test_once_stopped_the_other_programs_keep_constants_of_one():
    X, y = data(lambda a, b: 3.0 * a)
    population = written("mul const x1", "mul const x1", "mul const x1")
    asked = iter([False, True])
    fit_constants(population, DataSet.from_arrays(X, y), lambda: next(asked))
    np.testing.assert_allclose(population.constants[:, 0], [3.0, 1.0, 1.0], rtol=1e-5)


def test_a_part_of_a_population_is_fitted_in_place():
    X, y = data(lambda a, b: 3.0 * a)
    population = written("mul const x1", "mul const x1")
    fit_constants(population[:1], DataSet.from_arrays(X, y))
    np.testing.assert_allclose(population.constants[:, 0], [3.0, 7.0], rtol=1e-5)
