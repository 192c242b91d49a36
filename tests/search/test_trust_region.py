"""Steps to a given divergence: how far they go, where to, and what stops them."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence

from dgsr.search import trust_region

pytestmark = pytest.mark.search

INPUTS = torch.linspace(-1.0, 1.0, 40).reshape(10, 4)


def networks(seed=0):
    torch.manual_seed(seed)
    pretrained = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 5))
    return pretrained, copy.deepcopy(pretrained)


def distribution(network):
    return Categorical(logits=network(INPUTS))


def divergence(pretrained, refined):
    """The exact divergence, by torch."""
    with torch.no_grad():
        return float(kl_divergence(distribution(pretrained), distribution(refined)).sum())


def one_step(pretrained, refined, target, bound=0.2):
    loss = -distribution(refined).log_prob(target).mean()
    refined.zero_grad()
    loss.backward()
    trust_region.step(refined, pretrained, lambda: divergence(pretrained, refined), bound)
    with torch.no_grad():
        return float(loss), float(-distribution(refined).log_prob(target).mean())


@pytest.mark.parametrize("bound", [0.01, 0.2])
def test_a_step_lowers_the_loss_and_ends_at_the_bound(bound):
    pretrained, refined = networks()
    before, after = one_step(pretrained, refined, torch.full((10,), 3), bound)
    assert after < before
    assert divergence(pretrained, refined) == pytest.approx(bound, rel=0.1)


def test_further_steps_turn_the_direction_and_stay_at_the_bound():
    pretrained, refined = networks()
    for _ in range(8):
        one_step(pretrained, refined, torch.full((10,), 3))
    other = torch.arange(10) % 2
    losses = [one_step(pretrained, refined, other)[1] for _ in range(8)]
    assert losses[-1] < losses[0]
    assert divergence(pretrained, refined) == pytest.approx(0.2, rel=0.1)


def test_gradients_that_are_not_finite_change_nothing():
    pretrained, refined = networks()
    for weight in refined.parameters():
        weight.grad = torch.full_like(weight, np.nan)
    trust_region.step(refined, pretrained, lambda: divergence(pretrained, refined), 0.2)
    assert all(map(torch.equal, refined.parameters(), pretrained.parameters()))


def test_half_the_mean_square_of_log_ratios_is_nearly_the_divergence():
    pretrained, refined = networks()
    one_step(pretrained, refined, torch.full((10,), 3), 0.02)
    torch.manual_seed(1)
    with torch.no_grad():
        samples = distribution(pretrained).sample((20_000,))
        ratios = [distribution(n).log_prob(samples).sum(1) for n in (refined, pretrained)]
    assert trust_region.divergence(ratios[0] - ratios[1]) == pytest.approx(0.02, rel=0.1)
