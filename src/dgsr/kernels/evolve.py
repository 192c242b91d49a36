"""Genetic operators on programs: one generation of tournament, crossover and mutation.

A child is written token by token as a few slices of its parents, each token through
`dgsr.kernels.grammar`; so building a child and checking its constraints are one pass, and a child
that breaks them is given up at its first wrong token.

References
----------
Fortin et al., "DEAP: evolutionary algorithms made easy", JMLR 2012 (``varAnd``, ``cxOnePoint``,
``mutUniform``, ``mutNodeReplacement``, ``mutInsert``, ``mutShrink``);
Mundhenk et al., NeurIPS 2021 (equal shares of these four mutations, constraints kept by falling back
to the parent).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from dgsr.kernels.grammar import (
    DANGLING,
    DEPTH,
    LENGTH,
    N_CONSTANTS,
    allowed,
    push,
    reset,
)
from dgsr.kernels.random import integer, normal, uniform

# Code that allocates nothing can do without numba's reference counts: atomic operations that else
# take most of the time of functions as small as these.
_leaf = njit(cache=True, _nrt=False)

UNIFORM, REPLACEMENT, INSERTION, SHRINK, CONSTANT = range(5)

# How often an operator may try again when its child breaks the constraints, the first try included.
ATTEMPTS = 4
# The value of a constant that no parent had.
NEW_CONSTANT = 1.0
# The mutation of a constant: chance of another sign, else the spread of the logarithm of its factor.
NEGATION = 0.1
CONSTANT_SPREAD = 0.5


class Offspring(NamedTuple):
    """What `vary` made; one entry per child."""

    tokens: np.ndarray  # (n_programs, max_length) int64
    lengths: np.ndarray  # (n_programs,) int64
    constants: np.ndarray  # (n_programs, max_constants) float64
    parents: np.ndarray  # (n_programs,) int64: the parent in whose place it stands
    changed: np.ndarray  # (n_programs,) bool: False where the child equals that parent
    mutations: np.ndarray  # (n_programs,) int64: which mutation was kept, -1 without one


class _Draft(NamedTuple):
    """A child being written, with its tree state."""

    tokens: np.ndarray  # (max_length,) int64
    constants: np.ndarray  # (max_constants,) float64
    counters: np.ndarray  # (5,) int64
    stack: np.ndarray  # (4, max_length + 1) int64


class _Choices(NamedTuple):
    """The tokens a fresh node may carry, by arity."""

    tokens: np.ndarray  # (3, n_tokens) int64
    counts: np.ndarray  # (3,) int64


@njit(cache=True)
def _new_draft(max_length, n_constants):
    return _Draft(
        np.zeros(max_length, dtype=np.int64),
        np.zeros(n_constants),
        np.zeros(5, dtype=np.int64),
        np.zeros((4, max_length + 1), dtype=np.int64),
    )


@njit(cache=True)
def _choices(grammar, n_constants):
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
    return _Choices(tokens, counts)


@_leaf
def _random_leaf(choices, state):
    return choices.tokens[0, integer(state, choices.counts[0])]


@_leaf
def _drawn(first_arity, last_arity, but, choices, weight, state):
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


@_leaf
def _random_operator(choices, weight, state):
    return _drawn(1, 2, -1, choices, weight, state)


@_leaf
def subtree_end(tokens, start, arity):
    """Return the position after the last token of the subtree that starts at `start`."""
    missing = 1
    end = start
    while missing > 0:
        missing += arity[tokens[end]] - 1
        end += 1
    return end


@_leaf
def _append(token, value, draft, grammar):
    """Append one token, a constant with `value`; False where it is not allowed."""
    counters = draft.counters
    if not allowed(token, counters, draft.stack, grammar):
        return False
    if grammar.is_constant[token]:
        draft.constants[counters[N_CONSTANTS]] = value
    draft.tokens[counters[LENGTH]] = token
    push(token, counters, draft.stack, grammar)
    return True


@_leaf
def _append_slice(tokens, constants, start, stop, draft, grammar):
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


@_leaf
def _grow(height, full, draft, grammar, choices, state):
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
            token = _random_leaf(choices, state) if leaf else _random_operator(choices, grammar.weight, state)
            if _append(token, NEW_CONSTANT, draft, grammar):
                appended = True
                break
        if not appended:  # whatever is allowed, leaves first, from a random place on
            for arity in range(3):
                first = integer(state, max(counts[arity], 1))
                for i in range(counts[arity]):
                    token = choices.tokens[arity, (first + i) % counts[arity]]
                    if not appended and _append(token, NEW_CONSTANT, draft, grammar):
                        appended = True
        if not appended:
            return False
    return True


@_leaf
def _cross(tokens, length, constants, start, donor, donor_constants, donor_start, draft, grammar):
    """Draft one program with its subtree at `start` replaced by the donor's at `donor_start`."""
    end = subtree_end(tokens, start, grammar.arity)
    donor_end = subtree_end(donor, donor_start, grammar.arity)
    if length - (end - start) + (donor_end - donor_start) > grammar.max_length:
        return False
    reset(draft.counters)
    return (
        _append_slice(tokens, constants, 0, start, draft, grammar)
        and _append_slice(donor, donor_constants, donor_start, donor_end, draft, grammar)
        and _append_slice(tokens, constants, end, length, draft, grammar)
    )


