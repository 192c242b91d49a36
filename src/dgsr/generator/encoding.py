"""What a generator keeps of data sets: computed once, read at every token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from dgsr.exact_search import Bank
from dgsr.generator.conditioning.basis import Tables


@dataclass(frozen=True)
class Encoding:
    """D data sets as the decoder knows them.

    Parameters
    ----------
    latents : Tensor of shape (D, S, encoder_width)
        The encoder's vectors.
    tables : Tables, optional
        What remainders are compared with; without them the decoder is told of none.
    bank : Bank, optional
        The subprograms that `tables` has the values of.
    """

    latents: Tensor
    tables: Tables | None = None
    bank: Bank | None = None

    def __len__(self) -> int:
        return len(self.latents)

    def of(self, rows: np.ndarray) -> Encoding:
        """The data sets `rows`, in their order, as often as they occur."""
        tables = None if self.tables is None else Tables(*(array[rows] for array in self.tables))
        return Encoding(self.latents[rows], tables, self.bank)

    def blurred(self) -> Encoding:
        """What can be said without looking at any of them: the mean encoding, and no remainders."""
        return Encoding(self.latents.mean(0, keepdim=True).expand_as(self.latents))

    def detached(self) -> Encoding:
        """A copy no gradient goes through."""
        return replace(self, latents=self.latents.detach().clone())
