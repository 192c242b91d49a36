"""Fitting the constants of programs, against scipy on the same forms."""

from __future__ import annotations

import numpy as np
import pytest
from bfgs import fit_constants as fitted_by_bfgs
from scipy.optimize import curve_fit, least_squares

from dgsr.constants.fitting import fit_constants
from dgsr.constants.scaling import written_out
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Constraints, Expression, get_library
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population

pytestmark = pytest.mark.search

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


def unscaled(population, dataset):
    """The compiled fit of the programs as they stand."""
    return fit_constants(
        population, dataset, scaled=False, n_iterations=100, second_start=True, precision=1e-12
    ).nmse


FITTERS = pytest.mark.parametrize("fit", [unscaled, fitted_by_bfgs], ids=["compiled", "BFGS"])


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


@FITTERS
@pytest.mark.parametrize(("program", "function", "truth"), FORMS.values(), ids=FORMS)
def test_the_constants_behind_exact_data_are_found(program, function, truth, fit):
    X, _ = data(np.add)
    y = function(X.T, *truth) if program != "const" else 2.5 + np.linspace(-1, 1, len(X))
    population = written(program)
    nmse = fit(population, DataSet.from_arrays(X, y))
    np.testing.assert_allclose(population.constants[0, : len(truth)], truth, rtol=2e-4)
    assert nmse[0] < (1e-7 if program != "const" else 1.0 + 1e-9)


@FITTERS
@pytest.mark.parametrize(("program", "function", "truth"), FORMS.values(), ids=FORMS)
def test_noisy_data_get_the_least_squares_constants(program, function, truth, fit):
    X, _ = data(np.add)
    y = function(X.T, *truth) + 0.1 * np.random.default_rng(1).normal(size=len(X))
    population = written(program)
    nmse = fit(population, DataSet.from_arrays(X, y))
    best, _ = curve_fit(function, X.T, y, p0=np.ones(len(truth)))
    least = np.mean((y - function(X.T, *best)) ** 2) / y.var()
    assert nmse[0] == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(population.constants[0, : len(best)], best, rtol=1e-3)


@FITTERS
def test_the_nmse_is_that_of_the_fitted_population(fit):
    X, y = data(lambda a, b: a * b)
    population = written("mul const x1", "x2", "add const mul const x2", "log sub const x1")
    reported = fit(population, DataSet.from_arrays(X, y))
    np.testing.assert_allclose(reported, population.nmse(X, y), rtol=1e-9, atol=1e-25)
    assert np.isfinite(reported[:3]).all()


@FITTERS
def test_a_fit_is_never_worse_than_constants_of_one(fit):
    X, y = data(lambda a, b: np.sin(9.0 * a) + b)
    programs = ["sin mul const x1", "exp exp mul const x1", "log sub const x1", "div const sub x1 const"]
    ones = written(*programs)
    ones.constants[:] = 1.0
    assert (fit(written(*programs), DataSet.from_arrays(X, y)) <= ones.nmse(X, y)).all()


@FITTERS
def test_a_part_of_a_population_is_fitted_in_place(fit):
    X, y = data(lambda a, b: 3.0 * a)
    population = written("mul const x1", "mul const x1")
    fit(population[:1], DataSet.from_arrays(X, y))
    np.testing.assert_allclose(population.constants[:, 0], [3.0, 7.0], rtol=1e-5)


# The compiled fit ---------------------------------------------------------------------------------


def random_programs(n, seed, library=LIBRARY, max_length=20):
    """Random programs that have constants."""
    grammar = Constraints(max_length=max_length).grammar(library)
    population = random_population(4 * n + 50, library, grammar, new_state(seed))
    has_constants = (population.tokens == library.index["const"]).any(axis=1)
    return population[np.flatnonzero(has_constants)[:n]]


@pytest.mark.slow
def test_as_many_programs_reach_the_best_loss_as_with_scipy():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (40, 2))
    y = np.exp(-X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=40)
    programs = random_programs(120, 7)
    starts = programs.constants.copy()
    ours = fit_constants(programs, DataSet.from_arrays(X, y), n_iterations=100, precision=1e-9)
    theirs = np.full(len(programs), np.inf)
    for i, start in enumerate(starts):
        program = programs[i : i + 1]

        def residuals(values, program=program):
            program.constants[0] = values[:3]
            residual = y - (values[3] * program.predict(X)[0] + values[4])
            return np.where(np.isfinite(residual), residual, 1e6)

        begin = np.concatenate([start, np.polyfit(X[:, 0], y, 1)])
        theirs[i] = 2 * least_squares(residuals, begin, x_scale="jac", max_nfev=100).cost / len(y) / y.var()
    defined = np.isfinite(ours.nmse) & (theirs < 1.5)
    best = np.minimum(ours.nmse, theirs)
    ours_best, theirs_best = (a[defined] <= 1.001 * best[defined] for a in (ours.nmse, theirs))
    assert defined.sum() > 90
    assert ours_best.sum() >= 0.95 * theirs_best.sum()  # more, but where a fit ends is a matter of rounding
    assert ours_best.mean() > 0.8


