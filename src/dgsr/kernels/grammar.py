"""The constraints on programs as compiled code.

A partial program in prefix order is described by its *tree state* (Petersen et al., ICLR 2021): a few
counters and a stack of the operators with missing children. `allowed` returns whether a token may come next,
and `push` updates the tree state by a token. Sampler, prior and genetic operators all use these two, so they
agree on which programs are valid. In this file `counters` and `stack` are the tree state of one program, rows
of a `TreeState`, and `grammar` is a `dgsr.expressions.programs.constraints.Grammar`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled

# Entries of the counters.
DEPTH, DANGLING, LENGTH, N_CONSTANTS, N_VARIABLES = range(5)
# Rows of the stack, which has a column for each operator with a missing child.
PARENT, REMAINING, FIRST_CHILD, NESTED = range(4)


class TreeState(NamedTuple):
    """Tree states of many programs."""

    counters: np.ndarray  # (n_programs, 5) int64
    stack: np.ndarray  # (n_programs, 4, max_length + 1) int64


def new_tree_state(n_programs: int, max_length: int) -> TreeState:
    """Return the states of `n_programs` programs without tokens."""
    counters = np.zeros((n_programs, 5), dtype=np.int64)
    counters[:, DANGLING] = 1
    return TreeState(counters, np.zeros((n_programs, 4, max_length + 1), dtype=np.int64))


@allocation_free
def reset(counters):
    """Write the counters of a program without tokens."""
    counters[:] = 0
    counters[DANGLING] = 1


@allocation_free
def parent_of_next(counters, stack, none):
    """Return the operator whose child comes next, or `none` where the root comes next."""
    depth = counters[DEPTH]
    return stack[PARENT, depth - 1] if depth > 0 else none


@allocation_free
def sibling_of_next(counters, stack, none):
    """Return the token at the root of the next node's left sibling, or `none` where there is none."""
    depth = counters[DEPTH]
    if depth > 0 and stack[FIRST_CHILD, depth - 1] >= 0:
        return stack[FIRST_CHILD, depth - 1]
    return none


@allocation_free
def allowed(token, counters, stack, grammar):
    """Return whether `token` may be the next token."""
    arity = grammar.arity[token]
    length = counters[LENGTH] + 1
    dangling = counters[DANGLING] - 1 + arity
    if length + dangling > grammar.max_length:
        return False
    if dangling == 0 and length < grammar.min_length:
        return False
    depth = counters[DEPTH]
    if arity > 0:
        if depth == 0:
            return True
        if grammar.forbidden_child[stack[PARENT, depth - 1], token]:
            return False
        return grammar.closed[token] & stack[NESTED, depth - 1] == 0
    if grammar.is_variable[token]:
        return True
    if not grammar.is_constant[token] or counters[N_CONSTANTS] >= grammar.max_constants:
        return False
    if dangling == 0 and counters[N_VARIABLES] == 0:
        return False
    if depth == 0:
        return True
    if grammar.arity[stack[PARENT, depth - 1]] == 1:
        return False
    first = stack[FIRST_CHILD, depth - 1]
    if depth == 1 and grammar.scaled_away[stack[PARENT, 0], 0 if first < 0 else 1]:
        return False
    return first < 0 or not grammar.is_constant[first]


@allocation_free
def push(token, counters, stack, grammar):
    """Update the tree state by `token`, which must be allowed."""
    arity = grammar.arity[token]
    depth = counters[DEPTH]
    above = 0
    if depth > 0:
        if stack[FIRST_CHILD, depth - 1] < 0:
            stack[FIRST_CHILD, depth - 1] = token
        stack[REMAINING, depth - 1] -= 1
        above = stack[NESTED, depth - 1]
    counters[LENGTH] += 1
    counters[DANGLING] += arity - 1
    if arity > 0:
        stack[PARENT, depth] = token
        stack[REMAINING, depth] = arity
        stack[FIRST_CHILD, depth] = -1
        # This is the rule of dgsr.expressions.programs.nesting; a function for it would take time to compile.
        stack[NESTED, depth] = above | (above & grammar.advances[token]) << 1 | grammar.opens[token]
        depth += 1
    else:
        if grammar.is_constant[token]:
            counters[N_CONSTANTS] += 1
        else:
            counters[N_VARIABLES] += 1
        while depth > 0 and stack[REMAINING, depth - 1] == 0:
            depth -= 1
    counters[DEPTH] = depth


