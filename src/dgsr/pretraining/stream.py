"""The stream of training data: equations of the prior, drawn here or by worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from dgsr.exact_search import solve_all
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
from dgsr.kernels.random import new_state
from dgsr.pretraining.config import PretrainingConfig
from dgsr.pretraining.prior import DrawnDataSets, Exclusions, Prior


class Batch(NamedTuple):
    """Data sets of one number of rows and of variables, with their equations."""

    n_variables: int
    drawn: DrawnDataSets
    blind: bool  # whether ``cross-entropy`` is to show none of the data
    found: np.ndarray | None = None  # (D, max_length) int64: laws that `solve_all` found, if it was asked


class Stream(Dataset):
    """Every batch by its number: the same one whoever draws it, in whatever order.

    Parameters
    ----------
    library : Library
    constraints : Constraints
    prior : Prior
    config : PretrainingConfig
    excluded : Exclusions
        Functions that are not drawn.
    seed : int
    remainders : bool
        Whether the generator is told of remainders, and so of the laws that the exact solver finds.
    """

    def __init__(
        self,
        library: Library,
        constraints: Constraints,
        prior: Prior,
        config: PretrainingConfig,
        excluded: Exclusions,
        seed: int,
        remainders: bool,
    ) -> None:
        self.library = library
        self.constraints = constraints
        self.prior = prior
        self.config = config
        self.excluded = excluded
        self.seed = seed
        self.remainders = remainders

    def __getitem__(self, number: int) -> Batch:
        config = self.config
        rng = np.random.default_rng((self.seed, number))
        low, high = math.log(config.min_samples), math.log(config.max_samples + 1)
        n_samples = int(math.exp(rng.uniform(low, high)))
        # Any number of variables, the more the more often.
        counts = np.arange(1, self.library.n_variables + 1)
        n_variables = int(rng.choice(counts, p=counts / counts.sum()))
        n = config.n_datasets // config.n_groups
        state = new_state(self.seed, number)
        arguments = n, n_samples, n_variables, self.library, self.constraints, state, self.excluded
        drawn = self.prior.draw(*arguments)
        blind = bool(rng.random() < config.blind_share)
        if not self.remainders or blind:
            return Batch(n_variables, drawn, blind)
        grammar = self.constraints.grammar(self.library, n_variables)
        found = solve_all(self.library, drawn.X[:, :, :n_variables], drawn.y, grammar)
        if config.looked_up_share < 1.0:  # train on few of those whose law is found
            kept = (found[:, 0] < 0) | (rng.random(len(found)) < config.looked_up_share)
            kept[0] = True
            drawn, found = drawn.of(np.flatnonzero(kept)), found[kept]
        return Batch(n_variables, drawn, blind, found)

    def batches(self, numbers: Sequence[int], n_workers: int) -> Iterator[Batch]:
        """Yield the batches of these numbers, in order, drawn ahead by worker processes if there are any."""
        loader = DataLoader(
            self,
            batch_size=None,
            sampler=numbers,
            num_workers=n_workers,
            prefetch_factor=4 if n_workers else None,
            collate_fn=_as_it_is,
            generator=torch.Generator(),  # or it would draw from the global one
        )
        return iter(loader)


def _as_it_is(batch: Any) -> Any:
    return batch
