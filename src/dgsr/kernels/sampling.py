"""One step of sampling for many programs: mask the logits, draw a token, update the tree state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.grammar import (
    DANGLING,
    TreeState,
    allowed,
    length_logit,
    parent_of_next,
    push,
    sibling_of_next,
)
from dgsr.kernels.random import uniform


class Draws(NamedTuple):
    """Partly drawn programs."""

    tree: TreeState
    tokens: np.ndarray  # (n_programs, max_length) int64
    log_probs: np.ndarray  # (n_programs,) float64: log-probability of the tokens drawn so far


@compiled()
def draw_tokens(logits, active, t, draws, grammar, state, inputs, finished):
    """Draw the token at position `t` of every unfinished active program, and write all results in place.

    Parameters
    ----------
    logits : ndarray of shape (n_active, n_tokens), float32
        Logits of the decoder, without constraints and the soft length prior.
    active : ndarray of shape (n_active,), int64
        Indices of the programs, in `draws`, to which the rows of `logits` belong.
    t, draws, grammar, state
    inputs : ndarray of shape (3, n_active), int64
        Receives the decoder's inputs of the next step: the token drawn, and the parent and the sibling of the
        token after it. A token that does not exist is `n_tokens`, and so are all three of a finished program.
    finished : ndarray of shape (n_active,), bool
        Receives True where the program is complete; programs that are True already are skipped.

    Raises
    ------
    ValueError
        If the decoder's logits are not finite, or no token is allowed.
    """
    n_active, n_tokens = logits.shape
    counters, stack = draws.tree
    tokens, log_probs = draws.tokens, draws.log_probs
    weights = np.empty(n_tokens)
    for a in range(n_active):
        if finished[a]:
            inputs[:, a] = n_tokens
            continue
        b = active[a]
        highest = -np.inf
        for token in range(n_tokens):
            if allowed(token, counters[b], stack[b], grammar):
                weights[token] = logits[a, token] + length_logit(token, counters[b], grammar)
                highest = max(highest, weights[token])
            else:
                weights[token] = -np.inf
        total = 0.0
        for token in range(n_tokens):
            weights[token] = np.exp(weights[token] - highest)
            total += weights[token]
        u = uniform(state) * total
        drawn = -1
        for token in range(n_tokens):
            if weights[token] > 0.0:
                drawn = token
                u -= weights[token]
                if u < 0.0:
                    break
        if drawn < 0:
            raise ValueError(
                "No token can be drawn: the decoder's logits are not finite, or the constraints leave no "
                "token; lower learning_rate, or relax min_length, max_length and nested."
            )
        log_probs[b] += np.log(weights[drawn] / total)
        tokens[b, t] = drawn
        push(drawn, counters[b], stack[b], grammar)
        inputs[0, a] = drawn
        inputs[1, a] = parent_of_next(counters[b], stack[b], n_tokens)
        inputs[2, a] = sibling_of_next(counters[b], stack[b], n_tokens)
        finished[a] = counters[b, DANGLING] == 0
