"""Draw programs from the decoder, all of a batch at once, step by step with a key-value cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dgsr.expressions.constraints import Grammar
from dgsr.generator.decoder import Decoder
from dgsr.kernels.grammar import LENGTH, new_tree_state
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
    decoder: Decoder, latents: Tensor, n_per_dataset: int, grammar: Grammar, state: np.ndarray
) -> Samples:
    """Draw programs from p_theta(f|D).

    Parameters
    ----------
    decoder : Decoder
    latents : Tensor of shape (D, S, encoder_width)
        Encodings of D data sets; rows ``j * n_per_dataset`` to ``(j + 1) * n_per_dataset`` of the
        result were drawn for data set j.
    n_per_dataset : int
    grammar : Grammar
    state : ndarray of 4 uint64
        Random state, advanced by the call.

    Returns
    -------
    Samples
    """
    device = latents.device
    n_datasets, n_tokens = len(latents), decoder.n_tokens
    n_programs = n_datasets * n_per_dataset
    max_length = grammar.max_length
    tree = new_tree_state(n_programs, max_length)
    tokens = np.zeros((n_programs, max_length), dtype=np.int64)
    log_probs = np.zeros(n_programs)

    memory = decoder.memory(latents)
    if n_datasets > 1:
        of_program = torch.arange(n_datasets, device=device).repeat_interleave(n_per_dataset)
        memory = memory.of(of_program)
    cache = decoder.new_cache(n_programs, max_length, like=latents)
    active = np.arange(n_programs)
    inputs = np.full((3, n_programs), n_tokens)  # previous token, parent, sibling; at first none
    finished = np.zeros(n_programs, dtype=np.bool_)  # of the programs still in the batch
    for t in range(max_length):
        previous, parents, siblings = torch.from_numpy(inputs).to(device)
        logits = decoder.step(t, previous, parents, siblings, memory, cache).float().cpu().numpy()
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
    return Samples(tokens, tree.counters[:, LENGTH].copy(), log_probs)


def _rows_of_cache(cache: Tensor, rows: Tensor, n_steps: int) -> Tensor:
    """Keep `rows` of a cache (2, B, H, L, W), of which the first `n_steps` places are written."""
    kept = cache.new_empty(2, len(rows), *cache.shape[2:])
    kept[:, :, :, :n_steps] = cache[:, rows, :, :n_steps]
    return kept