@_leaf
def _random_operator_position(tokens, length, arity, state):
    """Return the position of a random operator of the program, -1 where it has none."""
    n_operators = 0
    for i in range(length):
        n_operators += arity[tokens[i]] > 0
    if n_operators == 0:
        return -1
    k = integer(state, n_operators)
    for i in range(length):
        if arity[tokens[i]] > 0:
            if k == 0:
                return i
            k -= 1
    return -1


@_leaf
def _n_constants(tokens, length, grammar):
    n_constants = 0
    for i in range(length):
        n_constants += grammar.is_constant[tokens[i]]
    return n_constants


@_leaf
def mutate(kind, tokens, length, constants, max_depth, draft, grammar, choices, state):
    """Draft a mutated copy of one program; False where it breaks the constraints.

    Parameters
    ----------
    kind : int
        UNIFORM (a random subtree gives way to a random full one of height 0 to `max_depth`),
        REPLACEMENT (another token of the same arity at a random node), INSERTION (a random operator
        above a random subtree, a random leaf as its other child), SHRINK (a random operator gives
        way to one of its children) or CONSTANT (a random constant is multiplied by a log-normal
        number, or negated).
    tokens, length, constants
        The program.
    max_depth : int
    draft : _Draft
        Where the result goes.
    grammar : Grammar
    choices : _Choices
    state : ndarray of 4 uint64
    """
    arity = grammar.arity
    reset(draft.counters)
    if kind == CONSTANT:
        n_constants = _n_constants(tokens, length, grammar)
        if n_constants == 0 or not _append_slice(tokens, constants, 0, length, draft, grammar):
            return False
        negated = uniform(state) < NEGATION
        factor = -1.0 if negated else math.exp(CONSTANT_SPREAD * normal(state))
        draft.constants[integer(state, n_constants)] *= factor
        return True
    if kind == SHRINK:
        start = _random_operator_position(tokens, length, arity, state)
        if start < 0:
            return False
    else:
        start = integer(state, length)
    if not _append_slice(tokens, constants, 0, start, draft, grammar):
        return False
    end = start + 1
    if kind != REPLACEMENT:
        end = subtree_end(tokens, start, arity)

    if kind == UNIFORM:
        if not _grow(integer(state, max_depth + 1), True, draft, grammar, choices, state):
            return False
    elif kind == REPLACEMENT:
        old = tokens[start]
        new = _drawn(arity[old], arity[old], old, choices, grammar.weight, state)
        if new < 0:
            return False
        if not _append(new, NEW_CONSTANT, draft, grammar):
            return False
    elif kind == INSERTION:
        if choices.counts[1] + choices.counts[2] == 0:
            return False
        new = _random_operator(choices, grammar.weight, state)
        if length + arity[new] > grammar.max_length or not _append(new, NEW_CONSTANT, draft, grammar):
            return False
        place = integer(state, arity[new])
        for child in range(arity[new]):
            if child == place:
                if not _append_slice(tokens, constants, start, end, draft, grammar):
                    return False
            elif not _append(_random_leaf(choices, state), NEW_CONSTANT, draft, grammar):
                return False
    else:
        child = start + 1
        for _ in range(integer(state, arity[tokens[start]])):
            child = subtree_end(tokens, child, arity)
        if not _append_slice(tokens, constants, child, subtree_end(tokens, child, arity), draft, grammar):
            return False
    return _append_slice(tokens, constants, end, length, draft, grammar)


