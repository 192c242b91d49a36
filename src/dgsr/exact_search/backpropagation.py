"""Semantic backpropagation: a near miss is repaired by replacing one subtree, in compiled code.

The rest of a program determines the values that one subtree must have, and a join with these values is
searched for. Of the inverses of a sine, cosine or square, the one nearest to the present operand is used.

References
----------
Pawlak, Wieloch, Krawiec, IEEE Transactions on Evolutionary Computation 19(3), 2015.
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.join import (
    ADDED,
    BY_FIRST,
    BY_SECOND,
    LESS_FIRST,
    LESS_SECOND,
    MULTIPLIED,
    angles_of,
    join,
    second_of,
)
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.canonical import subtree_ends
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import unary_operand
from dgsr.kernels.operators import ADD, COS, DIV, MUL, SIN, SQUARE, SUB, VARIABLE, apply, is_binary


@compiled()
def _nearest(op, value, now):
    """Return the operand of a sine, cosine or square with a given value, nearest to the present one."""
    if op == SQUARE:
        return math.copysign(math.sqrt(value), now)
    if not abs(value) <= 1.0:
        return np.nan
    period = 2.0 * math.pi
    angle, other = angles_of(op, value)
    angle += period * round((now - angle) / period)
    other += period * round((now - other) / period)
    return angle if abs(angle - now) < abs(other - now) else other


@compiled()
def _operand(op, is_first, values, other, out):
    """Write an operand of +, -, * or /, given the values and the other operand; return False if unknown."""
    if op == ADD:
        kind = ADDED
    elif op == SUB:
        kind = LESS_FIRST if is_first else LESS_SECOND
    elif op == MUL:
        kind = MULTIPLIED
    elif op == DIV:
        kind = BY_FIRST if is_first else BY_SECOND
    else:
        return False
    for j in range(limits.N_POINTS):
        out[j] = second_of(kind, values[j], other[j])
    return True


@compiled()
def repair(tokens, length, table, points, target, bank, remaining, repaired, lengths):
    """Write programs that have the target's values and differ from a given one in one proper subtree.

    `points`, of shape (C, N_POINTS), has the columns at the points, with whose values the bank is filled, and
    `remaining` the budget of `dgsr.exact_search.join.join`. The programs, which need not be valid by a
    grammar, are written into `repaired` and `lengths`; return their number.
    """
    most = len(tokens)
    ends = np.empty(most + 1, dtype=np.int64)
    values, wanted = np.empty((most, limits.N_POINTS)), np.empty((most, limits.N_POINTS))
    known, in_sine = np.zeros(most, dtype=np.bool_), np.zeros(most, dtype=np.bool_)
    program = np.empty(most, dtype=np.int64)
    subtree_ends(tokens, length, table.arity, ends)
    for i in range(length - 1, -1, -1):
        op, address = table.opcode[tokens[i]], table.argument[tokens[i]]
        if op == VARIABLE:
            copy_to(values[i], points[address])
        else:
            second = ends[i + 1] if is_binary(op) else i + 1
            apply(op, address, values[i + 1], values[second], values[i], limits.N_POINTS)
    known[0] = True
    copy_to(wanted[0], target)
    for i in range(length):
        op = table.opcode[tokens[i]]
        if not known[i] or op == VARIABLE:
            continue
        first = i + 1
        in_sine[first] = in_sine[i] or op == SIN or op == COS
        if is_binary(op):
            second = ends[first]
            in_sine[second] = in_sine[i]
            known[first] = _operand(op, True, wanted[i], values[second], wanted[first])
            known[second] = _operand(op, False, wanted[i], values[first], wanted[second])
        elif op == SIN or op == COS or op == SQUARE:
            known[first] = True
            for j in range(limits.N_POINTS):
                wanted[first, j] = _nearest(op, wanted[i, j], values[first, j])
        else:
            known[first] = unary_operand(op, wanted[i], wanted[first])
    count = 0
    for i in range(1, length):
        if not known[i]:
            continue
        n = join(wanted[i], bank, in_sine[i], limits.FIRSTS_AT_ONCE, remaining, program)
        rest = length - ends[i]
        if n == 0 or i + n + rest > most:
            continue
        copy_to(repaired[count], tokens[:i])
        copy_to(repaired[count, i:], program[:n])
        copy_to(repaired[count, i + n :], tokens[ends[i] : length])
        lengths[count] = i + n + rest
        count += 1
    return count
