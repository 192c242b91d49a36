"""One-hole contexts: programs with a hole, filled and inverted, in compiled code.

A context is a unary operator or a power of the hole, or the hole on one side of a binary operator with a
subprogram on the other. It is encoded as one number: first come the unary operators, then the powers, then
the pairs of a subprogram and the way it is combined. The names in this file are those of
``dgsr.exact_search.join``.
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.bank import write_subprogram
from dgsr.exact_search.join import (
    ADDED,
    ALONE,
    BY_FIRST,
    LESS_FIRST,
    MULTIPLIED,
    apply_unary_or_power,
    binary_of,
    combined,
    second_of,
    write_join,
    write_unary_or_power,
)
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import unary_operand
from dgsr.kernels.operators import COS, EXP, SIN


def n_contexts(n_programs, bank):
    """Return the number of contexts without a subprogram or with one of the first `n_programs`."""
    return len(bank.unary) + limits.LARGEST_NUMBER - 1 + ALONE * n_programs


@compiled()
def parts(context, bank):
    """Return the index of the unary operator or -1, the power, the way of combining, and the subprogram.

    The number -1, which means no context, has no operator and the power 1.
    """
    n_unary = len(bank.unary)
    if context < n_unary:
        return context, 1, ALONE, 0
    if context < n_unary + limits.LARGEST_NUMBER - 1:
        return -1, context - n_unary + 2, ALONE, 0
    pair = context - n_unary - limits.LARGEST_NUMBER + 1
    return -1, 1, pair % ALONE, pair // ALONE


@compiled()
def nodes_of(contexts, bank):
    """Return the total number of nodes of a tuple of contexts, in which -1 means no context."""
    n = 0
    for context in contexts:
        if context >= 0:
            _, _, kind, f = parts(context, bank)
            n += 1 if kind == ALONE else 1 + bank.nodes[f]
    return n


@compiled()
def has_sine(context, bank):
    """Return whether a context has a subprogram with a sine or cosine."""
    _, _, kind, f = parts(context, bank)
    return kind != ALONE and bank.trigonometric[f]


@compiled()
def commute(outer, inner, bank):
    """Return whether two contexts give the same function in either order."""
    first, second = parts(outer, bank)[2], parts(inner, bank)[2]
    sums = (first == ADDED or first == LESS_FIRST) and (second == ADDED or second == LESS_FIRST)
    products = first == MULTIPLIED or first == BY_FIRST
    return sums or (products and (second == MULTIPLIED or second == BY_FIRST))


@compiled()
def fill_hole(context, bank, inside, out):
    """Write the values of a context, given those of its hole."""
    unary, power, kind, f = parts(context, bank)
    if kind == ALONE:
        apply_unary_or_power(unary, power, bank, inside, out)
        return
    for j in range(len(out)):
        out[j] = combined(kind, bank.semantics.values[f, j], inside[j])


@compiled()
def invert(context, bank, target, out):
    """Write the values that the hole must have; return False if they do not exist or are not unique.

    For squares and other even powers the non-negative values are written, and the result is True. `target`
    and `out` may have only the first of the points.
    """
    unary, power, kind, f = parts(context, bank)
    values = bank.semantics.values
    if kind != ALONE:
        if kind < MULTIPLIED and abs(target[0]) < limits.CLOSE * abs(values[f, 0]):
            return False
        for j in range(len(out)):
            out[j] = second_of(kind, target[j], values[f, j])
        return bank.binary_tokens[binary_of(kind)] >= 0
    if unary >= 0:
        op = bank.unary[unary]
        if bank.unary_tokens[unary] < 0 or op == SIN or op == COS:
            return False
        unary_operand(op, target, out)
        return op != EXP or extremes(target)[0] > 0.0
    for j in range(len(out)):
        out[j] = math.copysign(abs(target[j]) ** (1.0 / power), target[j])
    return bank.binary_tokens[2] >= 0 and (power % 2 == 1 or extremes(target)[0] >= 0.0)


@compiled()
def length_in(join, contexts, bank):
    """Return the number of tokens of a join in contexts, the outermost first."""
    length = bank.length[join.second]
    if join.kind != ALONE:
        length += 1 + bank.length[join.first]
    length = (join.unary >= 0) + join.power * (length + 1) - 1
    for i in range(len(contexts) - 1, -1, -1):
        unary, power, kind, f = parts(contexts[i], bank)
        length = (unary >= 0) + power * (length + 1) - 1
        if kind != ALONE:
            length += 1 + bank.length[f]
    return length


@compiled()
def write_in(join, contexts, bank, program):
    """Write the tokens of a join in contexts, the outermost first; return how many there are."""
    # Contexts are written from the innermost to the outermost; each shifts the tokens written so far.
    n = write_join(join, bank, program)
    inside = np.empty(len(program), dtype=np.int64)
    for i in range(len(contexts) - 1, -1, -1):
        unary, power, kind, f = parts(contexts[i], bank)
        if kind == ALONE:
            n = write_unary_or_power(unary, power, bank, program, n)
            continue
        copy_to(inside, program[:n])
        program[0] = bank.binary_tokens[binary_of(kind)]
        last = kind == LESS_FIRST or kind == BY_FIRST
        at = 1 if last else write_subprogram(f, bank, program, 1)
        copy_to(program[at:], inside[:n])
        n = write_subprogram(f, bank, program, at + n) if last else at + n
    return n
