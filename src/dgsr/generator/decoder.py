"""The decoder, which generates a program token by token, given the data set and the state of the tree.

`Decoder` is the reference. Its forward pass serves training, where all tokens are known, and sampling, where
one position at a time is added with a cache of keys and values. On a processor programs are sampled by
`dgsr.generator.compiled_decoder`, which computes the same function in loops; a test compares the two.

The paper concatenates the encoder's latent vectors V with the tree state h_t to U_t, to which the decoder
attends. Attention over the rows [V_s ; h_t], s = 1 .. S, can be separated: h_t adds the same number to every
score, which the softmax ignores, and its part of the values is a linear map of h_t. So `DecoderLayer` attends
to V, whose keys and values are computed once per data set, and adds that linear map. This is the same
function with less computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.layers import Attention, CausalSelfAttention, feedforward


class Memory(NamedTuple):
    """The part of the decoder's computation that depends on the D data sets alone."""

    keys_values: list[tuple[Tensor, Tensor]]  # of each layer, (D, H, S, width / H)
    tokens: Tensor  # (D, n_tokens + 1, width): embedding of the previous token
    siblings: Tensor  # (D, n_tokens + 1, E): embedding of the sibling
    outputs: Tensor  # (D, n_tokens, width + 1): weights and bias of the logit of a token

    def of(self, rows: Tensor) -> Memory:
        """Return the memory of the data sets `rows`, in this order and with repetitions."""
        keys_values = [(k[rows], v[rows]) for k, v in self.keys_values]
        return Memory(keys_values, self.tokens[rows], self.siblings[rows], self.outputs[rows])


@dataclass
class Cache:
    """Keys and values of all earlier positions, so that a pass computes the next position only."""

    # (2, D K, H, max_length, width / H), first of the tree layers, then of the decoder's layers
    keys_values: list[Tensor]
    length: int = 0  # number of positions that are filled

    def keep(self, rows: Tensor) -> None:
        """Retain the programs `rows` of the D K and remove the others."""
        for i, old in enumerate(self.keys_values):
            kept = old.new_empty(2, len(rows), *old.shape[2:])
            kept[:, :, :, : self.length] = old[:, rows, :, : self.length]
            self.keys_values[i] = kept


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
        """Apply the steps after self-attention: x (D, N, width), tree (D, N, 2E), memory of D data sets."""
        x = x + self.attention(self.norm(x), *memory) + self.tree(tree)
        return x + self.feedforward(x)


class TreeLayer(nn.Module):
    """One layer of the tree-state encoder, which is causal so that sampling and training agree."""

    def __init__(self, config: GeneratorConfig) -> None:
        super().__init__()
        width = 2 * config.tree_embedding
        self.self_attention = CausalSelfAttention(width, config.tree_heads)
        self.feedforward = feedforward(width, config.feedforward)


