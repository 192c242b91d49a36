"""Short programs, and a way to find them by their values, in compiled code.

The simplest functions are listed once for a library and a number of columns. For every data set they are
evaluated at a few of its rows.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numba import njit

from dgsr.kernels.elementary import exp
from dgsr.kernels.inverses import ways_to_look
from dgsr.kernels.operators import (
    ADD,
    CONSTANT,
    COS,
    DIV,
    EXP,
    LOG,
    MUL,
    SIN,
    SQUARE,
    SUB,
    VARIABLE,
    apply,
    is_binary,
)

#: Rows at which short programs are compared; data sets of fewer have none.
N_POINTS = 8
#: Integers and powers count as one node of an expression, however many tokens they take.
LARGEST_INTEGER, LARGEST_POWER = 5, 5
_SIZE, _MOST_KEPT = 16384, 1024
_N_SLOTS, _N_WORDS = 4 * _SIZE, 4096
_MOST_NODES, _MOST_PAIRS = 9, 4 * _SIZE
_N_REFERENCE = 24  # points at which programs are told apart
# The bits of a number that are not looked at to find it, and how far off one may be; and how near, of those
# found, is the same.
_DROPPED, _OFF = 36, 1 << 20
_CLOSE = 1e-5

_compiled = njit(cache=True, error_model="numpy")
_lean = njit(cache=True, error_model="numpy", _nrt=False)  # without the counting of references


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
    n_up_to: np.ndarray  # (4,) int64: how many have at most as many nodes
    n_kept: int  # of how many all values are kept


class Short(NamedTuple):
    """Values of a catalogue's programs on a data set, or on many, one after the other."""

    values: np.ndarray  # (n_kept, N_POINTS), float64: of the simplest
    at_first: np.ndarray  # (S,), float64: of all, at the first point
    slots: np.ndarray  # (_N_SLOTS,) int16: numbers of programs, by `at_first`; -1 elsewhere
    sieve: np.ndarray  # (_N_WORDS,) uint64: a bit for every value in `at_first`


def new_catalogue(opcode, argument, n_columns):
    """List the short programs of a library.

    Parameters
    ----------
    opcode, argument : ndarray of shape (n_tokens,), int64
        As in `dgsr.expressions.library.TokenTable`.
    n_columns : int

    Returns
    -------
    Catalogue
    """
    listed = _List(opcode, argument, n_columns)
    while listed.add_level():
        pass
    token, first, second, length, nodes, trigonometric, _ = zip(*listed.entries, strict=True)
    token, nodes = np.array(token), np.array(nodes)
    ways = ways_to_look(opcode)
    return Catalogue(
        ways,
        np.array([listed.tokens_of.get(int(op), -1) for op in ways]),
        np.array([listed.tokens_of.get(op, -1) for op in (ADD, SUB, MUL, DIV)]),
        token,
        opcode[token],
        argument[token],
        np.array(first),
        np.array(second),
        np.array(length),
        nodes,
        np.array(trigonometric),
        np.searchsorted(nodes, np.arange(4), side="right"),
        min(len(token), _MOST_KEPT),
    )


