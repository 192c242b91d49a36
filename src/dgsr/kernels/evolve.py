"""Genetic operators on programs: one generation of tournament, crossover and mutation.

A child is written token by token as a few slices of its parents; see `dgsr.kernels.growth` for the names of
parameters.

References
----------
Fortin et al., "DEAP: evolutionary algorithms made easy", JMLR 2012 (``varAnd``, ``cxOnePoint``,
``mutUniform``, ``mutNodeReplacement``, ``mutInsert``, ``mutShrink``); Mundhenk et al., NeurIPS 2021 (equal
shares of these four mutations, the parent in place of an invalid child).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.grammar import parent_of_next, reset
from dgsr.kernels.growth import (
    ATTEMPTS,
    NEW_CONSTANT,
    append,
    append_slice,
    choices_of,
    grow,
    new_draft,
    random_token,
    store,
    subtree_end,
)
from dgsr.kernels.programs import Programs
from dgsr.kernels.random import integer, normal, uniform

#: Kinds of mutation.
UNIFORM, REPLACEMENT, INSERTION, SHRINK, CONSTANT = range(5)

#: Probability that the mutation of a constant changes its sign.
NEGATION = 0.1
#: Standard deviation of the logarithm of the factor by which a constant is otherwise multiplied.
CONSTANT_SPREAD = 0.5


class Offspring(NamedTuple):
    """Result of `vary`, with one entry for each child."""

    programs: Programs
    parents: np.ndarray  # (n_programs,) int64: index of the parent of which the child is a changed copy
    changed: np.ndarray  # (n_programs,) bool: False where the child equals that parent
    mutations: np.ndarray  # (n_programs,) int64: the mutation that changed the child, or -1


def vary(parents, fitness, grammar, crossover, mutation, tournament, mutate_max_depth, state):
    """Return the next generation, an Offspring.

    Each child begins as a copy of the winner of a tournament. Neighbours are crossed over with probability
    `crossover`: a proper subtree of one is exchanged with one of the other. Then every child is mutated
    with probability `mutation`, by one of four kinds of mutation, or five if it has constants, with equal
    probabilities. If the result violates the constraints, the operation is repeated a few times and then
    omitted.

    The parents are valid `Programs`; rows of tokens are at least `grammar.max_length` wide, and rows of
    constants at least `grammar.max_constants` if the library has ``const``. A lower fitness, of shape
    (n_programs,), is better, and NaN counts as `inf`. The uniform mutation grows subtrees of a height up to
    `mutate_max_depth`.
    """
    n_programs = len(parents.lengths)
    offspring = Offspring(
        Programs(
            np.zeros(parents.tokens.shape, dtype=np.int64),
            np.empty(n_programs, dtype=np.int64),
            np.empty(parents.constants.shape),
        ),
        np.empty(n_programs, dtype=np.int64),
        np.zeros(n_programs, dtype=np.bool_),
        np.full(n_programs, -1, dtype=np.int64),
    )
    _vary(parents, fitness, grammar, crossover, mutation, tournament, mutate_max_depth, state, offspring)
    return offspring


@compiled(nogil=True)
def _vary(parents, fitness, grammar, crossover, mutation, tournament, mutate_max_depth, state, offspring):
    n_programs, width = parents.tokens.shape
    n_constants, children = parents.constants.shape[1], offspring.programs
    draft = new_draft(width, n_constants)
    choices = choices_of(grammar, n_constants)
    comparable = np.empty(n_programs)
    for b in range(n_programs):
        comparable[b] = np.inf if np.isnan(fitness[b]) else fitness[b]
    for b in range(n_programs):
        parent = select(comparable, parents.lengths, tournament, state)
        offspring.parents[b], children.lengths[b] = parent, parents.lengths[parent]
        copy_to(children.tokens[b], parents.tokens[parent, : parents.lengths[parent]])
        copy_to(children.constants[b], parents.constants[parent])
    for b in range(0, n_programs - 1, 2):
        if uniform(state) < crossover:
            _cross_pair(parents, b, offspring, draft, grammar, state)
    for b in range(n_programs):
        if uniform(state) < mutation:
            has_constants = n_constants > 0 and _n_constants(children, b, grammar) > 0
            kind = integer(state, 5 if has_constants else 4)
            for _ in range(ATTEMPTS):  # a mutation is repeated if its result violates the constraints
                if mutate(kind, children, b, mutate_max_depth, draft, grammar, choices, state):
                    store(draft, b, children)
                    offspring.mutations[b], offspring.changed[b] = kind, True
                    break
        if offspring.changed[b]:  # an equal subtree leaves the program unchanged
            parent = offspring.parents[b]
            offspring.changed[b] = _differs(children, b, parents, parent, grammar.is_constant)
            if not offspring.changed[b]:
                offspring.mutations[b] = -1
                copy_to(children.constants[b], parents.constants[parent])


@allocation_free
def select(fitness, lengths, tournament, state):
    """Return the index of the program with the lowest fitness, and of equals the shortest, of random ones."""
    winner = integer(state, len(fitness))
    for _ in range(tournament - 1):
        rival = integer(state, len(fitness))
        if fitness[rival] < fitness[winner] or (
            fitness[rival] == fitness[winner] and lengths[rival] < lengths[winner]
        ):
            winner = rival
    return winner


@allocation_free
def _cross_pair(parents, b, offspring, draft, grammar, state):
    """Cross over the parents of children `b` and ``b + 1``; repeat where the constraints are violated."""
    changed = offspring.changed
    first, second = offspring.parents[b], offspring.parents[b + 1]
    if parents.lengths[first] < 2 or parents.lengths[second] < 2:
        return
    for _ in range(ATTEMPTS):
        i = 1 + integer(state, parents.lengths[first] - 1)
        j = 1 + integer(state, parents.lengths[second] - 1)
        for side in range(2):
            if changed[b + side]:
                continue
            host, donor = (second, first) if side == 1 else (first, second)
            at, donor_at = (j, i) if side == 1 else (i, j)
            changed[b + side] = _cross(parents, host, at, donor, donor_at, draft, grammar)
            if changed[b + side]:
                store(draft, b + side, offspring.programs)
        if changed[b] and changed[b + 1]:
            return


@allocation_free
def _cross(programs, host, at, donor, donor_at, draft, grammar):
    """Draft the host with a subtree replaced by one of the donor; return False if it is not valid."""
    length = programs.lengths[host]
    end = subtree_end(programs.tokens[host], at, grammar.arity)
    donor_end = subtree_end(programs.tokens[donor], donor_at, grammar.arity)
    if length - (end - at) + (donor_end - donor_at) > grammar.max_length:
        return False
    reset(draft.counters)
    return (
        append_slice(programs, host, 0, at, draft, grammar)
        and append_slice(programs, donor, donor_at, donor_end, draft, grammar)
        and append_slice(programs, host, end, length, draft, grammar)
    )


@allocation_free
def mutate(kind, programs, b, max_depth, draft, grammar, choices, state):
    """Draft a mutated copy of program `b`; return False where it violates the constraints.

    The kind is UNIFORM (a random subtree is replaced by a random full one of height 0 to `max_depth`),
    REPLACEMENT (a random node gets another token of the same arity), INSERTION (a random operator is put
    above a random subtree, with a random leaf as its other child), SHRINK (a random operator is replaced by
    one of its children) or CONSTANT (a random constant is multiplied by a log-normal number, or negated). New
    tokens are drawn by the weights of the grammar, given parent and children.
    """
    tokens, length, arity = programs.tokens[b], programs.lengths[b], grammar.arity
    reset(draft.counters)
    if kind == CONSTANT:
        n_constants = _n_constants(programs, b, grammar)
        if n_constants == 0 or not append_slice(programs, b, 0, length, draft, grammar):
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
    if not append_slice(programs, b, 0, start, draft, grammar):
        return False
    parent = parent_of_next(draft.counters, draft.stack, len(arity))
    end = start + 1 if kind == REPLACEMENT else subtree_end(tokens, start, arity)
    if kind == UNIFORM:
        if not grow(integer(state, max_depth + 1), True, draft, grammar, choices, state):
            return False
    elif kind == REPLACEMENT:
        old = tokens[start]
        left = tokens[start + 1] if arity[old] > 0 else -1
        right = tokens[subtree_end(tokens, start + 1, arity)] if arity[old] == 2 else -1
        new = random_token(
            (arity[old], arity[old]), old, (parent, left, right), choices, grammar.weight, state
        )
        if new < 0 or not append(new, NEW_CONSTANT, draft, grammar):
            return False
    elif kind == INSERTION:
        if choices.counts[1] + choices.counts[2] == 0:
            return False
        new = random_token((1, 2), -1, (parent, tokens[start], -1), choices, grammar.weight, state)
        if length + arity[new] > grammar.max_length or not append(new, NEW_CONSTANT, draft, grammar):
            return False
        place = integer(state, arity[new])
        for child in range(arity[new]):
            if child == place:
                if not append_slice(programs, b, start, end, draft, grammar):
                    return False
            else:
                leaf = random_token((0, 0), -1, (new, -1, -1), choices, grammar.weight, state)
                if not append(leaf, NEW_CONSTANT, draft, grammar):
                    return False
    else:
        child = start + 1
        for _ in range(integer(state, arity[tokens[start]])):
            child = subtree_end(tokens, child, arity)
        if not append_slice(programs, b, child, subtree_end(tokens, child, arity), draft, grammar):
            return False
    return append_slice(programs, b, end, length, draft, grammar)


@allocation_free
def _random_operator_position(tokens, length, arity, state):
    """Return the position of a random operator of a program, or -1 where it has none."""
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


@allocation_free
def _n_constants(programs, b, grammar):
    tokens, n_constants = programs.tokens[b], 0
    for i in range(programs.lengths[b]):
        n_constants += grammar.is_constant[tokens[i]]
    return n_constants


@allocation_free
def _differs(programs, b, others, other, is_constant):
    if programs.lengths[b] != others.lengths[other]:
        return True
    k = 0
    for i in range(programs.lengths[b]):
        token = programs.tokens[b, i]
        if token != others.tokens[other, i]:
            return True
        if is_constant[token]:
            if programs.constants[b, k] != others.constants[other, k]:
                return True
            k += 1
    return False
