"""A network that reads the descriptions of a table and says which tokens stand under which in its law."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.expressions.library import Library
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.guide.descriptions import N_COLUMN, N_PAIR, N_TABLE, Descriptions


def _perceptron(n_in: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class _Block(nn.Module):
    """Attention among the table and its columns, whose weights and messages know the pairs of columns."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.bias = nn.Linear(width, heads)
        self.message = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.forward_ = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Map x (D, T, width), given edges (D, T, T, width), to the same shape."""
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.norm(x)).chunk(3, dim=-1)
        )  # (D, H, T, width / H)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.bias(edges).permute(0, 3, 1, 2)
        weights = scores.softmax(-1)
        messages = self.message(edges).unflatten(-1, (self.heads, -1))  # (D, T, T, H, width / H)
        found = weights @ v + torch.einsum("dhij,dijhc->dhic", weights, messages)
        x = x + self.out(found.transpose(1, 2).flatten(-2))
        return x + self.forward_(self.norm_forward(x))


class Guide(nn.Module):
    """Probabilities of child tokens given their parent in the law behind a table.

    Parameters
    ----------
    library : Library
        Its operators and constant are the tokens that the guide knows; variables are those of the table.
    config : GeneratorConfig
        Its `guide_width` is above 0.
    """

    def __init__(self, library: Library, config: GeneratorConfig) -> None:
        super().__init__()
        width, heads = config.guide_width, config.guide_heads
        self.n_parents = len(library.operators) + 1  # the last one stands for the root
        self.n_fixed = library.first_variable  # operators and the constant
        self.table, self.columns = _perceptron(N_TABLE, width), _perceptron(N_COLUMN, width)
        self.pairs = _perceptron(N_PAIR, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(config.guide_layers))
        self.norm = nn.LayerNorm(width)
        self.of_tokens = nn.Linear(width, self.n_parents * self.n_fixed)
        self.of_variables = nn.Linear(width, self.n_parents)
        last = nn.Linear(width, self.n_parents)
        self.of_column = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), last)
        for layer in (self.of_tokens, self.of_variables, last):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, described: Descriptions) -> Tensor:
        """Return log-probabilities of children, given their parent.

        Parameters
        ----------
        described : Descriptions
            The descriptions of D tables of C columns each.

        Returns
        -------
        Tensor of shape (D, n_parents, n_fixed + C)
            Parents are the operators, then the root; children the operators, the constant and the columns.
        """
        table = self.table(described.table)
        columns = self.columns(described.columns)
        edges = self.pairs(described.pairs)
        columns = columns + edges.mean(2)
        x = torch.cat([(table + columns.mean(1)).unsqueeze(1), columns], dim=1)
        edges = functional.pad(edges, (0, 0, 1, 0, 1, 0))
        for block in self.blocks:
            x = block(x, edges)
        x = self.norm(x)
        table, columns = x[:, 0], x[:, 1:]
        of_tokens = self.of_tokens(table).unflatten(-1, (self.n_parents, self.n_fixed))
        joined = torch.cat([columns, table.unsqueeze(1).expand_as(columns)], dim=-1)
        of_columns = self.of_column(joined).transpose(-1, -2) + self.of_variables(table).unsqueeze(-1)
        return torch.cat([of_tokens, of_columns], dim=-1).log_softmax(-1)
