"""Every generator that comes with the package: it loads, reads its data, and speeds a search up."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dgsr import DGSRRegressor, list_generators, load_generator
from dgsr.data.population import rewards_of
from dgsr.expressions import get_library
from dgsr.generator.checkpoints import CARD, WEIGHTS
from dgsr.generator.choice import find_generator
from dgsr.generator.config import CONFIGS
from dgsr.pretraining.conditioning_gap import draw_validation_set, measure
from dgsr.pretraining.decontamination import benchmark_decontamination
from dgsr.pretraining.prior import Prior
from searches import log_prob

GOLDEN = Path(__file__).parents[1] / "data" / "log_probs.json"
TOLERANCE = 1e-4
pytestmark = pytest.mark.search

SHIPPED = {info.name: info for info in list_generators()}


@pytest.mark.parametrize(
    ("library", "name"),
    [("koza", "koza-d12"), ("synth", "koza-d12"), ("koza-const", "physics-d16"), ("physics", "physics-d16")],
)
def test_a_generator_is_shipped_for_every_preset_with_any_number_of_variables(library, name):
    assert {find_generator(get_library(library, d)) for d in (1, 2, 5, 6, 12, 40)} == {name}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_preset_has_the_sizes_of_the_shipped_generators(name):
    config = load_generator(name).config
    assert replace(config, target="raw") == CONFIGS["large"]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_weights_have_a_digest_which_a_flipped_bit_does_not_fit(name, tmp_path):
    content = bytearray((SHIPPED[name].path / WEIGHTS).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / WEIGHTS).write_bytes(content)
    (tmp_path / CARD).write_text(json.dumps(SHIPPED[name].card))
    with pytest.raises(ValueError, match=r"is damaged .*it is not the file whose digest card\.json has"):
        load_generator(tmp_path)


#: Least gains by the right data: nats over none, mean reward and top reward over another's, and hits. They
#: are somewhat more than half of what the cards say.
BOUNDS = {"koza-d12": (5.0, 0.15, 0.25, 0.2), "physics-d16": (5.0, 0.15, 0.15, 0.2)}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_card_agrees_with_the_weights(name):
    generator, card = load_generator(name), SHIPPED[name].card
    assert card["name"] == name
    assert card["n_parameters"] == generator.n_parameters()
    assert tuple(card["library"]["operators"]) == generator.library.operators
    assert card["library"]["n_variables"] == generator.library.n_variables
    assert card["equations_seen"] == card["steps_done"] * card["training"]["n_datasets"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_the_generator_reads_its_data(name):
    """On equations drawn with another seed than its own; the card's figures are on held-out ones."""
    generator, card = load_generator(name), SHIPPED[name].card
    excluded = benchmark_decontamination(generator.library)
    n_variables = min(generator.library.n_variables, card["training"].get("usual_columns", 16))
    prior = Prior.varied_for(generator.library, n_variables)
    validation = draw_validation_set(generator, prior, excluded, 48, 12345, n_variables)
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
    generator = load_generator("koza-d12")
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 5.0, (20, 2))
    y = X[:, 0] / (2.0 + X[:, 1])
    own, other = (generator.sample(X, target, 200, random_state=0) for target in (y, rng.permutation(y)))
    assert rewards_of(own.nmse(X, y)).mean() > rewards_of(other.nmse(X, y)).mean() + 0.1


def test_a_generator_without_constants_reads_the_scale_of_the_target():
    """A law times three is another program there."""
    generator = load_generator("koza-d12")
    assert not generator.library.has_constants
    X = np.random.default_rng(0).uniform(1.0, 5.0, (20, 2))
    y = X[:, 0] / (2.0 + X[:, 1])
    drawn = generator.sample(X, y, 100)
    assert np.abs(log_prob(generator, drawn, X, y) - log_prob(generator, drawn, X, 3.0 * y)).mean() > 1.0


