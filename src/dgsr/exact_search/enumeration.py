"""Bottom-up enumeration of a library's simplest functions, in compiled code.

Programs are built node by node from smaller ones. Programs with the same values at a few reference points are
observationally equivalent; only the first of them is retained.

References
----------
Albarghouthi, Gulwani, Kincaid, "Recursive program synthesis", CAV 2013.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.exact_search import limits
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import ADD, CONSTANT, COS, DIV, MUL, SIN, SQUARE, VARIABLE, apply, is_binary


class Enumeration(NamedTuple):
    """Programs, the simplest first, as their first token and the indices of their operands."""

    total: np.ndarray  # (1,) int64: number of programs enumerated so far, the first entries of these arrays
    token: np.ndarray  # this and the next five: as in `dgsr.exact_search.bank.Bank`
    first: np.ndarray
    second: np.ndarray
    length: np.ndarray
    nodes: np.ndarray
    trigonometric: np.ndarray
    constant: np.ndarray  # (S,) bool: whether all values of a program are the same
    values: np.ndarray  # (S, N_REFERENCE), float64: values at the reference points
    slots: np.ndarray  # int32: hash table of program indices by their values; -1 is empty


def enumerate_programs(opcode, argument, n_columns, size, of_one):
    """Return an Enumeration of the simplest functions of a library, at most `size`.

    `opcode` and `argument` are arrays of its `TokenTable`, and the number of columns is at most half of
    `size`. With `of_one` functions of the number 1, such as exp(1), are enumerated besides integers.
    """
    integers = [np.zeros(size, dtype=np.int64) for _ in range(5)]
    flags = [np.zeros(size, dtype=np.bool_) for _ in range(2)]
    slots = np.full(1 << (2 * size - 1).bit_length(), -1, dtype=np.int32)
    total = np.zeros(1, dtype=np.int64)
    programs = Enumeration(total, *integers, *flags, np.empty((size, limits.N_REFERENCE)), slots)
    first_variable = int(np.flatnonzero(opcode == VARIABLE)[0])
    operators = [t for t in range(first_variable) if opcode[t] != CONSTANT]
    tokens_of = {int(opcode[t]): t for t in operators}
    columns = np.random.default_rng(0).uniform(0.5, 3.0, (n_columns, limits.N_REFERENCE))
    binary = tokens_of.get(ADD, -1), tokens_of.get(DIV, -1)
    _add_columns_and_integers(columns, first_variable, *binary, opcode, argument, programs)
    starts = [0, 0, int(total[0])]  # first numbers of the programs of one node, of two, ...
    while True:
        nodes = len(starts) - 1
        kinds = _kinds_of_level(opcode, operators, tokens_of, starts)
        _add_level(np.array(kinds, dtype=np.int64).reshape(-1, 5), nodes, of_one, opcode, argument, programs)
        starts.append(int(total[0]))
        # Where all operators have two operands, every other level is empty.
        goes_on = starts[-1] > starts[-3] and nodes < limits.MOST_NODES
        if not goes_on or total[0] > size - limits.LARGEST_NUMBER:
            return programs


@compiled()
def _add_columns_and_integers(columns, first_variable, add, div, opcode, argument, programs):
    """Add the columns, and integers as multiples of x1 over x1; missing `add` and `div` are -1."""
    for c in range(len(columns)):
        _keep(first_variable + c, c, 0, 1, 1, False, columns[c], programs)
    if add >= 0 and div >= 0:
        multiple = 0
        for k in range(1, limits.LARGEST_NUMBER + 1):
            if k > 1:
                multiple = _add(add, 0, multiple, 1, opcode, argument, programs)
            _add(div, multiple, 0, 1, opcode, argument, programs)


def _kinds_of_level(opcode, operators, tokens_of, starts):
    """Return the kinds of the programs with one more node than those enumerated so far.

    A kind is a token (-1 for a power) and, for each operand, the index of the first program that it can be
    and the number of such programs, which is 1 for a missing second operand.
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


