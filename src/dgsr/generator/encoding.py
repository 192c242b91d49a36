"""The encoding of data sets, which is computed once and used at every token."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class Encoding:
    """The input of the decoder from D data sets."""

    latents: Tensor  # (D, S, encoder_width): vectors of the encoder
    # Columns that the encoder did not read because there are too many; they have another column's vector.
    unread: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.latents)

    def of(self, rows: np.ndarray) -> Encoding:
        """Return the encoding of the data sets `rows`, in this order and with repetitions."""
        return Encoding(self.latents[rows], self.unread)

    def blurred(self) -> Encoding:
        """Return the same encoding for all data sets: the mean of their vectors."""
        return Encoding(self.latents.mean(0, keepdim=True).expand_as(self.latents))

    def detached(self) -> Encoding:
        """Return a copy through which no gradient flows."""
        return replace(self, latents=self.latents.detach().clone())
