"""A bank of subprograms that are looked up by their values at a data set's points, in compiled code.

The simplest functions of the columns are enumerated once. For every data set their semantics, which are their
values at a few rows, are computed and hashed by the value at the first of these points.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.enumeration import enumerate_programs
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import allocation_free, compiled, inlined
from dgsr.kernels.elementary import exp
from dgsr.kernels.inverses import invertible_operators
from dgsr.kernels.operators import ADD, COS, DIV, EXP, LOG, MUL, SIN, SUB, VARIABLE, apply, is_binary


class Semantics(NamedTuple):
    """Values of a bank's subprograms on a data set."""

    values: np.ndarray  # (n_kept, N_POINTS), float64: values of the n_kept simplest subprograms
    at_first: np.ndarray  # (S,), float64: values at the first point; NaN for subprograms that are not hashed
    slots: np.ndarray  # (more than 2 S,) int32: hash table of subprogram indices by `at_first`; -1 is empty
    bloom: np.ndarray  # (more than S/8,) uint64: Bloom filter of the keys in `slots`


class Bank(NamedTuple):
    """The S simplest subprograms of a library over some columns, each as a first token and operands."""

    unary: np.ndarray  # (n_unary,) int64: opcodes with an inverse, from `invertible_operators`
    unary_tokens: np.ndarray  # (n_unary,) int64: their tokens; -1 where the library lacks the operator
    binary_tokens: np.ndarray  # (4,) int64: tokens of add, sub, mul, div; -1 where the library lacks one
    token: np.ndarray  # (S,) int64
    opcode: np.ndarray  # (S,) int64
    address: np.ndarray  # (S,) int64: entry of the token in `TokenTable.argument`
    first: np.ndarray  # (S,) int64: index of the first operand; for a column, the index of the column
    second: np.ndarray  # (S,) int64: index of the second operand; 0 where there is none
    length: np.ndarray  # (S,) int64: number of tokens
    nodes: np.ndarray  # (S,) int64: number of nodes, in rising order
    trigonometric: np.ndarray  # (S,) bool: whether a subprogram has a sine or cosine
    n_up_to: np.ndarray  # (5,) int64: numbers of subprograms of at most 0, 1, ... 4 nodes
    n_kept: int  # number of subprograms whose values at all points are stored
    near: float  # relative distance at the first point within which a subprogram is a candidate
    semantics: Semantics | None = None  # None before `at`

    def at(self, points: np.ndarray) -> Bank:
        """Return the bank with its values at the points of a data set, (C, N_POINTS), float64."""
        n = len(self.token)
        size = 1 << (n + limits.LARGEST_NUMBER).bit_length() - 1
        values, slots = np.zeros((self.n_kept, limits.N_POINTS)), np.zeros(4 * size, dtype=np.int32)
        semantics = Semantics(values, np.zeros(n), slots, np.zeros(size // 4, dtype=np.uint64))
        bank = self._replace(semantics=semantics)
        fill(points, bank)
        return bank


def bank_of(library, n_variables, size=limits.SMALL):
    """Return the cached bank of a library over the first columns, of at most `size`, without values."""
    keep = _kept if size <= limits.SMALL else _kept_for_a_while
    return keep(library.with_variables(n_variables), size)


def new_bank(library, size):
    """Enumerate the bank of a library over all of its variables; see `bank_of`."""
    table, small = library.table, size <= limits.SMALL
    n_columns = min(library.n_variables, size // 2)  # only the first columns of very wide data
    programs = enumerate_programs(table.opcode, table.argument, n_columns, size, not small)
    n = int(programs.total[0])
    names = ("token", "first", "second", "length", "nodes", "trigonometric")
    enumerated = {name: getattr(programs, name)[:n].copy() for name in names}
    unary = invertible_operators(table.opcode)
    tokens_of = {int(op): t for t, op in enumerate(table.opcode)}
    return Bank(
        unary=unary,
        unary_tokens=np.array([tokens_of.get(int(op), -1) for op in unary]),
        binary_tokens=np.array([tokens_of.get(op, -1) for op in (ADD, SUB, MUL, DIV)]),
        **enumerated,
        opcode=table.opcode[enumerated["token"]],
        address=table.argument[enumerated["token"]],
        n_up_to=np.searchsorted(enumerated["nodes"], np.arange(5), side="right"),
        n_kept=min(n, max(limits.KEPT_PER_ROOT * math.isqrt(size), n_columns)),
        near=limits.NEAR_IN_SMALL if small else limits.NEAR_IN_LARGE,
    )


_kept, _kept_for_a_while = cache(new_bank), lru_cache(maxsize=2)(new_bank)


@compiled()
def choose_points(columns):
    """Return N_POINTS rows of columns (C, n), evenly spread but for the most informative one, which is first.

    A row is informative where its absolute values are near 1.4 or 0.7, since subprograms then have different
    values and sines are in their first period.
    """
    n = columns.shape[1]
    rows = np.empty(limits.N_POINTS, dtype=np.int64)
    for j in range(limits.N_POINTS):
        rows[j] = (2 * j + 1) * n // (2 * limits.N_POINTS)
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
    for j in range(limits.N_POINTS):
        if rows[j] == first:
            rows[j] = rows[0]
    rows[0] = first
    return rows


@compiled()
def fill(points, bank):
    """Write the semantics of a bank, given the columns at the points, (C, N_POINTS)."""
    values, at_first, slots, bloom = bank.semantics
    slots[:] = -1
    bloom[:] = 0
    for i in range(bank.n_kept):
        op = bank.opcode[i]
        if op == VARIABLE:
            copy_to(values[i], points[i])
        else:
            f, s = bank.first[i], bank.second[i]
            apply(op, bank.address[i], values[f], values[s], values[i], limits.N_POINTS)
        at_first[i] = values[i, 0]
    _fill_first(bank.n_kept, bank.opcode, bank.address, bank.first, bank.second, at_first)
    n_alike = np.zeros(len(slots), dtype=np.uint8)
    for i in range(len(bank.token)):
        if at_first[i] != 0.0 and abs(at_first[i]) < 1e100:
            mixed = _mixed(_bits(at_first[i]) >> limits.DROPPED_BITS)
            at = _slot(mixed, slots)
            if n_alike[at] == limits.MOST_ALIKE:
                at_first[i] = np.nan
                continue
            n_alike[at] += 1
            while slots[at] >= 0:
                at = (at + 1) & (len(slots) - 1)
            bloom[_word(mixed, bloom)] |= _bit(mixed)
            slots[at] = i


@allocation_free
def _fill_first(start, opcode, address, first, second, at_first):
    """Write the values at the first point of the subprograms from `start` on, faster than `apply` would."""
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


@compiled()
def values_of(i, bank, out):
    """Write the values of subprogram i at all points into `out`, shape (N_POINTS,), float64."""
    if i < bank.n_kept:
        copy_to(out, bank.semantics.values[i])
        return
    first, second = np.empty(limits.N_POINTS), np.empty(limits.N_POINTS)
    values_of(bank.first[i], bank, first)
    values_of(bank.second[i], bank, second)
    apply(bank.opcode[i], bank.address[i], first, second, out, limits.N_POINTS)


@compiled()
def write_subprogram(i, bank, program, at):
    """Write the tokens of subprogram i from position `at` on; return the position after them."""
    op = bank.opcode[i]
    program[at] = bank.token[i]
    if op == VARIABLE:
        return at + 1
    at = write_subprogram(bank.first[i], bank, program, at + 1)
    return write_subprogram(bank.second[i], bank, program, at) if is_binary(op) else at


@inlined
def _bits(value):
    return np.float64(value).view(np.int64)


@inlined
def _mixed(key):
    return np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)


@inlined
def _slot(mixed, slots):
    return np.int64(mixed >> np.uint64(34)) & (len(slots) - 1)


@inlined
def _word(mixed, bloom):
    return np.int64(mixed >> np.uint64(38)) & (len(bloom) - 1)


@inlined
def _bit(mixed):
    return np.uint64(1) << (mixed >> np.uint64(58))


@inlined
def probe(value, f, kind, near, at_first, slots, bloom, candidates, n, remaining):
    """Add (f, kind, index) of every subprogram with this value at the first point to the n candidates.

    Return the new number of candidates. `near`, `at_first`, `slots` and `bloom` are those of the bank and its
    semantics; `remaining`, of shape (1,), is how many more candidates may be examined.
    """
    bits = _bits(value)
    low = (bits - limits.ROUNDING_BITS) >> limits.DROPPED_BITS
    high = (bits + limits.ROUNDING_BITS) >> limits.DROPPED_BITS
    mixed = _mixed(low)
    if bloom[_word(mixed, bloom)] & _bit(mixed):
        n = _probe_slots(value, mixed, f, kind, near, at_first, slots, candidates, n, remaining)
    if high != low:
        mixed = _mixed(high)
        if bloom[_word(mixed, bloom)] & _bit(mixed):
            n = _probe_slots(value, mixed, f, kind, near, at_first, slots, candidates, n, remaining)
    return n


@allocation_free
def _probe_slots(value, mixed, f, kind, near, at_first, slots, candidates, n, remaining):
    """Examine the slots from that of a key to the next empty one; see `probe`."""
    at = start = _slot(mixed, slots)
    while slots[at] >= 0:
        if abs(at_first[slots[at]] - value) <= near * abs(value) and n < len(candidates):
            candidates[n, 0], candidates[n, 1], candidates[n, 2] = f, kind, slots[at]
            n += 1
        at = (at + 1) & (len(slots) - 1)
    remaining[0] -= (at - start) & (len(slots) - 1)
    return n
