"""The decoder's weights as arrays, for the compiled steps of `dgsr.generator.compiled_decoder`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.generator.compiled_decoder import Attending, ReaderWeights, StackedLayers, Tables

if TYPE_CHECKING:
    from dgsr.generator.decoder import Decoder, Memory
    from dgsr.generator.reader import Reader


def _array(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _stacked(tensors: Iterable[Tensor], *shape: int) -> np.ndarray:
    """Stack tensors that are alike; no tensors have the shape given."""
    arrays = [tensor.detach().float().numpy() for tensor in tensors]
    return np.ascontiguousarray(np.stack(arrays)) if arrays else np.zeros((0, *shape), dtype=np.float32)


def _norm(norm: nn.LayerNorm) -> Tensor:
    return torch.stack([norm.weight, norm.bias])


def pack_layers(layers: nn.ModuleList, width: int) -> StackedLayers:
    """Return self-attention and feed-forward of layers, of which there may be none."""
    own: list[Any] = list(layers)
    attentions = [layer.self_attention for layer in own]
    norms, widen, narrow = ([layer.feedforward[i] for layer in own] for i in (0, 1, 3))
    return StackedLayers(
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


def pack_attention(layers: nn.ModuleList, memory: Memory, j: int) -> Attending:
    """Return the attention of decoder layers to data set `j` of a memory."""
    own: list[Any] = list(layers)
    attentions = [layer.attention for layer in own]
    merged = [
        (k[j].transpose(0, 1).flatten(1), v[j].transpose(0, 1).flatten(1)) for k, v in memory.keys_values
    ]
    return Attending(
        norm=_stacked([_norm(layer.norm) for layer in own]),
        query=_stacked([a.query.weight.T for a in attentions]),
        query_bias=_stacked([a.query.bias for a in attentions]),
        out=_stacked([a.out.weight.T for a in attentions]),
        out_bias=_stacked([a.out.bias for a in attentions]),
        tree=_stacked([layer.tree.weight.T for layer in own]),
        keys=_stacked([k for k, _ in merged]),
        values=_stacked([v for _, v in merged]),
    )


def pack_tables(decoder: Decoder, memory: Memory, j: int) -> Tables:
    """Return what tokens are read as and chosen by for data set `j` of a memory."""
    return Tables(
        tokens=_array(memory.tokens[j]),
        positions=_array(decoder.positions.weight),
        parents=_array(decoder.parents.weight),
        siblings=_array(memory.siblings[j]),
        tree_positions=_array(decoder.tree_positions.weight),
        norm=_array(_norm(decoder.norm)),
        outputs=_array(memory.outputs[j, :, :-1].T),
        outputs_bias=_array(memory.outputs[j, :, -1]),
    )


def pack_reader(reader: Reader) -> ReaderWeights:
    """Return the weights of a reader."""
    linears = reader.column, reader.widen, reader.narrow, reader.query
    return ReaderWeights(*(_array(part) for linear in linears for part in (linear.weight.T, linear.bias)))
