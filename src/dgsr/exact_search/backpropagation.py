"""Near misses put right, in compiled code: one subtree is exchanged for what makes the whole exact.

Where all of a program but one subtree is known, so are the values the subtree must have; what has them is
looked up. Of sine, cosine and even powers the operand that gives a value is the one nearest to what is there.

References
----------
Pawlak, Wieloch, Krawiec, IEEE Transactions on Evolutionary Computation 19(3), 2015: semantic backpropagation.
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.exact_search.bank import N_POINTS
from dgsr.exact_search.join import MOST_FIRST, complete
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.canonical import subtree_ends
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import second_operand, take_off
from dgsr.kernels.operators import ADD, COS, DIV, MUL, SIN, SQUARE, SUB, VARIABLE, apply, is_binary

_compiled = compiled(error_model="numpy")


@_compiled
def _nearest(op, value, now):
    """The operand of a sine, a cosine or a square that gives a value, nearest to what it is now."""
    if op == SQUARE:
        return math.copysign(math.sqrt(value), now)
    if not abs(value) <= 1.0:
        return np.nan
    turn = 2.0 * math.pi
    angle = math.asin(value) if op == SIN else math.acos(value)
    other = math.pi - angle if op == SIN else -angle
    angle += turn * round((now - angle) / turn)
    other += turn * round((now - other) / turn)
    return angle if abs(angle - now) < abs(other - now) else other


@_compiled
def _first_operand(op, values, second, out):
    """Write the first operand of an operator with these values; False if that is not known."""
    for j in range(N_POINTS):
        if op == ADD:
            out[j] = values[j] - second[j]
        elif op == SUB:
            out[j] = values[j] + second[j]
        elif op == MUL:
            out[j] = values[j] / second[j]
        elif op == DIV:
            out[j] = values[j] * second[j]
        else:
            return False
    return True


@_compiled
def repair(tokens, length, table, points, target, short, catalogue, work, repaired, lengths):
    """Look up what makes a program exact, at every place of it but the root.

    Parameters
    ----------
    tokens : ndarray of shape (max_length,), int64
    length : int
    table : TokenTable
    points : ndarray of shape (C, N_POINTS), float64
        The columns at the points of the catalogue.
    target : ndarray of shape (N_POINTS,), float64
    short : Short
    catalogue : Catalogue
    work : ndarray of shape (1,), int64
        What it may cost, off which this is taken: see `dgsr.exact_search.join.complete`.
    repaired : ndarray of shape (most, max_length), int64
    lengths : ndarray of shape (most,), int64
        Receive programs, and their lengths; that they meet a grammar is not certain.

    Returns
    -------
    int
        Number of programs.
    """
    most = len(tokens)
    ends = np.empty(most + 1, dtype=np.int64)
    values, wanted = np.empty((most, N_POINTS)), np.empty((most, N_POINTS))
    known, folded = np.zeros(most, dtype=np.bool_), np.zeros(most, dtype=np.bool_)
    program = np.empty(most, dtype=np.int64)
    subtree_ends(tokens, length, table.arity, ends)
    for i in range(length - 1, -1, -1):
        op, address = table.opcode[tokens[i]], table.argument[tokens[i]]
        if op == VARIABLE:
            copy_to(values[i], points[address])
        else:
            second = ends[i + 1] if is_binary(op) else i + 1
            apply(op, address, values[i + 1], values[second], values[i], N_POINTS)
    known[0] = True
    copy_to(wanted[0], target)
    for i in range(length):
        op = table.opcode[tokens[i]]
        if not known[i] or op == VARIABLE:
            continue
        first = i + 1
        folded[first] = folded[i] or op == SIN or op == COS
        if is_binary(op):
            second = ends[first]
            folded[second] = folded[i]
            known[first] = _first_operand(op, wanted[i], values[second], wanted[first])
            known[second] = second_operand(op, wanted[i], values[first], wanted[second])
        elif op == SIN or op == COS or op == SQUARE:
            known[first] = True
            for j in range(N_POINTS):
                wanted[first, j] = _nearest(op, wanted[i, j], values[first, j])
        else:
            known[first] = take_off(op, wanted[i], wanted[first])
    count = 0
    for i in range(1, length):
        if not known[i] or count == len(repaired):
            continue
        n = complete(wanted[i], short, catalogue, folded[i], MOST_FIRST, work, program)
        rest = length - ends[i]
        if n == 0 or i + n + rest > most:
            continue
        copy_to(repaired[count], tokens[:i])
        copy_to(repaired[count, i:], program[:n])
        copy_to(repaired[count, i + n :], tokens[ends[i] : length])
        lengths[count] = i + n + rest
        count += 1
    return count