def test_slope_and_intercept_are_those_of_a_linear_regression():
    X, _ = data(np.add)
    y = np.random.default_rng(2).normal(3.0, 5.0, len(X))
    weight = np.random.default_rng(3).uniform(0.1, 2.0, len(X))
    population = random_programs(50, 1)
    fit = fit_constants(population, DataSet.from_arrays(X, y, weight), n_iterations=0)
    for values, nmse, slope, intercept in zip(population.predict(X), *fit):
        if not np.isfinite(values).all():
            assert nmse == np.inf
        elif np.ptp(values) > 1e-3 * np.abs(values).max():
            expected = np.polyfit(values, y, 1, w=np.sqrt(weight))
            np.testing.assert_allclose([slope, intercept], expected, rtol=1e-6, atol=1e-9)
            residual = y - slope * values - intercept
            mean = np.average(y, weights=weight)
            variance = np.average((y - mean) ** 2, weights=weight)
            assert nmse == pytest.approx(np.average(residual**2, weights=weight) / variance, rel=1e-9)


def test_a_function_that_varies_by_rounding_alone_explains_nothing():
    X, y = data(lambda a, b: a)
    constant = written("add x1 sub const x1", "sub x1 x1", "mul const sub x2 x2")
    fit = fit_constants(constant, DataSet.from_arrays(X, y), n_iterations=5)
    np.testing.assert_allclose(fit.nmse, 1.0)
    np.testing.assert_array_equal(fit.slope, 0.0)


@pytest.mark.parametrize("factor", [1e-12, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_scale_and_offset_of_y_do_not_matter(factor, offset):
    X, y = data(lambda a, b: b / (0.75 + a))
    program = "div x2 add const x1"
    one, other = written(program), written(program)
    fit_constants(one, DataSet.from_arrays(X, y))
    fit = fit_constants(other, DataSet.from_arrays(X, factor * (y + offset)))
    np.testing.assert_allclose(other.constants[0, 0], 0.75, rtol=1e-6)
    np.testing.assert_allclose(one.constants[0, 0], 0.75, rtol=1e-10)
    assert fit.slope[0] == pytest.approx(factor, rel=1e-6)


def test_constants_that_are_not_free_stay():
    X, y = data(lambda a, b: 3.0 * a + 2.0)
    population = written("add mul const x1 const", "add mul const x1 const")
    free = np.array([[True, False, False], [False, True, True]])
    fit_constants(population, DataSet.from_arrays(X, y), scaled=False, free=free)
    assert population.constants[0, 1] == population.constants[1, 0] == 7.0
    assert population.constants[0, 0] == pytest.approx(np.sum((y - 7.0) * X[:, 0]) / np.sum(X[:, 0] ** 2))
    assert population.constants[1, 1] == pytest.approx(np.mean(y - 7.0 * X[:, 0]))


@pytest.mark.parametrize("second_start", [False, True])
def test_tied_constants_are_one_unknown(second_start):
    X, y = data(lambda a, b: np.exp(-0.7 * a) - np.exp(-0.7 * b) + 0.3 * a)
    population = written("add sub exp mul const x1 exp mul const x2 mul const x1", max_constants=4)
    population.constants[0] = [1.0, 1.0, 2.0, 1.0]
    ties = np.array([[5, 5, -1, -1]])
    fit = fit_constants(
        population,
        DataSet.from_arrays(X, y),
        scaled=False,
        ties=ties,
        n_iterations=100,
        second_start=second_start,
        precision=1e-12,
    )

    def residuals(c):
        return y - (np.exp(c * X[:, 0]) - np.exp(c * X[:, 1]) + 2.0 * X[:, 0])

    reference = least_squares(residuals, [1.0], xtol=1e-14, ftol=1e-14)
    assert population.constants[0, 0] == population.constants[0, 1]
    assert population.constants[0, 0] == pytest.approx(reference.x[0], rel=1e-4)
    assert population.constants[0, 2] == 2.0
    assert fit.nmse[0] * len(y) * np.var(y) == pytest.approx(2.0 * reference.cost, rel=1e-8)


def test_a_second_start_helps_where_the_first_is_undefined():
    X, y = data(lambda a, b: np.log(a + 0.5))
    begun_badly = written("log add const x1")
    begun_badly.constants[:] = -9.0
    dataset = DataSet.from_arrays(X, y)
    copy = Population(LIBRARY, begun_badly.tokens, begun_badly.lengths, begun_badly.constants.copy())
    assert fit_constants(copy, dataset).nmse[0] == np.inf
    assert fit_constants(begun_badly, dataset, second_start=True).nmse[0] < 1e-20
    assert begun_badly.constants[0, 0] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "start", "stop", "constants"),
    [
        ("cos(sqrt(1.7*x1))", 0.0, 5.0, [1.0]),  # the root has no slope at 0
        ("cos((1.7*x1)**0.7)", 0.0, 5.0, [1.0, 0.6]),
        ("arcsin(x1**1.7)", 0.0, 1.0, [1.0]),
        ("x1**4 + exp(1.7*x1)", -1.0, 1.0, [4.0, 1.0]),  # no derivative by the exponent at negative numbers
    ],
)
def test_rows_without_a_derivative_do_not_stop_the_fit(text, start, stop, constants):
    physics = get_library("physics", 1)
    truth = Expression.from_text(text, physics)
    x = np.linspace(start, stop, 41)[:, None]
    dataset = DataSet.from_arrays(x, truth(x))
    population = Population.from_expressions([truth])
    population.constants[0, : len(constants)] = constants
    fit = fit_constants(population, dataset, scaled=False, n_iterations=100, precision=1e-12)
    assert fit.nmse[0] < 1e-20


