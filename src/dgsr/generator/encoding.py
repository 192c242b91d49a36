"""The encoding of data sets: what is computed once and used at every token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from dgsr.exact_search import Bank
from dgsr.generator.conditioning.basis import Tables


@dataclass(frozen=True)
class Encoding:
    """The input of the decoder from D data sets.

    Parameters
    ----------
    latents : Tensor of shape (D, S, encoder_width)
        Vectors of the encoder.
    tables : Tables, optional
        Values with which targets of open nodes are compared; without them the decoder gets no features of
        targets.
    bank : Bank, optional
        The subprograms whose values are in `tables`.
    unread : ndarray of int, optional
        Columns that the encoder did not read, since there are too many; they have the vector of another.
    """

    latents: Tensor
    tables: Tables | None = None
    bank: Bank | None = None
    unread: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.latents)

    def of(self, rows: np.ndarray) -> Encoding:
        """Return the data sets `rows`, in their order, as often as they occur."""
        tables = None if self.tables is None else Tables(*(array[rows] for array in self.tables))
        return Encoding(self.latents[rows], tables, self.bank, self.unread)

    def blurred(self) -> Encoding:
        """Return the same encoding for all data sets: the mean of their vectors, without tables."""
        return Encoding(self.latents.mean(0, keepdim=True).expand_as(self.latents))

    def detached(self) -> Encoding:
        """Return a copy through which no gradient flows."""
        return replace(self, latents=self.latents.detach().clone())
