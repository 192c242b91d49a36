"""Targets (desired semantics) of the open nodes of a program, in compiled code.

A program in prefix order is a tree that is filled from left to right. From the values of the subtrees that
are complete follow the values that the next subtree must take for the program to fit the data: after ``+
x1`` they are y - x1, under ``exp`` they are log(y). These are the *target* of the open node (``remainder``
in names). An operand that is not written yet, as the second term of a sum while the first is written, counts
as the neutral element of the operator; the target is then uncertain, and its ``doubt`` counts how often that
was assumed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.exact_search.bank import Semantics, with_semantics
from dgsr.exact_search.join import join
from dgsr.exact_search.limits import LOOKS_OF_JOIN, MOST_FIRST
from dgsr.generator.conditioning.features import column_names, describe, moment_names, n_moments, new_scratch
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import WAY_NAMES, second_operand, take_off, ways_to_look
from dgsr.kernels.operators import ADD, CONSTANT, COS, DIV, EXP, MUL, SIN, SUB, VARIABLE, apply, is_binary

_MOST_DOUBT = 4
# Largest ratio of an operand to its difference for which the difference is used. Beyond it the
# rounding of the operand, 2e-16 of it, is more than a billionth of the difference.
_ABSORBING = 5e6


class Holes(NamedTuple):
    """Open nodes of many programs: that of the next token, and the incomplete operators, outermost first."""

    remainders: np.ndarray  # (B, n): of the next token
    doubts: np.ndarray  # (B, 2) int64: how doubtful it is, and whether it is under sin or cos
    depths: np.ndarray  # (B,) int64
    operators: np.ndarray  # (B, max depth) int64: opcodes
    addresses: np.ndarray  # (B, max depth) int64: their entries in `TokenTable.argument`
    targets: np.ndarray  # (B, max depth, n): remainders of the operators
    target_doubts: np.ndarray  # (B, max depth, 2) int64
    first: np.ndarray  # (B, max depth) int64: state of the first operand, as below
    firsts: np.ndarray  # (B, max depth, n): its values; the neutral element if they are not known
    plans: np.ndarray  # (B, max length) int64: the rest of the subtree, where it is known
    planned: np.ndarray  # (B, 2) int64: the next token of the plan, and its end
    looks: np.ndarray  # (B, 1) int64: the looks that are left to joins


_DOUBT, _FOLDED = range(2)
_MISSING, _UNKNOWN, _KNOWN = range(3)


@compiled()
def new_holes(n_programs, max_length, n_rows):
    """Return `Holes` for programs without tokens."""
    return Holes(
        np.zeros((n_programs, n_rows)),
        np.zeros((n_programs, 2), dtype=np.int64),
        np.zeros(n_programs, dtype=np.int64),
        np.zeros((n_programs, max_length), dtype=np.int64),
        np.zeros((n_programs, max_length), dtype=np.int64),
        np.zeros((n_programs, max_length, n_rows)),
        np.zeros((n_programs, max_length, 2), dtype=np.int64),
        np.zeros((n_programs, max_length), dtype=np.int64),
        np.zeros((n_programs, max_length, n_rows)),
        np.zeros((n_programs, max_length), dtype=np.int64),
        np.zeros((n_programs, 2), dtype=np.int64),
        np.zeros((n_programs, 1), dtype=np.int64),
    )


@compiled()
def describe_next(b, d, tables, bank, holes, scratch, moments, by_column):
    """Compute the features of the target of program b's next token.

    Where a join has the values of the target, or the law is known, the features are its next token.

    Parameters
    ----------
    b : int
    d : int
        The data set the program is for.
    tables : Tables
    bank : Bank
    holes : Holes
    scratch : Scratch
    moments : ndarray of shape (n_moments,), float32
    by_column : ndarray of shape (C, n_by_column), float32
        Receive the description.
    """
    join_next(b, d, tables, bank, holes)
    doubts = holes.doubts[b]
    first_variable = len(moments) - n_moments(len(bank.unary))
    moments[:] = 0.0
    by_column[:] = 0.0
    moments[0], moments[1] = doubts[_DOUBT] == 0, min(doubts[_DOUBT], _MOST_DOUBT) / _MOST_DOUBT
    moments[2] = doubts[_FOLDED]
    at, end = holes.planned[b]
    if at == end:
        describe(holes.remainders[b], d, tables, bank.unary, scratch, moments, by_column)
        return
    token = holes.plans[b, at]
    if token < first_variable:
        moments[len(moments) - first_variable + token] = 1.0
    else:
        by_column[token - first_variable, by_column.shape[1] - 1] = 1.0


@compiled()
def join_next(b, d, tables, bank, holes):
    """Compute the target of program b's next token, and search for a join that has its values."""
    top = holes.depths[b] - 1
    remainder, doubts = holes.remainders[b], holes.doubts[b]
    if top < 0:
        copy_to(remainder, tables.y[d])
        doubts[:] = 0
    else:
        op, target = holes.operators[b, top], holes.targets[b, top]
        copy_to(doubts, holes.target_doubts[b, top])
        if is_binary(op):
            first = holes.first[b, top]
            known = first != _MISSING and second_operand(op, target, holes.firsts[b, top], remainder)
            if known and (op == ADD or op == SUB):
                _leave_out_absorbed(target, holes.firsts[b, top], remainder)
            doubts[_DOUBT] += first != _KNOWN or not known
        else:
            known = take_off(op, target, remainder)
            doubts[_DOUBT] += not known
            doubts[_FOLDED] |= op == SIN or op == COS
            if op == EXP:
                for j in range(len(remainder)):
                    # Near 1 the target has few digits of its logarithm.
                    if target[j] <= 0.0 or abs(remainder[j]) * _ABSORBING < 1.0:
                        remainder[j] = np.nan
        if not known:
            copy_to(remainder, target)
    if top < 0:
        holes.planned[b] = 0
        holes.looks[b] = 2 * LOOKS_OF_JOIN
        most = min(holes.plans.shape[1], tables.plans.shape[1])
        while holes.planned[b, 1] < most and tables.plans[d, holes.planned[b, 1]] >= 0:
            holes.plans[b, holes.planned[b, 1]] = tables.plans[d, holes.planned[b, 1]]
            holes.planned[b, 1] += 1
    elif holes.planned[b, 0] == holes.planned[b, 1] and doubts[_DOUBT] == 0:
        values, at_first, rows = tables.bank_values[d], tables.bank_at_first[d], tables.bank_rows[d]
        semantics = Semantics(values, at_first, rows, tables.bank_slots[d], tables.bank_bloom[d])
        holes.planned[b, 0] = 0
        without = doubts[_FOLDED] > 0
        looks, plan = holes.looks[b], holes.plans[b]
        of_data = with_semantics(bank, semantics)
        holes.planned[b, 1] = join(remainder, of_data, without, MOST_FIRST, looks, plan)