def test_a_weight_of_two_is_two_rows():
    X, _ = data(np.add)
    y = np.random.default_rng(0).normal(size=len(X))
    weight = np.arange(len(X)) % 3
    one, other = random_programs(30, 5), random_programs(30, 5)
    weighted = fit_constants(one, DataSet.from_arrays(X, y, weight), n_iterations=3)
    repeated = DataSet.from_arrays(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    fit = fit_constants(other, repeated, n_iterations=3)
    np.testing.assert_allclose(weighted.nmse, fit.nmse, rtol=1e-6)


def test_many_rows_are_read_in_blocks():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (1001, 2))
    y = X[:, 1] / (0.75 + X[:, 0]) + 2.0
    population = written("div x2 add const x1")
    assert fit_constants(population, DataSet.from_arrays(X, y)).nmse[0] < 1e-24
    assert population.constants[0, 0] == pytest.approx(0.75)


def test_the_written_out_variants_have_the_losses_they_say():
    X, y = data(lambda a, b: 3.0 * a * b)
    programs = written("mul x1 x2", "sin mul const x1")
    dataset = DataSet.from_arrays(X, y)
    variants, nmse = written_out(programs, fit_constants(programs, dataset), dataset)
    np.testing.assert_allclose(nmse, variants.nmse(dataset), rtol=1e-9, atol=1e-25)
    texts = [str(variants[i]) for i in range(0, 8, 2)]
    assert texts[1].endswith("x1*x2")
    assert texts[1].startswith(("3", "2.99"))
    assert nmse[2] < 1e-25 < nmse[0]  # 3*x1*x2, x1*x2


@pytest.mark.parametrize("rate", [0.3, 2.4])
def test_the_best_of_many_starting_points_leads_to_the_rate_of_a_wave(rate):
    X, y = data(lambda a, b: 3.0 * np.sin(rate * a) + 0.0 * b)
    dataset, programs = DataSet.from_arrays(X, y), ["sin mul const x1"] * 30
    one = fit_constants(written(*programs), dataset, n_iterations=10)
    assert (one.nmse > 0.01).all()  # from 7.0 on
    found = written(*programs)  # each has starting points of its own
    is_found = fit_constants(found, dataset, n_iterations=10, second_start=True).nmse < 1e-20
    assert is_found.mean() > 0.8
    np.testing.assert_allclose(np.abs(found.constants[is_found, 0]), rate)


def test_the_best_starting_points_are_taken_in_a_program_of_free_and_of_fixed_constants():
    X, y = data(lambda a, b: np.exp(-2.0 * a) + 0.0 * b)
    population = written("exp add mul const x1 const")
    population.constants[0] = [1.0, 5.0, 5.0]
    free = np.array([[True, False, False]])
    fit = fit_constants(population, DataSet.from_arrays(X, y), free=free, n_iterations=10, second_start=True)
    assert fit.nmse[0] < 1e-20
    assert population.constants[0, 1] == 5.0
    assert population.constants[0, 0] == pytest.approx(-2.0)


def test_rows_without_weight_are_not_among_the_few_on_which_starts_are_compared():
    X, y = data(lambda a, b: np.exp(-2.0 * a) + 0.0 * b)
    weight = np.zeros(len(X))
    weight[[1, 5, 6, 30, 47]] = 1.0
    y[weight == 0.0] = 1e6
    population = written("exp mul const x1")
    assert fit_constants(population, DataSet.from_arrays(X, y, weight), second_start=True).nmse[0] < 1e-20
    assert population.constants[0, 0] == pytest.approx(-2.0)
