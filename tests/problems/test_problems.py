"""The benchmark problems: complete, evaluable and reproducible."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections import Counter
from importlib import resources

import numpy as np
import pytest
import sympy

from dgsr.expressions import PRESETS, get_library
from dgsr.expressions.exports.symbolic import to_sympy
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.trees import rename
from dgsr.kernels.canonical import skeletons
from dgsr.pretraining.rewriting import rewriting
from dgsr.problems import list_sets, load_problem, load_set
from dgsr.problems.problem import Problem, Variable, read_table

SIZES = {
    "nguyen": 12, "nguyen_c": 5, "r": 6, "livermore": 22, "feynman_d2": 7, "feynman_d5": 8,
    "feynman_additional": 32, "synthetic_d12": 7, "srbench_feynman": 119, "strogatz": 14, "laws": 60,
}  # fmt: skip


def test_sets_have_their_published_sizes():
    assert {name: len(load_set(name)) for name in list_sets()} == SIZES


def test_the_intervals_of_a_table_are_those_of_its_rows():
    for problem in load_set("strogatz"):
        table = read_table(problem.data_file)
        assert len(table) == problem.n_samples
        for variable, column in zip(problem.variables, table[:, :-1].T, strict=True):
            assert (variable.low, variable.high) == (column.min(), column.max())


@pytest.mark.parametrize("set_name", SIZES)
def test_every_truth_explains_its_data(set_name):
    for problem in load_set(set_name):
        sample = problem.sample(5)
        assert all(np.isfinite(array).all() for array in sample), problem.name
        assert sample.X_train.shape == (len(sample.y_train), problem.n_variables)
        # The targets of the Strogatz tables were computed elsewhere.
        assert np.allclose(problem.target(sample.X_test), sample.y_test, rtol=1e-9), problem.name
        assert np.ptp(sample.y_train) > 0, problem.name
        assert problem.library in PRESETS
        low = np.array([variable.low for variable in problem.variables])
        high = np.array([variable.high for variable in problem.variables])
        assert ((sample.X_train >= low) & (sample.X_train <= high)).all(), problem.name


@pytest.mark.parametrize("name", ["Nguyen-1", "R-1*", "feynman_I_12_1", "strogatz_lv1", "Synthetic-3"])
def test_the_same_seed_gives_the_same_data_and_another_does_not(name):
    problem = load_problem(name)
    first, again, other = problem.sample(1), problem.sample(1), problem.sample(2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert np.array_equal(first.X_train, other.X_train) == (problem.sampling == "even")
    sequence = np.random.SeedSequence(1)
    assert np.array_equal(problem.sample(sequence).X_train, first.X_train)
    assert np.array_equal(problem.sample(sequence).X_train, first.X_train)


def test_uniform_training_and_test_rows_differ_and_even_ones_are_the_same():
    uniform, even = load_problem("Livermore-1").sample(0), load_problem("R-1*").sample(0)
    assert uniform.X_train.shape == uniform.X_test.shape == (1000, 1)
    assert not np.isin(uniform.X_train, uniform.X_test).any()
    assert np.array_equal(even.X_train, even.X_test)
    assert np.allclose(np.diff(even.X_train[:, 0]), 20 / 19)


@pytest.mark.parametrize(("name", "n_rows"), [("feynman_I_12_1", 10_000), ("strogatz_vdp1", 400)])
def test_srbench_rows_are_divided_75_to_25_without_overlap(name, n_rows):
    sample = load_problem(name).sample(0)
    assert (len(sample.y_train), len(sample.y_test)) == (n_rows * 3 // 4, n_rows // 4)
    rows = np.vstack([sample.X_train, sample.X_test])
    assert len(np.unique(rows, axis=0)) == n_rows


def test_noise_disturbs_the_training_target_only():
    problem = load_problem("feynman_I_12_1")
    clean, noisy = problem.sample(0), problem.sample(0, noise=0.1)
    assert np.array_equal(clean.X_train, noisy.X_train)
    assert np.array_equal(clean.y_test, noisy.y_test)
    level = np.std(noisy.y_train - clean.y_train) / np.sqrt(np.mean(clean.y_train**2))
    assert level == pytest.approx(0.1, rel=0.05)


def test_names_are_found_in_any_case_and_unique():
    names = [problem.name.lower() for name in list_sets() for problem in load_set(name)]
    assert len(set(names)) == len(names) == sum(SIZES.values())
    assert load_problem("nguyen-12") is load_problem("NGUYEN-12")
    assert load_problem("FEYNMAN_i_12_1").name == "feynman_I_12_1"


def test_an_unknown_name_is_answered_with_close_ones():
    with pytest.raises(ValueError, match="did you mean Nguyen-1"):
        load_problem("Nguyn-1")
    with pytest.raises(ValueError, match="choose from nguyen, nguyen_c"):
        load_set("Nguyen")


def test_lengths_and_published_rates_are_the_papers():
    assert load_problem("Nguyen-1").max_length == 30
    assert load_problem("Synthetic-1").max_length == 256
    assert load_problem("Feynman-8").paper_recovery == {"DGSR": 0, "NGGP": 0, "GP": 0}
    assert load_problem("Nguyen-1c").library == "koza-const"
    assert load_problem("Synthetic-1").library == "synth"


def test_names_that_sympy_has_constants_for_stay_variables():
    problem = load_problem("feynman_II_13_17")
    assert "I" in problem.variable_names
    assert sympy.Symbol("I") in to_sympy(problem.truth).free_symbols
    for set_name in ("srbench_feynman", "strogatz", "laws"):
        for problem in load_set(set_name):
            symbols = {symbol.name for symbol in to_sympy(problem.truth).free_symbols}
            assert symbols <= set(problem.variable_names), problem.name


def test_a_problem_survives_pickling_and_is_hashable():
    problem = load_problem("feynman_I_12_1")
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert len({copy, problem}) == 1


# The laws of textbooks.


def test_laws_name_their_book_and_section_and_are_as_many_in_every_field():
    text = (resources.files("dgsr.problems") / "data" / "laws.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert Counter(entry["field"] for entry in content["problems"]) == dict.fromkeys(
        ("chemistry", "biology", "engineering", "economics"), 15
    )
    titles = {field: book["title"] for field, book in content["meta"]["books"].items()}
    for entry in content["problems"]:
        assert entry["book"] == titles[entry["field"]], entry["name"]
        assert entry["section"], entry["name"]


def test_every_law_is_finite_and_varies_on_five_seeds_and_fits_the_library():
    for law in load_set("laws"):
        for seed in range(5):
            sample = law.sample(seed)
            assert sample.X_train.shape == (200, law.n_variables)
            assert sample.X_test.shape == (1000, law.n_variables)
            for y in (sample.y_train, sample.y_test):
                assert np.isfinite(y).all(), law.name
                assert np.ptp(y) > 1e-3 * np.abs(y).max(), law.name
        tree = rename(law.truth, {name: f"x{i + 1}" for i, name in enumerate(law.variable_names)})
        tokens, _ = to_program(tree, get_library(law.library, law.n_variables))
        assert len(tokens) <= law.max_length, law.name
        # Every input changes the value.
        X = np.tile(law.sample(0).X_train[:1], (3, 1))
        for column, variable in enumerate(law.variables):
            moved = X.copy()
            moved[:, column] = variable.low + np.array([0.2, 0.5, 0.7]) * (variable.high - variable.low)
            assert np.ptp(law.target(moved)) > 0.0, (law.name, variable.name)


def test_wide_positive_intervals_are_drawn_log_uniformly_and_others_uniformly():
    variables = (Variable("a", 0.01, 100.0), Variable("b", 1.0, 3.0), Variable("c", -1.0, 9.0))
    problem = Problem("p", "laws", "a+b+c", variables, 4000, "log-uniform", "physics", n_test=7)
    X = problem.sample(0).X_train
    assert X.min(axis=0) == pytest.approx([0.01, 1.0, -1.0], abs=0.01)
    assert np.median(np.log(X[:, 0])) == pytest.approx(0.0, abs=0.3)
    assert np.median(X[:, 1:], axis=0) == pytest.approx([2.0, 4.0], abs=0.3)
    assert len(problem.sample(0).y_test) == 7


def _up_to_scale_and_offset(values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return (values - values[..., :1]) / (values[..., 1:2] - values[..., :1])


def _values(problem: Problem, orders: list[tuple[int, ...]]) -> np.ndarray:
    points = np.random.default_rng(3).uniform(1.2, 2.8, (12, 8))
    with np.errstate(all="ignore"):
        return np.array([problem.target(points[list(order)].T) for order in orders])


def _skeletons(problem: Problem, orders: list[tuple[int, ...]]) -> set[int]:
    library = get_library("physics", problem.n_variables)
    tree = rename(problem.truth, {name: f"x{i + 1}" for i, name in enumerate(problem.variable_names)})
    try:
        tokens, constants = to_program(tree, library)
    except ValueError:  # cot, which the library lacks
        return set()
    first, n = library.first_variable, len(orders)
    renamed = np.hstack([np.tile(np.arange(first), (n, 1)), first + np.array(orders)])  # (n, n tokens)
    rows = np.ascontiguousarray(renamed[:, tokens])
    values = np.tile(np.append(constants, 1.0), (n, 1))
    lengths = np.full(n, len(tokens))
    return set(skeletons(rows, lengths, values, library.table.arity, rewriting(library), True).tolist())


def _is_same(one: Problem, other: Problem) -> bool:
    """Whether two problems agree up to scale and offset or in their skeleton, in any order of variables."""
    d = one.n_variables
    if d != other.n_variables:
        return False
    stated = [tuple(range(d))]
    orders = list(itertools.permutations(range(d))) if math.factorial(d) <= 5040 else stated
    ours, theirs = (_up_to_scale_and_offset(_values(*of)) for of in ((one, stated), (other, orders)))
    if np.isclose(theirs, ours, rtol=1e-7, atol=1e-9).all(axis=1).any():
        return True
    return bool(_skeletons(one, stated) & _skeletons(other, orders))


@pytest.mark.parametrize(
    ("expression", "same_as"),
    [
        ("3*b/a+2", "Feynman-5"),
        ("b*a**2", "Feynman-3"),
        ("5*b-7*a*b-b**2", "strogatz_lv1"),
        ("2.5*log(b/a)", None),
        ("5*b-7*a*b-a**3/3", None),
    ],
)
def test_the_comparison_of_laws_sees_other_names_factors_and_offsets(expression, same_as):
    variables = (Variable("a", 1.0, 2.0), Variable("b", 1.0, 2.0))
    law = Problem("p", "laws", expression, variables, 9, "uniform", "physics")
    sets = ("feynman_d2", "srbench_feynman", "strogatz")
    found = {problem.name for name in sets for problem in load_set(name) if _is_same(law, problem)}
    assert same_as in found if same_as else not found


@pytest.mark.slow
def test_no_law_is_in_another_set_or_twice():
    laws = load_set("laws")
    others = [problem for name in list_sets() if name != "laws" for problem in load_set(name)]
    for i, law in enumerate(laws):
        found = [problem.name for problem in (*others, *laws[:i]) if _is_same(law, problem)]
        assert not found, law.name
