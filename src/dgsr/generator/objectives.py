"""Objectives of training: losses as functions of log-probabilities and rewards.

All return a scalar to be minimised. Log-probabilities have shape (D, K): K programs for each of D data
sets; in a fit D is 1.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "NGPQT Optimization Method"; Abolafia et al., 2018
(priority queue training); Petersen et al., ICLR 2021 (risk-seeking policy gradient); Landajuela et
al., 2021 (hierarchical entropy).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Baseline:
    """Exponentially weighted moving average of rewards, b_t = alpha E[R] + (1 - alpha) b_(t-1)."""

    alpha: float = 0.5  # weight of the newest batch
    value: float | None = None  # None before the first batch, whose mean becomes the average

    def update(self, rewards: Tensor) -> float:
        """Update the average with a batch of rewards and return it."""
        mean = float(rewards.mean())
        self.value = mean if self.value is None else self.alpha * mean + (1.0 - self.alpha) * self.value
        return self.value


def vanilla_policy_gradient(log_probs: Tensor, rewards: Tensor, baseline: float | Tensor) -> Tensor:
    """REINFORCE: minus the mean of (R - b) log p."""
    return -((rewards - baseline) * log_probs).mean()


def risk_seeking_policy_gradient(log_probs: Tensor, rewards: Tensor, epsilon: float) -> Tensor:
    """REINFORCE on the best fraction of each data set's programs.

    Minus (R - R_eps) log p over the programs whose reward is above the (1 - epsilon) quantile R_eps
    of their data set, divided by epsilon K and averaged over data sets.
    """
    quantile = torch.quantile(rewards, 1.0 - epsilon, dim=1, keepdim=True)
    above = (rewards - quantile).clamp_min(0.0)
    return -(above * log_probs).sum(dim=1).mean() / (epsilon * rewards.shape[1])


def priority_queue_training(log_probs: Tensor) -> Tensor:
    """Return minus the mean log-probability of the programs in the priority queue: (D, q) to a scalar.

    Cross-entropy pre-training has the same loss, with the true program as the queue.
    """
    return -log_probs.mean()


def hierarchical_entropy(entropies: Tensor, decay: float) -> Tensor:
    """Return the mean over programs of sum_t decay^t H_t, for the entropies H (D, K, L) of the choices."""
    weights = decay ** torch.arange(entropies.shape[-1], device=entropies.device)
    return (entropies * weights).sum(dim=-1).mean()
