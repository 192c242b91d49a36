"""Whole programs looked up, in compiled code: two short programs joined, under one or more covers.

Looked up is what `complete` finds, at more length: all pairs of short programs, pairs under one or two covers
(`dgsr.kernels.covers`), and under a sine or cosine that may have covers without and within. What is within a
sine is known but for its turn, and that differs from row to row: so there the first point alone is gone by,
every turn of it is tried, and what is found is computed forwards at all points.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from dgsr.kernels.catalogue import N_POINTS, Short, fill_short, new_short, short_of
from dgsr.kernels.completion import (
    ADDED,
    ALONE,
    BY_FIRST,
    FARTHEST,
    LESS_FIRST,
    MOST_FOUND_OF_MANY,
    MULTIPLIED,
    NONE,
    Found,
    are_close,
    evaluate_found,
    fill_close,
    find,
    join_of,
    new_wanted,
    operands_of,
    sift,
    take_points,
    write,
)
from dgsr.kernels.covers import (
    cover_with,
    length_under,
    n_covers,
    nodes_of,
    parts,
    uncover,
    write_covered,
)
from dgsr.kernels.listing import LARGEST_POWER
from dgsr.kernels.operators import COS, SIN

# How often a stage of the search looks a value up, about: some tenths of a second.
_MOST_LOOKS = 20_000_000
# Programs tried as the first of two: before any covers, and at least and within a sine.
_MOST_FIRST, _LEAST_FIRST = 512, 64
# Short programs that are part of a cover: in general, of two, and of one around a sine and one in it.
_MOST_COVERING, _MOST_COVERING_TWICE = 150, 30
_MOST_WITHOUT, _MOST_WITHIN = 1024, 512
# What is under a bare sine is looked for up to this size, with few covers; else up to `FARTHEST`.
_FARTHEST = 200.0

_compiled = njit(cache=True, error_model="numpy")


def complete_whole(values, short, catalogue, depth, program):
    """Look a whole program up, as `complete` does its rest.

    Not compiled, so that it can be interrupted between its stages.

    Parameters
    ----------
    values, short, catalogue, program
        As of `complete`.
    depth : int
        How far to look: 0 for a short program or two joined, also under an operator or in a power, which
        takes a millisecond by a large catalogue; 1 for these under one cover too, some hundred; 2 for all
        pairs of short programs, what is under two covers, and what is under a sine and covers: seconds.

    Returns
    -------
    int
        Number of tokens; 0 if nothing is found.
    """
    n = _complete(values, short, catalogue, program)
    if n > 0 or depth == 0 or len(values) < N_POINTS:
        return n
    target, close, wanted = np.empty(N_POINTS), np.empty(N_POINTS), new_wanted(MOST_FOUND_OF_MANY)
    take_points(values, short, target)
    if not fill_close(target, close):
        return 0
    arguments = target, close, short, catalogue, len(program), wanted
    up_to = [min(int(n), catalogue.n_kept) for n in catalogue.n_up_to]  # covers are of these
    some, simplest = min(up_to[2], _MOST_COVERING), min(up_to[1], _MOST_COVERING_TWICE)
    stages = [partial(_find_covered, 1, some, False)]
    if depth >= 2:
        stages.append(_find_pair)
        for n_covering in (up_to[1], some, up_to[4]):
            stages.append(partial(_find_covered, 1, n_covering, True))
        stages.append(_find_folded)
        stages += [partial(_find_covered, 2, simplest, plain) for plain in (True, False)]
    for stage in stages:
        found, covers = stage(*arguments)
        if found.nodes < NONE:
            return write_covered(found, covers, catalogue, program)
    return 0


@_compiled
def _complete(values, short, catalogue, program):
    """`complete_whole` at depth 0."""
    if len(values) < N_POINTS:
        return 0
    wanted = new_wanted(MOST_FOUND_OF_MANY)
    take_points(values, short, wanted.values)
    n_firsts = min(catalogue.n_up_to[3], _MOST_FIRST), min(catalogue.n_up_to[2], _MOST_FIRST)
    found = find(wanted, short, catalogue, False, False, n_firsts, len(program), NONE)
    return 0 if found.nodes == NONE else write(found, catalogue, program, 0)


@_compiled
def _find_pair(target, close, short, catalogue, most, wanted):
    """Find the simplest of all pairs of short programs: itself, and no covers."""
    wanted.values[:] = target
    n_firsts = len(catalogue.token), catalogue.n_up_to[4]
    return find(wanted, short, catalogue, False, False, n_firsts, most, NONE), (-1, -1, -1)


@_compiled
def _is_right(found, covers, target, close, short, catalogue, under):
    """Whether a completion under covers has the values: what is taken off may drown what is left."""
    evaluate_found(found, catalogue, short.values, under[0], under[1])
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] >= 0:
            under[0] = under[1]
            cover_with(covers[i], catalogue, short.values, under[0], under[1])
    return are_close(under[1], target, close)


@_compiled
def _find_covered(n, n_covering, plain, target, close, short, catalogue, most, wanted):
    """Find the simplest completion under n covers, one or two, of so many short programs: itself, and these.

    As many pairs are tried as there is time for; `plain` as of `find`.
    """
    best, best_covers, nodes = Found(NONE, -1, 1, ALONE, 0, 0), (-1, -1, -1), NONE
    under, between = np.empty((2, N_POINTS)), np.empty(N_POINTS)
    stop = n_covers(n_covering, catalogue)
    n_finds = (stop if n == 1 else stop * stop // 2) * (1 if plain else len(catalogue.ways) + LARGEST_POWER)
    n_firsts, up_to = max(_LEAST_FIRST, _MOST_LOOKS // (ALONE * n_finds)), catalogue.n_up_to
    n_firsts_of_both = min(up_to[4 if plain else 3], n_firsts), min(up_to[2], n_firsts)
    for outer in range(stop):
        if not uncover(outer, catalogue, short.values, target, between):
            continue
        for inner in range(-1, 0) if n == 1 else range(stop):
            if 0 <= inner < outer and _commute(outer, inner, catalogue):
                continue
            covers = outer, inner, -1
            if n == 1:
                wanted.values[:] = between
            elif not uncover(inner, catalogue, short.values, between, wanted.values):
                continue
            left = nodes - _nodes_of(covers, catalogue)
            if left <= 1:
                continue
            found = find(wanted, short, catalogue, False, plain, n_firsts_of_both, most, left - 1)
            if found.nodes == NONE or length_under(found, covers, catalogue) > most:
                continue
            if _is_right(found, covers, target, close, short, catalogue, under):
                best, best_covers, nodes = found, covers, found.nodes + nodes - left
    return best, best_covers


@_compiled
def _commute(outer, inner, catalogue):
    """Whether it is all one which of two covers is the outer one."""
    first, second = parts(outer, catalogue)[2], parts(inner, catalogue)[2]
    sums = (first == ADDED or first == LESS_FIRST) and (second == ADDED or second == LESS_FIRST)
    products = first == MULTIPLIED or first == BY_FIRST
    return sums or (products and (second == MULTIPLIED or second == BY_FIRST))


@_compiled
def _nodes_of(covers, catalogue):
    n = 0
    for cover in covers:
        if cover >= 0:
            n += nodes_of(cover, catalogue)
    return n


@_compiled
def _find_folded(target, close, short, catalogue, most, wanted):
    """Find the simplest completion under a sine or cosine and a cover: itself, and these."""
    best, best_covers, nodes = Found(NONE, -1, 1, ALONE, 0, 0), (-1, -1, -1), NONE
    between, operands = np.empty(N_POINTS), np.empty(160)
    n_bare, n_few = n_covers(0, catalogue), n_covers(_n_covering(1, _MOST_COVERING, catalogue), catalogue)
    n_some = n_covers(_n_covering(3, _MOST_COVERING, catalogue), catalogue)
    n_all = n_covers(_n_covering(3, _MOST_WITHIN, catalogue), catalogue)
    n_without = n_covers(_n_covering(4, _MOST_WITHOUT, catalogue), catalogue)
    # With few covers in the sine at first, then with many: there is not always time for all of them.
    for start, stop in ((-1, n_few), (n_few, n_all)):
        n_left = _MOST_LOOKS // (ALONE * _LEAST_FIRST)
        for outer in range(-1, n_without):
            signs, n_within = 1, n_all
            between[:] = target
            if outer >= 0:
                if not uncover(outer, catalogue, short.values, target, between):
                    continue
                _, power, kind, _ = parts(outer, catalogue)
                signs, n_within = 1 + (power % 2 == 0), n_some if kind == ALONE else n_bare
            farthest = _FARTHEST if outer < 0 and start < 0 else FARTHEST
            if n_within <= start or not np.abs(between).max() <= 1.0:
                continue
            value = between[0]
            for turn in range(2 * signs):
                op, between[0] = SIN if turn % 2 == 0 else COS, value if turn < 2 else -value
                fold = _way_of(op, catalogue)
                n_operands = operands_of(op, between[:1], farthest, operands) if fold >= 0 else 0
                for o in range(n_operands):
                    for inner in range(start, min(stop, n_within)):
                        if _has_sine(inner, catalogue):
                            continue
                        n_left -= 1
                        covers = outer, fold, inner
                        left = nodes - _nodes_of(covers, catalogue)
                        if n_left < 0 or left <= 1:
                            continue
                        arguments = target, close, short, catalogue, most, left, wanted
                        found = _find_within(operands[o], covers, *arguments)
                        if found.nodes < NONE:
                            best, best_covers, nodes = found, covers, found.nodes + nodes - left
        if nodes < NONE:
            break
    return best, best_covers


@_compiled
def _n_covering(nodes, most, catalogue):
    """How many short programs of so many nodes can be part of a cover: all their values are needed."""
    return min(catalogue.n_up_to[nodes], most, catalogue.n_kept)


@_compiled
def _way_of(op, catalogue):
    """Number of an operator among the ways; -1 if the library has it not."""
    for way in range(len(catalogue.ways)):
        if catalogue.ways[way] == op and catalogue.way_tokens[way] >= 0:
            return way
    return -1


@_compiled
def _find_within(operand, covers, target, close, short, catalogue, most, most_nodes, wanted):
    """Find the simplest completion under covers, given the first value of what is under the last but one."""
    best, nodes = Found(NONE, -1, 1, ALONE, 0, 0), most_nodes
    under, one = np.empty((2, N_POINTS)), wanted.work[:2]
    one[0], one[1] = operand, operand
    if covers[2] >= 0 and not uncover(covers[2], catalogue, short.values, one[:1], one[1:]):
        return best
    value, n_firsts = one[1], min(catalogue.n_up_to[3], _LEAST_FIRST)
    if not abs(value) < 1e100:
        return best
    arguments = catalogue.near, short.at_first, short.slots, short.sieve, wanted.found
    for p in range(sift(value, 0, n_firsts, *arguments)):
        f, kind, g = wanted.found[p]
        n_nodes = catalogue.nodes[g]
        if kind != ALONE:
            n_nodes += 1 + catalogue.nodes[f]
            if catalogue.joins[join_of(kind)] < 0 or catalogue.trigonometric[f]:
                continue
        if n_nodes >= nodes or catalogue.trigonometric[g]:
            continue
        found = Found(n_nodes, -1, 1, kind, f, g)
        if length_under(found, covers, catalogue) <= most:
            if _is_right(found, covers, target, close, short, catalogue, under):
                best, nodes = found, n_nodes
    return best


@_compiled
def _has_sine(cover, catalogue):
    if cover < 0:
        return False
    _, _, kind, f = parts(cover, catalogue)
    return kind != ALONE and catalogue.trigonometric[f]


def look_up_more(tables, catalogue, depth):
    """Look whole programs up that are not found in a small catalogue.

    Parameters
    ----------
    tables : dgsr.kernels.dictionary.Tables
        Its `plans` receive them.
    catalogue : Catalogue
        Another one, over the same columns.
    depth : int
        See `complete_whole`.
    """
    short = Short(*(array[0] for array in new_short(1, catalogue)))
    program = np.empty(tables.plans.shape[1], dtype=np.int64)
    for d in np.flatnonzero(tables.plans[:, 0] < 0):
        fill_short(tables.columns[d], catalogue, *short)
        n = complete_whole(tables.y[d], short, catalogue, depth, program)
        tables.plans[d, :n] = program[:n]


@_compiled
def look_up_whole(columns, y, catalogue, short, plans):
    """Look whole programs up at depth 0, of D data sets.

    Parameters
    ----------
    columns : ndarray of shape (D, C, n), float64
    y : ndarray of shape (D, n), float64
    catalogue : Catalogue
    short : Short
        Of D data sets, or of one as room to work in; receives their values.
    plans : ndarray of shape (D, most), int64
        Receives the programs, -1 after their end.
    """
    plans[:] = -1
    program = np.empty(plans.shape[1], dtype=np.int64)
    for d in range(len(y)):
        own = short_of(short, min(d, len(short.slots) - 1))
        fill_short(columns[d], catalogue, own.values, own.at_first, own.rows, own.slots, own.sieve)
        n = _complete(y[d], own, catalogue, program)
        plans[d, :n] = program[:n]


def are_looked_up(columns, y, catalogue, max_length):
    """Which data sets are the values of a program that is looked up whole: a ndarray of bool."""
    plans = np.empty((len(y), max_length), dtype=np.int64)
    look_up_whole(columns, y, catalogue, new_short(1, catalogue), plans)
    return plans[:, 0] >= 0
