"""Every generator that comes with the package: it loads, reads its data, and speeds a search up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dgsr import DGSRRegressor, list_generators, load_generator
from dgsr.checkpoints import find_generator
from dgsr.exclusion import benchmark_exclusions
from dgsr.expressions import get_library
from dgsr.prior import Prior
from dgsr.validation import draw_validation_set, measure

pytestmark = pytest.mark.search

SHIPPED = {info.name: info for info in list_generators()}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_generator_is_shipped_for_koza_with_any_number_of_variables():
    assert {find_generator(get_library("koza", d), max_length=30) for d in (1, 2)} == {"koza-d2"}
    assert {find_generator(get_library("koza", d), max_length=30) for d in (3, 5, 6, 12)} == {"koza-d5"}
    assert find_generator(get_library("koza", 2), max_length=31) is None


def test_a_generator_is_shipped_for_synth_with_up_to_twelve_variables():
    assert {find_generator(get_library("synth", d), max_length=30) for d in (1, 2, 5, 12)} == {"synth-d12"}


@pytest.mark.parametrize("library", ["koza-const", "physics"])
def test_a_generator_is_shipped_for_constants_and_any_number_of_variables(library):
    names = {find_generator(get_library(library, d), max_length=30) for d in (1, 2, 5, 6, 12)}
    assert names == {f"{library}-d5"}


#: Least gains by the right data: nats over none, mean reward and top reward over another's, and hits.
BOUNDS = {
    "koza-d2": (5.0, 0.2, 0.3, 0.6),
    "koza-d5": (5.0, 0.15, 0.25, 0.5),
    "synth-d12": (5.0, 0.15, 0.25, 0.5),
    "koza-const-d5": (2.5, 0.05, 0.05, 0.1),
    "physics-d5": (2.0, 0.05, 0.04, 0.08),
}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_agrees_with_the_weights(name):
    generator, card = load_generator(name), SHIPPED[name].card
    assert card["name"] == name
    if not generator.library.has_constants:
        assert generator.config.target == "raw"
    assert card["n_parameters"] == generator.n_parameters()
    assert tuple(card["library"]["operators"]) == generator.library.operators
    assert card["library"]["n_variables"] == generator.library.n_variables
    assert card["equations_seen"] == card["steps_done"] * card["training"]["n_datasets"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_generator_reads_its_data(name):
    """On equations drawn with another seed than its own; the card's figures are on held-out ones."""
    generator, card = load_generator(name), SHIPPED[name].card
    excluded = benchmark_exclusions(generator.library)
    prior = Prior.default_for(generator.library, generator.library.n_variables)
    validation = draw_validation_set(generator, prior, excluded, 48, seed=12345)
    nats, reward, top_reward, hits = BOUNDS[name]
    measured = measure(generator, validation, n_programs=100, n_datasets=48)
    for figures in (measured, card["validation"]):
        assert figures["log_likelihood_right"] > figures["log_likelihood_none"] + nats
        assert figures["log_likelihood_none"] > figures["log_likelihood_wrong"]
        assert figures["reward_right"] > figures["reward_wrong"] + reward
        assert figures["top_reward_right"] > figures["top_reward_wrong"] + top_reward
        assert figures["hit_100"] > hits
        assert figures["hit_100"] > 2.0 * figures["hit_100_wrong"]


def test_shuffling_the_target_changes_what_is_sampled():
    generator = load_generator("koza-d2")
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 5.0, (20, 2))
    y = X[:, 0] / (2.0 + X[:, 1])
    own, other = (generator.sample(X, target, 200, random_state=0) for target in (y, rng.permutation(y)))
    assert own.rewards(X, y).mean() > other.rewards(X, y).mean() + 0.1


def test_the_search_takes_the_shipped_generator_and_needs_few_evaluations_with_it():
    X = np.random.default_rng(3).uniform(1.0, 5.0, (20, 2))
    y = X[:, 0] * X[:, 1] / (X[:, 0] + X[:, 1])
    regressor = DGSRRegressor("koza", random_state=0, max_evaluations=50_000).fit(X, y)
    assert regressor.generator_ == "koza-d2"
    assert regressor.stop_reason_ == "exact fit"
    assert regressor.n_evaluations_ < 5_000