class Decoder(nn.Module):
    """Logits of the next token given the tokens so far, their tree states and the data set.

    Token ids are those of the library; the additional id `n_tokens` represents the start, "no parent" and "no
    sibling". There is no stop token: a program ends when its tree is complete. With the encoder
    ``"descriptions"``, variables have no weights of their own; their embeddings and logits are computed from
    the vectors of their columns.
    """

    def __init__(self, config: GeneratorConfig, n_tokens: int, first_variable: int) -> None:
        super().__init__()
        width, tree_width = config.decoder_width, 2 * config.tree_embedding
        self.n_tokens = n_tokens
        self.n_latents = config.n_latents
        self.has_columns = config.encoder == "descriptions"
        n_fixed = first_variable if self.has_columns else n_tokens
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
        if self.has_columns:
            self.column_tokens = nn.Linear(config.encoder_width, width)
            self.column_siblings = nn.Linear(config.encoder_width, config.tree_embedding)
            self.column_outputs = nn.Linear(config.encoder_width, width + 1)
            nn.init.normal_(self.column_outputs.weight, std=0.01)
            # In programs the first of two equal columns occurs first, and the encoder ignores their order.
            self.order = nn.Embedding(n_tokens - first_variable, config.encoder_width)
            nn.init.normal_(self.order.weight, std=0.1)

    def memory(self, latents: Tensor) -> Memory:
        """Compute the memory of data sets from their latents (D, S, encoder_width)."""
        if self.has_columns:
            # Columns beyond those of the training share the last position.
            at = torch.arange(latents.shape[1] - self.n_latents, device=latents.device)
            order = self.order(at.clamp_max(self.order.num_embeddings - 1))
            latents = latents + functional.pad(order, (0, 0, self.n_latents, 0))
        keys_values = [layer.attention.keys_values(latents) for layer in self.layers]
        outputs = torch.cat([self.out.weight, self.out.bias[:, None]], dim=1)
        weights = self.tokens.weight, self.siblings.weight, outputs
        rows = [weight.expand(len(latents), -1, -1) for weight in weights]
        if self.has_columns:
            columns = latents[:, self.n_latents :]
            linears = self.column_tokens, self.column_siblings, self.column_outputs
            rows = [self._with_columns(fixed, linear(columns)) for fixed, linear in zip(rows, linears)]
        return Memory(keys_values, *rows)

    def _with_columns(self, fixed: Tensor, columns: Tensor) -> Tensor:
        """Insert the rows of the columns between the rows of the fixed tokens and the row of the start."""
        n_fixed = self.out.out_features
        n_unused = self.n_tokens - n_fixed - columns.shape[1]
        unused = fixed.new_zeros(len(fixed), n_unused, fixed.shape[2])
        return torch.cat([fixed[:, :n_fixed], columns, unused, fixed[:, n_fixed:]], dim=1)

    def new_cache(self, n_programs: int, max_length: int) -> Cache:
        """Return an empty cache for `n_programs` programs."""
        attentions = [layer.self_attention for layer in (*self.tree_layers, *self.layers)]
        shapes = [(2, n_programs, a.heads, max_length, a.out.in_features // a.heads) for a in attentions]
        return Cache([self.positions.weight.new_empty(shape) for shape in shapes])

    def forward(
        self, previous: Tensor, parents: Tensor, siblings: Tensor, memory: Memory, cache: Cache | None = None
    ) -> Tensor:
        """Compute the logits of tokens at L positions of K programs for D data sets: (D, K, L, n_tokens).

        `previous`, `parents` and `siblings`, (D, K, L) int64, are the token before each position, and the
        tree state at it. With a cache L is 1 and the position is the next one, whose keys and values are
        added; otherwise the L positions are the first ones.
        """
        d, k, length = previous.shape
        start = 0 if cache is None else cache.length
        at = slice(start, start + length)
        of = torch.arange(d, device=previous.device)[:, None, None]
        parents = parents.clamp_max(self.parents.num_embeddings - 1)  # an operator, or "none"
        tree = torch.cat([self.parents(parents), memory.siblings[of, siblings]], dim=-1)
        tree = (tree + self.tree_positions.weight[at]).flatten(0, 1)  # (D K, L, 2E)
        n_tree = len(self.tree_layers)
        cached: Sequence[Tensor | None] = [None] * (n_tree + len(self.layers))
        if cache is not None:
            cached = cache.keys_values
        for layer, own in zip(self.tree_layers, cached[:n_tree], strict=True):
            tree = layer.self_attention(tree, own, start)
            tree = tree + layer.feedforward(tree)
        tree = tree.view(d, k * length, -1)
        x = (memory.tokens[of, previous] + self.positions.weight[at]).flatten(0, 1)  # (D K, L, width)
        for layer, keys_values, own in zip(self.layers, memory.keys_values, cached[n_tree:], strict=True):
            x = layer.self_attention(x, own, start).view(d, k * length, -1)
            x = layer.attend(x, tree, keys_values).view(d * k, length, -1)
        if cache is not None:
            cache.length += length
        weight, bias = memory.outputs[..., :-1], memory.outputs[..., -1]
        x = self.norm(x.view(d, k * length, -1))
        return torch.baddbmm(bias.unsqueeze(1), x, weight.transpose(1, 2)).view(d, k, length, -1)
