"""The decoder: one token after another, told the data set and the state of the tree.

The paper concatenates the encoder's latent vector V with the tree state h_t to U_t and lets the
decoder attend to it. Attention over the rows [V_s ; h_t], s = 1 .. S, splits: h_t adds the same
number to every score, which the softmax ignores, and its share of the values is a linear map of
h_t. So `DecoderLayer` attends over V, whose keys and values are computed once per data set, and
adds that linear map: the same function at a fraction of the work.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.layers import Attention, CausalSelfAttention, feedforward
from dgsr.generator.reader import Reader


class Memory(NamedTuple):
    """What the decoder knows of D data sets, computed once for all steps."""

    keys_values: list[tuple[Tensor, Tensor]]  # of each layer, (D, H, S, width / H)
    tokens: Tensor  # (D, n_tokens + 1, width): what a token is read as
    siblings: Tensor  # (D, n_tokens + 1, E)
    outputs: Tensor  # (D, n_tokens, width + 1): what a token is chosen by, weights and bias

    def of(self, rows: Tensor) -> Memory:
        """The data sets `rows`, in their order, as often as they occur."""
        keys_values = [(k[rows], v[rows]) for k, v in self.keys_values]
        return Memory(keys_values, self.tokens[rows], self.siblings[rows], self.outputs[rows])


class DecoderLayer(nn.Module):
    """Self-attention, attention to U_t = [V ; h_t], feed-forward."""

    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__()
        width = config.decoder_width
        self.self_attention = CausalSelfAttention(width, config.decoder_heads)
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, config.decoder_heads, config.encoder_width)
        self.tree = nn.Linear(2 * config.tree_embedding, width, bias=False)
        self.feedforward = feedforward(width, config.feedforward)

    def attend(self, x: Tensor, tree: Tensor, memory: tuple[Tensor, Tensor]) -> Tensor:
        """All but the self-attention: x (B, N, width), tree (B, N, 2E), memory of B data sets."""
        x = x + self.attention(self.norm(x), *memory) + self.tree(tree)
        return x + self.feedforward(x)


class TreeLayer(nn.Module):
    """One layer of the tree-state encoder; causal, so that a step sees what training saw."""

    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__()
        width = 2 * config.tree_embedding
        self.self_attention = CausalSelfAttention(width, config.tree_heads)
        self.feedforward = feedforward(width, config.feedforward)


class Decoder(nn.Module):
    """Logits of the next token given the tokens so far, their tree states and the data set.

    Token ids are the library's; one more, `n_tokens`, stands for the start and for "no parent" or
    "no sibling". There is no stop token: a program ends when its tree is whole. With an encoder of
    columns, variables have no weights of their own: they are read and chosen by their columns' vectors.
    """

    def __init__(
        self, config: GeneratorConfig, n_tokens: int, first_variable: int, description: tuple[int, int]
    ) -> None:
        super().__init__()
        width, tree_width = config.decoder_width, 2 * config.tree_embedding
        self.n_tokens = n_tokens
        self.n_latents = config.n_latents
        self.heads, self.tree_heads = config.decoder_heads, config.tree_heads
        self.points = config.encoder == "columns"
        n_fixed = first_variable if self.points else n_tokens
        self.tokens = nn.Embedding(n_fixed + 1, width)
        self.positions = nn.Embedding(config.max_length, width)
        self.parents = nn.Embedding(n_fixed + 1, config.tree_embedding)
        self.siblings = nn.Embedding(n_fixed + 1, config.tree_embedding)
        self.tree_positions = nn.Embedding(config.max_length, tree_width)
        self.tree_layers = nn.ModuleList(TreeLayer(config) for _ in range(config.tree_layers))
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, n_fixed)
        for embedding in (self.tokens, self.positions, self.parents, self.siblings, self.tree_positions):
            nn.init.normal_(embedding.weight, std=0.1)
        nn.init.normal_(self.out.weight, std=0.01)
        nn.init.zeros_(self.out.bias)
        if self.points:
            self.column_tokens = nn.Linear(config.encoder_width, width)
            self.column_siblings = nn.Linear(config.encoder_width, config.tree_embedding)
            self.column_outputs = nn.Linear(config.encoder_width, width + 1)
            nn.init.normal_(self.column_outputs.weight, std=0.01)
        self.reader = Reader(config, *description) if config.remainders else None

    def memory(self, latents: Tensor) -> Memory:
        """What all steps need of the data sets: latents (D, S, encoder_width)."""
        keys_values = [layer.attention.keys_values(latents) for layer in self.layers]
        chosen_by = torch.cat([self.out.weight, self.out.bias[:, None]], dim=1)
        tables = [
            rows.expand(len(latents), -1, -1)
            for rows in (self.tokens.weight, self.siblings.weight, chosen_by)
        ]
        if self.points:
            columns = latents[:, self.n_latents :]
            of_columns = self.column_tokens, self.column_siblings, self.column_outputs
            tables = [
                self._with_columns(table, linear(columns))
                for table, linear in zip(tables, of_columns, strict=True)
            ]
        return Memory(keys_values, *tables)

    def _with_columns(self, table: Tensor, columns: Tensor) -> Tensor:
        """Put the columns' rows behind those of the fixed tokens and before that of the start."""
        n_fixed = self.out.out_features
        n_unused = self.n_tokens - n_fixed - columns.shape[1]
        unused = table.new_zeros(len(table), n_unused, table.shape[2])
        return torch.cat([table[:, :n_fixed], columns, unused, table[:, n_fixed:]], dim=1)

    def _logits(self, x: Tensor, outputs: Tensor, read: tuple[Tensor, Tensor] | None) -> Tensor:
        """x (D, N, width), outputs (D, n_tokens, width + 1): (D, N, n_tokens)."""
        weight, bias = outputs[..., :-1], outputs[..., -1]
        x = self.norm(x)
        logits = torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2))
        if read is not None:
            assert self.reader is not None
            scores = self.reader.scores(x, read[1])
            n_fixed = self.out.out_features
            logits = logits + functional.pad(scores, (n_fixed, self.n_tokens - n_fixed - scores.shape[-1]))
        return logits

    def forward(
        self,
        previous: Tensor,
        parents: Tensor,
        siblings: Tensor,
        memory: Memory,
        described: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Teacher-forced pass.

        Parameters
        ----------
        previous, parents, siblings : Tensor of shape (D, K, L), int64
            Token before each position, and the tree state there, of K programs for each of D data
            sets.
        memory : Memory
            What the decoder attends to, for each of the D data sets.
        described : tuple of Tensor of shape (D, K L, n_moments) and (D, K L, C, n_by_column), optional
            The remainders of the positions.

        Returns
        -------
        Tensor of shape (D, K, L, n_tokens)
        """
        d, k, length = previous.shape
        at = torch.arange(length, device=previous.device)
        of = torch.arange(d, device=previous.device)[:, None, None]
        tree = torch.cat([self._parents(parents), memory.siblings[of, siblings]], dim=-1)
        tree = (tree + self.tree_positions(at)).flatten(0, 1)  # (D K, L, 2E)
        for layer in self.tree_layers:
            tree = layer.self_attention(tree)
            tree = tree + layer.feedforward(tree)
        tree = tree.view(d, k * length, -1)
        x = (memory.tokens[of, previous] + self.positions(at)).flatten(0, 1)  # (D K, L, width)
        read = None
        if self.reader is not None and described is not None:
            read = self.reader(*described)
            x = x + read[0].view_as(x)
        for layer, keys_values in zip(self.layers, memory.keys_values, strict=True):
            x = layer.self_attention(x).view(d, k * length, -1)
            x = layer.attend(x, tree, keys_values).view(d * k, length, -1)
        return self._logits(x.view(d, k * length, -1), memory.outputs, read).view(d, k, length, -1)

    def _parents(self, parents: Tensor) -> Tensor:
        """Embed parents, which are operators, or "none"."""
        return self.parents(parents.clamp_max(self.parents.num_embeddings - 1))

    def new_cache(self, n_programs: int, max_length: int, like: Tensor) -> list[Tensor]:
        """Empty key-value caches of the tree layers, then of the decoder's own."""
        attentions = [layer.self_attention for layer in (*self.tree_layers, *self.layers)]
        return [
            like.new_empty(2, n_programs, a.heads, max_length, a.out.in_features // a.heads)
            for a in attentions
        ]

    def step(
        self,
        t: int,
        previous: Tensor,
        parents: Tensor,
        siblings: Tensor,
        memory: Memory,
        cache: list[Tensor],
        described: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Logits (B, n_tokens) at position `t` of B programs.

        `previous`, `parents`, `siblings` have shape (B,); `memory` is of one data set, or of one
        per program.
        """
        shared = len(memory.tokens) == 1
        of = torch.zeros_like(previous) if shared else torch.arange(len(previous), device=previous.device)
        tree = torch.cat([self._parents(parents), memory.siblings[of, siblings]], dim=-1)
        tree = (tree + self.tree_positions.weight[t]).unsqueeze(1)  # (B, 1, 2E)
        n_tree = len(self.tree_layers)
        for layer, layer_cache in zip(self.tree_layers, cache[:n_tree], strict=True):
            tree = layer.self_attention.step(tree, layer_cache, t)
            tree = tree + layer.feedforward(tree)
        x = (memory.tokens[of, previous] + self.positions.weight[t]).unsqueeze(1)  # (B, 1, width)
        read = None
        if self.reader is not None and described is not None:  # (B, n_moments), (B, C, n_by_column)
            of_token, of_columns = self.reader(*described)
            x = x + of_token.unsqueeze(1)
            read = of_token, of_columns.unsqueeze(0 if shared else 1)
        if shared:
            tree = tree.transpose(0, 1)
        for layer, keys_values, layer_cache in zip(
            self.layers, memory.keys_values, cache[n_tree:], strict=True
        ):
            x = layer.self_attention.step(x, layer_cache, t)
            if shared:  # (1, B, width): all programs are queries of the one data set
                x = layer.attend(x.transpose(0, 1), tree, keys_values).transpose(0, 1)
            else:
                x = layer.attend(x, tree, keys_values)
        x = x.transpose(0, 1) if shared else x  # (1, B, width) or (B, 1, width)
        return self._logits(x, memory.outputs, read).view(len(previous), -1)
