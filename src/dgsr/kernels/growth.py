"""Programs written token by token under the constraints, as slices of others or grown at random.

A program is written and checked in one pass, which ends at the first token that violates the constraints. In
this file `grammar` is a `dgsr.expressions.programs.constraints.Grammar`, `state` is the state of the random
number generator (`dgsr.kernels.random`), which advances, and `programs` are `dgsr.kernels.programs.Programs`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.grammar import DANGLING, DEPTH, LENGTH, N_CONSTANTS, allowed, parent_of_next, push, reset
from dgsr.kernels.random import integer, uniform

#: Most attempts of a genetic operator to make a valid child.
ATTEMPTS = 4
#: Attempts at a random program in a row after which the constraints are assumed to allow none.
MOST_ATTEMPTS = 200_000
#: Initial value of a constant that does not come from a parent.
NEW_CONSTANT = 1.0


class Draft(NamedTuple):
    """A partly written program, with its tree state."""

    tokens: np.ndarray  # (max_length,) int64
    constants: np.ndarray  # (max_constants,) float64
    counters: np.ndarray  # (5,) int64
    stack: np.ndarray  # (4, max_length + 1) int64


class Choices(NamedTuple):
    """The tokens that a new node may have, by arity."""

    tokens: np.ndarray  # (3, n_tokens) int64: token ids of arity 0, 1 and 2
    counts: np.ndarray  # (3,) int64: numbers of tokens of each arity


@compiled()
def new_draft(max_length, n_constants):
    """Return a Draft for programs of up to `max_length` tokens and `n_constants` constants."""
    return Draft(
        np.zeros(max_length, dtype=np.int64),
        np.zeros(n_constants),
        np.zeros(5, dtype=np.int64),
        np.zeros((4, max_length + 1), dtype=np.int64),
    )


@compiled()
def choices_of(grammar, n_constants):
    """Return the Choices of a grammar; constants are included where programs have room for any."""
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


@allocation_free
def fitting(token, parent, left, right, weight):
    """Return the weight of a token given its parent and its children, -1 for none; see `random_token`."""
    result = weight[parent, token]
    if left >= 0:
        result *= weight[token, left]
    if right >= 0:
        result *= weight[token, right]
    return result


@allocation_free
def random_token(arities, but, around, choices, weight, state):
    """Return a token drawn with probability proportional to its weight, or -1 if no token can be drawn.

    It has an arity between the two `arities`, and is not the token `but`. `around` has its parent, which is
    the number of tokens for the root, and its left and right child, -1 where it does not exist yet. `weight`
    is that of the grammar.
    """
    parent, left, right = around
    total = 0.0
    for arity in range(arities[0], arities[1] + 1):
        for i in range(choices.counts[arity]):
            token = choices.tokens[arity, i]
            if token != but:
                total += fitting(token, parent, left, right, weight)
    rest = uniform(state) * total
    drawn = -1
    for arity in range(arities[0], arities[1] + 1):
        for i in range(choices.counts[arity]):
            token = choices.tokens[arity, i]
            if token != but and rest >= 0.0:
                drawn = token
                rest -= fitting(token, parent, left, right, weight)
    return drawn


@allocation_free
def subtree_end(tokens, start, arity):
    """Return the position after the last token of the subtree that starts at `start`."""
    missing = 1
    end = start
    while missing > 0:
        missing += arity[tokens[end]] - 1
        end += 1
    return end


@allocation_free
def append(token, value, draft, grammar):
    """Append one token to a draft, a constant with `value`; return False where it is not allowed."""
    counters = draft.counters
    if not allowed(token, counters, draft.stack, grammar):
        return False
    if grammar.is_constant[token]:
        draft.constants[counters[N_CONSTANTS]] = value
    draft.tokens[counters[LENGTH]] = token
    push(token, counters, draft.stack, grammar)
    return True


@allocation_free
def append_slice(programs, b, start, stop, draft, grammar):
    """Append the tokens from `start` to `stop` of program `b`, with their constants, to a draft.

    Return False where a token is not allowed; the draft then ends before it.
    """
    tokens, constants = programs.tokens[b], programs.constants[b]
    k = 0
    if len(constants) > 0:
        for i in range(start):
            k += grammar.is_constant[tokens[i]]
    for i in range(start, stop):
        is_constant = grammar.is_constant[tokens[i]]
        if not append(tokens[i], constants[k] if is_constant else 0.0, draft, grammar):
            return False
        k += is_constant
    return True


@allocation_free
def grow(height, full, draft, grammar, choices, state):
    """Append a random subtree to a draft; return False where no token is allowed.

    Its leaves are at most `height` below its root, and exactly as far in a full tree, unless the constraints
    forbid it.
    """
    counters, counts = draft.counters, choices.counts
    n_operators = counts[1] + counts[2]
    root = counters[DEPTH]
    rest = counters[DANGLING] - 1
    while counters[DANGLING] > rest:
        around = parent_of_next(counters, draft.stack, len(grammar.arity)), -1, -1
        is_leaf = n_operators == 0 or counters[DEPTH] - root >= height
        arities = (1 if full and not is_leaf else 0, 0 if is_leaf else 2)
        appended = False
        for _ in range(ATTEMPTS):
            token = random_token(arities, -1, around, choices, grammar.weight, state)
            if append(token, NEW_CONSTANT, draft, grammar):
                appended = True
                break
        if not appended:  # any allowed token is taken, leaves first, starting at a random one
            for arity in range(3):
                first = integer(state, max(counts[arity], 1))
                for i in range(counts[arity]):
                    token = choices.tokens[arity, (first + i) % counts[arity]]
                    if not appended and append(token, NEW_CONSTANT, draft, grammar):
                        appended = True
        if not appended:
            return False
    return True


@allocation_free
def store(draft, b, programs):
    """Write the draft as program `b` of `programs`."""
    tokens, lengths, constants = programs
    length = draft.counters[LENGTH]
    for i in range(length):
        tokens[b, i] = draft.tokens[i]
    for i in range(length, lengths[b]):
        tokens[b, i] = 0
    lengths[b] = length
    for i in range(constants.shape[1]):
        constants[b, i] = draft.constants[i] if i < draft.counters[N_CONSTANTS] else NEW_CONSTANT


@compiled(nogil=True)
def fill_with_random_programs(programs, grammar, min_height, max_height, full_share, state):
    """Write random valid programs, ramped, full or grown; return False if none is found.

    The tokens and lengths of `programs` must be 0, and the rows as wide as `dgsr.kernels.evolve.vary`
    requires. The height of a tree is uniform between two numbers; trees that would be shorter than
    `grammar.min_length` are higher. With probability `full_share` a tree is full, with all leaves at this
    height as far as the constraints allow; others have leaves at any depth. 0.5 is Koza's "half and half".

    References
    ----------
    Koza, Genetic Programming, 1992, section 6.2.
    """
    width, n_constants = programs.tokens.shape[1], programs.constants.shape[1]
    draft = new_draft(width, n_constants)
    choices = choices_of(grammar, n_constants)
    for b in range(len(programs.lengths)):
        height = min_height + integer(state, max_height - min_height + 1)
        full = uniform(state) < full_share
        for _ in range(MOST_ATTEMPTS):
            reset(draft.counters)
            if grow(height, full, draft, grammar, choices, state):
                break
        else:
            return False
        store(draft, b, programs)
    return True
