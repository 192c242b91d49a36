"""Genetic operators on programs: one generation of tournament, crossover and mutation.

A child is written token by token as a few slices of its parents (`dgsr.kernels.growth`).

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

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.grammar import reset
from dgsr.kernels.growth import (
    ATTEMPTS,
    NEW_CONSTANT,
    append,
    append_slice,
    choices_of,
    grow,
    new_draft,
    njit_small,
    random_leaf,
    random_operator,
    random_token,
    store,
    subtree_end,
)
from dgsr.kernels.random import integer, normal, uniform

UNIFORM, REPLACEMENT, INSERTION, SHRINK, CONSTANT = range(5)

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


@njit_small
def _cross(tokens, length, constants, start, donor, donor_constants, donor_start, draft, grammar):
    """Draft one program with its subtree at `start` replaced by the donor's at `donor_start`."""
    end = subtree_end(tokens, start, grammar.arity)
    donor_end = subtree_end(donor, donor_start, grammar.arity)
    if length - (end - start) + (donor_end - donor_start) > grammar.max_length:
        return False
    reset(draft.counters)
    return (
        append_slice(tokens, constants, 0, start, draft, grammar)
        and append_slice(donor, donor_constants, donor_start, donor_end, draft, grammar)
        and append_slice(tokens, constants, end, length, draft, grammar)
    )


@njit_small
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


@njit_small
def _n_constants(tokens, length, grammar):
    n_constants = 0
    for i in range(length):
        n_constants += grammar.is_constant[tokens[i]]
    return n_constants


@njit_small
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
    draft : Draft
        Where the result goes.
    grammar : Grammar
    choices : Choices
    state : ndarray of 4 uint64
    """
    arity = grammar.arity
    reset(draft.counters)
    if kind == CONSTANT:
        n_constants = _n_constants(tokens, length, grammar)
        if n_constants == 0 or not append_slice(tokens, constants, 0, length, draft, grammar):
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
    if not append_slice(tokens, constants, 0, start, draft, grammar):
        return False
    end = start + 1
    if kind != REPLACEMENT:
        end = subtree_end(tokens, start, arity)

    if kind == UNIFORM:
        if not grow(integer(state, max_depth + 1), True, draft, grammar, choices, state):
            return False
    elif kind == REPLACEMENT:
        old = tokens[start]
        new = random_token(arity[old], arity[old], old, choices, grammar.weight, state)
        if new < 0:
            return False
        if not append(new, NEW_CONSTANT, draft, grammar):
            return False
    elif kind == INSERTION:
        if choices.counts[1] + choices.counts[2] == 0:
            return False
        new = random_operator(choices, grammar.weight, state)
        if length + arity[new] > grammar.max_length or not append(new, NEW_CONSTANT, draft, grammar):
            return False
        place = integer(state, arity[new])
        for child in range(arity[new]):
            if child == place:
                if not append_slice(tokens, constants, start, end, draft, grammar):
                    return False
            elif not append(random_leaf(choices, state), NEW_CONSTANT, draft, grammar):
                return False
    else:
        child = start + 1
        for _ in range(integer(state, arity[tokens[start]])):
            child = subtree_end(tokens, child, arity)
        if not append_slice(tokens, constants, child, subtree_end(tokens, child, arity), draft, grammar):
            return False
    return append_slice(tokens, constants, end, length, draft, grammar)


@njit_small
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


@njit_small
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


@compiled(nogil=True)
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
    draft = new_draft(width, n_constants)
    choices = choices_of(grammar, n_constants)
    child_tokens, child_lengths, child_constants, parents, changed, mutations = offspring

    comparable = np.empty(n_programs)
    for b in range(n_programs):
        comparable[b] = np.inf if np.isnan(fitness[b]) else fitness[b]
    for b in range(n_programs):
        parent = select(comparable, lengths, tournament, state)
        parents[b] = parent
        child_lengths[b] = lengths[parent]
        copy_to(child_tokens[b], tokens[parent, : lengths[parent]])
        copy_to(child_constants[b], constants[parent])

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
                    store(draft, b + side, child_tokens, child_lengths, child_constants)
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
                    store(draft, b, child_tokens, child_lengths, child_constants)
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
                copy_to(child_constants[b], constants[parent])
