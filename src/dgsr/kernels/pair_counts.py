"""Counts of parent-child pairs of tokens, and sums over these pairs, in compiled code."""

from __future__ import annotations

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.grammar import parent_of_next, push, reset


@compiled()
def pair_counts(tokens, lengths, grammar, n_operators):
    """Return how often each token is under each parent, shape (n_programs, n_operators + 1, n_tokens).

    Parents are the operators, which are the first tokens of a library, then the root.
    """
    counts = np.zeros((len(lengths), n_operators + 1, len(grammar.arity)))
    counters = np.zeros(5, dtype=np.int64)
    stack = np.zeros((4, tokens.shape[1] + 1), dtype=np.int64)
    for b in range(len(lengths)):
        reset(counters)
        for i in range(lengths[b]):
            counts[b, parent_of_next(counters, stack, n_operators), tokens[b, i]] += 1.0
            push(tokens[b, i], counters, stack, grammar)
    return counts


@compiled()
def pair_sums(tokens, lengths, arity, values):
    """Return the sums over a program's tokens of a value for the token and its parent, shape (n_programs,).

    `values` has the shape (n_operators + 1, n_tokens); the parents are the operators, then the root.
    """
    sums = np.zeros(len(lengths))
    parents = np.zeros(tokens.shape[1] + 1, dtype=np.int64)  # of the nodes that follow, the next one last
    for b in range(len(lengths)):
        parents[0], n = len(values) - 1, 1
        for i in range(lengths[b]):
            token = tokens[b, i]
            n -= 1
            sums[b] += values[parents[n], token]
            for _ in range(arity[token]):
                parents[n] = token
                n += 1
    return sums
