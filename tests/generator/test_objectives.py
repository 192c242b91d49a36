"""Each loss against its formula, written out in loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.generator import objectives
from dgsr.generator.objectives import Baseline

shapes = {"seed": st.integers(0, 2**31), "d": st.integers(1, 4), "k": st.integers(2, 30)}


def batch(seed, d, k):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(-rng.exponential(5.0, (d, k))).requires_grad_(), torch.from_numpy(
        rng.random((d, k))
    )


@settings(max_examples=30, deadline=None)
@given(**shapes, baseline=st.floats(-1, 1))
def test_vanilla_policy_gradient_is_its_formula(seed, d, k, baseline):
    log_probs, rewards = batch(seed, d, k)
    loss = objectives.vanilla_policy_gradient(log_probs, rewards, baseline)
    given_log_probs, given_rewards = log_probs.tolist(), rewards.tolist()
    expected = sum(
        -(given_rewards[j][i] - baseline) * given_log_probs[j][i] for j in range(d) for i in range(k)
    )
    assert loss.item() == pytest.approx(expected / (d * k), abs=1e-9)
    loss.backward()
    # A step down the loss makes programs above the baseline likelier and the others less so.
    assert (torch.sign(-log_probs.grad) == torch.sign(rewards - baseline)).all()


def test_a_baseline_of_each_data_set_is_that_data_sets():
    log_probs, rewards = batch(0, 2, 3)
    baseline = torch.tensor([[0.1], [0.9]])
    loss = objectives.vanilla_policy_gradient(log_probs, rewards, baseline)
    parts = [
        objectives.vanilla_policy_gradient(log_probs[j : j + 1], rewards[j : j + 1], float(baseline[j, 0]))
        for j in range(2)
    ]
    assert loss.item() == pytest.approx(sum(parts).item() / 2, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(**shapes, epsilon=st.sampled_from([0.02, 0.1, 0.5, 0.9]))
def test_risk_seeking_policy_gradient_is_its_formula_over_the_top_share(seed, d, k, epsilon):
    log_probs, rewards = batch(seed, d, k)
    loss = objectives.risk_seeking_policy_gradient(log_probs, rewards, epsilon)
    expected = 0.0
    for j in range(d):
        quantile = np.quantile(rewards[j].numpy(), 1 - epsilon)
        for i in range(k):
            if rewards[j, i] > quantile:
                expected -= (rewards[j, i].item() - quantile) * log_probs[j, i].item() / (epsilon * k * d)
    assert loss.item() == pytest.approx(expected, abs=1e-9)
    loss.backward()
    used = log_probs.grad != 0
    assert (log_probs.grad <= 0).all()
    for j in range(d):
        n_used = int(used[j].sum())
        assert 1 <= n_used <= math.ceil(epsilon * k)
        best = torch.argsort(rewards[j], descending=True)[:n_used]
        assert set(best.tolist()) == set(torch.nonzero(used[j]).ravel().tolist())


def test_each_data_set_is_compared_with_its_own_quantile():
    """A data set all of whose rewards are low still trains on its best."""
    log_probs, _ = batch(0, 2, 10)
    rewards = torch.stack([torch.linspace(0.0, 0.1, 10), torch.linspace(0.8, 0.9, 10)]).double()
    objectives.risk_seeking_policy_gradient(log_probs, rewards, 0.2).backward()
    torch.testing.assert_close(log_probs.grad[0], log_probs.grad[1])
    assert (log_probs.grad[:, -2:] < 0).all()
    assert (log_probs.grad[:, :7] == 0).all()


@settings(max_examples=20, deadline=None)
@given(**shapes)
def test_priority_queue_training_makes_every_program_of_the_queue_likelier(seed, d, k):
    log_probs, _ = batch(seed, d, k)
    loss = objectives.priority_queue_training(log_probs)
    assert loss.item() == pytest.approx(-np.mean(log_probs.detach().numpy()))
    loss.backward()
    torch.testing.assert_close(log_probs.grad, torch.full((d, k), -1.0 / (d * k), dtype=torch.float64))


def test_the_baseline_is_the_moving_average_of_the_paper():
    """b_t = alpha E[R] + (1 - alpha) b_(t-1), the first batch setting it."""
    baseline = Baseline(alpha=0.3)
    assert baseline.update(torch.tensor([[0.2, 0.4]])) == pytest.approx(0.3)
    assert baseline.update(torch.tensor([[1.0], [0.8]])) == pytest.approx(0.3 * 0.9 + 0.7 * 0.3)
    assert baseline.update(torch.zeros(2, 2)) == pytest.approx(0.7 * (0.3 * 0.9 + 0.7 * 0.3))
    assert baseline.value == pytest.approx(0.7 * 0.48)


def test_an_average_of_weight_one_is_the_newest_batch():
    baseline = Baseline(alpha=1.0, value=5.0)
    assert baseline.update(torch.tensor([0.25])) == 0.25


@settings(max_examples=20, deadline=None)
@given(**shapes, decay=st.sampled_from([0.5, 0.7, 1.0]))
def test_hierarchical_entropy_weights_the_early_choices_most(seed, d, k, decay):
    entropies = torch.from_numpy(np.random.default_rng(seed).random((d, k, 6))).requires_grad_()
    value = objectives.hierarchical_entropy(entropies, decay)
    expected = np.mean(
        [sum(decay**t * entropies[j, i, t].item() for t in range(6)) for j in range(d) for i in range(k)]
    )
    assert value.item() == pytest.approx(expected, rel=1e-5)
    value.backward()
    gradient = entropies.grad[0, 0]
    assert (gradient > 0).all()
    assert torch.allclose(gradient[1:] / gradient[:-1], torch.full((5,), decay).double(), rtol=1e-5)