@compiled()
def _leave_out_absorbed(target, first, difference):
    """Set those rows of a difference to NaN that are lost in the rounding of its operands."""
    for j in range(len(difference)):
        largest = max(abs(target[j]), abs(first[j]))
        if largest > _ABSORBING * abs(difference[j]):
            difference[j] = np.nan


@compiled()
def _evaluate(op, address, first, second, out):
    apply(op, address, first, second, out, len(out))


@compiled()
def append(token, b, d, opcode, argument, tables, holes, scratch):
    """Append a token to program b, whose target `describe_next` has just computed."""
    op = opcode[token]
    at, end = holes.planned[b]
    if at < end:  # a token other than planned ends the plan
        holes.planned[b, 0] = at + 1 if token == holes.plans[b, at] else end
    depth = holes.depths[b]
    work, other = scratch.work, scratch.other
    if op != VARIABLE and op != CONSTANT:
        holes.operators[b, depth], holes.addresses[b, depth] = op, argument[token]
        copy_to(holes.targets[b, depth], holes.remainders[b])
        copy_to(holes.target_doubts[b, depth], holes.doubts[b])
        holes.first[b, depth] = _MISSING
        holes.depths[b] = depth + 1
        return
    known = op == VARIABLE
    if known:
        copy_to(work, tables.columns[d, argument[token]])
    values = work
    while depth > 0:
        top = depth - 1
        op = holes.operators[b, top]
        first = values
        if is_binary(op):
            if holes.first[b, top] == _MISSING:
                holes.first[b, top] = _KNOWN if known else _UNKNOWN
                if known:
                    copy_to(holes.firsts[b, top], values)
                else:
                    holes.firsts[b, top] = 1.0 if op == MUL or op == DIV else 0.0
                break
            known = known and holes.first[b, top] == _KNOWN
            first = holes.firsts[b, top]
        if known:
            _evaluate(op, holes.addresses[b, top], first, values, other)
            values, other = other, values
        depth = top
    holes.depths[b] = depth


def description_names(opcode):
    """Return the names of the features of a target alone, and of a target and a column x."""
    ways = [WAY_NAMES[way] for way in ways_to_look(opcode)]
    first_variable = int(np.flatnonzero(opcode == VARIABLE)[0])
    planned = tuple(f"token {token} is planned" for token in range(first_variable))
    return moment_names(ways) + planned, (*column_names(ways), "x is planned")


def description_sizes(opcode):
    """Return the number of features of a target alone, and of a target and one column."""
    moments, by_column = description_names(opcode)
    return len(moments), len(by_column)


@compiled()
def _describe_all(tokens, lengths, of, table, tables, bank, holes, scratch, moments, by_column):
    for b in range(len(lengths)):
        holes.depths[0] = 0
        for t in range(lengths[b]):
            describe_next(0, of[b], tables, bank, holes, scratch, moments[b, t], by_column[b, t])
            append(tokens[b, t], 0, of[b], table.opcode, table.argument, tables, holes, scratch)