def test_the_search_takes_the_shipped_generator_and_needs_few_evaluations_with_it():
    """Without the exact search, which would find the law before it."""
    X = np.random.default_rng(3).uniform(1.0, 5.0, (20, 2))
    y = X[:, 0] * X[:, 1] / (X[:, 0] + X[:, 1])
    regressor = DGSRRegressor("koza", look_up=False, random_state=0, max_evaluations=50_000).fit(X, y)
    assert regressor.generator_ == "koza-d12"
    assert regressor.stop_reason_ == "exact fit"
    assert regressor.n_evaluations_ < 5_000


def data_set(kind, n_columns):
    """A data set of fractions of powers of two, which are the same on any processor.

    Nowhere is a number 1, or two columns equal, or a column and the target: logarithms of what is left would
    else jump from processor to processor, as would quotients.
    """
    i, j = np.arange(100)[:, None], np.arange(n_columns)
    X = 33 / 64 + (i * (7 + 4 * j) + 3 * j) % 101 / 32 + j / 1024  # between 0.5 and 3.7, never 1
    noise = (2 * ((5 * i**3 + 11 * i + 7) % 103) - 103)[:, 0] / 32 + 1 / 4096  # between -3.3 and 3.3
    targets = {
        "noise": lambda: noise,  # explained by nothing
        "law": lambda: X[:, 0] * X[:, 1] + X[:, 0],
        "five": lambda: np.full(100, 5.0),
        "half": lambda: np.full(100, -0.5),
    }
    return X, targets[kind]()


def population(generator, programs):
    tokens = np.zeros((len(programs), generator.constraints.max_length), dtype=np.int64)
    for row, program in zip(tokens, programs, strict=True):
        names = program.split()
        row[: len(names)] = [generator.library.index[name] for name in names]
    return generator.population(tokens, np.array([len(program.split()) for program in programs]))


def log_probs(generator, golden):
    """Log-probabilities of the programs of each data set in `golden`, in its form."""
    found = {}
    for kind, by_columns in golden.items():
        found[kind] = {}
        for n_columns, programs in by_columns.items():
            X, y = data_set(kind, int(n_columns))
            values = log_prob(generator, population(generator, programs), X, y)
            found[kind][n_columns] = dict(zip(programs, values.tolist(), strict=True))
    return found


def largest_difference(found, golden):
    """Of log-probabilities in the form of `golden`."""
    return max(
        abs(found[kind][n_columns][program] - value)
        for kind, by_columns in golden.items()
        for n_columns, programs in by_columns.items()
        for program, value in programs.items()
    )


@pytest.mark.parametrize("name", SHIPPED)
def test_log_probabilities_are_those_the_weights_were_shipped_with(name):
    """They hold what the weights mean: see `dgsr.generator.config.INPUT_LAYOUT`.

    ``python tests/generator/test_pretrained.py NAME`` writes those of one generator anew, for new weights.
    """
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert golden.keys() == SHIPPED.keys()
    assert largest_difference(log_probs(load_generator(name), golden[name]), golden[name]) < TOLERANCE


def weights_by_input(generator):
    """For each input, the weights whose column i reads its number i."""
    encoder, decoder = generator.encoder, generator.decoder
    return {
        "table": [encoder.table[0].weight],
        "column": [encoder.columns[0].weight],
        "pair of columns": [encoder.pairs[0].weight],
        "token": [decoder.tokens.weight.T, decoder.parents.weight.T, decoder.siblings.weight.T],
    }


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("part", ["table", "column", "pair of columns", "token"])
def test_log_probabilities_show_that_two_features_have_changed_places(part, name):
    generator = load_generator(name)
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))[name]
    with torch.no_grad():
        for weight in weights_by_input(generator)[part]:
            n = weight.shape[1]
            weight[:, [0, n // 2]] = weight[:, [n // 2, 0]]
    assert largest_difference(log_probs(generator, golden), golden) > 10 * TOLERANCE


if __name__ == "__main__":
    torch.set_num_threads(1)
    written = json.loads(GOLDEN.read_text(encoding="utf-8"))
    written |= {name: log_probs(load_generator(name), written[name]) for name in sys.argv[1:]}
    GOLDEN.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
