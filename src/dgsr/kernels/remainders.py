"""What the rest of a program has to be, in compiled code.

A program in prefix order is a tree that is filled from left to right. Where the values of all that is already
written are known, so are the values the next subtree must take for the program to fit: after ``+ x1`` it is
y - x1, under ``exp`` it is log(y). This *remainder* is what the next token has to begin to explain. What is
still open, as the second term of a sum while the first is written, is taken for the operator's neutral
element; the remainder is then in doubt, and says so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dgsr.kernels.descriptions import describe, n_by_column, n_moments, new_scratch
from dgsr.kernels.inverses import second_operand, take_off, ways_to_look
from dgsr.kernels.operators import CONSTANT, COS, DIV, EXP, MUL, SIN, VARIABLE, apply, is_binary

_MOST_DOUBT = 4


class Holes(NamedTuple):
    """What is still open of many programs: the next token, and the operators that wait, outermost first."""

    remainders: np.ndarray  # (B, n): of the next token
    doubts: np.ndarray  # (B, 2) int64: how doubtful it is, and whether it is under sin or cos
    depths: np.ndarray  # (B,) int64
    operators: np.ndarray  # (B, max depth) int64: opcodes
    addresses: np.ndarray  # (B, max depth) int64: their entries in `TokenTable.argument`
    targets: np.ndarray  # (B, max depth, n): remainders of the operators
    target_doubts: np.ndarray  # (B, max depth, 2) int64
    first: np.ndarray  # (B, max depth) int64: state of the first operand, as below
    firsts: np.ndarray  # (B, max depth, n): its values; the neutral element if they are not known


_DOUBT, _FOLDED = range(2)
_MISSING, _UNKNOWN, _KNOWN = range(3)


@njit(cache=True)
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
    )


@njit(cache=True, error_model="numpy")
def describe_next(b, d, tables, ways, holes, scratch, moments, by_column):
    """Describe the remainder of program b's next token.

    Parameters
    ----------
    b : int
    d : int
        The data set the program is for.
    tables : Tables
    ways : ndarray of int64
        From `ways_to_look`.
    holes : Holes
    scratch : Scratch
    moments : ndarray of shape (n_moments,), float32
    by_column : ndarray of shape (C, n_by_column), float32
        Receive the description.
    """
    top = holes.depths[b] - 1
    remainder, doubts = holes.remainders[b], holes.doubts[b]
    if top < 0:
        remainder[:] = tables.y[d]
        doubts[:] = 0
    else:
        op, target = holes.operators[b, top], holes.targets[b, top]
        doubts[:] = holes.target_doubts[b, top]
        if is_binary(op):
            first = holes.first[b, top]
            known = first != _MISSING and second_operand(op, target, holes.firsts[b, top], remainder)
            doubts[_DOUBT] += first != _KNOWN or not known
        else:
            known = take_off(op, target, remainder)
            doubts[_DOUBT] += not known
            doubts[_FOLDED] |= op == SIN or op == COS
            if op == EXP:
                for j in range(len(remainder)):
                    if target[j] <= 0.0:
                        remainder[j] = np.nan
        if not known:
            remainder[:] = target
    moments[0], moments[1] = doubts[_DOUBT] == 0, min(doubts[_DOUBT], _MOST_DOUBT) / _MOST_DOUBT
    moments[2] = doubts[_FOLDED]
    describe(remainder, d, tables, ways, scratch, moments, by_column)


@njit(cache=True, error_model="numpy")
def _evaluate(op, address, first, second, out):
    apply(op, address, first, second, out, len(out))


@njit(cache=True, error_model="numpy")
def append(token, b, d, opcode, argument, tables, holes, scratch):
    """Append a token to program b, whose remainder `describe_next` has just written."""
    op = opcode[token]
    depth = holes.depths[b]
    work, other = scratch.work, scratch.other
    if op != VARIABLE and op != CONSTANT:
        holes.operators[b, depth], holes.addresses[b, depth] = op, argument[token]
        holes.targets[b, depth] = holes.remainders[b]
        holes.target_doubts[b, depth] = holes.doubts[b]
        holes.first[b, depth] = _MISSING
        holes.depths[b] = depth + 1
        return
    known = op == VARIABLE
    if known:
        work[:] = tables.columns[d, argument[token]]
    values = work
    while depth > 0:
        top = depth - 1
        op = holes.operators[b, top]
        first = values
        if is_binary(op):
            if holes.first[b, top] == _MISSING:
                holes.first[b, top] = _KNOWN if known else _UNKNOWN
                if known:
                    holes.firsts[b, top] = values
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


@njit(cache=True, error_model="numpy")
def _describe_all(tokens, lengths, of, opcode, argument, tables, ways, holes, scratch, moments, by_column):
    for b in range(len(lengths)):
        holes.depths[0] = 0
        for t in range(lengths[b]):
            describe_next(0, of[b], tables, ways, holes, scratch, moments[b, t], by_column[b, t])
            append(tokens[b, t], 0, of[b], opcode, argument, tables, holes, scratch)


def describe_programs(tokens, lengths, of, table, tables):
    """Describe the remainders of all tokens of programs, for one teacher-forced pass.

    Parameters
    ----------
    tokens : ndarray of shape (B, max_length), int64
    lengths, of : ndarray of shape (B,), int64
        Length of each program and the data set it is for.
    table : TokenTable
    tables : Tables

    Returns
    -------
    moments : ndarray of shape (B, longest, n_moments), float32
    by_column : ndarray of shape (B, longest, C, n_by_column), float32
        Zero after the end.
    """
    ways = ways_to_look(table.opcode)
    n_columns, n = tables.columns.shape[1:]
    longest = int(lengths.max())
    moments = np.zeros((len(lengths), longest, n_moments(len(ways))), dtype=np.float32)
    by_column = np.zeros((len(lengths), longest, n_columns, n_by_column(len(ways))), dtype=np.float32)
    holes, scratch = new_holes(1, tokens.shape[1], n), new_scratch(n_columns, n, len(ways))
    arguments = table.opcode, table.argument, tables, ways, holes, scratch, moments, by_column
    _describe_all(tokens, lengths, of, *arguments)
    return moments, by_column


class Remainders:
    """The remainders of many programs that grow token by token together.

    Parameters
    ----------
    tables : Tables
    table : TokenTable
    of : ndarray of shape (B,), int64
        The data set each program is for.
    max_length : int
    """

    def __init__(self, tables, table, of, max_length):
        self.tables, self.table, self.of = tables, table, of
        self.ways = ways_to_look(table.opcode)
        self.n_columns, n = tables.columns.shape[1:]
        self.holes = new_holes(len(of), max_length, n)
        self.scratch = new_scratch(self.n_columns, n, len(self.ways))

    def describe(self, active):
        """Describe those of the programs `active`: (n_active, n_moments) and (n_active, C, n_by_column)."""
        n_ways = len(self.ways)
        moments = np.zeros((len(active), n_moments(n_ways)), dtype=np.float32)
        by_column = np.zeros((len(active), self.n_columns, n_by_column(n_ways)), dtype=np.float32)
        arguments = self.tables, self.ways, self.holes, self.scratch, moments, by_column
        _describe_active(active, self.of, *arguments)
        return moments, by_column

    def append(self, tokens, active):
        """Append a token each to the programs `active`, which `describe` has just described."""
        table = self.table
        arguments = table.opcode, table.argument, self.tables, self.holes, self.scratch
        _append_active(tokens, active, self.of, *arguments)


@njit(cache=True, error_model="numpy")
def _describe_active(active, of, tables, ways, holes, scratch, moments, by_column):
    for a, b in enumerate(active):
        describe_next(b, of[b], tables, ways, holes, scratch, moments[a], by_column[a])


@njit(cache=True, error_model="numpy")
def _append_active(tokens, active, of, opcode, argument, tables, holes, scratch):
    for b in active:
        append(tokens[b], b, of[b], opcode, argument, tables, holes, scratch)
