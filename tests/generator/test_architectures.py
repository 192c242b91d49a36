"""The architectures of the paper's ablations: an LSTM as decoder, and an encoder that knows rows by place."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch

from dgsr.data.dataset import DataSet
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import get_library
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.random import new_state
from dgsr.pretraining.config import PretrainingConfig
from dgsr.search.conditioned import ConditionedGenerator
from dgsr.search.config import SearchConfig

LIBRARY, CONSTRAINTS = get_library("koza", 2), Constraints()


@pytest.fixture(scope="module")
def architectures(benchmark):
    return benchmark("trainings")


def lively(kind):
    """A generator with weights as large as training makes them, so that everything shows in its output."""
    generator = kind.untrained(LIBRARY, CONFIGS["paper"], CONSTRAINTS, seed=0)
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in generator.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=noise) * 0.15)
    return generator.eval()


def data_sets(n, n_rows=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n_rows, 2)), rng.normal(size=(n, n_rows)) * np.arange(1, n + 1)[:, None]


@pytest.fixture(scope="module")
def lstm(architectures):
    return lively(architectures.LSTMGenerator)


def test_the_lstm_samples_valid_programs_with_the_log_probabilities_of_its_training_pass(lstm):
    encoding, grammar = lstm.encode(*data_sets(3), 2).detached(), lstm.grammar(2)
    samples = lstm.sample_encoded(encoding, 60, grammar, new_state(1))
    assert are_valid(samples.tokens, samples.lengths, grammar).all()
    assert samples.log_probs.std() > 1.0

    def scored(encoding):
        with torch.no_grad():
            return lstm.log_probs(encoding, samples.tokens, samples.lengths, grammar).programs.numpy().ravel()

    np.testing.assert_allclose(scored(encoding), samples.log_probs, atol=1e-4)
    wrong = scored(encoding.of(np.array([1, 2, 0])))
    assert (np.abs(wrong - samples.log_probs) > 1e-3).mean() > 0.9


def test_the_lstm_samples_a_program_as_often_as_its_probability_says(lstm):
    n = 4000
    encoding = lstm.encode(*data_sets(1), 2).detached()
    samples = lstm.sample_encoded(encoding, n, lstm.grammar(2), new_state(2))
    _, first, counts = np.unique(samples.tokens, axis=0, return_index=True, return_counts=True)
    most = np.argsort(-counts)[:2]
    expected = np.exp(samples.log_probs[first[most]])
    assert counts[most].min() > 100
    assert (np.abs(counts[most] / n - expected) < 4.0 * np.sqrt(expected / n)).all()


def test_a_seed_decides_what_the_lstm_samples(lstm):
    X, y = (values[0] for values in data_sets(1))
    first, again, other = (lstm.sample(X, y, 20, seed).tokens for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.slow
def test_refinement_makes_the_queue_likelier_under_a_copy_of_the_lstm(lstm):
    X, y = (values[0] for values in data_sets(1))
    data, grammar = DataSet.from_arrays(X, y), lstm.grammar(2)
    conditioned = ConditionedGenerator(lstm, data, LIBRARY, grammar, SearchConfig(objective="pqt"), seed=0)
    queue = lstm.sample(X, y, 5)

    def log_probs(generator):
        with torch.no_grad():
            return generator.log_probs(conditioned.encoding, queue.tokens, queue.lengths, grammar).programs

    before = log_probs(lstm)
    for _ in range(5):
        conditioned.refine(queue, queue, np.ones(5), 0, lambda: False)
    assert log_probs(conditioned.generator).mean() > before.mean() + 0.01
    torch.testing.assert_close(log_probs(lstm), before)


def test_the_order_of_the_rows_matters_to_the_plain_transformer_alone(architectures):
    X, y = data_sets(2)
    order = np.random.default_rng(1).permutation(X.shape[1])
    for kind, depends in ((Generator, False), (architectures.PlainGenerator, True)):
        generator = lively(kind)
        with torch.no_grad():
            before, after = (
                generator.encode(X[:, rows], y[:, rows], 2).latents for rows in (np.arange(len(order)), order)
            )
        assert ((after - before).abs().max() > 1e-2) == depends
        assert before.shape == (2, 1, CONFIGS["paper"].encoder_width)


def test_training_with_two_variables_has_five_places_and_tables_of_two_columns(architectures):
    trainer = architectures.trainer_of(architectures.ABLATIONS["two-variables"])
    assert trainer.generator.library.n_variables == 5
    batches = [trainer.stream[number] for number in range(6)]
    assert {batch.n_variables for batch in batches} == {1, 2}
    assert all(batch.drawn.X.shape[2] == 5 and not batch.drawn.X[:, :, 2:].any() for batch in batches)
    assert any(batch.drawn.X[:, :, 1].all() for batch in batches)


@pytest.mark.slow
def test_a_training_goes_on_from_its_file(architectures, monkeypatch, tmp_path):
    small = PretrainingConfig(n_datasets=4, n_groups=1)
    monkeypatch.setitem(architectures.PRETRAINING_CONFIGS, "base", small)
    first = architectures.train_architecture("lstm", 0.001, tmp_path)
    assert first.step > 0
    again = architectures.train_architecture("lstm", 0.001, tmp_path)
    assert again.step == first.step
    for name, tensor in first.generator.state_dict().items():
        assert torch.equal(tensor, again.generator.state_dict()[name])


@pytest.mark.slow
def test_finished_measurements_are_kept_and_those_of_a_shorter_training_replaced(
    architectures, monkeypatch, tmp_path, capsys
):
    steps, measured = [3], []

    def train_architecture(name, minutes, work):
        trainer = architectures.trainer_of(architectures.ABLATIONS[name])
        trainer.step = steps[0]
        return trainer

    def figures(generator, d, n_equations):
        measured.append((type(generator).__name__, d))
        names = [f"log_likelihood_{given}" for given in ("right", "wrong", "none")]
        return dict.fromkeys(
            [*names, "valid", "hit_1", "hit_10", "hit_100", "hit_1000", "hit_100_wrong"], 0.5
        )

    def evaluations(generator, problem, seed):
        return 50 if problem.name == "Feynman-1" else architectures.BUDGET

    for function in (train_architecture, figures, evaluations):
        monkeypatch.setattr(architectures, function.__name__, function)
    monkeypatch.setattr(architectures, "SETS", ("feynman_d2",))
    out = tmp_path / "rows.json"
    for now in (3, 3, 4):
        steps[0] = now
        monkeypatch.setattr(
            sys, "argv", ["trainings.py", "architectures", "lstm", "plain", "--out", str(out)]
        )
        architectures.main()
    once = [(kind, d) for kind in ("LSTMGenerator", "PlainGenerator") for d in (2, 5)]
    assert measured == 2 * once
    assert {row["steps"] for row in json.loads(out.read_text(encoding="utf-8")).values()} == {4}
    assert "3 of 21 runs, evaluations of these 50, of all 257150" in capsys.readouterr().out
