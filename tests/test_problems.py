"""The benchmark problems: complete, evaluable and reproducible."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy

from dgsr.expressions import PRESETS
from dgsr.expressions.symbolic import to_sympy
from dgsr.problems import list_sets, load_problem, load_set

SIZES = {
    "nguyen": 12, "nguyen_c": 5, "r": 6, "livermore": 22, "feynman_d2": 7, "feynman_d5": 8,
    "feynman_additional": 32, "synthetic_d12": 7, "srbench_feynman": 119, "strogatz": 14,
}  # fmt: skip


def test_sets_have_their_published_sizes():
    assert {name: len(load_set(name)) for name in list_sets()} == SIZES


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
    for set_name in ("srbench_feynman", "strogatz"):
        for problem in load_set(set_name):
            symbols = {symbol.name for symbol in to_sympy(problem.truth).free_symbols}
            assert symbols <= set(problem.variable_names), problem.name


def test_a_problem_survives_pickling_and_is_hashable():
    problem = load_problem("feynman_I_12_1")
    copy = pickle.loads(pickle.dumps(problem))
    assert copy == problem
    assert len({copy, problem}) == 1