def _add_level(kinds, nodes, of_one, opcode, argument, programs):
    """Add programs of `nodes` nodes, alternating between kinds; not compiled, so that Ctrl-C takes effect."""
    total = int((kinds[:, 2] * kinds[:, 4]).sum())
    step = max(1, int(0.6180339887 * total))
    while math.gcd(step, total) > 1:
        step += 1
    for done in range(0, total, limits.ENUMERATED_AT_ONCE):
        if programs.total[0] > len(programs.token) - limits.LARGEST_NUMBER:
            return
        at, n = done * step % total, min(limits.ENUMERATED_AT_ONCE, total - done)
        _add_some(kinds, at, step, total, n, nodes, of_one, opcode, argument, programs)


@compiled()
def _add_some(kinds, at, step, total, n, nodes, of_one, opcode, argument, programs):
    """Add n of the `total` programs of all kinds, starting one step after index `at`, while there is room."""
    for _ in range(n):
        if programs.total[0] > len(programs.token) - limits.LARGEST_NUMBER:
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
                    _add(token, f, s, nodes, opcode, argument, programs)
            elif not programs.constant[f] or (of_one and nodes == 2 and programs.values[f, 0] == 1.0):
                _add(token, f, 0, nodes, opcode, argument, programs)
        elif not programs.constant[f]:
            multiply = 0
            while opcode[multiply] != MUL:
                multiply += 1
            power = f
            for _ in range(2, limits.LARGEST_NUMBER + 1):
                if power >= 0:
                    power = _add(multiply, f, power, nodes, opcode, argument, programs)


@compiled()
def _add(token, f, s, nodes, opcode, argument, programs):
    """Add a program if it is new; return its index or that of its equivalent, or -1 if it is useless."""
    op, own = opcode[token], opcode[token] == SIN or opcode[token] == COS
    trigonometric, length, constant = programs.trigonometric[f], 1 + programs.length[f], programs.constant[f]
    if is_binary(op):
        trigonometric |= programs.trigonometric[s]
        length += programs.length[s]
        constant &= programs.constant[s]
    if (own and trigonometric) or (constant and is_binary(op) and nodes > 1):
        return -1
    values = np.empty(limits.N_REFERENCE)
    apply(op, argument[token], programs.values[f], programs.values[s], values, limits.N_REFERENCE)
    return _keep(token, f, s, length, nodes, own or trigonometric, values, programs)


@compiled()
def _keep(token, f, s, length, nodes, trigonometric, values, programs):
    """Add a program if no other has its values; return the index of the program with them, or -1."""
    n_finite, largest, mixed, alike = 0, 0.0, np.uint64(0), True
    key = np.zeros(limits.N_REFERENCE, dtype=np.float32)
    for j in range(limits.N_REFERENCE):
        if math.isfinite(values[j]):
            n_finite += 1
            largest = max(largest, abs(values[j]))
            key[j] = np.float32(values[j])
        mixed = (mixed ^ np.uint64(key[j : j + 1].view(np.uint32)[0])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        alike &= abs(values[j] - values[0]) <= 1e-9 * abs(values[0])
    if 2 * n_finite < limits.N_REFERENCE or largest < 1e-9:
        return -1
    slots = programs.slots
    at = np.int64(mixed >> np.uint64(24)) & (len(slots) - 1)
    while slots[at] >= 0:
        same = True
        for j in range(limits.N_REFERENCE):
            other = programs.values[slots[at], j]
            same &= key[j] == (np.float32(other) if math.isfinite(other) else np.float32(0.0))
        if same:
            return slots[at]
        at = (at + 1) & (len(slots) - 1)
    i = programs.total[0]
    slots[at] = i
    programs.total[0] += 1
    programs.token[i], programs.first[i], programs.second[i] = token, f, s
    programs.length[i], programs.nodes[i] = length, nodes
    programs.trigonometric[i], programs.constant[i] = trigonometric, alike
    copy_to(programs.values[i], values)
    return i
