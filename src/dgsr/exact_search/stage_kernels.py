"""The three kinds of stages, in compiled code: wide joins, joins in contexts, and joins in a sine or cosine.

The operand of a sine is known up to multiples of the period, which differ from row to row. A join in a sine
is therefore searched for by its value at the first point, in every period, and then evaluated at all points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.contexts import (
    commute,
    fill_hole,
    has_sine,
    invert,
    length_in,
    nodes_of,
    parts,
    write_in,
)
from dgsr.exact_search.join import (
    ALONE,
    NONE,
    Join,
    are_close,
    binary_of,
    fill_tolerance,
    find_candidates,
    n_outer,
    new_query,
    operands_of,
    simplest_join,
    values_of_join,
    write_join,
)
from dgsr.kernels.arrays import copy_to, extremes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import COS, SIN

# Kinds of stages. The kind WHOLE is `dgsr.exact_search.join.join`, which this module does not run.
WHOLE, WIDE, IN_CONTEXTS, IN_SINE = range(4)

# Fields of a stage's progress: the position at which to continue, the remaining joins (-1 before the first),
# the remaining budget of candidates examined, and the nodes and tokens of the program found.
_AT, _JOINS, REMAINING, _NODES, LENGTH = range(5)
# Number of interpretations of the first value: as sine, cosine, and under an even power minus either of them.
_SIGNS = 4


class StageTask(NamedTuple):
    """A stage in numbers, for one bank. Each kind of stage ignores some of the fields."""

    kind: int
    n_outer: int  # number of outermost contexts, from context 0 on; stages in a sine also try none
    inner: tuple[int, int]  # first and end of the contexts inside; -1 means no context
    innermost: tuple[int, int]
    plain: bool  # whether the join has no unary operator or power
    n_firsts: int  # number of subprograms tried as the first of two in a sine
    largest: float  # absolute value up to which the operands of a sine are searched for


def new_progress():
    """Return the progress at the beginning of a stage."""
    return np.array([0, -1, limits.MOST_CANDIDATES_OF_STAGE, NONE, 0])


@compiled()
def go_on(task, progress, target, bank, program):
    """Continue a stage for about a tenth of a second; return whether it is not finished.

    The call updates `progress` and writes the simplest program with the values of the target at the points.
    All kinds share one function, so that the functions it calls are compiled once.
    """
    if task.kind == WIDE:
        return _search_wide(progress, target, bank, program)
    if task.kind == IN_CONTEXTS:
        return _search_in_contexts(task, progress, target, bank, program)
    return _search_in_sine(task, progress, target, bank, program)


@compiled()
def _search_wide(progress, target, bank, program):
    """Search for the simplest join whose first subprogram may be any of the bank; see `go_on`."""
    query = new_query(target)
    query.remaining[0] = limits.CANDIDATES_OF_JOIN_IN_STAGE
    at, n_firsts = progress[_AT], (len(bank.token), bank.n_up_to[4])
    found = simplest_join(query, bank, False, (at, at + 1), n_firsts, len(program), progress[_NODES])
    if found.nodes != NONE:
        progress[_NODES], progress[LENGTH] = found.nodes, write_join(found, bank, program)
    progress[_AT] += 1
    progress[REMAINING] -= limits.CANDIDATES_OF_JOIN_IN_STAGE - query.remaining[0]
    return progress[_AT] < n_outer(bank) and progress[REMAINING] > 0


@compiled()
def _has_values(join, contexts, target, tolerance, bank, query):
    """Return whether a join in contexts has the target's values, in spite of the rounding of inversions."""
    values_of_join(join, bank, query.work, query.made)
    for i in range(len(contexts) - 1, -1, -1):
        copy_to(query.work, query.made)
        fill_hole(contexts[i], bank, query.work, query.made)
    return are_close(query.made, target, tolerance)


