"""Reads the descriptions of remainders: what the decoder is told of them at every token."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.generator.config import GeneratorConfig


class Reader(nn.Module):
    """One vector for the token to come, and one for every column, by which variables are chosen.

    Parameters
    ----------
    config : GeneratorConfig
    n_moments, n_by_column : int
        Numbers of a description; see `dgsr.generator.conditioning.targets`.
    """

    def __init__(self, config: GeneratorConfig, n_moments: int, n_by_column: int) -> None:
        super().__init__()
        width, hidden = config.decoder_width, config.reader_width
        self.column = nn.Linear(n_by_column, hidden)
        self.widen = nn.Linear(n_moments + 2 * hidden, config.feedforward * width)
        self.narrow = nn.Linear(config.feedforward * width, width)
        self.query = nn.Linear(width, hidden)

    def forward(self, moments: Tensor, by_column: Tensor) -> tuple[Tensor, Tensor]:
        """moments (..., n_moments), by_column (..., C, n_by_column): (..., width) and (..., C, hidden)."""
        columns = functional.gelu(self.column(by_column))
        together = torch.cat([moments, columns.mean(-2), columns.amax(-2)], dim=-1)
        return self.narrow(functional.gelu(self.widen(together))), columns

    def scores(self, x: Tensor, columns: Tensor) -> Tensor:
        """What the columns add to the logits of their variables: x (..., width) gives (..., C)."""
        return torch.einsum("...h,...ch->...c", self.query(x), columns)
