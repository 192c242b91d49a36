"""Attention and feed-forward blocks of the encoders and the decoder, with the norm before each."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Multi-head attention of queries over a separate set of keys and values."""

    def __init__(self, width: int, heads: int, key_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(key_width, 2 * width)
        self.out = nn.Linear(width, width)

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Project `source` (B, S, key_width) to keys and values, each (B, H, S, width / H)."""
        key, value = self.key_value(source).chunk(2, dim=-1)
        return split_heads(key, self.heads), split_heads(value, self.heads)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attend from `queries` (B, N, width) over the results of `keys_values`: (B, N, width)."""
        q = split_heads(self.query(queries), self.heads)  # (B, H, N, width / H)
        return self.out(merge_heads(functional.scaled_dot_product_attention(q, keys, values)))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Reshape (B, N, W) to (B, H, N, W / H)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Reshape (B, H, N, W / H) to (B, N, W)."""
    return x.transpose(1, 2).flatten(2)


def feedforward(width: int, multiple: int) -> nn.Sequential:
    """Return a feed-forward block: norm, linear, GELU, linear."""
    return nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, multiple * width), nn.GELU(), nn.Linear(multiple * width, width)
    )


class CausalSelfAttention(nn.Module):
    """Causal self-attention, for all positions at once or for the next position with a cache."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, cache: Tensor | None = None, t: int = 0) -> Tensor:
        """Attend from every position of x (B, L, width) to itself and to earlier positions.

        With a cache (2, B, H, max_length, width / H), which has the keys and values of earlier positions, L
        is 1 and x is position `t`, whose keys and values are written to the cache.
        """
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        if cache is not None:
            cache[0, :, :, t] = k[:, :, 0]
            cache[1, :, :, t] = v[:, :, 0]
            k, v = cache[0, :, :, : t + 1], cache[1, :, :, : t + 1]
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return x + self.out(merge_heads(attended))


def learned_vectors(n: int, width: int) -> nn.Parameter:
    """Return n learned vectors, (1, n, width), whose initial length is about 1."""
    return nn.Parameter(nn.init.normal_(torch.empty(1, n, width), std=width**-0.5))


class InducedSetAttention(nn.Module):
    """Induced set attention: a few learned points attend to the set, then the set attends to them.

    Reference: Lee et al., "Set Transformer", ICML 2019, section 3.1 (ISAB).
    """

    def __init__(self, width: int, heads: int, n_inducing: int, multiple: int) -> None:
        super().__init__()
        self.inducing = learned_vectors(n_inducing, width)
        self.norm = nn.LayerNorm(width)
        self.gather = Attention(width, heads, width)
        self.gather_forward = feedforward(width, multiple)
        self.gathered_norm = nn.LayerNorm(width)
        self.spread = Attention(width, heads, width)
        self.spread_forward = feedforward(width, multiple)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (D, N, width) to the same shape, equivariantly to the order of the N rows."""
        normed = self.norm(x)
        points = self.inducing.expand(len(x), -1, -1)  # (D, M, width)
        points = points + self.gather(points, *self.gather.keys_values(normed))
        points = self.gathered_norm(points + self.gather_forward(points))
        x = x + self.spread(normed, *self.spread.keys_values(points))
        return x + self.spread_forward(x)
