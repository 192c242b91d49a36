"""Whole programs looked up, in compiled code: two short programs joined, under one or more covers.

Looked up is what `complete` finds, at more length, in stages: all pairs of short programs, pairs under one or
two covers (`contexts`), and under a sine or cosine that may have covers around it and in it. What
is in a sine is known but for its turn, and that differs from row to row: so there the first point alone is
gone by, every turn of it is tried, and what is found is computed forwards at all points.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dgsr.exact_search.bank import N_POINTS
from dgsr.exact_search.contexts import (
    cover_with,
    length_under,
    n_covers,
    nodes_of,
    parts,
    uncover,
    write_covered,
)
from dgsr.exact_search.join import (
    ADDED,
    ALONE,
    BY_FIRST,
    FARTHEST,
    FORWARDS,
    LESS_FIRST,
    MOST_WORK,
    MOST_WORK_OF_STAGE,
    MULTIPLIED,
    NONE,
    Found,
    are_close,
    complete,
    evaluate_found,
    fill_close,
    find,
    join_of,
    n_under,
    new_wanted,
    operands_of,
    sift,
    take_points,
    write,
)
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import COS, SIN

#: Stages of the search: those it begins with, and all.
SHALLOW, DEEPEST = 8, 23
# How often a stage of the search looks a value up, about: half a second.
_MOST_LOOKS = 60_000_000
# What a stage may cost, of which its looks are most on common data; what it does between two questions
# whether it should stop; and what it costs to take a cover off. Counted as in `dgsr.exact_search.join`.
_MOST_WORK, _AT_ONCE, _COVER = 180_000_000, 10_000_000, 20
# Of a stage that is under way: where it goes on, how many completions it may still look for (-1 before the
# first), the work it may still do, and nodes and tokens of what it has found.
_AT, _FINDS, _WORK, _NODES, _LENGTH = range(5)
# Programs tried as the first of two: before any covers, and at least.
_MOST_FIRST, _FEW = 512, 64
# What is under a sine with few covers is looked for up to these sizes, else up to `FARTHEST`.
_FAR, _FARTHEST = 60.0, 200.0
# What is under one has at most so many values of that size; it is a sine or a cosine, and of either sign.
_MOST_OPERANDS, _TURNS = 160, 4

# Kinds of stages: pairs of short programs, these under covers, and what is under a sine or a cosine.
_PAIR, _COVERED, _FOLDED = range(3)

_compiled = compiled(error_model="numpy")


def complete_whole(values, short, catalogue, accepts, depth, program, start=0, should_stop=lambda: False):
    """Look a whole program up, as `complete` does its rest.

    Not compiled: it can be interrupted ten times a second or so.

    Parameters
    ----------
    values, short, catalogue, program
        The same as in `complete`.
    accepts : callable
        Of `program` and its length: one that it refuses is passed over.
    depth, start : int
        Stages of the search to go to, and from: 0 is `complete`, the last is `DEEPEST`. Of a large catalogue
        the first takes milliseconds, all up to `SHALLOW` a second, and each of the others up to one.
    should_stop : callable
        Asked ten times a second or so whether the search is to end without having found anything.

    Returns
    -------
    int
        Number of tokens; 0 if nothing is found.
    """
    if start == 0:
        n = complete(values, short, catalogue, False, _MOST_FIRST, np.array([MOST_WORK]), program)
        if n > 0 and accepts(program, n):
            return n
    if len(values) < N_POINTS:
        return 0
    for stage in _stages(catalogue)[max(start - 1, 0) : depth]:
        state = np.array([0, -1, _MOST_WORK, NONE, 0])
        goes_on = True
        while goes_on:
            if should_stop():
                return 0
            goes_on = stage(state, values, short, catalogue, program)
        n = int(state[_LENGTH])
        if n > 0 and accepts(program, n):
            return n
    return 0


def _stages(catalogue):
    """What is looked for after `complete`, in this order: there is not time for all covers of all."""
    bare, one, two, three, four = (
        int(n_covers(min(n, catalogue.n_kept), catalogue)) for n in catalogue.n_up_to
    )
    few = min(_FEW, len(catalogue.token))
    some, many = (int(n) for n in catalogue.n_up_to[3:])
    none = -1, 0
    stages = [
        partial(_go_on, _COVERED, two, none, none, False, few, FARTHEST),
        partial(_go_on, _PAIR, 0, none, none, False, few, FARTHEST),
        partial(_go_on, _COVERED, one, none, none, True, few, FARTHEST),
        partial(_go_on, _COVERED, two, none, none, True, few, FARTHEST),
        partial(_go_on, _FOLDED, 0, none, none, False, many, _FARTHEST),
        partial(_go_on, _FOLDED, 0, (-1, one), none, False, few, _FARTHEST),
        partial(_go_on, _FOLDED, 0, (0, two), none, False, some, FARTHEST),
        partial(_go_on, _FOLDED, two, none, none, False, few, _FARTHEST),
        # Those after SHALLOW.
        partial(_go_on, _COVERED, three, none, none, True, few, FARTHEST),
        partial(_go_on, _FOLDED, four, none, none, False, few, FARTHEST),
        partial(_go_on, _FOLDED, three, (0, bare), none, False, few, FARTHEST),
        partial(_go_on, _FOLDED, two, (0, one), none, False, few, FARTHEST),
        partial(_go_on, _COVERED, bare, (0, two), none, True, few, FARTHEST),
        partial(_go_on, _COVERED, four, none, none, True, few, FARTHEST),
        partial(_go_on, _COVERED, two, (0, two), none, True, few, FARTHEST),
        partial(_go_on, _COVERED, three, (0, bare), none, True, few, FARTHEST),
        partial(_go_on, _FOLDED, bare, (one, three), none, False, few, FARTHEST),
        partial(_go_on, _FOLDED, bare, (0, two), (0, bare), False, few, FARTHEST),
        partial(_go_on, _FOLDED, 0, (0, one), (bare, two), False, few, FARTHEST),
        partial(_go_on, _FOLDED, 0, (0, one), (0, bare), False, some, FARTHEST),
        partial(_go_on, _FOLDED, 0, (0, bare), none, False, many, _FAR),
        partial(_go_on, _FOLDED, three, (0, bare), none, False, few, _FARTHEST),
        partial(_go_on, _COVERED, one, (0, one), none, False, few, FARTHEST),
    ]
    assert len(stages) == DEEPEST
    return stages


# A compiled function that Python calls returns a number: were it a named tuple, Ctrl-C while that is made
# would end the process.


@_compiled
def _go_on(
    kind, n_outer, inner, innermost, plain, n_firsts, farthest, state, values, short, catalogue, program
):
    """Go on with a stage of one of three kinds, all in one function: what they call is compiled once.

    Parameters
    ----------
    kind : int
        `_PAIR`, `_COVERED` or `_FOLDED`; the next arguments are those of its function, as far as it has them.
    state, values, short, catalogue, program
        Arguments that all three have.

    Returns
    -------
    bool
        Whether there is more to look for.
    """
    if kind == _PAIR:
        return _look_pair(state, values, short, catalogue, program)
    if kind == _COVERED:
        return _look_covered(n_outer, inner, plain, state, values, short, catalogue, program)
    return _look_folded(
        n_outer, inner, innermost, n_firsts, farthest, state, values, short, catalogue, program
    )


@_compiled
def _look_pair(state, values, short, catalogue, program):
    """Go on with the search for the simplest of all pairs of short programs; return whether there is more."""
    wanted = new_wanted()
    take_points(values, short, wanted.values)
    wanted.left[0] = MOST_WORK_OF_STAGE
    at, n_firsts = state[_AT], (len(catalogue.token), catalogue.n_up_to[4])
    found = find(wanted, short, catalogue, False, (at, at + 1), n_firsts, len(program), state[_NODES])
    if found.nodes != NONE:
        state[_NODES], state[_LENGTH] = found.nodes, write(found, catalogue, program, 0)
    state[_AT] += 1
    state[_WORK] -= MOST_WORK_OF_STAGE - wanted.left[0]
    return state[_AT] < n_under(catalogue) and state[_WORK] > 0


@_compiled
def _is_right(found, covers, target, close, short, catalogue, under):
    """Whether a completion under covers has the values: what is taken off may drown what is left."""
    evaluate_found(found, catalogue, short.values, under[0], under[1])
    for i in range(len(covers) - 1, -1, -1):
        if covers[i] >= 0:
            copy_to(under[0], under[1])
            cover_with(covers[i], catalogue, short.values, under[0], under[1])
    return are_close(under[1], target, close)


@_compiled
def _look_covered(n_outer, inner, plain, state, values, short, catalogue, program):
    """Go on with the search for a completion under one of so many covers, and one of a range.

    As many pairs are tried as there is time for; -1 is no cover; `plain` is whether the completion is not
    itself under anything. Receives the simplest in `program`; returns whether there is more to look for.
    """
    target, close, wanted = np.empty(N_POINTS), np.empty(N_POINTS), new_wanted()
    take_points(values, short, target)
    if not fill_close(target, close):
        return False
    under, between = np.empty((2, N_POINTS)), np.empty(N_POINTS)
    n_ways, up_to = 1 if plain else n_under(catalogue), catalogue.n_up_to
    n_inner = inner[1] - inner[0]
    n_firsts = max(_FEW, _MOST_LOOKS // (ALONE * n_ways * n_outer * n_inner))
    n_firsts_of_both = min(up_to[4 if plain else 3], n_firsts), min(up_to[2], n_firsts)
    if state[_FINDS] < 0:
        state[_FINDS] = _MOST_LOOKS // (ALONE * n_ways * min(n_firsts, len(catalogue.token)))
    pause, now = state[_WORK] - _AT_ONCE, -1
    while state[_AT] < n_outer * n_inner:
        if state[_WORK] <= pause:
            return state[_WORK] > 0
        i, k = state[_AT] // n_inner, inner[0] + state[_AT] % n_inner
        state[_WORK] -= _COVER
        if i != now and not uncover(i, catalogue, short.values, target, between):
            state[_AT] = (i + 1) * n_inner
            continue
        now = i
        state[_AT] += 1
        if 0 <= k < min(i, n_outer) and _commute(i, k, catalogue):
            continue
        covers = i, k, -1, -1
        if k < 0:
            copy_to(wanted.values, between)
        elif not uncover(k, catalogue, short.values, between, wanted.values):
            continue
        state[_FINDS] -= 1
        if state[_FINDS] < 0:
            return False
        n_covering = _nodes_of(covers, catalogue)
        left = state[_NODES] - n_covering
        if left <= 1:
            continue
        wanted.left[0] = MOST_WORK_OF_STAGE
        found = find(wanted, short, catalogue, False, (0, n_ways), n_firsts_of_both, len(program), left - 1)
        state[_WORK] -= MOST_WORK_OF_STAGE - wanted.left[0]
        if found.nodes == NONE or length_under(found, covers, catalogue) > len(program):
            continue
        if _is_right(found, covers, target, close, short, catalogue, under):
            state[_NODES] = found.nodes + n_covering
            state[_LENGTH] = write_covered(found, covers, catalogue, program)
    return False


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
def _look_folded(n_outer, inner, innermost, n_firsts, farthest, state, values, short, catalogue, program):
    """Go on with the search for a completion under a sine or cosine with covers around it and in it.

    So many covers are tried around it, none first, and in it those of the ranges `inner` and `innermost`, -1
    for none. What is under the sine is looked for up to the size `farthest`. Receives the simplest in
    `program`; returns whether there is more to look for.
    """
    target, close, wanted = np.empty(N_POINTS), np.empty(N_POINTS), new_wanted()
    take_points(values, short, target)
    if not fill_close(target, close):
        return False
    between, operands = np.empty(N_POINTS), np.empty(_MOST_OPERANDS)
    n_innermost = innermost[1] - innermost[0]
    n_within = (inner[1] - inner[0]) * n_innermost
    if state[_FINDS] < 0:
        state[_FINDS] = _MOST_LOOKS // (ALONE * n_firsts)
    pause, now, n_operands, fold = state[_WORK] - _AT_ONCE, -1, 0, -1
    while state[_AT] < (n_outer + 1) * _TURNS * _MOST_OPERANDS * n_within:
        if state[_WORK] <= pause:
            return state[_WORK] > 0
        state[_WORK] -= _COVER
        at, within = state[_AT] // n_within, state[_AT] % n_within
        around, o = at // _MOST_OPERANDS, at % _MOST_OPERANDS
        outer, turn = around // _TURNS - 1, around % _TURNS
        if around != now:
            now = around
            copy_to(between, target)
            n_operands = 0
            if outer < 0 or uncover(outer, catalogue, short.values, target, between):
                even = outer >= 0 and parts(outer, catalogue)[1] % 2 == 0
                op = SIN if turn % 2 == 0 else COS
                fold = _way_of(op, catalogue)
                least, largest = extremes(between)
                if fold >= 0 and (turn < 2 or even) and max(-least, largest) <= 1.0:
                    between[0] = between[0] if turn < 2 else -between[0]
                    n_operands = operands_of(op, between[:1], farthest, operands)
        if o >= n_operands:
            state[_AT] = (around + 1) * _MOST_OPERANDS * n_within
            continue
        state[_AT] += 1
        i, k = inner[0] + within // n_innermost, innermost[0] + within % n_innermost
        if _has_sine(i, catalogue):
            continue
        if k >= 0 and (_has_sine(k, catalogue) or (k < i and _commute(i, k, catalogue))):
            continue
        state[_FINDS] -= 1
        if state[_FINDS] < 0:
            return False
        covers = outer, fold, i, k
        n_covering = _nodes_of(covers, catalogue)
        left = state[_NODES] - n_covering
        if left <= 1:
            continue
        wanted.left[0] = MOST_WORK_OF_STAGE
        arguments = n_firsts, target, close, short, catalogue, len(program), left, wanted
        found = _find_within(operands[o], covers, *arguments)
        state[_WORK] -= MOST_WORK_OF_STAGE - wanted.left[0]
        if found.nodes < NONE:
            state[_NODES] = found.nodes + n_covering
            state[_LENGTH] = write_covered(found, covers, catalogue, program)
    return False


@_compiled
def _way_of(op, catalogue):
    """Number of an operator among the ways; -1 if the library has it not."""
    for way in range(len(catalogue.ways)):
        if catalogue.ways[way] == op and catalogue.way_tokens[way] >= 0:
            return way
    return -1


@_compiled
def _find_within(operand, covers, n_firsts, target, close, short, catalogue, most, most_nodes, wanted):
    """Find the simplest completion under covers, given the first value of what is under the last but one."""
    best, nodes = Found(NONE, -1, 1, ALONE, 0, 0), most_nodes
    under, one = np.empty((2, N_POINTS)), wanted.work[:2]
    one[1] = operand
    for cover in covers[2:]:
        one[0] = one[1]
        if cover >= 0 and not uncover(cover, catalogue, short.values, one[:1], one[1:]):
            return best
    value = one[1]
    if not abs(value) < 1e100:
        return best
    arguments = catalogue.near, short.at_first, short.slots, short.sieve, wanted.found, wanted.left
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
            if wanted.left[0] < 0:
                return best
            wanted.left[0] -= FORWARDS
            if _is_right(found, covers, target, close, short, catalogue, under):
                best, nodes = found, n_nodes
    return best


@_compiled
def _has_sine(cover, catalogue):
    if cover < 0:
        return False
    _, _, kind, f = parts(cover, catalogue)
    return kind != ALONE and catalogue.trigonometric[f]
