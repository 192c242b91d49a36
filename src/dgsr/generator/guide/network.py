"""The encoder that reads descriptions of a table, and the guide that reads the encoder's vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.expressions.programs.library import Library
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.guide import descriptions
from dgsr.generator.guide.descriptions import (
    MOST_COLUMNS,
    N_COLUMN,
    N_PAIR,
    N_TABLE,
    Descriptions,
    by_strength,
    describe,
)
from dgsr.generator.layers import merge_heads, split_heads

# Tables whose descriptions are computed at once on a processor; more would not fit into its cache.
_AT_ONCE = 32


def _perceptron(n_in: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class _Block(nn.Module):
    """Attention among the vectors of a table and its columns, with scores and messages from column pairs."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.bias = nn.Linear(width, heads)
        self.message = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.forward_ = _perceptron(width, width)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        """Map x (D, T, width), given edges (D, T, T, width), to the same shape."""
        # Each is of shape (D, H, T, width / H).
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + self.bias(edges).permute(0, 3, 1, 2)
        weights = scores.softmax(-1)
        messages = self.message(edges).unflatten(-1, (self.heads, -1))  # (D, T, T, H, width / H)
        found = weights @ v + torch.einsum("dhij,dijhc->dhic", weights, messages)
        x = x + self.out(merge_heads(found))
        return x + self.forward_(self.norm_forward(x))


class DescriptionEncoder(nn.Module):
    """Maps descriptions to a vector of the table and a vector of each column.

    None depends on the order of the rows, and the vector of a column does not depend on the order of columns.
    """

    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__()
        width, heads = config.encoder_width, config.encoder_heads
        self.input_names = descriptions.names()
        self.table, self.columns = _perceptron(N_TABLE, width), _perceptron(N_COLUMN, width)
        self.pairs = _perceptron(N_PAIR, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, X: Tensor, y: Tensor, n_variables: int) -> Tensor:
        """Encode data sets X (D, N, C) and y (D, N), float64, by the first `n_variables` columns.

        The result, (D, 1 + n_variables, encoder_width), has the vector of the table, then those of the
        columns.
        """
        at_once = _AT_ONCE if X.device.type == "cpu" else max(len(X), 1)
        parts = zip(X[..., :n_variables].split(at_once), y.split(at_once), strict=True)
        return torch.cat([self.read(describe(*part)) for part in parts])

    def read_strongest(self, X: Tensor, y: Tensor) -> tuple[Tensor, np.ndarray | None]:
        """Encode one data set X (1, N, C) and y (1, N), with the columns that explain the target best.

        The others, of which there are none unless columns are too many, are returned, too. In the latents,
        (1, 1 + C, encoder_width), they have the vector of the weakest column that is described.
        """
        n_columns = X.shape[-1]
        if n_columns <= MOST_COLUMNS:
            return self.read(describe(X, y)), None
        order = by_strength(X, y)
        read = order[:MOST_COLUMNS].sort().values
        found = self.read(describe(X[:, :, read], y))
        weakest = int((read == order[MOST_COLUMNS - 1]).nonzero())
        latents = found[:, 1 + weakest].expand(1 + n_columns, -1).clone()
        latents[0], latents[1 + read] = found[0, 0], found[0, 1:]
        return latents.unsqueeze(0), order[MOST_COLUMNS:].sort().values.cpu().numpy()

    def read(self, described: Descriptions) -> Tensor:
        """Return the vectors of tables (D, 1 + C, encoder_width) from their descriptions."""
        table = self.table(described.table)
        columns = self.columns(described.columns)
        edges = self.pairs(described.pairs)
        columns = columns + edges.mean(2)
        x = torch.cat([(table + columns.mean(1)).unsqueeze(1), columns], dim=1)
        edges = functional.pad(edges, (0, 0, 1, 0, 1, 0))
        for block in self.blocks:
            x = block(x, edges)
        return self.norm(x)


class Guide(nn.Module):
    """Probabilities of child tokens given their parent in the law behind a table.

    It knows the operators and the constant of the library; the variables depend on the table. `width` is that
    of the encoder's vectors.
    """

    def __init__(self, library: Library, width: int) -> None:
        super().__init__()
        self.n_parents = len(library.operators) + 1  # the last one is the root
        self.n_fixed = library.first_variable  # operators and the constant
        self.unknown_parents: list[int] = []  # indices of operators that did not occur in the training
        self.of_tokens = nn.Linear(width, self.n_parents * self.n_fixed)
        self.of_variables = nn.Linear(width, self.n_parents)
        last = nn.Linear(width, self.n_parents)
        self.of_column = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), last)
        for layer in (self.of_tokens, self.of_variables, last):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)

    def forward(self, latents: Tensor) -> Tensor:
        """Return log-probabilities of children given their parent: (D, n_parents, n_fixed + C).

        Parents are the operators, then the root; children are operators, the constant and the columns. The
        latents, (D, 1 + C, width), are those of a `DescriptionEncoder`.
        """
        table, columns = latents[:, 0], latents[:, 1:]
        of_tokens = self.of_tokens(table).unflatten(-1, (self.n_parents, self.n_fixed))
        joined = torch.cat([columns, table.unsqueeze(1).expand_as(columns)], dim=-1)
        of_columns = self.of_column(joined).transpose(-1, -2) + self.of_variables(table).unsqueeze(-1)
        return torch.cat([of_tokens, of_columns], dim=-1).log_softmax(-1)
