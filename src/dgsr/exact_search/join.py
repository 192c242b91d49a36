"""Joins: meet in the middle between a target and the bank, in compiled code.

A join is one subprogram, or two under +, -, * or /, or either of these under one more unary operator or in a
power. Given the target's values, every first subprogram determines the values of the second, and these are
looked up in the bank.

In this file `bank` is a `dgsr.exact_search.bank.Bank`, a subprogram is an int, its index in the bank, and
`program` is an ndarray of tokens, int64. Arrays of values, among them `target`, `tolerance`, `work` and
`out`, have the shape (N_POINTS,), float64.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.bank import probe, values_of, write_subprogram
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import allocation_free, compiled, inlined
from dgsr.kernels.inverses import unary_operand
from dgsr.kernels.operators import COS, EXP, SIN, SQUARE, apply

# Ways of combining two subprograms f and g: f + g, f - g, g - f, f g, f/g, g/f, and g alone.
ADDED, LESS_SECOND, LESS_FIRST, MULTIPLIED, BY_SECOND, BY_FIRST, ALONE = range(7)
#: Number of nodes that means that there is no join.
NONE = 1 << 30


class Query(NamedTuple):
    """The values that a join must have, and scratch arrays."""

    values: np.ndarray  # (N_POINTS,)
    tolerance: np.ndarray  # (N_POINTS,): largest distance of a join from the values
    work: np.ndarray  # (N_POINTS,)
    made: np.ndarray  # (N_POINTS,)
    operands: np.ndarray  # (MOST_OPERANDS,)
    candidates: np.ndarray  # (MOST_CANDIDATES, 3) int64
    remaining: np.ndarray  # (1,) int64: remaining budget of candidates examined; below 0 the search ends


@compiled()
def new_query(values):
    """Return a query for some values, which are copied, without a budget."""
    row = np.empty(limits.N_POINTS)
    candidates = np.empty((limits.MOST_CANDIDATES, 3), dtype=np.int64)
    remaining = np.zeros(1, dtype=np.int64)
    operands = np.empty(limits.MOST_OPERANDS)
    return Query(values.copy(), row, row.copy(), row.copy(), operands, candidates, remaining)


class Join(NamedTuple):
    """A join: f and g, combined, in a power or under a unary operator."""

    nodes: int  # NONE if there is no join
    unary: int  # index of the operator among the bank's, or -1
    power: int
    kind: int  # how f and g are combined
    first: int  # index of f
    second: int  # index of g


@inlined
def combined(kind, f, g):
    """Return the value of the combination of f and g."""
    if kind == ADDED:
        return f + g
    if kind == LESS_SECOND:
        return f - g
    if kind == LESS_FIRST:
        return g - f
    if kind == MULTIPLIED:
        return f * g
    if kind == BY_SECOND:
        return f / g
    if kind == BY_FIRST:
        return g / f
    return g


@inlined
def second_of(kind, value, first):
    """Return the second value g, given the first value f and the result of `combined` for both."""
    if kind == ADDED:
        return value - first
    if kind == LESS_SECOND:
        return first - value
    if kind == LESS_FIRST:
        return value + first
    if kind == MULTIPLIED:
        return value / first
    if kind == BY_SECOND:
        return first / value
    return value * first


@inlined
def binary_of(kind):
    """Return the operator of a way of combining: 0 to 3 for add, sub, mul and div."""
    if kind < MULTIPLIED:
        return 0 if kind == ADDED else 1
    return 2 if kind == MULTIPLIED else 3


@allocation_free
def find_candidates(r, start, stop, near, at_first, slots, bloom, candidates, remaining):
    """Find the joins that have the value r at the first point; return their number.

    The subprograms from `start` to `stop` are tried as the first of two. If `start` is 0, single subprograms
    with the value are candidates, too, and come first. The other arguments are those of
    `dgsr.exact_search.bank.probe`; a candidate is f, how it is combined with g, and g.
    """
    n = probe(r, 0, ALONE, near, at_first, slots, bloom, candidates, 0, remaining) if start == 0 else 0
    for f in range(start, stop):
        x = at_first[f]
        if limits.CLOSE * max(abs(r), abs(x)) < min(abs(r), abs(x)):
            n = probe(r - x, f, ADDED, near, at_first, slots, bloom, candidates, n, remaining)
            n = probe(x - r, f, LESS_SECOND, near, at_first, slots, bloom, candidates, n, remaining)
            n = probe(r + x, f, LESS_FIRST, near, at_first, slots, bloom, candidates, n, remaining)
        n = probe(r / x, f, MULTIPLIED, near, at_first, slots, bloom, candidates, n, remaining)
        n = probe(x / r, f, BY_SECOND, near, at_first, slots, bloom, candidates, n, remaining)
        n = probe(r * x, f, BY_FIRST, near, at_first, slots, bloom, candidates, n, remaining)
    remaining[0] -= ALONE * (stop - start) + n
    return n


@compiled()
def values_of_join(join, bank, work, out):
    """Write the values of a join, computed from its subprograms."""
    values_of(join.second, bank, work)
    if join.kind != ALONE:
        values_of(join.first, bank, out)
        for j in range(limits.N_POINTS):
            work[j] = combined(join.kind, out[j], work[j])
    apply_unary_or_power(join.unary, join.power, bank, work, out)


@compiled()
def apply_unary_or_power(unary, power, bank, values, out):
    """Write the values of a unary operator, or of a power if `unary` is -1, given those of its operand."""
    if unary >= 0:
        apply(bank.unary[unary], 0, values, values, out, limits.N_POINTS)
        return
    copy_to(out, values)
    for _ in range(1, power):
        for j in range(limits.N_POINTS):
            out[j] *= values[j]


@compiled()
def are_close(values, target, tolerance):
    """Return whether all values are within the tolerance of the target."""
    for j in range(limits.N_POINTS):
        if not abs(values[j] - target[j]) <= tolerance[j]:
            return False
    return True


@compiled()
def fill_tolerance(target, tolerance):
    """Write the largest distance of a join from a target; return False if the target is not finite."""
    least, largest = extremes(target)
    size = max(-least, largest)
    if not size < 1e100:
        return False
    for j in range(limits.N_POINTS):
        tolerance[j] = limits.CLOSE * abs(target[j]) + limits.CLOSE_BY_LARGEST * size
    return True


@compiled()
def n_outer(bank):
    """Return the number of ways in which a join may begin: with no operator, a unary one, or a power."""
    return len(bank.unary) + limits.LARGEST_NUMBER


@compiled()
def simplest_join(query, bank, without, outer, n_firsts, most, most_nodes):
    """Return the join of fewest nodes that has the values of a query, before its budget `remaining` is spent.

    With `without` sines and cosines are not allowed. `outer` is the range of the outermost operators that are
    tried: 0 is none, then come the unary operators of the bank, then the powers. `n_firsts` has the numbers
    of subprograms tried as the first of two: where the outermost operator determines its operand, and in
    powers and where there are several operands. `most` and `most_nodes` limit the tokens and the nodes.
    """
    best = Join(NONE, -1, 1, ALONE, 0, 0)
    target, operands, candidates = query.values, query.operands, query.candidates
    at_first, slots, bloom = bank.semantics.at_first, bank.semantics.slots, bank.semantics.bloom
    if not fill_tolerance(target, query.tolerance):
        return best
    least, largest = extremes(target)
    nodes, length, trigonometric = bank.nodes, bank.length, bank.trigonometric
    n_unary = len(bank.unary)
    for at in range(outer[0], outer[1]):
        unary, power, above, bare = -1, 1, 0, without
        operands[0], n_operands = target[0], 1
        if 0 < at <= n_unary:
            unary, above = at - 1, 1
            op = bank.unary[unary]
            periodic = op == SIN or op == COS
            if bank.unary_tokens[unary] < 0 or (periodic and (without or max(-least, largest) > 1.0)):
                continue
            bare = without or periodic
            n_operands = operands_of(op, target[:1], limits.ANGLE, operands)
        elif at > n_unary:
            power, above = at - n_unary + 1, 1
            if bank.binary_tokens[2] < 0 or (power % 2 == 0 and least < 0.0):
                continue
            operands[0] = math.copysign(abs(target[0]) ** (1.0 / power), target[0])
            operands[1], n_operands = -operands[0], 2 - power % 2
        stop = n_firsts[0 if n_operands == 1 and power == 1 else 1]
        most_tokens = (most - (power - 1)) // power - (unary >= 0)
        n_parts = (stop - 1) // limits.FIRSTS_AT_ONCE + 1
        for part in range(n_operands * n_parts):
            operand, start = operands[part // n_parts], part % n_parts * limits.FIRSTS_AT_ONCE
            if not abs(operand) < 1e100:
                continue
            if query.remaining[0] < 0:
                return best
            arguments = bank.near, at_first, slots, bloom, candidates, query.remaining
            for p in range(
                find_candidates(operand, start, min(start + limits.FIRSTS_AT_ONCE, stop), *arguments)
            ):
                f, kind, g = candidates[p]
                n_nodes, n_tokens = above + nodes[g], length[g]
                if kind != ALONE:
                    n_nodes += 1 + nodes[f]
                    n_tokens += 1 + length[f]
                    if bank.binary_tokens[binary_of(kind)] < 0 or (bare and trigonometric[f]):
                        continue
                if n_nodes >= best.nodes or n_nodes > most_nodes or n_tokens > most_tokens:
                    continue
                if bare and trigonometric[g]:
                    continue
                if query.remaining[0] < 0:
                    return best
                query.remaining[0] -= limits.EVALUATION
                candidate = Join(n_nodes, unary, power, kind, f, g)
                values_of_join(candidate, bank, query.work, query.made)
                if are_close(query.made, target, query.tolerance):
                    best = candidate
    return best


@compiled()
def join(target, bank, without, most_first, remaining, program):
    """Write the tokens of the simplest join that has the values of a target; return their number, or 0.

    At most `most_first` subprograms are tried as the first of two. The join subtracts the candidates that it
    examines from the budget `remaining`, of shape (1,). With `without` sines and cosines are not allowed.
    """
    if remaining[0] <= 0:
        return 0
    query = new_query(target)
    n_firsts = min(bank.n_up_to[3], most_first), min(bank.n_up_to[2], most_first)
    most = min(remaining[0], limits.CANDIDATES_OF_JOIN)
    query.remaining[0] = most
    found = simplest_join(query, bank, without, (0, n_outer(bank)), n_firsts, len(program), NONE)
    remaining[0] -= most - query.remaining[0]
    return 0 if found.nodes == NONE else write_join(found, bank, program)


@compiled()
def operands_of(op, value, largest, out):
    """Write the operands with a value, of sines and cosines up to a size `largest`; return their number."""
    if op != SIN and op != COS:
        unary_operand(op, value, out[:1])
        if op == EXP and value[0] <= 0.0:
            return 0
        if op == SQUARE:
            out[1] = -out[0]
            return 2
        return 1
    period = 2.0 * math.pi
    n = 0
    for angle in angles_of(op, value[0]):
        operand = angle - period * math.floor((angle + largest) / period)
        while operand < largest:
            out[n] = operand
            n += 1
            operand += period
    return n


@compiled()
def angles_of(op, value):
    """Return the two angles with a sine or cosine from which all others differ by whole periods."""
    if op == SIN:
        angle = math.asin(value)
        return angle, math.pi - angle
    angle = math.acos(value)
    return angle, -angle


@compiled()
def write_join(join, bank, program):
    """Write the tokens of a join; return their number."""
    first, second, kind = join.first, join.second, join.kind
    if kind == ALONE:
        n = write_subprogram(second, bank, program, 0)
    else:
        program[0] = bank.binary_tokens[binary_of(kind)]
        commutes = kind == ADDED or kind == MULTIPLIED
        shorter = bank.length[second] < bank.length[first]
        swapped = kind == LESS_FIRST or kind == BY_FIRST or (commutes and shorter)
        at = write_subprogram(second if swapped else first, bank, program, 1)
        n = write_subprogram(first if swapped else second, bank, program, at)
    return write_unary_or_power(join.unary, join.power, bank, program, n)


@compiled()
def write_unary_or_power(unary, power, bank, program, n):
    """Write a unary operator, or a power if `unary` is -1, of the first n tokens; return their new number."""
    inside = np.empty(n, dtype=np.int64)
    copy_to(inside, program[:n])
    at = 0
    if unary >= 0:
        program[0] = bank.unary_tokens[unary]
        at = 1
    for _ in range(1, power):
        program[at] = bank.binary_tokens[2]
        copy_to(program[at + 1 :], inside)
        at += n + 1
    copy_to(program[at:], inside)
    return at + n
