"""Draw programs from the decoder: compiled steps on a processor, torch's on any other device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import TokenTable
from dgsr.generator.compiled_decoder import decode
from dgsr.generator.conditioning.targets import Remainders
from dgsr.generator.decoder import Decoder
from dgsr.generator.encoding import Encoding
from dgsr.generator.packing import pack_attention, pack_layers, pack_reader, pack_tables
from dgsr.kernels.grammar import LENGTH, TreeState, new_tree_state
from dgsr.kernels.sampling import draw_tokens

# Finished programs leave the batch once they are more than this share of it: moving the others'
# caches costs about as much as a step.
_COMPACT_SHARE = 0.15


class Samples(NamedTuple):
    """Programs drawn for each of D data sets, K for each, data set by data set."""

    tokens: np.ndarray  # (D K, max_length) int64, zero after the end
    lengths: np.ndarray  # (D K,) int64
    log_probs: np.ndarray  # (D K,) float64


@torch.inference_mode()
def sample_programs(
    decoder: Decoder,
    encoding: Encoding,
    n_per_dataset: int,
    grammar: Grammar,
    table: TokenTable,
    state: np.ndarray,
) -> Samples:
    """Draw programs from p_theta(f|D).

    Parameters
    ----------
    decoder : Decoder
    encoding : Encoding
        Of D data sets; rows ``j * n_per_dataset`` to ``(j + 1) * n_per_dataset`` of the
        result were drawn for data set j.
    n_per_dataset : int
    grammar : Grammar
    table : TokenTable
        Token table of the library.
    state : ndarray of 4 uint64
        Random state, advanced by the call.

    Returns
    -------
    Samples
    """
    n_programs = len(encoding) * n_per_dataset
    tree = new_tree_state(n_programs, grammar.max_length)
    tokens = np.zeros((n_programs, grammar.max_length), dtype=np.int64)
    log_probs = np.zeros(n_programs)
    draw = _draw_compiled if encoding.latents.device.type == "cpu" else _draw_with_torch
    draw(decoder, encoding, n_per_dataset, grammar, table, state, tree, tokens, log_probs)
    return Samples(tokens, tree.counters[:, LENGTH].copy(), log_probs)


def _draw_compiled(
    decoder: Decoder,
    encoding: Encoding,
    n_per_dataset: int,
    grammar: Grammar,
    table: TokenTable,
    state: np.ndarray,
    tree: TreeState,
    tokens: np.ndarray,
    log_probs: np.ndarray,
) -> None:
    """Draw the programs of one data set after the other with `dgsr.generator.compiled_decoder`."""
    latents = encoding.latents
    memory = decoder.memory(latents)
    layers = pack_layers(decoder.layers, decoder.positions.embedding_dim)
    tree_layers = pack_layers(decoder.tree_layers, decoder.tree_positions.embedding_dim)
    reader = None if decoder.reader is None or encoding.tables is None else pack_reader(decoder.reader)
    for j in range(len(latents)):
        own = slice(j * n_per_dataset, (j + 1) * n_per_dataset)
        decode(
            pack_tables(decoder, memory, j),
            tree_layers,
            layers,
            pack_attention(decoder.layers, memory, j),
            reader,
            table,
            encoding.tables,
            encoding.bank,
            j,
            decoder.tree_heads,
            decoder.heads,
            tree.counters[own],
            tree.stack[own],
            grammar,
            tokens[own],
            log_probs[own],
            state,
        )


def _draw_with_torch(
    decoder: Decoder,
    encoding: Encoding,
    n_per_dataset: int,
    grammar: Grammar,
    table: TokenTable,
    state: np.ndarray,
    tree: TreeState,
    tokens: np.ndarray,
    log_probs: np.ndarray,
) -> None:
    """Draw all programs at once, step by step with a key-value cache."""
    latents, tables = encoding.latents, encoding.tables
    device = latents.device
    n_datasets, n_tokens = len(latents), decoder.n_tokens
    n_programs, max_length = tokens.shape
    memory = decoder.memory(latents)
    if n_datasets > 1:
        of_program = torch.arange(n_datasets, device=device).repeat_interleave(n_per_dataset)
        memory = memory.of(of_program)
    cache = decoder.new_cache(n_programs, max_length, like=latents)
    remainders = None
    if tables is not None:
        remainders = Remainders(
            tables, encoding.bank, table, np.arange(n_datasets).repeat(n_per_dataset), max_length
        )
    active = np.arange(n_programs)
    inputs = np.full((3, n_programs), n_tokens)  # previous token, parent, sibling; at first none
    finished = np.zeros(n_programs, dtype=np.bool_)  # of the programs still in the batch
    for t in range(max_length):
        previous, parents, siblings = torch.from_numpy(inputs).to(device)
        described = None
        if remainders is not None:
            moments, by_column = remainders.describe(active)
            described = torch.from_numpy(moments).to(device), torch.from_numpy(by_column).to(device)
        step = decoder.step(t, previous, parents, siblings, memory, cache, described)
        logits = step.float().cpu().numpy()
        draw_tokens(
            logits,
            active,
            t,
            tree.counters,
            tree.stack,
            grammar,
            tokens,
            log_probs,
            state,
            inputs,
            finished,
        )
        if remainders is not None:
            remainders.append(tokens[:, t], active)
        n_finished = np.count_nonzero(finished)
        if n_finished == len(active):
            break
        if n_finished > _COMPACT_SHARE * len(active):
            kept = np.flatnonzero(~finished)
            active, finished = active[kept], finished[kept]
            inputs = inputs.take(kept, axis=1)
            rows = torch.from_numpy(kept).to(device)
            cache = [_rows_of_cache(c, rows, t + 1) for c in cache]
            if n_datasets > 1:
                memory = memory.of(rows)


def _rows_of_cache(cache: Tensor, rows: Tensor, n_steps: int) -> Tensor:
    """Keep `rows` of a cache (2, B, H, L, W), of which the first `n_steps` places are written."""
    kept = cache.new_empty(2, len(rows), *cache.shape[2:])
    kept[:, :, :, :n_steps] = cache[:, rows, :, :n_steps]
    return kept
