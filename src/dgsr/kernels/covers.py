"""Whole programs looked up, in compiled code: what `complete` finds, and the same under one or two covers.

A *cover* is an operator, a power, or a short program at either side of an operator. What must be under it to
give some values is known, and looked up.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from dgsr.kernels.catalogue import LARGEST_POWER, N_POINTS, fill_short, new_short, short_of
from dgsr.kernels.completion import (
    ADDED,
    ALONE,
    BY_FIRST,
    BY_SECOND,
    LESS_FIRST,
    LESS_SECOND,
    MOST_FIRST_BELOW,
    MULTIPLIED,
    NONE,
    are_close,
    evaluate_found,
    fill_close,
    find,
    join_of,
    made_of,
    new_wanted,
    put_under,
    take_points,
    write,
    write_short,
)
from dgsr.kernels.inverses import take_off
from dgsr.kernels.operators import COS, EXP, SIN

# Programs tried as the first of two, where there is one remainder for every program, and under two covers.
_MOST_FIRST, _MOST_FIRST_DEEP = 512, 64
# Short programs that are part of a cover, where there is one, and where there are two.
_MOST_COVERING, _MOST_COVERING_TWICE = 150, 30

_compiled = njit(cache=True, error_model="numpy")


@_compiled
def complete_whole(values, short, catalogue, most_covers, program):
    """Look a whole program up, as `complete` does its rest.

    Parameters
    ----------
    values, short, catalogue, program
        As of `complete`.
    most_covers : int
        Under how many covers to look: under one for some ten milliseconds, under two for some hundred.

    Returns
    -------
    int
        Number of tokens; 0 if nothing is found.
    """
    if len(values) < N_POINTS:
        return 0
    wanted = new_wanted()
    take_points(values, wanted.values)
    most = len(program)
    found = find(wanted, short, catalogue, False, _MOST_FIRST, most, NONE)
    if found.nodes < NONE:
        return write(found, catalogue, program, 0)
    target, under = np.empty((3, N_POINTS)), np.empty((2, N_POINTS))
    take_points(values, target[0])
    close = np.empty(N_POINTS)
    if most_covers == 0 or not fill_close(target[0], close):
        return 0
    best, best_covers, nodes = found, (-1, -1), NONE
    for outer in range(_n_covers(min(catalogue.n_up_to[2], _MOST_COVERING), catalogue)):
        if not _uncover(outer, catalogue, short.values, target[0], wanted.values):
            continue
        cost = _cost(outer, catalogue)
        found = find(wanted, short, catalogue, False, MOST_FIRST_BELOW, most, nodes - cost - 1)
        if found.nodes == NONE or _length(found, (outer, -1), catalogue) > most:
            continue
        # What was taken away may have been much larger than what is left.
        evaluate_found(found, catalogue, short.values, wanted.work, under[0])
        _cover_with(outer, catalogue, short.values, under[0], under[1])
        if are_close(under[1], target[0], close):
            best, best_covers, nodes = found, (outer, -1), found.nodes + cost
    if nodes < NONE or most_covers == 1:
        return 0 if nodes == NONE else _write_covered(best, best_covers, catalogue, program)
    n_covers = _n_covers(min(catalogue.n_up_to[1], _MOST_COVERING_TWICE), catalogue)
    for outer in range(n_covers):
        if not _uncover(outer, catalogue, short.values, target[0], target[1]):
            continue
        for inner in range(n_covers):
            cost = _cost(outer, catalogue) + _cost(inner, catalogue)
            if nodes - cost <= 1 or not _uncover(inner, catalogue, short.values, target[1], wanted.values):
                continue
            found = find(wanted, short, catalogue, False, _MOST_FIRST_DEEP, most, nodes - cost - 1)
            if found.nodes == NONE or _length(found, (outer, inner), catalogue) > most:
                continue
            evaluate_found(found, catalogue, short.values, wanted.work, under[0])
            _cover_with(inner, catalogue, short.values, under[0], under[1])
            _cover_with(outer, catalogue, short.values, under[1], under[0])
            if are_close(under[0], target[0], close):
                best, best_covers, nodes = found, (outer, inner), found.nodes + cost
    return 0 if nodes == NONE else _write_covered(best, best_covers, catalogue, program)


# A cover is one number: of a way, of a power, or of a short program and how it is joined.


@_compiled
def _n_covers(n_programs, catalogue):
    return len(catalogue.ways) + LARGEST_POWER - 1 + ALONE * n_programs


@_compiled
def _parts(cover, catalogue):
    """Number of the way or -1, power, how a short program is joined, its number; ALONE without one."""
    n_ways = len(catalogue.ways)
    if cover < n_ways:
        return cover, 1, ALONE, 0
    if cover < n_ways + LARGEST_POWER - 1:
        return -1, cover - n_ways + 2, ALONE, 0
    pair = cover - n_ways - LARGEST_POWER + 1
    return -1, 1, pair % ALONE, pair // ALONE


@_compiled
def _cost(cover, catalogue):
    """Nodes of a cover."""
    _, _, kind, f = _parts(cover, catalogue)
    return 1 if kind == ALONE else 1 + catalogue.nodes[f]


@_compiled
def _cover_with(cover, catalogue, values, under, out):
    way, power, kind, f = _parts(cover, catalogue)
    if kind == ALONE:
        put_under(way, power, catalogue, under, out)
        return
    for j in range(N_POINTS):
        out[j] = made_of(kind, values[f, j], under[j])


@_compiled
def _uncover(cover, catalogue, values, target, out):
    """Write what must be under a cover; False where that cannot be, or can be many things."""
    way, power, kind, f = _parts(cover, catalogue)
    if kind != ALONE:
        for j in range(N_POINTS):
            out[j] = _second(kind, target[j], values[f, j])
        return catalogue.joins[join_of(kind)] >= 0
    if way >= 0:
        op = catalogue.ways[way]
        if catalogue.way_tokens[way] < 0 or op == SIN or op == COS:
            return False
        take_off(op, target, out)
        return op != EXP or target.min() > 0.0
    for j in range(N_POINTS):
        out[j] = math.copysign(abs(target[j]) ** (1.0 / power), target[j])
    return catalogue.joins[2] >= 0 and (power % 2 == 1 or target.min() >= 0.0)


@_compiled
def _length(found, covers, catalogue):
    """Tokens of a completion under covers, the outer one first."""
    length = catalogue.length[found.second]
    if found.kind != ALONE:
        length += 1 + catalogue.length[found.first]
    length = (found.way >= 0) + found.power * (length + 1) - 1
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] >= 0:
            way, power, kind, f = _parts(covers[i], catalogue)
            length = (way >= 0) + power * (length + 1) - 1
            if kind != ALONE:
                length += 1 + catalogue.length[f]
    return length


@_compiled
def _write_covered(found, covers, catalogue, program):
    """Write a completion under covers; return its length."""
    # From the inner one out: what is written so far moves on, to make room.
    n = write(found, catalogue, program, 0)
    inside = np.empty(len(program), dtype=np.int64)
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] < 0:
            continue
        way, power, kind, f = _parts(covers[i], catalogue)
        inside[:n] = program[:n]
        at = 0
        if kind != ALONE:
            program[0] = catalogue.joins[join_of(kind)]
            last = kind == LESS_FIRST or kind == BY_FIRST
            at = 1 if last else write_short(f, catalogue, program, 1)
            program[at : at + n] = inside[:n]
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
            program[at : at + n] = inside[:n]
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


def look_up_whole(columns, y, catalogue, short, most_covers, plans):
    """Look whole programs up, of D data sets.

    Parameters
    ----------
    columns : ndarray of shape (D, C, n), float64
    y : ndarray of shape (D, n), float64
    catalogue : Catalogue
    short : Short
        Of D data sets, or of one as room to work in; receives their values.
    most_covers : int
        See `complete_whole`.
    plans : ndarray of shape (D, most), int64
        Receives the programs, -1 after their end.
    """
    plans[:] = -1
    _look_all_up(columns, y, catalogue, short, most_covers, np.empty(plans.shape[1], dtype=np.int64), plans)


@_compiled
def _look_all_up(columns, y, catalogue, short, most_covers, program, plans):
    for d in range(len(y)):
        own = short_of(short, min(d, len(short.slots) - 1))
        fill_short(columns[d], catalogue, own.values, own.at_first, own.slots, own.sieve)
        n = complete_whole(y[d], own, catalogue, most_covers, program)
        plans[d, :n] = program[:n]


def are_looked_up(columns, y, catalogue, max_length):
    """Which data sets are the values of a program that is looked up whole: a ndarray of bool."""
    plans = np.empty((len(y), max_length), dtype=np.int64)
    look_up_whole(columns, y, catalogue, new_short(1, catalogue), 0, plans)
    return plans[:, 0] >= 0
