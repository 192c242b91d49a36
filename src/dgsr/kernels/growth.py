"""Programs written token by token under the constraints: slices of others, or grown at random.

Each token goes through `dgsr.kernels.grammar`; so writing a program and checking its constraints are one
pass, and one that breaks them is given up at its first wrong token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.grammar import DANGLING, DEPTH, LENGTH, N_CONSTANTS, allowed, push, reset
from dgsr.kernels.random import integer, uniform

# Code that allocates nothing can do without numba's reference counts: atomic operations that else
# take most of the time of functions as small as these.
njit_small = compiled(_nrt=False)

# How often an operator may try again when its child breaks the constraints, the first try included.
ATTEMPTS = 4
# The value of a constant that no parent had.
NEW_CONSTANT = 1.0


class Draft(NamedTuple):
    """A child being written, with its tree state."""

    tokens: np.ndarray  # (max_length,) int64
    constants: np.ndarray  # (max_constants,) float64
    counters: np.ndarray  # (5,) int64
    stack: np.ndarray  # (4, max_length + 1) int64


class Choices(NamedTuple):
    """The tokens a fresh node may carry, by arity."""

    tokens: np.ndarray  # (3, n_tokens) int64
    counts: np.ndarray  # (3,) int64


@compiled()
def new_draft(max_length, n_constants):
    return Draft(
        np.zeros(max_length, dtype=np.int64),
        np.zeros(n_constants),
        np.zeros(5, dtype=np.int64),
        np.zeros((4, max_length + 1), dtype=np.int64),
    )


@compiled()
def choices_of(grammar, n_constants):
    n_tokens = len(grammar.arity)
    tokens = np.zeros((3, n_tokens), dtype=np.int64)
    counts = np.zeros(3, dtype=np.int64)
    for token in range(n_tokens):
        arity = grammar.arity[token]
        if (
            arity > 0
            or grammar.is_variable[token]
            or (grammar.is_constant[token] and min(n_constants, grammar.max_constants) > 0)
        ):
            tokens[arity, counts[arity]] = token
            counts[arity] += 1
    return Choices(tokens, counts)


@njit_small
def random_leaf(choices, state):
    return choices.tokens[0, integer(state, choices.counts[0])]


@njit_small
def random_token(first_arity, last_arity, but, choices, weight, state):
    """Draw a token of an arity within the two by weight, another than `but`; -1 where there is none."""
    total = 0.0
    for arity in range(first_arity, last_arity + 1):
        for i in range(choices.counts[arity]):
            if choices.tokens[arity, i] != but:
                total += weight[choices.tokens[arity, i]]
    rest = uniform(state) * total
    drawn = -1
    for arity in range(first_arity, last_arity + 1):
        for i in range(choices.counts[arity]):
            token = choices.tokens[arity, i]
            if token != but and rest >= 0.0:
                drawn = token
                rest -= weight[token]
    return drawn


@njit_small
def random_operator(choices, weight, state):
    return random_token(1, 2, -1, choices, weight, state)


@njit_small
def subtree_end(tokens, start, arity):
    """Return the position after the last token of the subtree that starts at `start`."""
    missing = 1
    end = start
    while missing > 0:
        missing += arity[tokens[end]] - 1
        end += 1
    return end


@njit_small
def append(token, value, draft, grammar):
    """Append one token, a constant with `value`; False where it is not allowed."""
    counters = draft.counters
    if not allowed(token, counters, draft.stack, grammar):
        return False
    if grammar.is_constant[token]:
        draft.constants[counters[N_CONSTANTS]] = value
    draft.tokens[counters[LENGTH]] = token
    push(token, counters, draft.stack, grammar)
    return True


@njit_small
def append_slice(tokens, constants, start, stop, draft, grammar):
    """Append ``tokens[start:stop]`` with the constants that belong to them."""
    counters, stack = draft.counters, draft.stack
    k = 0
    if len(constants) > 0:
        for i in range(start):
            k += grammar.is_constant[tokens[i]]
    for i in range(start, stop):
        token = tokens[i]
        if not allowed(token, counters, stack, grammar):
            return False
        if grammar.is_constant[token]:
            draft.constants[counters[N_CONSTANTS]] = constants[k]
            k += 1
        draft.tokens[counters[LENGTH]] = token
        push(token, counters, stack, grammar)
    return True


@njit_small
def grow(height, full, draft, grammar, choices, state):
    """Append a random subtree with its leaves at most `height` below its root.

    With `full` all leaves are at that depth, as far as the constraints allow; without, a node may
    be a leaf anywhere. Returns False where no token is allowed.
    """
    counters, counts = draft.counters, choices.counts
    n_operators = counts[1] + counts[2]
    operator_weight = 0.0
    for arity in range(1, 3):
        for i in range(counts[arity]):
            operator_weight += grammar.weight[choices.tokens[arity, i]]
    leaf_ratio = counts[0] / (counts[0] + operator_weight)
    root = counters[DEPTH]
    rest = counters[DANGLING] - 1
    while counters[DANGLING] > rest:
        leaf = n_operators == 0 or counters[DEPTH] - root >= height
        if not leaf and not full:
            leaf = uniform(state) < leaf_ratio
        appended = False
        for _ in range(ATTEMPTS):
            token = random_leaf(choices, state) if leaf else random_operator(choices, grammar.weight, state)
            if append(token, NEW_CONSTANT, draft, grammar):
                appended = True
                break
        if not appended:  # whatever is allowed, leaves first, from a random place on
            for arity in range(3):
                first = integer(state, max(counts[arity], 1))
                for i in range(counts[arity]):
                    token = choices.tokens[arity, (first + i) % counts[arity]]
                    if not appended and append(token, NEW_CONSTANT, draft, grammar):
                        appended = True
        if not appended:
            return False
    return True


@njit_small
def store(draft, b, tokens, lengths, constants):
    """Make the draft program `b` of a population."""
    length = draft.counters[LENGTH]
    for i in range(length):
        tokens[b, i] = draft.tokens[i]
    for i in range(length, lengths[b]):
        tokens[b, i] = 0
    lengths[b] = length
    for i in range(constants.shape[1]):
        constants[b, i] = draft.constants[i] if i < draft.counters[N_CONSTANTS] else NEW_CONSTANT


def random_programs(n_programs, grammar, width, n_constants, min_height, max_height, full_share, state):
    """Draw a first population: ramped, full or grown.

    Parameters
    ----------
    n_programs : int
    grammar : Grammar
    width : int
        Columns of the token array, at least `grammar.max_length`.
    n_constants : int
        Columns of the constant array; at least `grammar.max_constants` where the library has
        ``const``, else 0.
    min_height, max_height : int
        A tree's height is uniform between the two. Where a tree of that height would be shorter than
        `grammar.min_length`, it is higher.
    full_share : float
        Probability that a tree is full, with all its leaves at that height as far as the constraints
        allow it, and not grown, with leaves anywhere; 0.5 is half and half.
    state : ndarray of 4 uint64
        Generator state; advanced.

    Returns
    -------
    tokens, lengths, constants
        The same arrays as in `vary`; all programs meet the constraints.

    References
    ----------
    Koza, Genetic Programming, 1992, section 6.2.
    """
    tokens = np.zeros((n_programs, width), dtype=np.int64)
    lengths = np.zeros(n_programs, dtype=np.int64)
    constants = np.empty((n_programs, n_constants))
    _random_programs(grammar, min_height, max_height, full_share, state, tokens, lengths, constants)
    return tokens, lengths, constants


@compiled(nogil=True)
def _random_programs(grammar, min_height, max_height, full_share, state, tokens, lengths, constants):
    n_constants = constants.shape[1]
    draft = new_draft(tokens.shape[1], n_constants)
    choices = choices_of(grammar, n_constants)
    for b in range(len(lengths)):
        height = min_height + integer(state, max_height - min_height + 1)
        full = uniform(state) < full_share
        reset(draft.counters)
        while not grow(height, full, draft, grammar, choices, state):
            reset(draft.counters)
        store(draft, b, tokens, lengths, constants)
