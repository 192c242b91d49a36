"""Attention and feed-forward blocks the encoder and the decoder share (pre-norm)."""

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
    """(B, N, W) to (B, H, N, W / H)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, N, W / H) to (B, N, W)."""
    return x.transpose(1, 2).flatten(2)


def feedforward(width: int, multiple: int) -> nn.Sequential:
    """Norm, linear, GELU, linear."""
    return nn.Sequential(
        nn.LayerNorm(width),
        nn.Linear(width, multiple * width),
        nn.GELU(),
        nn.Linear(multiple * width, width),
    )


class CausalSelfAttention(nn.Module):
    """Self-attention over the tokens so far, in one pass or one step at a time with a cache."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """All positions at once: x (B, L, width)."""
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(merge_heads(attended))

    def step(self, x: Tensor, cache: Tensor, t: int) -> Tensor:
        """Position `t` alone: x (B, 1, width), cache (2, B, H, L, width / H) written at t."""
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        cache[0, :, :, t] = k[:, :, 0]
        cache[1, :, :, t] = v[:, :, 0]
        attended = functional.scaled_dot_product_attention(
            q, cache[0, :, :, : t + 1], cache[1, :, :, : t + 1]
        )
        return x + self.out(merge_heads(attended))


def learned_vectors(n: int, width: int) -> nn.Parameter:
    """n learned vectors, (1, n, width), of length about 1 at first."""
    return nn.Parameter(nn.init.normal_(torch.empty(1, n, width), std=width**-0.5))


class InducedSetAttention(nn.Module):
    """ISAB of the set transformer: the set attends to a few points that have attended to it.

    References
    ----------
    Lee et al., "Set Transformer", ICML 2019, section 3.1.
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
        """x (D, N, width) to the same shape, equivariant to the order of the N rows."""
        normed = self.norm(x)
        points = self.inducing.expand(len(x), -1, -1)  # (D, M, width)
        points = points + self.gather(points, *self.gather.keys_values(normed))
        points = self.gathered_norm(points + self.gather_forward(points))
        x = x + self.spread(normed, *self.spread.keys_values(points))
        return x + self.spread_forward(x)
