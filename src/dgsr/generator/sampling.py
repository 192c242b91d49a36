"""Draw programs from the decoder: with compiled loops on a processor, with torch on any other device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from dgsr.expressions.programs.constraints import Grammar
from dgsr.generator.compiled_decoder import decode, new_buffers
from dgsr.generator.decoder import Decoder
from dgsr.generator.encoding import Encoding
from dgsr.generator.packing import pack_decoder
from dgsr.kernels.grammar import LENGTH, TreeState, new_tree_state
from dgsr.kernels.sampling import Draws, draw_tokens

# Share of complete programs in a batch above which they are removed. Copying the cache of the others takes
# about as long as one step.
_COMPACT_SHARE = 0.15


class Samples(NamedTuple):
    """Programs drawn for each of D data sets, K for each, data set by data set."""

    tokens: np.ndarray  # (D K, max_length) int64, zero after the end
    lengths: np.ndarray  # (D K,) int64
    log_probs: np.ndarray  # (D K,) float64


@torch.inference_mode()
def sample_programs(
    decoder: Decoder, encoding: Encoding, n_per_dataset: int, grammar: Grammar, state: np.ndarray
) -> Samples:
    """Draw programs from p_theta(f|D), `n_per_dataset` for each of the D encoded data sets, one by one.

    The state of the random number generator, 4 uint64, is advanced.
    """
    n_programs = len(encoding) * n_per_dataset
    draws = Draws(
        new_tree_state(n_programs, grammar.max_length),
        np.zeros((n_programs, grammar.max_length), dtype=np.int64),
        np.zeros(n_programs),
    )
    draw = _draw_compiled if encoding.latents.device.type == "cpu" else _draw_with_torch
    draw(decoder, encoding, grammar, draws, state)
    return Samples(draws.tokens, draws.tree.counters[:, LENGTH].copy(), draws.log_probs)


def _draw_compiled(
    decoder: Decoder, encoding: Encoding, grammar: Grammar, draws: Draws, state: np.ndarray
) -> None:
    """Draw the programs data set by data set with `dgsr.generator.compiled_decoder`."""
    n = len(draws.tokens) // len(encoding)
    packed = pack_decoder(decoder, decoder.memory(encoding.latents))
    buffers = new_buffers(packed[0], grammar.max_length)
    for j, weights in enumerate(packed):
        own = slice(j * n, (j + 1) * n)
        tree = TreeState(draws.tree.counters[own], draws.tree.stack[own])
        decode(weights, grammar, Draws(tree, draws.tokens[own], draws.log_probs[own]), buffers, state)


def _draw_with_torch(
    decoder: Decoder, encoding: Encoding, grammar: Grammar, draws: Draws, state: np.ndarray
) -> None:
    """Draw all programs together, one token of each per step, with a cache of keys and values."""
    device, n_datasets = encoding.latents.device, len(encoding)
    n_programs, max_length = draws.tokens.shape
    dataset = np.arange(n_datasets).repeat(n_programs // n_datasets)
    memory = decoder.memory(encoding.latents)
    if n_datasets > 1:
        memory = memory.of(torch.from_numpy(dataset).to(device))
    cache = decoder.new_cache(n_programs, max_length)
    active = np.arange(n_programs)
    inputs = np.full((3, n_programs), decoder.n_tokens)  # previous token, parent, sibling; initially none
    finished = np.zeros(n_programs, dtype=np.bool_)  # one entry for each program in the batch
    for t in range(max_length):
        # With one data set all programs share the memory; with several each program has its own row.
        shape = (1, len(active)) if n_datasets == 1 else (len(active), 1)
        previous, parents, siblings = torch.from_numpy(inputs).to(device).view(3, *shape, 1)
        logits = decoder(previous, parents, siblings, memory, cache)  # (*shape, 1, n_tokens)
        rows = logits.float().cpu().numpy().reshape(len(active), -1)
        draw_tokens(rows, active, t, draws, grammar, state, inputs, finished)
        n_finished = np.count_nonzero(finished)
        if n_finished == len(active):
            break
        if n_finished > _COMPACT_SHARE * len(active):
            kept = np.flatnonzero(~finished)
            active, finished = active[kept], finished[kept]
            inputs = inputs.take(kept, axis=1)
            remaining = torch.from_numpy(kept).to(device)
            cache.keep(remaining)
            if n_datasets > 1:
                memory = memory.of(remaining)