def describe_programs(tokens, lengths, of, table, tables, bank):
    """Compute the features of the targets of all tokens of programs, for one teacher-forced pass.

    Parameters
    ----------
    tokens : ndarray of shape (B, max_length), int64
    lengths, of : ndarray of shape (B,), int64
        Length of each program and the data set it is for.
    table : TokenTable
    tables : Tables
    bank : Bank

    Returns
    -------
    moments : ndarray of shape (B, longest, n_moments), float32
    by_column : ndarray of shape (B, longest, C, n_by_column), float32
        Zero after the end.
    """
    n_columns, n = tables.columns.shape[1:]
    longest = int(lengths.max())
    n_moments, n_by_column = description_sizes(table.opcode)
    moments = np.zeros((len(lengths), longest, n_moments), dtype=np.float32)
    by_column = np.zeros((len(lengths), longest, n_columns, n_by_column), dtype=np.float32)
    holes, scratch = (
        new_holes.py_func(1, tokens.shape[1], n),
        new_scratch.py_func(n_columns, n, len(bank.unary)),
    )
    arguments = table, tables, bank, holes, scratch, moments, by_column
    _describe_all(tokens, lengths, of, *arguments)
    return moments, by_column


def with_joins(tokens, lengths, of, table, tables, bank):
    """Replace subtrees of programs by the joins that have the values of their targets.

    Parameters
    ----------
    tokens, lengths, of, table, tables, bank
        The same as in `describe_programs`.

    Returns
    -------
    tokens : ndarray of shape (B, max_length), int64
        Of the same values; a program that would be too long is as it was.
    lengths : ndarray of shape (B,), int64
    """
    n_columns, n = tables.columns.shape[1:]
    tokens, lengths = tokens.copy(), lengths.copy()
    holes, scratch = (
        new_holes.py_func(1, tokens.shape[1], n),
        new_scratch.py_func(n_columns, n, len(bank.unary)),
    )
    _write_joins(tokens, lengths, of, table, tables, bank, holes, scratch)
    return tokens, lengths


@compiled()
def _write_joins(tokens, lengths, of, table, tables, bank, holes, scratch):
    most = tokens.shape[1]
    program = np.empty(most, dtype=np.int64)
    for b in range(len(lengths)):
        holes.depths[0] = 0
        t = 0
        while t < lengths[b]:
            join_next(0, of[b], tables, bank, holes)
            at, end = holes.planned[0]
            if at == 0 and end > 0:
                after, n_open = t, 1
                while n_open > 0:
                    n_open += table.arity[tokens[b, after]] - 1
                    after += 1
                n_after = lengths[b] - after
                if t + end + n_after <= most:
                    copy_to(program, tokens[b, after : lengths[b]])
                    copy_to(tokens[b, t:], holes.plans[0, :end])
                    copy_to(tokens[b, t + end :], program[:n_after])
                    lengths[b] = t + end + n_after
            append(tokens[b, t], 0, of[b], table.opcode, table.argument, tables, holes, scratch)
            t += 1


class Remainders:
    """The targets of many programs that grow together, token by token.

    Parameters
    ----------
    tables : Tables
    bank : Bank
    table : TokenTable
    of : ndarray of shape (B,), int64
        The data set each program is for.
    max_length : int
    """

    def __init__(self, tables, bank, table, of, max_length):
        self.tables, self.bank, self.table, self.of = tables, bank, table, of
        self.sizes = description_sizes(table.opcode)
        self.n_columns, n = tables.columns.shape[1:]
        self.holes = new_holes.py_func(len(of), max_length, n)
        self.scratch = new_scratch.py_func(self.n_columns, n, len(bank.unary))

    def describe(self, active):
        """Return features for the programs `active`: (n_active, n_moments) and (n_active, C, n_by_column)."""
        n_moments, n_by_column = self.sizes
        moments = np.zeros((len(active), n_moments), dtype=np.float32)
        by_column = np.zeros((len(active), self.n_columns, n_by_column), dtype=np.float32)
        arguments = self.tables, self.bank, self.holes, self.scratch, moments, by_column
        _describe_active(active, self.of, *arguments)
        return moments, by_column

    def append(self, tokens, active):
        """Append a token to each of the programs `active`, after `describe`."""
        table = self.table
        arguments = table.opcode, table.argument, self.tables, self.holes, self.scratch
        _append_active(tokens, active, self.of, *arguments)


@compiled()
def _describe_active(active, of, tables, bank, holes, scratch, moments, by_column):
    for a, b in enumerate(active):
        describe_next(b, of[b], tables, bank, holes, scratch, moments[a], by_column[a])


@compiled()
def _append_active(tokens, active, of, opcode, argument, tables, holes, scratch):
    for b in active:
        append(tokens[b], b, of[b], opcode, argument, tables, holes, scratch)