class _List:
    """Programs listed so far, and where they are by their values at some points."""

    def __init__(self, opcode, argument, n_columns):
        self.opcode, self.argument = opcode, argument
        self.random = np.random.default_rng(0)
        first_variable = int(np.flatnonzero(opcode == VARIABLE)[0])
        self.operators = [t for t in range(first_variable) if opcode[t] != CONSTANT]
        self.tokens_of = {int(opcode[t]): t for t in self.operators}
        self.entries = []  # token, first, second, length, nodes, trigonometric, constant
        self.values = np.empty((_SIZE, _N_REFERENCE))
        self.where = {}
        for c in range(n_columns):
            self._keep(
                (first_variable + c, c, 0, 1, 1, False, False), self.random.uniform(0.5, 3.0, _N_REFERENCE)
            )
        if ADD in self.tokens_of and DIV in self.tokens_of:
            multiple = 0
            for k in range(1, LARGEST_INTEGER + 1):
                if k > 1:
                    multiple = self._add(self.tokens_of[ADD], 0, multiple, 1)
                self._add(self.tokens_of[DIV], multiple, 0, 1)
        self.levels = [[], list(range(len(self.entries)))]

    def add_level(self):
        """Add the programs of one node more; False if there is no room left, or no more will be new."""
        before, nodes = len(self.entries), len(self.levels)
        candidates = self._candidates(nodes)
        for i in self.random.permutation(len(candidates)):
            if len(self.entries) > _SIZE - LARGEST_POWER:
                break
            token, f, s = candidates[i]
            if token >= 0:
                self._add(token, f, s, nodes)
                continue
            power = f
            for _ in range(2, LARGEST_POWER + 1):
                if power is not None:
                    power = self._add(self.tokens_of[MUL], f, power, nodes)
        self.levels.append(list(range(before, len(self.entries))))
        # Where all operators have two operands, every other level is empty.
        goes_on = any(self.levels[-2:]) and nodes < _MOST_NODES
        return goes_on and len(self.entries) <= _SIZE - LARGEST_POWER

    def _candidates(self, nodes):
        """Tokens and operands of programs with so many nodes; powers have -1 for their token."""
        candidates = []
        below = [f for f in self.levels[nodes - 1] if not self.entries[f][6]]
        if MUL in self.tokens_of and SQUARE not in self.tokens_of:
            candidates += [(-1, f, 0) for f in below]
        for token in self.operators:
            op = self.opcode[token]
            if not is_binary.py_func(op):
                candidates += [(token, f, 0) for f in below]
                continue
            for k in range(1, nodes - 1):
                pairs = self._pairs(self.levels[k], self.levels[nodes - 1 - k])
                candidates += [(token, f, s) for f, s in pairs if f <= s or op not in (ADD, MUL)]
        return candidates

    def _pairs(self, first, second):
        """All pairs of two levels; some, where they are many more than there is room for."""
        if len(first) * len(second) <= _MOST_PAIRS:
            return itertools.product(first, second)
        chosen = [self.random.integers(len(level), size=_MOST_PAIRS) for level in (first, second)]
        return [(first[i], second[j]) for i, j in zip(*chosen, strict=True)]

    def _add(self, token, f, s, nodes):
        """Add a program if it is new; return its number, or None if it is none to list."""
        op, first = self.opcode[token], self.entries[f]
        second = self.entries[s] if is_binary.py_func(op) else (0, 0, 0, 0, 0, False, True)
        own = op == SIN or op == COS
        trigonometric, constant = first[5] or second[5], first[6] and second[6]
        if (own and trigonometric) or (constant and nodes > 1):
            return None
        values = np.empty(_N_REFERENCE)
        _apply(op, self.argument[token], self.values[f], self.values[s], values)
        with np.errstate(invalid="ignore"):
            constant = np.abs(values - values[0]).max() <= 1e-9 * np.abs(values[0])
        length = 1 + first[3] + second[3]
        return self._keep((token, f, s, length, nodes, own or trigonometric, constant), values)

    def _keep(self, entry, values):
        finite = np.isfinite(values)
        if 2 * finite.sum() < _N_REFERENCE or np.abs(values[finite]).max() < 1e-9:
            return None
        with np.errstate(over="ignore"):
            key = np.where(finite, values, 0.0).astype(np.float32).tobytes()
        if key not in self.where:
            self.where[key] = len(self.entries)
            self.values[len(self.entries)] = values
            self.entries.append(entry)
        return self.where[key]


@_compiled
def _apply(op, address, first, second, out):
    apply(op, address, first, second, out, len(out))


def new_short(n_datasets, catalogue):
    """Room for the `Short` of D data sets."""
    return Short(
        np.zeros((n_datasets, catalogue.n_kept, N_POINTS)),
        np.zeros((n_datasets, len(catalogue.token))),
        np.zeros((n_datasets, _N_SLOTS), dtype=np.int16),
        np.zeros((n_datasets, _N_WORDS), dtype=np.uint64),
    )


