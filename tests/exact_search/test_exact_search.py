"""Exact search: against brute force, and against the values that what it finds must have."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.exact_search import ExactSolver, limits, stage_kernels
from dgsr.exact_search.bank import bank_of, choose_points, new_bank, values_of
from dgsr.exact_search.contexts import fill_hole, invert, n_contexts
from dgsr.exact_search.join import join
from dgsr.exact_search.limits import (
    CANDIDATES_OF_JOIN,
    CANDIDATES_OF_JOIN_IN_STAGE,
    FIRSTS_AT_ONCE,
    LARGE,
    N_POINTS,
    SMALL,
)
from dgsr.exact_search.stages import STAGES, find_law, task_of
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.inverses import invertible_operators, unary_operand
from dgsr.kernels.operators import COS, EXP, INV, LOG, SIN, SQUARE
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior
from searches import flat_regressor, with_own

pytestmark = pytest.mark.search

KOZA, PHYSICS = get_library("koza", 2), get_library("physics", 1)
ROWS = 40
# All stages together take ten seconds where they find nothing.
DEPTHS = pytest.mark.parametrize("stages", [STAGES[:9], pytest.param(STAGES, marks=pytest.mark.slow)])


def table(n_columns=2, seed=0, low=0.3, high=3.0):
    return np.random.default_rng(seed).uniform(low, high, (n_columns, ROWS))


def bank_at(columns, library=KOZA, size=SMALL):
    points = np.ascontiguousarray(columns[:, choose_points(columns)])
    return (large_bank if size == LARGE else bank_with)(library, points.shape, points.tobytes(), size)


def bank_with(library, shape, points, size):
    return bank_of(library, shape[0], size).at(np.frombuffer(points).reshape(shape))


# Many tests search the large bank of the same columns, which takes a tenth of a second to fill.
large_bank = lru_cache(maxsize=1)(bank_with)


def joined(library, y, columns, *, without=False, most=30):
    """Tokens of the simplest join that has the values y, None if there is none."""
    program = np.zeros(most, dtype=np.int64)
    remaining = np.array([CANDIDATES_OF_JOIN])
    bank = bank_at(columns, library)
    n = join(y[choose_points(columns)], bank, without, FIRSTS_AT_ONCE, remaining, program)
    return program[:n] if n else None


def length_found(stages, target, bank, program, accepts=lambda program, n: True):
    """Number of tokens of the law that stages find and write into `program`, however long they take."""
    return find_law(stages, target, bank, accepts, program, lambda: False, lambda n_examined: None)


def solved(library, y, columns, stages=STAGES[:1], size=None, most=30):
    """Tokens of the law behind y, None if there is none; one stage searches the small bank."""
    program = np.zeros(most, dtype=np.int64)
    bank = bank_at(columns, library, size or (LARGE if len(stages) > 1 else SMALL))
    with np.errstate(all="ignore"):
        data = DataSet.from_arrays(columns.T, y)
    solver = ExactSolver(library, data, Constraints(1, most).grammar(library))
    n = length_found(stages, y[choose_points(columns)], bank, program, solver._is_law)
    return program[:n] if n else None


def values(library, tokens, columns):
    program = Population(library, tokens[None], np.array([len(tokens)]), np.ones((1, 0)))
    return program.predict(columns.T)[0]


def bump(x):
    return np.exp(-x * x)


def names(library, tokens):
    return " ".join(library.tokens[t].name for t in tokens)


def test_the_bank_has_every_function_of_few_nodes():
    """All of at most two operators over a small library, by brute force."""
    library = Library("small", ("add", "mul", "sin"), False, 2)
    x1, x2 = columns = table()
    listed, points = bank_at(columns, library).semantics.values, choose_points(columns)
    of_one = [x1, x2]
    of_two = [np.sin(x) for x in of_one] + [x**k for x in of_one for k in (2, 3, 4, 5)]
    of_three = [f(a, b) for a, b in itertools.product(of_one, of_one) for f in (np.add, np.multiply)]
    of_three += [np.sin(x**k) for x in of_one for k in (2, 3, 4, 5)]
    for function in of_one + of_two + of_three:
        assert np.isclose(listed, function[points], rtol=1e-9).all(axis=1).any()


def test_no_two_of_the_bank_are_the_same_function():
    bank = bank_at(table())
    rounded = {tuple(np.round(row, 7)) for row in bank.semantics.values}
    assert len(rounded) > 0.995 * bank.n_kept  # but for such as differ by less


def test_every_program_of_the_bank_is_what_its_tokens_compute():
    """Written out, found by its value at the first point, and all its values: through the interpreter."""
    columns = table()
    bank, points = bank_at(columns), choose_points(columns)
    own = np.empty(N_POINTS)
    checked = 0
    for i in np.random.default_rng(1).choice(len(bank.token), 400, replace=False):
        values_of(bank.first[i], bank, own)
        if bank.opcode[i] in (SIN, COS) and np.abs(own).max() > 1e6:
            continue  # the cosine of 3e11 keeps six digits
        values_of(i, bank, own)
        size = np.abs(own)
        if bank.length[i] > 30 or not ((size > 1e-6) & (size < 1e6)).all():
            continue
        y = np.full(ROWS, np.nan)
        y[points] = own
        found = joined(KOZA, y, columns)
        np.testing.assert_allclose(values(KOZA, found, columns)[points], own, rtol=1e-6)
        assert len(found) <= max(bank.length[i], 12)
        checked += 1
    assert checked > 150


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda a, b: a, "x1"),
        (lambda a, b: np.exp(b) * np.sin(a), "mul exp x2 sin x1"),
        (lambda a, b: np.exp(a) - np.log(b) * a, "sub exp x1 mul x1 log x2"),
        (lambda a, b: np.log(a + np.exp(b)), "log add x1 exp x2"),
        (lambda a, b: (a + np.sin(b)) ** 2, "mul add x1 sin x2 add x1 sin x2"),
        (lambda a, b: (np.sin(a) - b) ** 3, "mul sub sin x1 x2 mul sub sin x1 x2 sub sin x1 x2"),
        (lambda a, b: a**5, "mul x1 mul x1 mul x1 mul x1 x1"),
        (lambda a, b: b / (a + b), "div x2 add x1 x2"),
        (lambda a, b: a * 0 + 3.0, "div add x1 add x1 x1 x1"),
    ],
)
def test_joins_that_are_found(function, text):
    columns = table()
    y = function(*columns)
    found = joined(KOZA, y, columns)
    np.testing.assert_allclose(values(KOZA, found, columns), y, rtol=1e-9)
    assert len(found) <= len(text.split())
    assert names(KOZA, joined(KOZA, columns[0], columns)) == "x1"


@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_what_is_under_a_sine_is_found_beyond_the_first_turn(function):
    x1, x2 = columns = table(low=1.0, high=3.0)
    for inside in (x1 * x2, x1 + x2**2, 5.0 * x1 - x2):
        assert np.abs(inside).max() > np.pi
        found = joined(KOZA, function(inside), columns)
        np.testing.assert_allclose(values(KOZA, found, columns), function(inside), atol=1e-9)
        assert joined(KOZA, function(inside), columns, without=True) is None


def test_more_is_found_in_contexts():
    x1, x2 = columns = table()
    for y in (np.exp(np.cos(np.exp(x1) - np.log(x2))), x1 + np.log(x2) * np.cos(x1 * x2)):
        assert solved(KOZA, y, columns) is None
        found = solved(KOZA, y, columns, STAGES)
        np.testing.assert_allclose(values(KOZA, found, columns), y, rtol=1e-7)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.log(np.cos((a + b) / np.exp(a))),  # after exp, which is nowhere negative
        lambda a, b: np.cos((a + b) / np.exp(a)) ** 2,  # after 1/x, which the library has not
        lambda a, b: np.log(np.cos(b + a * b)) ** 2,
    ],
)
def test_a_context_is_tried_whether_or_not_the_one_before_it_can_be_inverted(function):
    """In the first stage of contexts, where these laws are in one of them alone."""
    columns = table(low=0.1, high=0.7)
    y = function(*columns)
    program = np.zeros(30, dtype=np.int64)
    target, bank = y[choose_points(columns)], bank_at(columns, size=LARGE)
    n = length_found(STAGES[1:2], target, bank, program)
    assert n > 0
    np.testing.assert_allclose(values(KOZA, program[:n], columns), y, rtol=1e-9)


# The first stages, and later ones with an operator outside, with one inside, and with two contexts.
QUICK = (
    *(stage.name for stage in STAGES[:9]),
    "operator on a plain join in one context",
    "join in two short contexts",
    "sine of an operator on a join",
    "sine of an operator in a short context",
    "sine of an operator in a long context",
)


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(stage, id=stage.name, marks=() if stage.name in QUICK else pytest.mark.slow)
        for stage in STAGES
    ],
)
def test_a_stage_finds_its_example(stage):
    """Alone, and over columns that are the same for all."""
    columns = table(seed=3)
    functions = {name: getattr(np, name) for name in ("exp", "log", "sin", "cos")}
    y = eval(stage.example, functions | {"x1": columns[0], "x2": columns[1]})
    found = solved(KOZA, y, columns, [stage], size=LARGE)
    np.testing.assert_allclose(values(KOZA, found, columns), y, rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda a, b: np.exp(a) * np.cos(b) / (b**2 + np.sin(a)), 0.3, 3.0),  # wide join
        # One context of three nodes.
        pytest.param(
            lambda a, b: a * b - np.log(a + b) + np.exp(b / a) * a, 0.3, 3.0, marks=pytest.mark.slow
        ),
        (lambda a, b: np.sin(a + b + 1 + 1 / b), 0.3, 3.0),  # a context inside a sine
        (lambda a, b: 2 * a + np.cos((b - 1 / a) ** 2), 0.3, 3.0),  # around it
        pytest.param(
            lambda a, b: np.exp(np.sin(a**3 + b**2 - b / (a + 1))), 0.3, 2.0, marks=pytest.mark.slow
        ),
        pytest.param(
            lambda a, b: np.sin(2 * a - 4 * b) ** 2, 2.0, 6.0, marks=pytest.mark.slow
        ),  # either sign
        (lambda a, b: a - np.log(np.exp(b) + a * b**2), 0.3, 2.0),
    ],
)
def test_what_all_stages_find(function, low, high):
    columns = table(seed=3, low=low, high=high)
    y = function(*columns)
    found = solved(KOZA, y, columns, STAGES)
    np.testing.assert_allclose(values(KOZA, found, columns), y, rtol=1e-6, atol=1e-9)


def test_what_the_constraints_forbid_is_passed_over():
    """Found before the law is the logarithm of an exponential, which nothing may write."""
    x1, x2 = columns = table(low=1.0, high=4.9)
    y = np.cos(np.exp(x2)) * np.cos(x1 + x1**2)
    found = solved(KOZA, y, columns, STAGES)
    assert are_valid(found[None], np.array([len(found)]), Constraints(1, 30).grammar(KOZA)).all()
    np.testing.assert_allclose(values(KOZA, found, columns), y, rtol=1e-7)


@pytest.mark.slow
def test_stage_by_stage_finds_what_all_at_once_do():
    columns = table(low=0.1, high=0.9)
    data = DataSet.from_arrays(columns.T, np.cos(4.0 * np.exp(columns[0]) + 4.0) - columns.sum(axis=0) ** 2)
    at_once = solved(KOZA, data.y, columns, STAGES)
    solver = ExactSolver(KOZA, data, Constraints(1, 30).grammar(KOZA))
    found_by = [solver.solve(stage) for stage in range(solver.n_stages)]
    first = next(found for found in found_by if len(found))
    assert not len(found_by[0])
    assert first.tokens[0, : first.lengths[0]].tolist() == list(at_once)
    assert first.nmse(data)[0] < 1e-20


def alike(n_columns=2):
    """Columns at whose rows most subprograms have one of a few values."""
    return 1.0 + np.random.default_rng(0).integers(0, 3, (n_columns, ROWS)) * np.finfo(float).eps


@pytest.mark.parametrize("columns", [np.ones((2, ROWS)), 1e-69 * table(), alike()])
def test_of_many_subprograms_with_one_value_the_simplest_few_are_found(columns):
    bank = bank_at(columns)
    slots, at_first = bank.semantics.slots, bank.semantics.at_first
    found = np.sort(slots[slots >= 0])
    _, n_alike = np.unique(at_first[found].view(np.int64) >> 32, return_counts=True)
    assert n_alike.max() == 16
    assert 0 in found  # x1
    others = np.setdiff1d(np.arange(len(bank.token)), found)
    usual = np.isfinite(at_first[others]) & (at_first[others] != 0.0)
    assert not (usual & (np.abs(at_first[others]) < 1e100)).any()


def test_many_joins_together_cost_no_more_than_they_may():
    columns = alike()
    bank, program = bank_at(columns), np.zeros(30, dtype=np.int64)
    rng = np.random.default_rng(0)
    remaining = np.array([CANDIDATES_OF_JOIN])
    for _ in range(200):
        target = rng.integers(1, 9) + rng.integers(0, 3, N_POINTS) * np.finfo(float).eps
        join(target, bank, False, FIRSTS_AT_ONCE, remaining, program)
    assert -100_000 < remaining[0] <= 0
    target = (columns[0] * columns[1] + columns[0])[choose_points(columns)]
    assert join(target, bank, False, FIRSTS_AT_ONCE, remaining, program) == 0
    assert join(target, bank, False, FIRSTS_AT_ONCE, np.array([CANDIDATES_OF_JOIN]), program) > 0


def examined_by_calls(stage, target, bank):
    """Number of candidates that each call of a stage examines."""
    progress, task = stage_kernels.new_progress(), task_of(stage, bank)
    program, calls, goes_on = np.zeros(30, dtype=np.int64), [], True
    while goes_on:
        before = progress[stage_kernels.REMAINING]
        goes_on = stage_kernels.go_on(task, progress, target, bank, program)
        calls.append(before - progress[stage_kernels.REMAINING])
    return calls


@pytest.mark.slow
def test_a_stage_on_columns_that_are_all_alike_is_as_long_as_any():
    """A call of a stage ends after a tenth of a second or so, a stage after a second."""
    target = np.random.default_rng(0).integers(0, 3, N_POINTS).astype(float)
    for stage in STAGES[2:4]:
        calls = examined_by_calls(stage, target, bank_at(alike()))
        assert sum(calls) < limits.MOST_CANDIDATES_OF_STAGE + 1.5 * CANDIDATES_OF_JOIN_IN_STAGE
        assert max(calls) < limits.CANDIDATES_AT_ONCE + 1.5 * CANDIDATES_OF_JOIN_IN_STAGE


@pytest.mark.parametrize("n_asked", [1, 3, 12])
def test_a_stage_ends_when_it_is_asked_to(n_asked):
    columns, asked = table(), []

    def should_stop():
        asked.append(True)
        return len(asked) == n_asked

    target = np.sin(np.random.default_rng(0).normal(size=ROWS))[choose_points(columns)]
    program, examined = np.zeros(30, dtype=np.int64), []
    arguments = STAGES, target, bank_at(columns), lambda program, n: True, program, should_stop
    assert find_law(*arguments, examined.append) == 0
    assert len(asked) == n_asked
    # The first stage is never asked; a stage that was asked once had no time to examine a candidate.
    assert examined[0] > 0
    assert (sum(examined) > examined[0]) == (n_asked > 1)


def test_a_bank_that_is_enumerated_in_parts_is_the_same(monkeypatch):
    at_once = new_bank(KOZA, 1024)
    monkeypatch.setattr(limits, "ENUMERATED_AT_ONCE", 7)
    in_parts = new_bank(KOZA, 1024)
    for name in set(at_once._fields) - {"semantics"}:
        np.testing.assert_array_equal(getattr(at_once, name), getattr(in_parts, name))


@pytest.mark.slow
@DEPTHS
def test_noise_has_no_law(stages):
    y = np.sin(np.random.default_rng(0).normal(size=ROWS))
    assert solved(KOZA, y, table(), stages) is None


def test_contexts_are_inverted():
    """Every context there is, over values of either sign."""
    bank = bank_at(table(), size=LARGE)
    inside = np.random.default_rng(2).normal(size=N_POINTS)
    whole, again = np.empty(N_POINTS), np.empty(N_POINTS)
    found, expected = [], []
    for context in range(n_contexts(40, bank)):
        fill_hole(context, bank, inside, whole)
        if not np.isfinite(whole).all() or not invert(context, bank, whole, again):
            continue
        even = len(bank.unary) <= context < n_contexts(0, bank) and np.all(whole >= 0.0)
        found.append(again.copy())
        expected.append(np.abs(inside) if even else inside)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert len(found) > 200


@pytest.mark.parametrize(
    "name", ["exp", "log", "sin", "cos", "sqrt", "square", "cube", "inv", "neg", "tanh", "arcsin", "arccos"]
)
def test_taking_an_operator_off_its_values_leaves_the_operand(name):
    columns = table(1, low=0.05, high=0.95)
    y = values(PHYSICS, np.array([PHYSICS.index[name], PHYSICS.index["x1"]]), columns)
    found = np.empty(ROWS)
    assert unary_operand(PHYSICS.table.opcode[PHYSICS.index[name]], y, found)
    np.testing.assert_allclose(found, columns[0], rtol=1e-9)


def test_values_that_an_operator_never_has_are_those_of_no_operand():
    y = np.array([-1.5, -0.5, 0.5, 1.5])
    inverses = {"sin": np.arcsin, "cos": np.arccos, "tanh": np.arctanh, "square": np.sqrt}
    found = np.empty(len(y))
    for name, inverse in inverses.items():
        unary_operand(PHYSICS.table.opcode[PHYSICS.index[name]], y, found)
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(found, inverse(y), rtol=1e-9)
        assert np.isnan(found[0])
    unary_operand(EXP, y, found)  # the sum of logarithms that a product has, whatever its sign
    np.testing.assert_allclose(found, np.log(np.abs(y)))


def test_an_operator_of_the_users_own_has_no_inverse():
    library = with_own(KOZA, "bump", bump)
    opcode = library.table.opcode[library.index["bump"]]
    found = np.zeros(ROWS)
    assert not unary_operand(opcode, table(1)[0], found)
    assert np.isnan(found).all()


def test_invertible_operators_are_the_librarys_and_two_more():
    assert invertible_operators(KOZA.table.opcode).tolist() == [EXP, LOG, SIN, COS, INV]
    own = Library("own", ("add", "square"), False, 1)
    assert invertible_operators(own.table.opcode).tolist() == [EXP, SQUARE, INV]


@pytest.mark.slow
@DEPTHS
def test_inverting_a_context_may_not_drown_the_rest(stages):
    """y - f of an enormous f is f again to all its digits, whatever y is."""
    columns = table(low=3.0, high=4.0)
    y = np.random.default_rng(5).normal(size=ROWS)
    assert solved(KOZA, y, columns, stages) is None


def test_a_law_with_noise_is_not_found():
    columns = table()
    for seed in range(20):
        y = columns[0] + 1e-4 * np.random.default_rng(seed).normal(size=ROWS)
        assert solved(KOZA, y, columns) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_values_that_are_none_are_not_solved_for(bad):
    columns = table()
    y = columns[0].copy()
    y[first_row(columns)] = bad
    assert solved(KOZA, y, columns, STAGES) is None


def test_fewer_rows_than_points_are_not_solved_for():
    columns = table()[:, : N_POINTS - 1]
    solver = solver_of(columns, columns[0].copy())
    assert not any(len(solver.solve(stage)) for stage in range(solver.n_stages))
    near_miss = Population(KOZA, np.array([[KOZA.index["x2"]]]), np.array([1]), np.ones((1, 0)))
    assert len(solver.repair(near_miss)) == 0
    columns = table()[:, :N_POINTS]
    assert names(KOZA, joined(KOZA, columns[0].copy(), columns)) == "x1"


def test_a_join_has_room():
    columns = table()
    y = (columns[0] + np.sin(columns[1])) ** 4  # 19 tokens
    assert joined(KOZA, y, columns, most=18) is None
    assert len(joined(KOZA, y, columns, most=19)) == 19


def test_libraries_of_all_kinds():
    x1, x2 = columns = table()
    sums = Library("sums", ("add", "sub"), False, 2)
    found = joined(sums, x1 + x1 - x2, columns)
    np.testing.assert_allclose(values(sums, found, columns), x1 + x1 - x2)
    squares = Library("squares", ("square", "sqrt", "sub"), False, 2)
    y = np.sqrt((x1 - x2) ** 2)
    np.testing.assert_allclose(values(squares, joined(squares, y, columns), columns), y)
    own = with_own(Library("own", ("add",), False, 2), "bump", bump)
    assert names(own, joined(own, x1 + np.exp(-(x2**2)), columns)) == "add x1 bump x2"
    one = Library("one", ("sin",), False, 2)
    assert joined(one, x1 + x2, columns) is None


def test_columns_that_are_all_alike():
    columns = np.ones((2, ROWS))
    found = solved(KOZA, columns[0].copy(), columns, STAGES)
    np.testing.assert_allclose(values(KOZA, found, columns), 1.0)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 3))
@example(seed=377, d=1)  # x1 - exp(sin(x1) - exp(x1**4)) is x1 at most rows, and at the points
@example(seed=752, d=2)  # cos(exp(2*x1 - exp(x1))) is cos(exp(2*x1)/exp(exp(x1))) but where that overflows
@example(seed=104, d=2)  # the cosine of something large, written otherwise, has few of its digits
def test_what_is_found_is_right_at_all_rows(seed, d):
    """Of laws of the prior, whose values at the points may be those of another program too."""
    library, constraints = get_library("koza", d), Constraints(1, 30)
    drawn = Prior().draw(6, 100, d, library, constraints, new_state(seed))
    for X, y in zip(drawn.X[:, :30], drawn.y[:, :30], strict=True):
        found = solver_of(X.T, y, library, constraints).solve(0)
        for program in found.predict(X):
            assert np.mean((program - y) ** 2) <= limits.LAW_ERROR * np.mean(y**2)


def solver_of(columns, y, library=KOZA, constraints=None):
    data = DataSet.from_arrays(columns.T, y)
    return ExactSolver(library, data, (constraints or Constraints(1, 30)).grammar(library))


@pytest.mark.parametrize(
    ("text", "function"),
    [
        # One subtree is wrong, one of them under a sine beyond its first turn.
        ("add mul x1 exp x2 div x1 add x2 x2", lambda a, b: a * np.exp(b) + a / (b + np.log(a))),
        ("mul sin x1 exp sub x2 x1", lambda a, b: np.cos(a * b) * np.exp(b - a)),
        ("div exp x1 add x1 sin mul x2 x1", lambda a, b: np.exp(a) / (a + np.sin(b * a))),
        ("sub log x2 exp mul x1 x2", lambda a, b: np.log(b) - np.exp(a * b) * b),
    ],
)
def test_a_near_miss_is_repaired(text, function):
    columns = table(low=1.0, high=3.0)
    y = function(*columns)
    tokens = np.zeros((1, 30), dtype=np.int64)
    written = [KOZA.index[name] for name in text.split()]
    tokens[0, : len(written)] = written
    population = Population(KOZA, tokens, np.array([len(written)]), np.ones((1, 0)))
    repaired = solver_of(columns, y).repair(population)
    assert len(repaired) > 0
    nmse = repaired.nmse(DataSet.from_arrays(columns.T, y))
    assert nmse.min() < 1e-20
    assert (nmse < 1e-10).all()  # what is found is right
    assert len(solver_of(columns, y).repair(population, should_stop=lambda: True)) == 0


@pytest.mark.parametrize(
    ("operator", "function"),
    [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)],
)
@pytest.mark.parametrize("side", [1, 2])
def test_either_operand_is_repaired(operator, function, side):
    """The other one stays as it is."""
    x1, x2 = columns = table(low=1.5, high=3.0)
    y = function(np.log(x1), np.exp(x2))
    text = f"{operator} cos x2 exp x2" if side == 1 else f"{operator} log x1 sin x1"
    written = [KOZA.index[name] for name in text.split()]
    population = Population(KOZA, np.array([written + [0] * 25]), np.array([5]), np.ones((1, 0)))
    repaired = solver_of(columns, y).repair(population)
    found = [names(KOZA, repaired.tokens[b, : repaired.lengths[b]]) for b in range(len(repaired))]
    assert f"{operator} log x1 exp x2" in found
    assert (repaired.nmse(DataSet.from_arrays(columns.T, y)) < 1e-20).all()


@pytest.mark.slow
def test_what_is_found_meets_the_constraints():
    x1, x2 = columns = table()
    y = np.exp(x1) * x2 + x1
    everything = solver_of(columns, y).solve(1)
    assert everything.nmse(DataSet.from_arrays(columns.T, y))[0] < 1e-20
    shorter = Constraints(1, int(everything.lengths[0]) - 1)
    assert len(solver_of(columns, y, constraints=shorter).solve(1)) == 0
    for seed in range(3):
        random = Prior().draw(20, 30, 2, KOZA, Constraints(1, 20), new_state(seed)).programs
        found = solver_of(columns, np.sin(y), constraints=Constraints(1, 20)).repair(random)
        assert are_valid(found.tokens, found.lengths, Constraints(1, 20).grammar(KOZA)).all()


@pytest.mark.parametrize("generator", [None, "untrained"])
def test_a_law_that_is_solved_takes_one_evaluation(generator):
    X = np.random.default_rng(0).uniform(1.0, 3.0, (25, 3))
    y = X[:, 0] * np.exp(X[:, 1] / X[:, 2])
    settings = {"library": "koza", "generator": generator, "random_state": 0, "max_evaluations": 2_000}
    regressor = flat_regressor(**settings).fit(X, y)
    assert regressor.n_evaluations_ == 1
    assert regressor.stop_reason_ == "exact fit"
    np.testing.assert_allclose(regressor.predict(X), y, rtol=1e-9)
    assert flat_regressor(**settings, look_up=False).fit(X, y).n_evaluations_ > 1


def test_a_law_that_is_solved_at_length_takes_no_round():
    X = np.random.default_rng(0).uniform(1.0, 3.0, (25, 2))  # as in other tests, whose bank is there then
    y = X[:, 0] * (np.exp(X[:, 1] / X[:, 0]) - np.sin(X[:, 1]))
    settings = {"library": "koza", "generator": "untrained", "random_state": 0, "max_evaluations": 100_000}
    regressor = flat_regressor(**settings).fit(X, y)
    assert 1 < regressor.n_evaluations_ <= 51  # the glance at fifty samples came first
    np.testing.assert_allclose(regressor.predict(X), y, rtol=1e-9)


def test_a_table_that_begins_with_zeros_is_solved():
    columns = np.stack([np.linspace(0.0, 3.0, ROWS), np.linspace(0.0, 1.0, ROWS) ** 2])
    y = np.sin(columns[0] * columns[1]) + columns[0]
    np.testing.assert_allclose(values(KOZA, joined(KOZA, y, columns), columns), y, atol=1e-12)


def first_row(columns):
    return choose_points(columns)[0]


@settings(max_examples=30, deadline=None)
@given(n=st.integers(N_POINTS, 70), seed=st.integers(0, 10**6), zeros=st.booleans())
def test_points_are_rows_of_their_own(n, seed, zeros):
    columns = np.random.default_rng(seed).normal(size=(2, n)) * (0.0 if zeros else 3.0)
    rows = choose_points(columns)
    assert len(set(rows)) == N_POINTS
    assert ((rows >= 0) & (rows < n)).all()


def test_the_first_point_is_not_where_all_programs_meet():
    columns = np.ones((2, ROWS))
    columns[:, ROWS // 2 :] = 0.0
    columns[:, 7] = 0.7, 1.3
    assert first_row(columns) == 7


@pytest.mark.slow
def test_data_of_more_columns_than_the_bank_has_room_for():
    columns = np.random.default_rng(0).uniform(0.3, 3.0, (3000, ROWS))
    bank, program = bank_at(columns, get_library("koza", 3000), 1024), np.zeros(30, dtype=np.int64)
    assert len(bank.token) <= 1024
    points = columns[:, choose_points(columns)]
    assert length_found(STAGES, points[7] * points[3], bank, program) == 3
    assert length_found(STAGES, np.sin(points[2900]), bank, program) == 0
