"""The short programs of a library, listed in compiled code: the simplest functions, each once.

They are told apart by their values at a few points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import (
    ADD,
    CONSTANT,
    COS,
    DIV,
    MUL,
    SIN,
    SQUARE,
    VARIABLE,
    apply,
    is_binary,
)

#: Integers and powers count as one node of an expression, however many tokens they take.
LARGEST_INTEGER, LARGEST_POWER = 5, 5
_MOST_NODES = 9
_N_REFERENCE = 16  # points at which programs are told apart
_AT_ONCE = 200_000  # programs made between two moments at which the listing can be interrupted

_compiled = compiled(error_model="numpy")


class Listed(NamedTuple):
    """Programs by their first token and operands; simplest first. The first `total[0]` are there."""

    total: np.ndarray  # (1,) int64
    token: np.ndarray  # (S,) int64
    first: np.ndarray  # (S,) int64: number of the operand; of a column, its own
    second: np.ndarray  # (S,) int64: 0 if there is none
    length: np.ndarray  # (S,) int64: tokens
    nodes: np.ndarray  # (S,) int64
    trigonometric: np.ndarray  # (S,) bool: whether there is a sine or cosine in it
    constant: np.ndarray  # (S,) bool
    values: np.ndarray  # (S, _N_REFERENCE), float64
    slots: np.ndarray  # int32: numbers of programs by their values; -1 elsewhere


def list_programs(opcode, argument, n_columns, size, of_one=False):
    """List the short programs of a library, at most `size`.

    Parameters
    ----------
    opcode, argument : ndarray of shape (n_tokens,), int64
        As in `dgsr.expressions.library.TokenTable`.
    n_columns, size : int
        Half as many columns as programs at most.
    of_one : bool
        Whether functions of the number 1, such as exp(1), are programs too, beside integers.

    Returns
    -------
    Listed
    """
    integers = [np.zeros(size, dtype=np.int64) for _ in range(5)]
    flags = [np.zeros(size, dtype=np.bool_) for _ in range(2)]
    slots = np.full(1 << (2 * size - 1).bit_length(), -1, dtype=np.int32)
    total = np.zeros(1, dtype=np.int64)
    listed = Listed(total, *integers, *flags, np.empty((size, _N_REFERENCE)), slots)
    first_variable = int(np.flatnonzero(opcode == VARIABLE)[0])
    operators = [t for t in range(first_variable) if opcode[t] != CONSTANT]
    tokens_of = {int(opcode[t]): t for t in operators}
    columns = np.random.default_rng(0).uniform(0.5, 3.0, (n_columns, _N_REFERENCE))
    joins = tokens_of.get(ADD, -1), tokens_of.get(DIV, -1)
    _add_columns_and_integers(columns, first_variable, *joins, opcode, argument, listed)
    starts = [0, 0, int(total[0])]  # of the levels: those of one node, of two, ...
    while True:
        nodes = len(starts) - 1
        kinds = _kinds_of_level(opcode, operators, tokens_of, starts)
        _add_level(np.array(kinds, dtype=np.int64).reshape(-1, 5), nodes, of_one, opcode, argument, listed)
        starts.append(int(total[0]))
        # Where all operators have two operands, every other level is empty.
        goes_on = starts[-1] > starts[-3] and nodes < _MOST_NODES
        if not goes_on or total[0] > size - LARGEST_POWER:
            return listed


@_compiled
def _add_columns_and_integers(columns, first_variable, add, div, opcode, argument, listed):
    """Add the columns, by their values, and multiples of x1 over x1; a token that is not there is -1."""
    for c in range(len(columns)):
        _keep(first_variable + c, c, 0, 1, 1, False, columns[c], listed)
    if add >= 0 and div >= 0:
        multiple = 0
        for k in range(1, LARGEST_INTEGER + 1):
            if k > 1:
                multiple = _add(add, 0, multiple, 1, opcode, argument, listed)
            _add(div, multiple, 0, 1, opcode, argument, listed)


def _kinds_of_level(opcode, operators, tokens_of, starts):
    """Ways to make a program of a node more: a token, and of both operands the first number and how many.

    Powers have -1 for their token; a second operand there is not, is one.
    """
    nodes = len(starts) - 1
    below = starts[-2], starts[-1] - starts[-2], 0, 1
    kinds = [(-1, *below)] if MUL in tokens_of and SQUARE not in tokens_of else []
    for token in operators:
        if not is_binary.py_func(opcode[token]):
            kinds.append((token, *below))
            continue
        for k in range(1, nodes - 1):
            levels = [(starts[n], starts[n + 1] - starts[n]) for n in (k, nodes - 1 - k)]
            kinds.append((token, *levels[0], *levels[1]))
    return kinds


def _add_level(kinds, nodes, of_one, opcode, argument, listed):
    """Add the programs of so many nodes, in an order that is all over them: there may not be room for all.

    Not compiled: it can be interrupted ten times a second or so.
    """
    total = int((kinds[:, 2] * kinds[:, 4]).sum())
    step = max(1, int(0.6180339887 * total))
    while math.gcd(step, total) > 1:
        step += 1
    for done in range(0, total, _AT_ONCE):
        if listed.total[0] > len(listed.token) - LARGEST_POWER:
            return
        at, n = done * step % total, min(_AT_ONCE, total - done)
        _add_some(kinds, at, step, total, n, nodes, of_one, opcode, argument, listed)


@_compiled
def _add_some(kinds, at, step, total, n, nodes, of_one, opcode, argument, listed):
    """Add n of all programs, of which the first is the one a step after number `at`, while there is room."""
    for _ in range(n):
        if listed.total[0] > len(listed.token) - LARGEST_POWER:
            return
        at = (at + step) % total
        rest, k = at, 0
        while rest >= kinds[k, 2] * kinds[k, 4]:
            rest -= kinds[k, 2] * kinds[k, 4]
            k += 1
        token, f, s = kinds[k, 0], kinds[k, 1] + rest // kinds[k, 4], kinds[k, 3] + rest % kinds[k, 4]
        if token >= 0:
            op = opcode[token]
            if is_binary(op):
                if f <= s or (op != ADD and op != MUL):
                    _add(token, f, s, nodes, opcode, argument, listed)
            elif not listed.constant[f] or (of_one and nodes == 2 and listed.values[f, 0] == 1.0):
                _add(token, f, 0, nodes, opcode, argument, listed)
        elif not listed.constant[f]:
            multiply = 0
            while opcode[multiply] != MUL:
                multiply += 1
            power = f
            for _ in range(2, LARGEST_POWER + 1):
                if power >= 0:
                    power = _add(multiply, f, power, nodes, opcode, argument, listed)


@_compiled
def _add(token, f, s, nodes, opcode, argument, listed):
    """Add a program if it is new; return its number, or -1 if it is none to list."""
    op, own = opcode[token], opcode[token] == SIN or opcode[token] == COS
    trigonometric, length, constant = listed.trigonometric[f], 1 + listed.length[f], listed.constant[f]
    if is_binary(op):
        trigonometric |= listed.trigonometric[s]
        length += listed.length[s]
        constant &= listed.constant[s]
    if (own and trigonometric) or (constant and is_binary(op) and nodes > 1):
        return -1
    values = np.empty(_N_REFERENCE)
    apply(op, argument[token], listed.values[f], listed.values[s], values, _N_REFERENCE)
    return _keep(token, f, s, length, nodes, own or trigonometric, values, listed)


@_compiled
def _keep(token, f, s, length, nodes, trigonometric, values, listed):
    """List a program by its values if it is new; return its number, or -1."""
    n_finite, largest, mixed, alike = 0, 0.0, np.uint64(0), True
    key = np.zeros(_N_REFERENCE, dtype=np.float32)
    for j in range(_N_REFERENCE):
        if math.isfinite(values[j]):
            n_finite += 1
            largest = max(largest, abs(values[j]))
            key[j] = np.float32(values[j])
        mixed = (mixed ^ np.uint64(key[j : j + 1].view(np.uint32)[0])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        alike &= abs(values[j] - values[0]) <= 1e-9 * abs(values[0])
    if 2 * n_finite < _N_REFERENCE or largest < 1e-9:
        return -1
    slots = listed.slots
    at = np.int64(mixed >> np.uint64(24)) & (len(slots) - 1)
    while slots[at] >= 0:
        same = True
        for j in range(_N_REFERENCE):
            other = listed.values[slots[at], j]
            same &= key[j] == (np.float32(other) if math.isfinite(other) else np.float32(0.0))
        if same:
            return slots[at]
        at = (at + 1) & (len(slots) - 1)
    i = listed.total[0]
    slots[at] = i
    listed.total[0] += 1
    listed.token[i], listed.first[i], listed.second[i] = token, f, s
    listed.length[i], listed.nodes[i] = length, nodes
    listed.trigonometric[i], listed.constant[i] = trigonometric, alike
    copy_to(listed.values[i], values)
    return i
