"""The stream of training data: equations of the prior, drawn in this process or by worker processes."""

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
from dgsr.pretraining.decontamination import Decontamination
from dgsr.pretraining.prior import DrawnDataSets, Prior


class Batch(NamedTuple):
    """Data sets with the same number of rows and of variables, with their equations."""

    n_variables: int
    drawn: DrawnDataSets
    blind: bool  # whether ``cross-entropy`` hides the data from the decoder
    found: np.ndarray | None = None  # (D, max_length) int64: laws that `solve_all` found, if it was asked


class Stream(Dataset):
    """Batches by their number, which do not depend on the process that draws them nor on the order.

    Parameters
    ----------
    library : Library
    constraints : Constraints
    prior : Prior
    config : PretrainingConfig
    excluded : Decontamination
        Functions that must not be drawn.
    seed : int
    remainders : bool
        Whether the generator gets features of targets; most equations that the exact solver finds at its
        first stage are then left out.
    """

    def __init__(
        self,
        library: Library,
        constraints: Constraints,
        prior: Prior,
        config: PretrainingConfig,
        excluded: Decontamination,
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
        """Draw batch `number`: lines 5 to 7 of algorithm 1 for each of its data sets."""
        config = self.config
        rng = np.random.default_rng((self.seed, number))
        low, high = math.log(config.min_samples), math.log(config.max_samples + 1)
        n_samples = int(math.exp(rng.uniform(low, high)))
        shares = column_shares(self.library.n_variables, config.usual_columns)
        n_variables = 1 + int(rng.choice(len(shares), p=shares))
        n = config.n_datasets // config.n_groups
        state = new_state(self.seed, number)
        arguments = n, n_samples, n_variables, self.library, self.constraints, state, self.excluded
        drawn = self.prior.draw(*arguments, in_any_order=True)
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
        """Return an iterator of the batches `numbers`, in order; worker processes draw them in advance."""
        loader = DataLoader(
            self,
            batch_size=None,
            sampler=numbers,
            num_workers=n_workers,
            prefetch_factor=4 if n_workers else None,
            collate_fn=_unchanged,
            generator=torch.Generator(),  # otherwise it would draw from the global one
        )
        return iter(loader)


def column_shares(n_variables: int, usual: int | None) -> np.ndarray:
    """Return the shares of tables of 1 to `n_variables` columns; see `PretrainingConfig.usual_columns`."""
    counts = np.arange(1.0, n_variables + 1.0)
    usual = usual or n_variables
    weights = np.where(counts <= usual, counts, usual * (usual / counts) ** 4)
    return weights / weights.sum()


def _unchanged(batch: Any) -> Any:
    return batch