@njit(inline="always")
def short_of(short, d):
    """The `Short` of one data set."""
    return Short(short.values[d], short.at_first[d], short.slots[d], short.sieve[d])


@njit(inline="always")
def row_of(j, n):
    """Which of n rows is point j. The first one is from the middle: tables often begin with zeros."""
    return (2 * ((j + N_POINTS // 2) % N_POINTS) + 1) * n // (2 * N_POINTS)


@_compiled
def fill_short(columns, catalogue, values, at_first, slots, sieve):
    """Evaluate the short programs on a data set, and make them found by their values.

    Parameters
    ----------
    columns : ndarray of shape (C, n), float64
    catalogue : Catalogue
    values, at_first, slots, sieve : ndarray
        Receive what `Short` has of one data set; one of fewer than N_POINTS rows has nothing.
    """
    slots[:] = -1
    sieve[:] = 0
    n = columns.shape[1]
    if n < N_POINTS:
        return
    for i in range(catalogue.n_kept):
        op = catalogue.opcode[i]
        if op == VARIABLE:
            for j in range(N_POINTS):
                values[i, j] = columns[i, row_of(j, n)]
        else:
            f, s = catalogue.first[i], catalogue.second[i]
            apply(op, catalogue.address[i], values[f], values[s], values[i], N_POINTS)
        at_first[i] = values[i, 0]
    operands = catalogue.first, catalogue.second
    _fill_first(catalogue.n_kept, catalogue.opcode, catalogue.address, operands, at_first)
    for i in range(len(catalogue.token)):
        if at_first[i] != 0.0 and abs(at_first[i]) < 1e100:
            mixed = _mixed(_bits(at_first[i]) >> _DROPPED)
            sieve[_word(mixed)] |= _bit(mixed)
            at = _slot(mixed)
            while slots[at] >= 0:
                at = (at + 1) & (_N_SLOTS - 1)
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
        out[:] = values[i]
        return
    f, s = catalogue.first[i], catalogue.second[i]
    first, second = np.empty(N_POINTS), np.empty(N_POINTS)
    evaluate(f, catalogue, values, first)
    evaluate(s, catalogue, values, second)
    apply(catalogue.opcode[i], catalogue.address[i], first, second, out, N_POINTS)


@njit(inline="always")
def _bits(value):
    return np.float64(value).view(np.int64)


@njit(inline="always")
def _mixed(key):
    return np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def _slot(mixed):
    return np.int64(mixed >> np.uint64(40)) & (_N_SLOTS - 1)


@njit(inline="always")
def _word(mixed):
    return np.int64(mixed >> np.uint64(46)) & (_N_WORDS - 1)


@njit(inline="always")
def _bit(mixed):
    return np.uint64(1) << (mixed >> np.uint64(58))


@njit(inline="always")
def look(value, f, kind, at_first, slots, sieve, found, n):
    """Append (f, kind, number) of the programs with this first value to `found`; return its new length."""
    bits = _bits(value)
    low, high = (bits - _OFF) >> _DROPPED, (bits + _OFF) >> _DROPPED
    mixed = _mixed(low)
    if sieve[_word(mixed)] & _bit(mixed):
        n = _walk(value, mixed, f, kind, at_first, slots, found, n)
    if high != low:
        mixed = _mixed(high)
        if sieve[_word(mixed)] & _bit(mixed):
            n = _walk(value, mixed, f, kind, at_first, slots, found, n)
    return n


@_lean
def _walk(value, mixed, f, kind, at_first, slots, found, n):
    at = _slot(mixed)
    while slots[at] >= 0:
        if abs(at_first[slots[at]] - value) <= _CLOSE * abs(value) and n < len(found):
            found[n, 0], found[n, 1], found[n, 2] = f, kind, slots[at]
            n += 1
        at = (at + 1) & (_N_SLOTS - 1)
    return n
