"""Covers: what a program may be under, taken off its values and put on again, in compiled code.

A *cover* is an operator, a power, or a short program at either side of an operator. What must be under it to
give some values is known. A cover is one number: of a way, of a power, or of a short program and how it is
joined.
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.exact_search.enumeration import LARGEST_POWER
from dgsr.exact_search.join import (
    ADDED,
    ALONE,
    BY_FIRST,
    BY_SECOND,
    LESS_FIRST,
    LESS_SECOND,
    MOST_DROWNED,
    MULTIPLIED,
    join_of,
    made_of,
    put_under,
    write,
    write_short,
)
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import take_off
from dgsr.kernels.operators import COS, EXP, SIN

_compiled = compiled(error_model="numpy")


@_compiled
def n_covers(n_programs, catalogue):
    """How many covers there are, with so many short programs; they are the first of all."""
    return len(catalogue.ways) + LARGEST_POWER - 1 + ALONE * n_programs


@_compiled
def parts(cover, catalogue):
    """Number of the way or -1, power, how a short program is joined, its number; ALONE without one."""
    n_ways = len(catalogue.ways)
    if cover < n_ways:
        return cover, 1, ALONE, 0
    if cover < n_ways + LARGEST_POWER - 1:
        return -1, cover - n_ways + 2, ALONE, 0
    pair = cover - n_ways - LARGEST_POWER + 1
    return -1, 1, pair % ALONE, pair // ALONE


@_compiled
def nodes_of(cover, catalogue):
    """Nodes of a cover."""
    _, _, kind, f = parts(cover, catalogue)
    return 1 if kind == ALONE else 1 + catalogue.nodes[f]


@_compiled
def cover_with(cover, catalogue, values, under, out):
    """Write the values of a cover over some values."""
    way, power, kind, f = parts(cover, catalogue)
    if kind == ALONE:
        put_under(way, power, catalogue, under, out)
        return
    for j in range(len(out)):
        out[j] = made_of(kind, values[f, j], under[j])


@_compiled
def uncover(cover, catalogue, values, target, out):
    """Write what must be under a cover; False where that cannot be, or can be many things."""
    way, power, kind, f = parts(cover, catalogue)
    if kind != ALONE:
        if kind < MULTIPLIED and abs(target[0]) < MOST_DROWNED * abs(values[f, 0]):
            return False
        for j in range(len(out)):
            out[j] = _second(kind, target[j], values[f, j])
        return catalogue.joins[join_of(kind)] >= 0
    if way >= 0:
        op = catalogue.ways[way]
        if catalogue.way_tokens[way] < 0 or op == SIN or op == COS:
            return False
        take_off(op, target, out)
        return op != EXP or extremes(target)[0] > 0.0
    for j in range(len(out)):
        out[j] = math.copysign(abs(target[j]) ** (1.0 / power), target[j])
    return catalogue.joins[2] >= 0 and (power % 2 == 1 or extremes(target)[0] >= 0.0)


@_compiled
def length_under(found, covers, catalogue):
    """Tokens of a completion under covers, the outer one first."""
    length = catalogue.length[found.second]
    if found.kind != ALONE:
        length += 1 + catalogue.length[found.first]
    length = (found.way >= 0) + found.power * (length + 1) - 1
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] >= 0:
            way, power, kind, f = parts(covers[i], catalogue)
            length = (way >= 0) + power * (length + 1) - 1
            if kind != ALONE:
                length += 1 + catalogue.length[f]
    return length


@_compiled
def write_covered(found, covers, catalogue, program):
    """Write a completion under covers; return its length."""
    # From the inner one out: what is written so far moves on, to make room.
    n = write(found, catalogue, program, 0)
    inside = np.empty(len(program), dtype=np.int64)
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] < 0:
            continue
        way, power, kind, f = parts(covers[i], catalogue)
        copy_to(inside, program[:n])
        at = 0
        if kind != ALONE:
            program[0] = catalogue.joins[join_of(kind)]
            last = kind == LESS_FIRST or kind == BY_FIRST
            at = 1 if last else write_short(f, catalogue, program, 1)
            copy_to(program[at:], inside[:n])
            at += n
            n = write_short(f, catalogue, program, at) if last else at
            continue
        if way >= 0:
            program[0] = catalogue.way_tokens[way]
            at = 1
        for k in range(power):
            if k < power - 1:
                program[at] = catalogue.joins[2]
                at += 1
            copy_to(program[at:], inside[:n])
            at += n
        n = at
    return n


@_compiled
def _second(kind, value, first):
    """The second of two, given the first and what they make."""
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