@allocation_free
def length_logit(token, counters, grammar):
    """Return the term that the soft length prior adds to the logit of `token`.

    It discourages ending a program before `length_loc`, and operators after it, both by a Gaussian of width
    `length_scale`.

    References
    ----------
    Landajuela et al., "Improving exploration in policy gradient search", 2021, section 3.
    """
    if grammar.length_scale == 0.0:
        return 0.0
    distance = (counters[LENGTH] - grammar.length_loc) / grammar.length_scale
    arity = grammar.arity[token]
    ends_early = distance < 0.0 and arity == 0 and counters[DANGLING] == 1
    grows_late = distance > 0.0 and arity > 0
    return -0.5 * distance * distance if ends_early or grows_late else 0.0


@allocation_free
def is_valid(tokens, length, grammar, counters, stack):
    """Return whether the first tokens are a complete valid program; the tree state is scratch."""
    if length < 1 or length > grammar.max_length:
        return False
    reset(counters)
    for i in range(length):
        if counters[DANGLING] == 0 or not allowed(tokens[i], counters, stack, grammar):
            return False
        push(tokens[i], counters, stack, grammar)
    return counters[DANGLING] == 0


@compiled()
def are_valid(tokens, lengths, grammar):
    """Return which programs satisfy the constraints, shape (n_programs,), bool."""
    counters = np.zeros(5, dtype=np.int64)
    stack = np.zeros((4, tokens.shape[1] + 1), dtype=np.int64)
    result = np.empty(len(lengths), dtype=np.bool_)
    for b in range(len(lengths)):
        result[b] = is_valid(tokens[b], lengths[b], grammar, counters, stack)
    return result


def walk(tokens, lengths, grammar):
    """Return the decoder's inputs for one teacher-forced pass over complete programs.

    Returns
    -------
    parents, siblings : ndarray of shape (n_programs, longest), int64
        Parent and left sibling of each token; `n_tokens` where there is none.
    logits : ndarray of shape (n_programs, longest, n_tokens), float32
        Terms that are added to the decoder's logits: minus infinity where a token is not allowed, else the
        soft length prior. Zero after the end of a program.
    """
    n_tokens = len(grammar.arity)
    n_programs, longest = len(lengths), lengths.max()
    parents = np.full((n_programs, longest), n_tokens, dtype=np.int64)
    siblings = np.full((n_programs, longest), n_tokens, dtype=np.int64)
    logits = np.zeros((n_programs, longest, n_tokens), dtype=np.float32)
    _walk(tokens, lengths, grammar, parents, siblings, logits)
    return parents, siblings, logits


@compiled()
def _walk(tokens, lengths, grammar, parents, siblings, logits):
    n_programs, longest, n_tokens = logits.shape
    counters = np.zeros(5, dtype=np.int64)
    stack = np.zeros((4, longest + 1), dtype=np.int64)
    for b in range(n_programs):
        reset(counters)
        for i in range(lengths[b]):
            parents[b, i] = parent_of_next(counters, stack, n_tokens)
            siblings[b, i] = sibling_of_next(counters, stack, n_tokens)
            for token in range(n_tokens):
                if allowed(token, counters, stack, grammar):
                    logits[b, i, token] = length_logit(token, counters, grammar)
                else:
                    logits[b, i, token] = -np.inf
            push(tokens[b, i], counters, stack, grammar)
