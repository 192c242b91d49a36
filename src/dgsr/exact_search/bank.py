"""Short programs, and a way to find them by their values, in compiled code.

The simplest functions are listed once for a library and a number of columns. For every data set they are
evaluated at a few of its rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.exact_search.enumeration import LARGEST_POWER, list_programs
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.elementary import exp
from dgsr.kernels.inverses import ways_to_look
from dgsr.kernels.operators import (
    ADD,
    COS,
    DIV,
    EXP,
    LOG,
    MUL,
    SIN,
    SUB,
    VARIABLE,
    apply,
)

#: Rows at which short programs are compared; data sets of fewer have none.
N_POINTS = 8
#: Most rows of a table that are looked at.
MOST_ROWS = 64
#: Programs of a catalogue: for what completes one, and for whole ones, which are looked up once.
SMALL, LARGE = 1 << 14, 1 << 20
# The bits of a number that are not looked at to find it, and how far off one may be; and how near, of those
# found, is the same: of many programs more are near by chance.
_DROPPED, _OFF = 32, 1 << 20
_NEAR, _NEARER = 1e-5, 1e-9
# Programs that are found by one value at the first point, the simplest. Where the columns have few values, or
# tiny ones, thousands have the same: to tell them apart by their other values would take minutes.
_MOST_ALIKE = 16

_compiled = compiled(error_model="numpy")
_inlined = compiled(error_model="numpy", _nrt=False, forceinline=True)
_lean = compiled(error_model="numpy", _nrt=False)  # without the counting of references


class Catalogue(NamedTuple):
    """Short programs of a library over some columns, by their first token and operands; simplest first."""

    ways: np.ndarray  # (n_ways,) int64: opcodes, from `ways_to_look`
    way_tokens: np.ndarray  # (n_ways,) int64; -1 if the library has none
    joins: np.ndarray  # (4,) int64: tokens of add, sub, mul, div, likewise
    token: np.ndarray  # (S,) int64
    opcode: np.ndarray  # (S,) int64
    address: np.ndarray  # (S,) int64
    first: np.ndarray  # (S,) int64: number of the operand; of a column, its own
    second: np.ndarray  # (S,) int64: 0 if there is none
    length: np.ndarray  # (S,) int64: tokens
    nodes: np.ndarray  # (S,) int64
    trigonometric: np.ndarray  # (S,) bool: whether there is a sine or cosine in it
    n_up_to: np.ndarray  # (5,) int64: how many have at most as many nodes
    n_kept: int  # of how many all values are kept
    near: float  # by how much of itself the first value of a program that is looked for may be off


class Short(NamedTuple):
    """Values of a catalogue's programs on a data set, or on many, one after the other."""

    values: np.ndarray  # (n_kept, N_POINTS), float64: of the simplest
    at_first: np.ndarray  # (S,), float64: of all, at the first point; NaN of those that are not found
    rows: np.ndarray  # (N_POINTS,) int64: which rows of the data are the points
    slots: np.ndarray  # (4 S or more,) int32: numbers of programs, by `at_first`; -1 elsewhere
    sieve: np.ndarray  # (S/4 or more,) uint64: a bit for every value in `at_first`