@_leaf
def _store(draft, b, tokens, lengths, constants):
    """Make the draft program `b` of a population."""
    length = draft.counters[LENGTH]
    for i in range(length):
        tokens[b, i] = draft.tokens[i]
    for i in range(length, lengths[b]):
        tokens[b, i] = 0
    lengths[b] = length
    for i in range(constants.shape[1]):
        constants[b, i] = draft.constants[i] if i < draft.counters[N_CONSTANTS] else NEW_CONSTANT


@_leaf
def _differs(tokens, length, constants, other, other_length, other_constants, is_constant):
    if length != other_length:
        return True
    k = 0
    for i in range(length):
        if tokens[i] != other[i]:
            return True
        if is_constant[tokens[i]]:
            if constants[k] != other_constants[k]:
                return True
            k += 1
    return False


@_leaf
def select(fitness, lengths, tournament, state):
    """Index of the winner among `tournament` random programs: lowest fitness, of those the shortest."""
    winner = integer(state, len(fitness))
    for _ in range(tournament - 1):
        rival = integer(state, len(fitness))
        if fitness[rival] < fitness[winner] or (
            fitness[rival] == fitness[winner] and lengths[rival] < lengths[winner]
        ):
            winner = rival
    return winner


def vary(
    tokens,
    lengths,
    constants,
    fitness,
    grammar,
    crossover,
    mutation,
    tournament,
    mutate_max_depth,
    state,
):
    """Breed the next generation.

    As many parents as there are programs win a tournament each. Neighbours are crossed over with
    probability `crossover`: a subtree of one, never the whole, changes places with one of the other.
    Then every child is mutated with probability `mutation`, by one of the mutations with equal
    shares: four, and that of constants for a program that has any. A child that breaks the
    constraints is tried again a few times, then left as it was.

    Parameters
    ----------
    tokens : ndarray of shape (n_programs, max_length), int64
        Programs that meet the constraints; rows at least `grammar.max_length` wide.
    lengths : ndarray of shape (n_programs,), int64
    constants : ndarray of shape (n_programs, max_constants), float64
        At least `grammar.max_constants` columns where the library has ``const``.
    fitness : ndarray of shape (n_programs,), float64
        Lower is better; not a number counts as `inf`.
    grammar : Grammar
    crossover, mutation : float
        Probabilities.
    tournament : int
        Programs in a tournament.
    mutate_max_depth : int
        Greatest height of the subtree the uniform mutation grows.
    state : ndarray of 4 uint64
        Generator state; advanced.

    Returns
    -------
    Offspring
    """
    n_programs = len(lengths)
    offspring = Offspring(
        np.zeros(tokens.shape, dtype=np.int64),
        np.empty(n_programs, dtype=np.int64),
        np.empty(constants.shape),
        np.empty(n_programs, dtype=np.int64),
        np.zeros(n_programs, dtype=np.bool_),
        np.full(n_programs, -1, dtype=np.int64),
    )
    limits = crossover, mutation, tournament, mutate_max_depth
    _vary(tokens, lengths, constants, fitness, grammar, *limits, state, offspring)
    return offspring


