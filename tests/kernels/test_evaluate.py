"""The compiled interpreter against plain numpy and against 50-digit arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.expressions.programs.library import get_library
from dgsr.kernels.evaluate import BLOCK, predictions, squared_errors


def without_infinite(function, *which):
    """`function`, but NaN where one of these arguments is not finite: x/inf and exp(-inf) are not 0."""

    def checked(*arguments):
        return function(*arguments) + sum(0.0 * arguments[i] for i in which)

    return checked


NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": without_infinite(np.divide, 1),
    "exp": without_infinite(np.exp, 0), "log": np.log, "sin": np.sin, "cos": np.cos,
    "sqrt": np.sqrt, "square": np.square, "cube": lambda a: a * a * a, "neg": np.negative,
    "pow": without_infinite(np.power, 0, 1), "inv": without_infinite(lambda a: 1.0 / a, 0),
    "tanh": without_infinite(np.tanh, 0), "abs": np.abs, "arcsin": np.arcsin, "arccos": np.arccos,
}  # fmt: skip
EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b, "exp": mpmath.exp, "log": mpmath.log, "sin": mpmath.sin, "cos": mpmath.cos,
    "sqrt": mpmath.sqrt, "square": lambda a: a * a, "cube": lambda a: a * a * a, "pow": mpmath.power,
    "neg": lambda a: -a, "inv": lambda a: 1 / a, "tanh": mpmath.tanh, "abs": abs,
    "arcsin": mpmath.asin, "arccos": mpmath.acos,
}  # fmt: skip

# In the paper's order of complexity c(f_i).
COMPLEXITY = {"add": 1, "sub": 1, "mul": 1, "div": 2, "sin": 3, "cos": 3, "exp": 4, "log": 4}
BINARY = ("add", "sub", "mul", "div", "pow")


def test_an_infinite_value_on_the_way_does_not_vanish():
    library = get_library("koza", 1)
    population = written(library, "div x1 log sub x1 x1", "exp log sub x1 x1", "div x1 x1")
    assert np.isnan(population.predict([[2.0]])[:2]).all()
    assert list(population.nmse([[2.0], [3.0]], [0.0, 1.0]))[:2] == [np.inf, np.inf]
    assert population.predict([[2.0]])[2, 0] == 1.0


def names_of(population, b):
    return [population.library.tokens[t].name for t in population.tokens[b, : population.lengths[b]]]


def evaluate(names, constants, variables, operators):
    """Recursive reading from the left, the opposite of how the kernel reads."""
    words, numbers = iter(names), iter(constants)

    def value():
        name = next(words)
        if name == "const":
            return next(numbers)
        if name.startswith("x"):
            return variables[int(name[1:]) - 1]
        arity = 2 if name in BINARY else 1
        return operators[name](*[value() for _ in range(arity)])

    return value()


def noisy(rng):
    """NUMPY, each result off by some units in the last place, and NaN where it has lost places.

    Below 1e-307 are the denormal floats, of which our exp makes 0: log(exp(-739)) is -inf then. Beyond 1e12
    sines and cosines have lost so many places that draws of the noise may not show it: exp(x/cos(1e37)) is
    0 for half of them.
    """

    def disturbed(function):
        def call(*arguments):
            result = function(*arguments)
            if function in (NUMPY["sin"], NUMPY["cos"]):
                result = np.where(np.abs(arguments[0]) > 1e12, np.nan, result)
            result = np.where((np.abs(result) < 1e-307) & (result != 0.0), np.nan, result)
            return result * (1.0 + rng.uniform(-2e-15, 2e-15, np.shape(result)))

        return call

    return {name: disturbed(function) for name, function in NUMPY.items()}


def by_numpy(population, X, operators=NUMPY):
    with np.errstate(all="ignore"):
        rows = [
            evaluate(names_of(population, b), population.constants[b], X.T, operators)
            for b in range(len(population))
        ]
    return np.array([np.broadcast_to(row, len(X)) for row in rows])


def written(library, *programs, constants=None, width=None):
    width = width or max(len(program.split()) for program in programs)
    tokens = np.zeros((len(programs), width), dtype=np.int64)
    for b, program in enumerate(programs):
        ids = [library.index[name] for name in program.split()]
        tokens[b, : len(ids)] = ids
    lengths = np.array([len(program.split()) for program in programs])
    return Population(
        library, tokens, lengths, np.ones((len(programs), 3)) if constants is None else np.array(constants)
    )


def random_population(preset, n, seed, n_leaves=6, n_variables=3):
    """Trees of up to `n_leaves` leaves, whatever the constraints say of them; at most 3 constants."""
    library, rng = get_library(preset, n_variables), np.random.default_rng(seed)
    binary = [name for name in library.operators if name in BINARY]
    unary = [name for name in library.operators if name not in binary]
    leaves = [f"x{i + 1}" for i in range(n_variables)] + ["const"] * library.has_constants

    def grow(n):
        if unary and rng.random() < 0.3:
            return [str(rng.choice(unary)), *grow(n)]
        if n == 1:
            return [str(rng.choice(leaves))]
        left = int(rng.integers(1, n))
        return [str(rng.choice(binary)), *grow(left), *grow(n - left)]

    programs = []
    while len(programs) < n:
        program = grow(int(rng.integers(1, n_leaves + 1)))
        if program.count("const") <= 3:
            programs.append(" ".join(program))
    return written(library, *programs, constants=rng.normal(size=(n, 3)))


def assert_same_values(actual, expected, **tolerance):
    assert (np.isnan(actual) == np.isnan(expected)).all()
    np.testing.assert_allclose(actual, expected, **tolerance)


@pytest.mark.parametrize("preset", ["koza", "koza-const", "synth", "physics"])
def test_predictions_agree_with_fifty_digits_wherever_double_precision_can(preset):
    population = random_population(preset, 250, seed=1)
    X = np.random.default_rng(0).uniform(0.3, 2.0, (3, 3))
    predicted, plain = population.predict(X), by_numpy(population, X)
    compared = 0
    with mpmath.workdps(50):
        for b in range(len(population)):
            constants = [mpmath.mpf(c) for c in population.constants[b]]
            for j, row in enumerate(X):
                try:
                    variables = [mpmath.mpf(v) for v in row]
                    exact = evaluate(names_of(population, b), constants, variables, EXACT)
                except ZeroDivisionError:
                    continue
                if isinstance(exact, mpmath.mpc) or not 1e-290 < abs(exact) < 1e290:
                    continue
                if abs(mpmath.mpf(plain[b, j]) / exact - 1) < 1e-12:
                    compared += 1
                    assert abs(predicted[b, j] / exact - 1) < 1e-10
    assert compared > 300


@settings(max_examples=60, deadline=None)
@example(preset="koza", seed=384, rows=211, scale=50.0)
@given(
    preset=st.sampled_from(["koza", "koza-const", "synth", "physics"]),
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 2 * BLOCK + 3),
    scale=st.sampled_from([1.0, 50.0]),
)
def test_predictions_equal_plain_numpy(preset, seed, rows, scale):
    population = random_population(preset, 20, seed, n_leaves=4)
    X = np.random.default_rng(seed).uniform(-scale, scale, (rows, 3))
    predicted, plain = population.predict(X), by_numpy(population, X)
    with np.errstate(all="ignore"):
        # Where an error in the last places on the way shows, as in sin(exp(256)), two right answers differ.
        moved = [by_numpy(population, X, noisy(np.random.default_rng(k))) for k in range(4)]
        sure = np.logical_and.reduce([np.abs(m - plain) <= 1e-11 * np.abs(plain) for m in moved])
    sure &= np.isfinite(plain) & (np.abs(plain) > 1e-200)
    np.testing.assert_allclose(predicted[sure], plain[sure], rtol=1e-9)
    assert sure.any() or not np.isfinite(plain).all()


def test_special_values_go_the_way_of_ieee_arithmetic():
    library = get_library("physics", 2)
    population = written(
        library,
        *(f"{name} x1 x2" if name in BINARY else f"{name} x1" for name in library.operators),
        "exp mul x1 x2", "sub div x1 x2 div x1 x2", "exp log x1",
        "sin div x1 x2", "exp sub log x1 x2", "div x1 div x2 x1", "add x1 mul x2 x2",
    )  # fmt: skip
    values = [0.0, -0.0, 1.0, -1.0, 1e200, -1e200, 1e-320, np.inf, -np.inf, np.nan]
    X = np.array([[a, b] for a in values for b in values])
    # The sign of a zero may be lost on the way, and with it that of an infinite quotient; what exp
    # gives below 1e-307 is 0.
    actual, expected = (
        np.where(np.isinf(v), np.inf, v) for v in (population.predict(X), by_numpy(population, X))
    )
    n = len(library.operators)
    assert_same_values(actual[:n], expected[:n], rtol=1e-14, atol=1e-307)
    # exp(log(1e200)) has 460 times the rounding of the logarithm, the last digit of which is the library's.
    assert_same_values(actual[n:], expected[n:], rtol=2e-13, atol=1e-307)


def test_constants_are_taken_from_left_to_right():
    library = get_library("koza-const", 1)
    programs = ["sub const sub x1 const", "div add const x1 mul x1 sub const const"]
    # The second has constant children only, which no kernel needs to refuse.
    population = written(library, *programs, constants=[[10.0, 3.0, 99.0], [1.0, 7.0, 4.0]])
    X = np.array([[1.0], [2.0]])
    expected = [[10 - (1 - 3), 10 - (2 - 3)], [(1 + 1) / (1 * 3), (1 + 2) / (2 * 3)]]
    np.testing.assert_allclose(population.predict(X), expected)


@pytest.mark.parametrize("n_rows", [1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17])
def test_any_number_of_rows_gives_each_row_its_own_value(n_rows):
    population = random_population("koza-const", 60, seed=5)
    X = np.random.default_rng(2).uniform(0.5, 2.0, (n_rows, 3))
    together = population.predict(X)
    one_by_one = np.concatenate([population.predict(row[None]) for row in X], axis=1)
    assert_same_values(together, one_by_one, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("n_rows", [20, 3 * BLOCK + 17])
def test_squared_errors_are_those_of_the_predictions(n_rows):
    population = random_population("koza-const", 200, seed=3)
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-2.0, 2.0, (n_rows, 3)), rng.normal(size=n_rows)
    data, table = DataSet.from_arrays(X, y), population.library.table
    errors = squared_errors(population.arrays, table, data)
    predicted = predictions(population.arrays, table, data.columns)
    with np.errstate(all="ignore"):
        expected = ((y - predicted) ** 2).sum(axis=1)
    expected[~np.isfinite(expected)] = np.inf
    assert np.isinf(expected).any()
    assert np.isfinite(expected).sum() > 50
    np.testing.assert_allclose(errors, expected, rtol=1e-12)


@pytest.mark.parametrize("bad_row", [0, 5, BLOCK, 2 * BLOCK + 1])
@pytest.mark.parametrize("program", ["log x1", "div x1 x1", "exp mul x1 x1"])
def test_one_row_that_does_not_evaluate_makes_a_program_invalid(bad_row, program):
    library = get_library("koza", 1)
    X = np.linspace(1.0, 2.0, 2 * BLOCK + 2)[:, None]
    population = written(library, program, "x1")
    y = X[:, 0] + 1.0
    assert np.isfinite(population.nmse(X, y)).all()
    X[bad_row] = {"log x1": -1.0, "div x1 x1": 0.0, "exp mul x1 x1": 1e3}[program]
    assert population.nmse(X, y)[0] == np.inf
    assert rewards_of(population.nmse(X, y))[0] == 0.0
    assert np.isfinite(population.nmse(X, y)[1])


def test_nmse_divides_the_mean_squared_error_by_the_variance_of_y():
    population = written(get_library("koza", 2), "x1", "add x1 x2", "mul x1 x2")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(3.0, 7.0, 300)
    expected = [np.mean((y - p) ** 2) / np.var(y) for p in (X[:, 0], X.sum(axis=1), X.prod(axis=1))]
    np.testing.assert_allclose(population.nmse(X, y), expected, rtol=1e-12)
    np.testing.assert_allclose(rewards_of(population.nmse(X, y)), 1 / (1 + np.array(expected)), rtol=1e-12)
    np.testing.assert_array_equal(population.nmse(X, y), population.nmse(DataSet.from_arrays(X, y)))


def test_the_true_program_has_the_highest_reward():
    population = random_population("koza", 100, seed=8)
    X = np.random.default_rng(1).uniform(1.0, 3.0, (30, 3))
    for b in range(len(population)):
        y = population[b : b + 1].predict(X)[0]
        if np.isfinite(y).all() and np.abs(y).max() < 1e100 and y.std() > 1e-9:
            rewards = rewards_of(population.nmse(X, y))
            assert rewards[b] == 1.0
            assert ((rewards >= 0.0) & (rewards <= 1.0)).all()


def test_complexity_is_the_sum_over_the_tokens_of_the_paper_and_not_of_the_padding():
    population = random_population("koza-const", 100, seed=4)
    expected = [sum(COMPLEXITY.get(name, 1) for name in names_of(population, b)) for b in range(100)]
    assert [population[b].complexity for b in range(100)] == expected
    columns = np.arange(population.tokens.shape[1])
    padded = np.where(columns < population.lengths[:, None], population.tokens, 4)
    garbled = Population(population.library, padded, population.lengths, population.constants)
    assert [garbled[b].complexity for b in range(100)] == expected
