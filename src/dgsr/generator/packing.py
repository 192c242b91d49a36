"""The decoder's weights as arrays, for `dgsr.generator.compiled_decoder`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.generator.compiled_decoder import (
    CrossAttention,
    DecoderWeights,
    Embeddings,
    FeatureWeights,
    StackedLayers,
)
from dgsr.generator.decoder import Decoder, FeatureEmbedding, Memory


def pack_decoder(decoder: Decoder, memory: Memory) -> list[DecoderWeights]:
    """Return the weights of a decoder for each data set of a memory."""
    layers = _pack_layers(decoder.layers, decoder.positions.embedding_dim)
    tree_layers = _pack_layers(decoder.tree_layers, decoder.tree_positions.embedding_dim)
    return [
        DecoderWeights(
            _pack_embeddings(decoder, memory, j),
            tree_layers,
            layers,
            _pack_attention(decoder.layers, memory, j),
        )
        for j in range(len(memory.tokens))
    ]


def pack_features(features: FeatureEmbedding) -> FeatureWeights:
    """Return the weights that embed the features of targets."""
    linears = features.column, features.widen, features.narrow, features.query
    return FeatureWeights(*(_array(part) for linear in linears for part in (linear.weight.T, linear.bias)))


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _stacked(tensors: Iterable[Tensor], *shape: int) -> np.ndarray:
    """Stack tensors of one shape; with no tensors the result has shape (0, *shape)."""
    arrays = [tensor.detach().float().numpy() for tensor in tensors]
    return np.ascontiguousarray(np.stack(arrays)) if arrays else np.zeros((0, *shape), dtype=np.float32)


def _norm(norm: nn.LayerNorm) -> Tensor:
    return torch.stack([norm.weight, norm.bias])


def _pack_layers(layers: nn.ModuleList, width: int) -> StackedLayers:
    """Return the self-attention and feed-forward of layers; there may be no layers."""
    own: list[Any] = list(layers)
    attentions = [layer.self_attention for layer in own]
    norms, widen, narrow = ([layer.feedforward[i] for layer in own] for i in (0, 1, 3))
    return StackedLayers(
        heads=attentions[0].heads if attentions else 1,
        norm=_stacked([_norm(a.norm) for a in attentions], 2, width),
        qkv=_stacked([a.qkv.weight.T for a in attentions], width, 3 * width),
        qkv_bias=_stacked([a.qkv.bias for a in attentions], 3 * width),
        out=_stacked([a.out.weight.T for a in attentions], width, width),
        out_bias=_stacked([a.out.bias for a in attentions], width),
        forward_norm=_stacked([_norm(norm) for norm in norms], 2, width),
        widen=_stacked([linear.weight.T for linear in widen], width, width),
        widen_bias=_stacked([linear.bias for linear in widen], width),
        narrow=_stacked([linear.weight.T for linear in narrow], width, width),
        narrow_bias=_stacked([linear.bias for linear in narrow], width),
    )


def _pack_attention(layers: nn.ModuleList, memory: Memory, j: int) -> CrossAttention:
    """Return the attention of decoder layers to data set `j` of a memory."""
    own: list[Any] = list(layers)
    attentions = [layer.attention for layer in own]
    merged = [
        (k[j].transpose(0, 1).flatten(1), v[j].transpose(0, 1).flatten(1)) for k, v in memory.keys_values
    ]
    return CrossAttention(
        norm=_stacked([_norm(layer.norm) for layer in own]),
        query=_stacked([a.query.weight.T for a in attentions]),
        query_bias=_stacked([a.query.bias for a in attentions]),
        out=_stacked([a.out.weight.T for a in attentions]),
        out_bias=_stacked([a.out.bias for a in attentions]),
        tree=_stacked([layer.tree.weight.T for layer in own]),
        keys=_stacked([k for k, _ in merged]),
        values=_stacked([v for _, v in merged]),
    )


def _pack_embeddings(decoder: Decoder, memory: Memory, j: int) -> Embeddings:
    """Return the embeddings and the output layer for data set `j` of a memory."""
    return Embeddings(
        tokens=_array(memory.tokens[j]),
        positions=_array(decoder.positions.weight),
        parents=_array(decoder.parents.weight),
        siblings=_array(memory.siblings[j]),
        tree_positions=_array(decoder.tree_positions.weight),
        norm=_array(_norm(decoder.norm)),
        outputs=_array(memory.outputs[j, :, :-1].T),
        outputs_bias=_array(memory.outputs[j, :, -1]),
    )
