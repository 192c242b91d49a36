"""A step of training to a small divergence from the pre-trained decoder.

The best programs of a search that misses the law are near misses. Adam on them makes the law less likely by
tens of nats, and such a step along the gradient makes it a little more likely (docs/decisions.md).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

# Distance of the weights at which the first step begins, and estimates of the divergence that correct it. The
# divergence grows with the square of the distance, so two suffice.
_FIRST_DISTANCE, _N_ESTIMATES = 0.05, 2
# Largest factor by which an estimate may lengthen or shorten the distance.
_LARGEST_FACTOR = 10.0


@torch.no_grad()
def step(decoder: nn.Module, pretrained: nn.Module, divergence: Callable[[], float], bound: float) -> None:
    """Move a decoder along its gradient, until it has a given divergence from the pre-trained one.

    The direction from the pre-trained decoder is the mean of that of earlier steps and of that of the
    gradient, each of length 1. `divergence` estimates that of the decoder's present weights, in nats, and
    `bound` is the one wanted.

    References
    ----------
    Schulman et al., "Trust Region Policy Optimization", ICML 2015.
    """
    weights = list(decoder.parameters())
    parts = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in weights]
    gradient = parameters_to_vector(parts)
    if not torch.isfinite(gradient).all():  # the decoder cannot write one of the programs
        return
    origin = parameters_to_vector(pretrained.parameters())
    moved = parameters_to_vector(weights) - origin
    distance = float(moved.norm()) or _FIRST_DISTANCE
    downhill = -functional.normalize(gradient, dim=0)
    direction = functional.normalize(functional.normalize(moved, dim=0) + downhill, dim=0)
    for _ in range(_N_ESTIMATES):
        vector_to_parameters(origin + distance * direction, weights)
        factor = (bound / max(divergence(), 1e-12)) ** 0.5
        distance *= min(max(factor, 1.0 / _LARGEST_FACTOR), _LARGEST_FACTOR)
    vector_to_parameters(origin + distance * direction, weights)


def divergence(log_ratios: torch.Tensor) -> float:
    """Return the Kullback-Leibler divergence of two distributions, to second order in their difference.

    It is half the mean square of the log-ratios of the probabilities of samples, of shape (n_samples,).
    """
    return 0.5 * float(log_ratios.square().mean())
