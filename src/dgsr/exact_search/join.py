"""What completes a program exactly is looked up, in compiled code.

Where a short program, or two joined by an operator, or either of these under one more operator or in a power,
has the values of a remainder, it is the rest of the program.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.exact_search.bank import N_POINTS, evaluate, look
from dgsr.exact_search.enumeration import LARGEST_POWER
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import take_off
from dgsr.kernels.operators import COS, EXP, SIN, SQUARE, VARIABLE, apply, is_binary

#: Programs tried as the first of two, at most, where what completes one is looked for at every token.
MOST_FIRST = 128
#: Work is counted in looks at one value, of some nanoseconds each. A program that is computed forwards at all
#: points costs so many.
FORWARDS = 100
#: What a completion may cost at most, one of many and one of a stage of `stages`. On common data
#: none comes near; where all programs have the same few values, the rest is not looked for.
MOST_WORK, MOST_WORK_OF_STAGE = 500_000, 20_000_000
# Gone through at a time, and candidates for a value, by the first point, that are looked at of these.
_AT_A_TIME, _MOST_FOUND = 128, 4096
# Values this close, by their own size and by that of the largest, are the same.
_CLOSE, _CLOSE_BY_LARGEST = 1e-7, 1e-10
#: Of two that are added, neither is smaller than so much of the other: any would do that is lost in it.
MOST_DROWNED = 1e-7
#: Operands of sines and cosines are looked for up to this size.
FARTHEST = 20.0

# How a value is made of f and g: f + g, f - g, g - f, f g, f/g, g/f, g.
ADDED, LESS_SECOND, LESS_FIRST, MULTIPLIED, BY_SECOND, BY_FIRST, ALONE = range(7)
NONE = 1 << 30

_compiled = compiled(error_model="numpy")
_inlined = compiled(error_model="numpy", _nrt=False, forceinline=True)
_lean = compiled(error_model="numpy", _nrt=False)  # without the counting of references


class _Wanted(NamedTuple):
    """Values that are looked for, and room to work in."""

    values: np.ndarray  # (N_POINTS,)
    close: np.ndarray  # (N_POINTS,): how near they must be
    work: np.ndarray  # (N_POINTS,)
    made: np.ndarray  # (N_POINTS,)
    operands: np.ndarray  # (64,)
    found: np.ndarray  # (_MOST_FOUND, 3) int64
    left: np.ndarray  # (1,) int64: what may still be done; below 0 the search ends


@_compiled
def new_wanted():
    """Room for a search."""
    row = np.empty(N_POINTS)
    found = np.empty((_MOST_FOUND, 3), dtype=np.int64)
    return _Wanted(row, row.copy(), row.copy(), row.copy(), np.empty(64), found, np.zeros(1, dtype=np.int64))


@_inlined
def made_of(kind, f, g):
    """What f and g make."""
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


@_inlined
def join_of(kind):
    """Which of add, sub, mul, div makes a value of two."""
    if kind < MULTIPLIED:
        return 0 if kind == ADDED else 1
    return 2 if kind == MULTIPLIED else 3


@_lean
def sift(r, start, stop, near, at_first, slots, sieve, found, work):
    """Find what may make a value, going by the first point alone.

    Parameters
    ----------
    r : float
    start, stop : int
        Programs that are tried as the first of two; with the very first also what is it alone.
    near : float
        The field of that name of a `Catalogue`.
    at_first, slots, sieve : ndarray
        The fields of these names of a `Short`.
    found : ndarray of shape (most, 3), int64
        Receives the first of two, how they make it, and the second; a program that is it comes first.
    work : ndarray of shape (1,), int64
        The looks are taken off it.

    Returns
    -------
    int
        How many there are.
    """
    n = look(r, 0, ALONE, near, at_first, slots, sieve, found, 0, work) if start == 0 else 0
    for f in range(start, stop):
        x = at_first[f]
        if MOST_DROWNED * max(abs(r), abs(x)) < min(abs(r), abs(x)):
            n = look(r - x, f, ADDED, near, at_first, slots, sieve, found, n, work)
            n = look(x - r, f, LESS_SECOND, near, at_first, slots, sieve, found, n, work)
            n = look(r + x, f, LESS_FIRST, near, at_first, slots, sieve, found, n, work)
        n = look(r / x, f, MULTIPLIED, near, at_first, slots, sieve, found, n, work)
        n = look(x / r, f, BY_SECOND, near, at_first, slots, sieve, found, n, work)
        n = look(r * x, f, BY_FIRST, near, at_first, slots, sieve, found, n, work)
    work[0] -= ALONE * (stop - start) + n
    return n


class Found(NamedTuple):
    """A completion: f and g, joined, in a power or under an operator."""

    nodes: int  # NONE if there is none
    way: int  # its number, or -1
    power: int
    kind: int
    first: int
    second: int


@_compiled
def evaluate_found(found, catalogue, values, work, out):
    """Write the values of a completion, computed forwards."""
    evaluate(found.second, catalogue, values, work)
    if found.kind != ALONE:
        evaluate(found.first, catalogue, values, out)
        for j in range(N_POINTS):
            work[j] = made_of(found.kind, out[j], work[j])
    put_under(found.way, found.power, catalogue, work, out)


@_compiled
def put_under(way, power, catalogue, values, out):
    """Write the values of an operator, or a power, of some values."""
    if way >= 0:
        apply(catalogue.ways[way], 0, values, values, out, N_POINTS)
        return
    copy_to(out, values)
    for _ in range(1, power):
        for j in range(N_POINTS):
            out[j] *= values[j]


@_compiled
def are_close(values, target, close):
    """Whether values are as near to others as they must be."""
    for j in range(N_POINTS):
        if not abs(values[j] - target[j]) <= close[j]:
            return False
    return True


@_compiled
def fill_close(target, close):
    """Write how near values must be to some others; False if these are not finite."""
    size = 0.0
    for j in range(N_POINTS):
        size = max(size, abs(target[j]))
        if not abs(target[j]) < 1e100:
            return False
    for j in range(N_POINTS):
        close[j] = _CLOSE * abs(target[j]) + _CLOSE_BY_LARGEST * size
    return True


@_compiled
def n_under(catalogue):
    """How many things a completion may be under: nothing, an operator, a power."""
    return len(catalogue.ways) + LARGEST_POWER


@_compiled
def find(wanted, short, catalogue, without, under, n_firsts, most, most_nodes):
    """Find the simplest completion.

    Parameters
    ----------
    wanted : _Wanted
        Its `values` are looked for, while it has work `left`.
    short : Short
    catalogue : Catalogue
    without : bool
        Whether sines and cosines are not allowed.
    under : tuple of int
        The first, and the end, of what completions are looked for under: 0 is nothing, then come the ways of
        the catalogue, then the powers; see `n_under`.
    n_firsts : tuple of int
        Programs tried as the first of two: where the operator above them has one operand that gives a
        value, and where it has many.
    most, most_nodes : int
        Tokens, and nodes, it may have.

    Returns
    -------
    Found
    """
    best = Found(NONE, -1, 1, ALONE, 0, 0)
    target, operands, found = wanted.values, wanted.operands, wanted.found
    if not fill_close(target, wanted.close):
        return best
    least, largest = extremes(target)
    nodes, length, trigonometric = catalogue.nodes, catalogue.length, catalogue.trigonometric
    n_ways = len(catalogue.ways)
    for at in range(under[0], under[1]):
        way, power, above, bare = -1, 1, 0, without
        operands[0], n_operands = target[0], 1
        if 0 < at <= n_ways:
            way, above = at - 1, 1
            op = catalogue.ways[way]
            folds = op == SIN or op == COS
            if catalogue.way_tokens[way] < 0 or (folds and (without or max(-least, largest) > 1.0)):
                continue
            bare = without or folds
            n_operands = operands_of(op, target[:1], FARTHEST, operands)
        elif at > n_ways:
            power, above = at - n_ways + 1, 1
            if catalogue.joins[2] < 0 or (power % 2 == 0 and least < 0.0):
                continue
            n_operands = _roots(target[0], power, operands)
        stop = n_firsts[0 if n_operands == 1 and power == 1 else 1]
        most_tokens = (most - (power - 1)) // power - (way >= 0)
        n_parts = (stop - 1) // _AT_A_TIME + 1
        for part in range(n_operands * n_parts):
            operand, start = operands[part // n_parts], part % n_parts * _AT_A_TIME
            if not abs(operand) < 1e100:
                continue
            if wanted.left[0] < 0:
                return best
            arguments = catalogue.near, short.at_first, short.slots, short.sieve, found, wanted.left
            for p in range(sift(operand, start, min(start + _AT_A_TIME, stop), *arguments)):
                f, kind, g = found[p]
                n_nodes, n_tokens = above + nodes[g], length[g]
                if kind != ALONE:
                    n_nodes += 1 + nodes[f]
                    n_tokens += 1 + length[f]
                    if catalogue.joins[join_of(kind)] < 0 or (bare and trigonometric[f]):
                        continue
                if n_nodes >= best.nodes or n_nodes > most_nodes or n_tokens > most_tokens:
                    continue
                if bare and trigonometric[g]:
                    continue
                if wanted.left[0] < 0:
                    return best
                wanted.left[0] -= FORWARDS
                candidate = Found(n_nodes, way, power, kind, f, g)
                evaluate_found(candidate, catalogue, short.values, wanted.work, wanted.made)
                if are_close(wanted.made, target, wanted.close):
                    best = candidate
    return best


@_compiled
def take_points(values, short, out):
    """Write the values at the points of a data set."""
    for j in range(N_POINTS):
        out[j] = values[short.rows[j]]


@_compiled
def complete(values, short, catalogue, without, most_first, work, program):
    """Look the rest of a program up.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
        The remainder: what the rest has to be.
    short : Short
        Values of the short programs on the data set.
    catalogue : Catalogue
    without : bool
        Whether sines and cosines are not allowed.
    most_first : int
        Programs tried as the first of two, at most.
    work : ndarray of shape (1,), int64
        What many completions may cost together, of which this one is taken off; once it is spent, nothing is
        found.
    program : ndarray of shape (most,), int64
        Receives the tokens, of the simplest of what is found.

    Returns
    -------
    int
        Number of tokens; 0 if nothing is found.
    """
    if len(values) < N_POINTS or work[0] <= 0:
        return 0
    wanted = new_wanted()
    take_points(values, short, wanted.values)
    if _is_level(wanted.values) and not _is_level(values):
        return 0  # what has died away at the points is no constant
    n_firsts = min(catalogue.n_up_to[3], most_first), min(catalogue.n_up_to[2], most_first)
    most = min(work[0], MOST_WORK)
    wanted.left[0] = most
    under = 0, n_under(catalogue)
    found = find(wanted, short, catalogue, without, under, n_firsts, len(program), NONE)
    work[0] -= most - wanted.left[0]
    return 0 if found.nodes == NONE else write(found, catalogue, program, 0)


@_compiled
def _is_level(values):
    for j in range(len(values)):
        if not abs(values[j] - values[0]) <= _CLOSE * abs(values[0]):
            return False
    return True


@_compiled
def operands_of(op, value, farthest, out):
    """Write what an operator may have been given for a value, of a sine up to a size; return how many."""
    if op != SIN and op != COS:
        take_off(op, value, out[:1])
        if op == EXP and value[0] <= 0.0:
            return 0
        if op == SQUARE:
            out[1] = -out[0]
            return 2
        return 1
    turn = 2.0 * math.pi
    angle = math.asin(value[0]) if op == SIN else math.acos(value[0])
    n = 0
    for k in range(2):
        start = angle if k == 0 else (math.pi - angle if op == SIN else -angle)
        start -= turn * math.floor((start + farthest) / turn)
        while start < farthest:
            out[n] = start
            n += 1
            start += turn
    return n


@_compiled
def _roots(value, power, out):
    out[0] = math.copysign(abs(value) ** (1.0 / power), value)
    out[1] = -out[0]
    return 2 - power % 2


@_compiled
def write(found, catalogue, program, at):
    """Write a completion out from `at`; return where it ends."""
    if found.way >= 0:
        program[at] = catalogue.way_tokens[found.way]
        at += 1
    first, second, kind = found.first, found.second, found.kind
    for k in range(found.power):
        if k < found.power - 1:
            program[at] = catalogue.joins[2]
            at += 1
        if kind == ALONE:
            at = write_short(second, catalogue, program, at)
            continue
        program[at] = catalogue.joins[join_of(kind)]
        commutes = kind == ADDED or kind == MULTIPLIED
        shorter = catalogue.length[second] < catalogue.length[first]
        swapped = kind == LESS_FIRST or kind == BY_FIRST or (commutes and shorter)
        at = write_short(second if swapped else first, catalogue, program, at + 1)
        at = write_short(first if swapped else second, catalogue, program, at)
    return at


@_compiled
def write_short(number, catalogue, program, at):
    """Write a short program out from `at`; return where it ends."""
    stack = np.empty(len(program) - at + 1, dtype=np.int64)
    stack[0] = number
    n = 1
    while n > 0:
        n -= 1
        i = stack[n]
        op = catalogue.opcode[i]
        program[at] = catalogue.token[i]
        at += 1
        if op != VARIABLE:
            if is_binary(op):
                stack[n] = catalogue.second[i]
                n += 1
            stack[n] = catalogue.first[i]
            n += 1
    return at