@compiled()
def _search_in_contexts(task, progress, target, bank, program):
    """Search for the simplest join in one of the outer contexts and one of the inner ones; see `go_on`."""
    tolerance, query = np.empty(limits.N_POINTS), new_query(target)
    if not fill_tolerance(target, tolerance):
        return False
    between = np.empty(limits.N_POINTS)
    n_outermost, n_up_to = 1 if task.plain else n_outer(bank), bank.n_up_to
    n_inner = task.inner[1] - task.inner[0]
    per_first = ALONE * n_outermost  # candidates of a join for each subprogram tried as the first of two
    n_firsts = max(limits.FEWEST_FIRSTS, limits.CANDIDATES_OF_STAGE // (per_first * task.n_outer * n_inner))
    n_firsts_of_both = min(n_up_to[4 if task.plain else 3], n_firsts), min(n_up_to[2], n_firsts)
    if progress[_JOINS] < 0:
        progress[_JOINS] = limits.CANDIDATES_OF_STAGE // (per_first * min(n_firsts, len(bank.token)))
    pause, now = progress[REMAINING] - limits.CANDIDATES_AT_ONCE, -1
    while progress[_AT] < task.n_outer * n_inner:
        if progress[REMAINING] <= pause:
            return progress[REMAINING] > 0
        i, k = progress[_AT] // n_inner, task.inner[0] + progress[_AT] % n_inner
        progress[REMAINING] -= limits.INVERSION
        if i != now and not invert(i, bank, target, between):
            progress[_AT] = (i + 1) * n_inner
            continue
        now = i
        progress[_AT] += 1
        if k < min(i, task.n_outer) and commute(i, k, bank):
            continue
        contexts = i, k, -1, -1
        if k < 0:
            copy_to(query.values, between)
        elif not invert(k, bank, between, query.values):
            continue
        progress[_JOINS] -= 1
        if progress[_JOINS] < 0:
            return False
        n_nodes = nodes_of(contexts, bank)
        left = progress[_NODES] - n_nodes
        if left <= 1:
            continue
        query.remaining[0] = limits.CANDIDATES_OF_JOIN_IN_STAGE
        outer = 0, n_outermost
        found = simplest_join(query, bank, False, outer, n_firsts_of_both, len(program), left - 1)
        progress[REMAINING] -= limits.CANDIDATES_OF_JOIN_IN_STAGE - query.remaining[0]
        if found.nodes == NONE or length_in(found, contexts, bank) > len(program):
            continue
        if _has_values(found, contexts, target, tolerance, bank, query):
            progress[_NODES] = found.nodes + n_nodes
            progress[LENGTH] = write_in(found, contexts, bank, program)
    return False


@compiled()
def _search_in_sine(task, progress, target, bank, program):
    """Search for the simplest join in a sine or cosine with contexts around and inside it; see `go_on`."""
    query, between = new_query(target), np.empty(limits.N_POINTS)
    if not fill_tolerance(target, query.tolerance):
        return False
    inner, innermost = task.inner, task.innermost
    n_innermost = innermost[1] - innermost[0]
    n_inside = (inner[1] - inner[0]) * n_innermost
    if progress[_JOINS] < 0:
        progress[_JOINS] = limits.CANDIDATES_OF_STAGE // (ALONE * task.n_firsts)
    pause, now, n_operands, sine = progress[REMAINING] - limits.CANDIDATES_AT_ONCE, -1, 0, -1
    while progress[_AT] < (task.n_outer + 1) * _SIGNS * limits.MOST_OPERANDS * n_inside:
        if progress[REMAINING] <= pause:
            return progress[REMAINING] > 0
        progress[REMAINING] -= limits.INVERSION
        at, inside = progress[_AT] // n_inside, progress[_AT] % n_inside
        around, o = at // limits.MOST_OPERANDS, at % limits.MOST_OPERANDS
        outer, sign = around // _SIGNS - 1, around % _SIGNS
        if around != now:
            now = around
            copy_to(between, target)
            n_operands = 0
            if outer < 0 or invert(outer, bank, target, between):
                even = parts(outer, bank)[1] % 2 == 0
                op = SIN if sign % 2 == 0 else COS
                sine = _number_of(op, bank)
                least, largest = extremes(between)
                if sine >= 0 and (sign < 2 or even) and max(-least, largest) <= 1.0:
                    between[0] = between[0] if sign < 2 else -between[0]
                    n_operands = operands_of(op, between[:1], task.largest, query.operands)
        if o >= n_operands:
            progress[_AT] = (around + 1) * limits.MOST_OPERANDS * n_inside
            continue
        progress[_AT] += 1
        i, k = inner[0] + inside // n_innermost, innermost[0] + inside % n_innermost
        if has_sine(i, bank) or has_sine(k, bank) or (k < i and commute(i, k, bank)):
            continue
        progress[_JOINS] -= 1
        if progress[_JOINS] < 0:
            return False
        contexts = outer, sine, i, k
        n_nodes = nodes_of(contexts, bank)
        left = progress[_NODES] - n_nodes
        if left <= 1:
            continue
        query.remaining[0] = limits.CANDIDATES_OF_JOIN_IN_STAGE
        found = _join_in_sine(query.operands[o], contexts, task.n_firsts, bank, len(program), left, query)
        progress[REMAINING] -= limits.CANDIDATES_OF_JOIN_IN_STAGE - query.remaining[0]
        if found.nodes < NONE:
            progress[_NODES] = found.nodes + n_nodes
            progress[LENGTH] = write_in(found, contexts, bank, program)
    return False


@compiled()
def _number_of(op, bank):
    """Return the index of an operator among the bank's unary operators; -1 if the library lacks it."""
    for i in range(len(bank.unary)):
        if bank.unary[i] == op and bank.unary_tokens[i] >= 0:
            return i
    return -1


@compiled()
def _join_in_sine(operand, contexts, n_firsts, bank, most, most_nodes, query):
    """Return the simplest join in contexts, given the first value of a sine's operand.

    The contexts are one around the sine, the sine, and two inside. The whole has the values of the query and
    at most `most` tokens, and the join fewer than `most_nodes` nodes.
    """
    best, nodes = Join(NONE, -1, 1, ALONE, 0, 0), most_nodes
    one = query.work[:2]
    one[1] = operand
    for context in contexts[2:]:
        one[0] = one[1]
        if context >= 0 and not invert(context, bank, one[:1], one[1:]):
            return best
    value = one[1]
    if not abs(value) < 1e100:
        return best
    at_first, slots, bloom = bank.semantics.at_first, bank.semantics.slots, bank.semantics.bloom
    arguments = bank.near, at_first, slots, bloom, query.candidates, query.remaining
    for p in range(find_candidates(value, 0, n_firsts, *arguments)):
        f, kind, g = query.candidates[p]
        n_nodes = bank.nodes[g]
        if kind != ALONE:
            n_nodes += 1 + bank.nodes[f]
            if bank.binary_tokens[binary_of(kind)] < 0 or bank.trigonometric[f]:
                continue
        if n_nodes >= nodes or bank.trigonometric[g]:
            continue
        found = Join(n_nodes, -1, 1, kind, f, g)
        if length_in(found, contexts, bank) <= most:
            if query.remaining[0] < 0:
                return best
            query.remaining[0] -= limits.EVALUATION
            if _has_values(found, contexts, query.values, query.tolerance, bank, query):
                best, nodes = found, n_nodes
    return best
