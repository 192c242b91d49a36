"""The stream of training data: equations of the prior, drawn in this process or by worker processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from dgsr.exact_search import catalogue_of
from dgsr.exact_search.bank import rows_to_look_at
from dgsr.exact_search.stages import are_looked_up
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
        # n variables are n times as frequent as one.
        counts = np.arange(1, self.library.n_variables + 1)
        n_variables = int(rng.choice(counts, p=counts / counts.sum()))
        n = config.n_datasets // config.n_groups
        state = new_state(self.seed, number)
        arguments = n, n_samples, n_variables, self.library, self.constraints, state, self.excluded
        drawn = self.prior.draw(*arguments)
        blind = bool(rng.random() < config.blind_share)
        if self.remainders and not blind and config.looked_up_share < 1.0:
            drawn = drawn.of(self._to_learn_from(drawn, n_variables, rng))
        return Batch(n_variables, drawn, blind)

    def _to_learn_from(self, drawn: DrawnDataSets, n_variables: int, rng: np.random.Generator) -> np.ndarray:
        """Rows of the data sets to train on: few of those whose program is looked up."""
        rows = rows_to_look_at(drawn.y.shape[1])
        columns = np.ascontiguousarray(drawn.X[:, rows, :n_variables].transpose(0, 2, 1))
        catalogue = catalogue_of(self.library, n_variables)
        known = are_looked_up(columns, drawn.y[:, rows], catalogue, self.constraints.max_length)
        kept = ~known | (rng.random(len(known)) < self.config.looked_up_share)
        kept[0] = True
        return np.flatnonzero(kept)

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


def _unchanged(batch: Any) -> Any:
    return batch