@njit(cache=True, nogil=True)
def _vary(
    tokens,
    lengths,
    constants,
    fitness,
    grammar,
    crossover,
    mutation,
    tournament,
    mutate_max_depth,
    state,
    offspring,
):
    n_programs, width = tokens.shape
    n_constants = constants.shape[1]
    is_constant = grammar.is_constant
    draft = _new_draft(width, n_constants)
    choices = _choices(grammar, n_constants)
    child_tokens, child_lengths, child_constants, parents, changed, mutations = offspring

    comparable = np.where(np.isnan(fitness), np.inf, fitness)
    for b in range(n_programs):
        parent = select(comparable, lengths, tournament, state)
        parents[b] = parent
        child_lengths[b] = lengths[parent]
        child_tokens[b, : lengths[parent]] = tokens[parent, : lengths[parent]]
        child_constants[b] = constants[parent]

    for b in range(0, n_programs - 1, 2):
        if uniform(state) >= crossover:
            continue
        first, second = parents[b], parents[b + 1]
        if lengths[first] < 2 or lengths[second] < 2:
            continue
        for _ in range(ATTEMPTS):
            i = 1 + integer(state, lengths[first] - 1)
            j = 1 + integer(state, lengths[second] - 1)
            for side in range(2):
                if changed[b + side]:
                    continue
                here, there = (second, first) if side == 1 else (first, second)
                at, other_at = (j, i) if side == 1 else (i, j)
                changed[b + side] = _cross(
                    tokens[here],
                    lengths[here],
                    constants[here],
                    at,
                    tokens[there],
                    constants[there],
                    other_at,
                    draft,
                    grammar,
                )
                if changed[b + side]:
                    _store(draft, b + side, child_tokens, child_lengths, child_constants)
            if changed[b] and changed[b + 1]:
                break

    for b in range(n_programs):
        if uniform(state) < mutation:
            n_kinds = 4
            if n_constants > 0 and _n_constants(child_tokens[b], child_lengths[b], grammar) > 0:
                n_kinds = 5
            kind = integer(state, n_kinds)
            for _ in range(ATTEMPTS):
                if mutate(
                    kind,
                    child_tokens[b],
                    child_lengths[b],
                    child_constants[b],
                    mutate_max_depth,
                    draft,
                    grammar,
                    choices,
                    state,
                ):
                    _store(draft, b, child_tokens, child_lengths, child_constants)
                    mutations[b] = kind
                    changed[b] = True
                    break
        if changed[b]:  # equal subtrees may have changed places
            parent = parents[b]
            changed[b] = _differs(
                child_tokens[b],
                child_lengths[b],
                child_constants[b],
                tokens[parent],
                lengths[parent],
                constants[parent],
                is_constant,
            )
            if not changed[b]:
                child_constants[b] = constants[parent]


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
        As in `vary`; all meet the constraints.

    References
    ----------
    Koza, Genetic Programming, 1992, section 6.2.
    """
    tokens = np.zeros((n_programs, width), dtype=np.int64)
    lengths = np.zeros(n_programs, dtype=np.int64)
    constants = np.empty((n_programs, n_constants))
    _random_programs(grammar, min_height, max_height, full_share, state, tokens, lengths, constants)
    return tokens, lengths, constants


@njit(cache=True, nogil=True)
def _random_programs(grammar, min_height, max_height, full_share, state, tokens, lengths, constants):
    n_constants = constants.shape[1]
    draft = _new_draft(tokens.shape[1], n_constants)
    choices = _choices(grammar, n_constants)
    for b in range(len(lengths)):
        height = min_height + integer(state, max_height - min_height + 1)
        full = uniform(state) < full_share
        reset(draft.counters)
        while not _grow(height, full, draft, grammar, choices, state):
            reset(draft.counters)
        _store(draft, b, tokens, lengths, constants)