def new_catalogue(opcode, argument, n_columns, size=SMALL):
    """List the short programs of a library.

    Parameters
    ----------
    opcode, argument : ndarray of shape (n_tokens,), int64
        As in `dgsr.expressions.library.TokenTable`.
    n_columns : int
    size : int
        How many at most: `SMALL` or `LARGE`.

    Returns
    -------
    Catalogue
    """
    n_columns = min(n_columns, size // 2)  # of very wide data the first
    listed = list_programs(opcode, argument, n_columns, size, of_one=size > SMALL)
    n = int(listed.total[0])
    token, nodes = listed.token[:n].copy(), listed.nodes[:n].copy()
    ways = ways_to_look(opcode)
    tokens_of = {int(op): t for t, op in enumerate(opcode)}
    return Catalogue(
        ways,
        np.array([tokens_of.get(int(op), -1) for op in ways]),
        np.array([tokens_of.get(op, -1) for op in (ADD, SUB, MUL, DIV)]),
        token,
        opcode[token],
        argument[token],
        listed.first[:n].copy(),
        listed.second[:n].copy(),
        listed.length[:n].copy(),
        nodes,
        listed.trigonometric[:n].copy(),
        np.searchsorted(nodes, np.arange(5), side="right"),
        min(n, max(size // 16 if size <= SMALL else size // 128, n_columns)),
        _NEAR if size <= SMALL else _NEARER,
    )


def rows_to_look_at(n):
    """Return rows of a table of n, at most `MOST_ROWS`: from all over it, for it may be sorted."""
    most = min(n, MOST_ROWS)
    return np.arange(most) * n // most


def new_short(n_datasets, catalogue):
    """Room for the `Short` of D data sets."""
    size = 1 << (len(catalogue.token) + LARGEST_POWER).bit_length() - 1
    return Short(
        np.zeros((n_datasets, catalogue.n_kept, N_POINTS)),
        np.zeros((n_datasets, len(catalogue.token))),
        np.zeros((n_datasets, N_POINTS), dtype=np.int64),
        np.zeros((n_datasets, 4 * size), dtype=np.int32),
        np.zeros((n_datasets, size // 4), dtype=np.uint64),
    )


def short_of(short, d):
    """Return the `Short` of one of many data sets."""
    return Short(*(array[d] for array in short))


@_compiled
def choose_rows(columns, rows):
    """Choose the points of a data set: rows from all over it, and for the first one the most telling.

    That has values of about 1.4 or 0.7, which keep short programs apart, and sines of them in their first
    turns.

    Parameters
    ----------
    columns : ndarray of shape (C, n), float64
    rows : ndarray of shape (N_POINTS,), int64
        Receives them, distinct.
    """
    n = columns.shape[1]
    for j in range(N_POINTS):
        rows[j] = (2 * j + 1) * n // (2 * N_POINTS)
    first, least = rows[0], np.inf
    for i in range(n):
        dull = 0.0
        for c in range(len(columns)):
            size = abs(columns[c, i])
            dull += abs(abs(math.log(size)) - 0.35) if size > 0.0 else 1e3
            if 4.0 * size == math.floor(4.0 * size):
                dull += 10.0
        if dull < least:
            first, least = i, dull
    for j in range(N_POINTS):
        if rows[j] == first:
            rows[j] = rows[0]
    rows[0] = first


@_compiled
def fill_short(columns, catalogue, values, at_first, rows, slots, sieve):
    """Evaluate the short programs on a data set, and make them found by their values.

    Parameters
    ----------
    columns : ndarray of shape (C, n), float64
    catalogue : Catalogue
    values, at_first, rows, slots, sieve : ndarray
        Receive what `Short` has of one data set; one of fewer than N_POINTS rows has nothing.
    """
    slots[:] = -1
    sieve[:] = 0
    n = columns.shape[1]
    if n < N_POINTS:
        return
    choose_rows(columns, rows)
    for i in range(catalogue.n_kept):
        op = catalogue.opcode[i]
        if op == VARIABLE:
            for j in range(N_POINTS):
                values[i, j] = columns[i, rows[j]]
        else:
            f, s = catalogue.first[i], catalogue.second[i]
            apply(op, catalogue.address[i], values[f], values[s], values[i], N_POINTS)
        at_first[i] = values[i, 0]
    operands = catalogue.first, catalogue.second
    _fill_first(catalogue.n_kept, catalogue.opcode, catalogue.address, operands, at_first)
    n_alike = np.zeros(len(slots), dtype=np.uint8)
    for i in range(len(catalogue.token)):
        if at_first[i] != 0.0 and abs(at_first[i]) < 1e100:
            mixed = _mixed(_bits(at_first[i]) >> _DROPPED)
            at = _slot(mixed, slots)
            if n_alike[at] == _MOST_ALIKE:
                at_first[i] = np.nan
                continue
            n_alike[at] += 1
            while slots[at] >= 0:
                at = (at + 1) & (len(slots) - 1)
            sieve[_word(mixed, sieve)] |= _bit(mixed)
            slots[at] = i


@_lean
def _fill_first(start, opcode, address, operands, at_first):
    """`apply` of single values, of which there are many."""
    first, second = operands
    for i in range(start, len(opcode)):
        op, f, s = opcode[i], at_first[first[i]], at_first[second[i]]
        if op == ADD:
            at_first[i] = f + s
        elif op == SUB:
            at_first[i] = f - s
        elif op == MUL:
            at_first[i] = f * s
        elif op == DIV:
            at_first[i] = f / s
        elif op == EXP:
            at_first[i] = exp(f)
        elif op == LOG:
            at_first[i] = math.log(f)
        elif op == SIN:
            at_first[i] = math.sin(f)
        elif op == COS:
            at_first[i] = math.cos(f)
        else:
            apply(op, address[i], at_first[first[i] :], at_first[second[i] :], at_first[i:], 1)


@_compiled
def evaluate(i, catalogue, values, out):
    """Write all values of a short program, given those that are kept."""
    if i < catalogue.n_kept:
        copy_to(out, values[i])
        return
    f, s = catalogue.first[i], catalogue.second[i]
    first, second = np.empty(N_POINTS), np.empty(N_POINTS)
    evaluate(f, catalogue, values, first)
    evaluate(s, catalogue, values, second)
    apply(catalogue.opcode[i], catalogue.address[i], first, second, out, N_POINTS)


@_inlined
def _bits(value):
    return np.float64(value).view(np.int64)


@_inlined
def _mixed(key):
    return np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)


@_inlined
def _slot(mixed, slots):
    return np.int64(mixed >> np.uint64(34)) & (len(slots) - 1)


@_inlined
def _word(mixed, sieve):
    return np.int64(mixed >> np.uint64(38)) & (len(sieve) - 1)


@_inlined
def _bit(mixed):
    return np.uint64(1) << (mixed >> np.uint64(58))


@_inlined
def look(value, f, kind, near, at_first, slots, sieve, found, n, work):
    """Append (f, kind, number) of the programs with this first value to `found`; return its new length.

    The programs that are looked at are taken off `work`, an array of one number.
    """
    bits = _bits(value)
    low, high = (bits - _OFF) >> _DROPPED, (bits + _OFF) >> _DROPPED
    mixed = _mixed(low)
    if sieve[_word(mixed, sieve)] & _bit(mixed):
        n = _walk(value, mixed, f, kind, near, at_first, slots, found, n, work)
    if high != low:
        mixed = _mixed(high)
        if sieve[_word(mixed, sieve)] & _bit(mixed):
            n = _walk(value, mixed, f, kind, near, at_first, slots, found, n, work)
    return n


@_lean
def _walk(value, mixed, f, kind, near, at_first, slots, found, n, work):
    at = start = _slot(mixed, slots)
    while slots[at] >= 0:
        if abs(at_first[slots[at]] - value) <= near * abs(value) and n < len(found):
            found[n, 0], found[n, 1], found[n, 2] = f, kind, slots[at]
            n += 1
        at = (at + 1) & (len(slots) - 1)
    work[0] -= (at - start) & (len(slots) - 1)
    return n
