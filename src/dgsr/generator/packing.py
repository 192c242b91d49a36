"""The decoder's weights as float32 arrays, for `dgsr.generator.compiled_decoder`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.generator.decoder import Decoder, Memory


class Embeddings(NamedTuple):
    """The first and the last layer of the decoder, for one data set."""

    tokens: np.ndarray  # (n_tokens + 1, width): embeddings of the previous token
    positions: np.ndarray  # (max_length, width)
    parents: np.ndarray  # (n_parents, E); larger ids of parents use the last row
    siblings: np.ndarray  # (n_tokens + 1, E)
    tree_positions: np.ndarray  # (max_length, 2 E)
    norm: np.ndarray  # (2, width): weight and bias
    outputs: np.ndarray  # (width, n_tokens)
    outputs_bias: np.ndarray  # (n_tokens,)


class StackedLayers(NamedTuple):
    """Self-attention and feed-forward of n equal layers, stacked; matrices are (n, in, out)."""

    heads: int
    norm: np.ndarray  # (n, 2, width): weight and bias of the norm before the self-attention
    qkv: np.ndarray  # (n, width, 3 width)
    qkv_bias: np.ndarray  # (n, 3 width)
    out: np.ndarray  # (n, width, width)
    out_bias: np.ndarray  # (n, width)
    forward_norm: np.ndarray  # (n, 2, width)
    widen: np.ndarray  # (n, width, hidden)
    widen_bias: np.ndarray  # (n, hidden)
    narrow: np.ndarray  # (n, hidden, width)
    narrow_bias: np.ndarray  # (n, width)


class CrossAttention(NamedTuple):
    """Attention of n decoder layers to one data set: weights, keys and values."""

    norm: np.ndarray  # (n, 2, width)
    query: np.ndarray  # (n, width, width)
    query_bias: np.ndarray  # (n, width)
    out: np.ndarray  # (n, width, width)
    out_bias: np.ndarray  # (n, width)
    tree: np.ndarray  # (n, tree width, width)
    keys: np.ndarray  # (n, S, width)
    values: np.ndarray  # (n, S, width)


class DecoderWeights(NamedTuple):
    """All weights of a decoder for one data set."""

    embeddings: Embeddings
    tree_layers: StackedLayers
    layers: StackedLayers
    attention: CrossAttention


def pack_decoder(decoder: Decoder, memory: Memory) -> list[DecoderWeights]:
    """Return the weights of a decoder for each data set of a memory."""
    layers = _pack_layers(decoder.layers, decoder.positions.embedding_dim)
    tree_layers = _pack_layers(decoder.tree_layers, decoder.tree_positions.embedding_dim)
    of_datasets = range(len(memory.tokens))
    embeddings = [_pack_embeddings(decoder, memory, j) for j in of_datasets]
    attention = [_pack_attention(decoder.layers, memory, j) for j in of_datasets]
    return [DecoderWeights(embeddings[j], tree_layers, layers, attention[j]) for j in of_datasets]


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _stacked(tensors: Iterable[Tensor], *shape: int) -> np.ndarray:
    """Stack tensors of one shape; with no tensors the result has shape (0, *shape)."""
    arrays = [tensor.detach().float().numpy() for tensor in tensors]
    return np.ascontiguousarray(np.stack(arrays)) if arrays else np.zeros((0, *shape), dtype=np.float32)


def _norms(norms: list[nn.LayerNorm], width: int = 0) -> np.ndarray:
    return _stacked([torch.stack([norm.weight, norm.bias]) for norm in norms], 2, width)


def _linears(linears: list[nn.Linear], n_in: int = 0, n_out: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (n, in, out) and the biases (n, out) of linear layers."""
    weights = _stacked([linear.weight.T for linear in linears], n_in, n_out)
    return weights, _stacked([linear.bias for linear in linears], n_out)


def _pack_layers(layers: nn.ModuleList, width: int) -> StackedLayers:
    """Return the self-attention and feed-forward of layers, of which there may be none."""
    own: list[Any] = list(layers)
    attentions = [layer.self_attention for layer in own]
    norms, widen, narrow = ([layer.feedforward[i] for layer in own] for i in (0, 1, 3))
    return StackedLayers(
        attentions[0].heads if attentions else 1,
        _norms([a.norm for a in attentions], width),
        *_linears([a.qkv for a in attentions], width, 3 * width),
        *_linears([a.out for a in attentions], width, width),
        _norms(norms, width),
        *_linears(widen, width, width),
        *_linears(narrow, width, width),
    )


def _pack_attention(layers: nn.ModuleList, memory: Memory, j: int) -> CrossAttention:
    """Return the attention of decoder layers to data set `j` of a memory."""
    own: list[Any] = list(layers)
    attentions = [layer.attention for layer in own]
    keys = [key[j].transpose(0, 1).flatten(1) for key, _ in memory.keys_values]
    values = [value[j].transpose(0, 1).flatten(1) for _, value in memory.keys_values]
    return CrossAttention(
        _norms([layer.norm for layer in own]),
        *_linears([a.query for a in attentions]),
        *_linears([a.out for a in attentions]),
        _stacked([layer.tree.weight.T for layer in own]),
        _stacked(keys),
        _stacked(values),
    )


def _pack_embeddings(decoder: Decoder, memory: Memory, j: int) -> Embeddings:
    """Return the embeddings and the output layer for data set `j` of a memory."""
    return Embeddings(
        tokens=_array(memory.tokens[j]),
        positions=_array(decoder.positions.weight),
        parents=_array(decoder.parents.weight),
        siblings=_array(memory.siblings[j]),
        tree_positions=_array(decoder.tree_positions.weight),
        norm=_norms([decoder.norm])[0],
        outputs=_array(memory.outputs[j, :, :-1].T),
        outputs_bias=_array(memory.outputs[j, :, -1]),
    )
