"""The stream of training data: equations of the prior, drawn in this process or by worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.kernels.random import new_state
from dgsr.pretraining.config import PretrainingConfig
from dgsr.pretraining.decontamination import Decontamination
from dgsr.pretraining.prior import DrawnDataSets, Prior


class Batch(NamedTuple):
    """Data sets with the same numbers of rows and variables, and their equations."""

    n_variables: int
    drawn: DrawnDataSets
    blind: bool  # whether ``cross-entropy`` hides the data from the decoder


@dataclass(eq=False)
class Stream(Dataset):
    """Batches by their number. They depend neither on the process that draws them nor on the order."""

    library: Library
    constraints: Constraints
    prior: Prior
    config: PretrainingConfig
    excluded: Decontamination  # functions that must not be drawn
    seed: int
    n_variables: int = 0  # most columns of a table that an equation may have; 0 for all of the library

    def __post_init__(self) -> None:
        self.n_variables = self.n_variables or self.library.n_variables

    def __getitem__(self, number: int) -> Batch:
        """Draw batch `number`, which is lines 5 to 7 of algorithm 1 for each of its data sets."""
        config = self.config
        rng = np.random.default_rng((self.seed, number))
        low, high = math.log(config.min_samples), math.log(config.max_samples + 1)
        n_samples = int(math.exp(rng.uniform(low, high)))
        shares = column_shares(self.n_variables, config.usual_columns)
        n_variables = 1 + int(rng.choice(len(shares), p=shares))
        n = config.n_datasets // config.n_groups
        state = new_state(self.seed, number)
        arguments = n, n_samples, n_variables, self.library, self.constraints, state, self.excluded
        drawn = self.prior.draw(*arguments, in_any_order=True)
        blind = bool(rng.random() < config.blind_share)
        return Batch(n_variables, drawn, blind)

    def batches(self, numbers: Sequence[int], n_workers: int) -> Iterator[Batch]:
        """Return an iterator of the batches `numbers`, in order; worker processes draw them in advance."""
        loader = DataLoader(
            self,
            batch_size=None,
            sampler=numbers,
            num_workers=n_workers,
            prefetch_factor=4 if n_workers else None,
            collate_fn=_unchanged,
            generator=torch.Generator(),  # otherwise the loader would draw from torch's global generator
        )
        return iter(loader)


def column_shares(n_variables: int, usual: int) -> np.ndarray:
    """Return the shares of tables with 1 to `n_variables` columns; see `PretrainingConfig.usual_columns`."""
    counts = np.arange(1.0, n_variables + 1.0)
    weights = np.where(counts <= usual, counts, usual * (usual / counts) ** 4)
    return weights / weights.sum()


def _unchanged(batch: Any) -> Any:
    return batch
