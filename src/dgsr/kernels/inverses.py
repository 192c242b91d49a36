"""Operators undone: what their operands must be for them to have given values."""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import (
    ADD,
    ARCCOS,
    ARCSIN,
    COS,
    CUBE,
    DIV,
    EXP,
    INV,
    LOG,
    MUL,
    NEG,
    SIN,
    SQRT,
    SQUARE,
    SUB,
    TANH,
)

#: Names of the operators that `ways_to_look` may return, in its order.
WAY_NAMES = {
    EXP: "exp",
    LOG: "log",
    SIN: "sin",
    COS: "cos",
    SQRT: "sqrt",
    SQUARE: "square",
    CUBE: "cube",
    INV: "inv",
    TANH: "tanh",
    ARCSIN: "arcsin",
    ARCCOS: "arccos",
}
_INVERTIBLE = tuple(WAY_NAMES)


@compiled()
def ways_to_look(opcodes):
    """Return the operators taken off on trial: those of a library that have an inverse, and exp and 1/x."""
    ways = np.empty(len(_INVERTIBLE), dtype=np.int64)
    n = 0
    for op in _INVERTIBLE:
        present = op == EXP or op == INV
        for opcode in opcodes:
            present = present or opcode == op
        if present:
            ways[n] = op
            n += 1
    return ways[:n]


@compiled()
def take_off(op, values, out):
    """Write the operand of a unary operator: the principal one of several, NaN where there is none.

    Of exp it is log|x|, which is what a product of positive factors looks like whatever its sign.
    """
    n = len(values)
    if op == EXP:
        for j in range(n):
            out[j] = math.log(abs(values[j]))
    elif op == LOG:
        for j in range(n):
            out[j] = math.exp(min(values[j], 300.0))
    elif op == SIN:
        for j in range(n):
            out[j] = math.asin(values[j]) if abs(values[j]) <= 1.0 else np.nan
    elif op == COS:
        for j in range(n):
            out[j] = math.acos(values[j]) if abs(values[j]) <= 1.0 else np.nan
    elif op == SQRT:
        for j in range(n):
            out[j] = values[j] * values[j]
    elif op == SQUARE:
        for j in range(n):
            out[j] = math.sqrt(values[j])
    elif op == CUBE:
        for j in range(n):
            out[j] = np.cbrt(values[j])
    elif op == TANH:
        for j in range(n):
            out[j] = math.atanh(values[j]) if abs(values[j]) < 1.0 else np.nan
    elif op == INV:
        for j in range(n):
            out[j] = 1.0 / values[j]
    elif op == NEG:
        for j in range(n):
            out[j] = -values[j]
    elif op == ARCSIN:
        for j in range(n):
            out[j] = math.sin(values[j])
    elif op == ARCCOS:
        for j in range(n):
            out[j] = math.cos(values[j])
    else:
        out[:] = np.nan
        return False
    return True


@compiled()
def second_operand(op, values, first, out):
    """Write the second operand of an operator with these values; False if that is not known."""
    n = len(values)
    if op == ADD:
        for j in range(n):
            out[j] = values[j] - first[j]
    elif op == SUB:
        for j in range(n):
            out[j] = first[j] - values[j]
    elif op == MUL:
        for j in range(n):
            out[j] = values[j] / first[j]
    elif op == DIV:
        for j in range(n):
            out[j] = first[j] / values[j]
    else:
        return False
    return True
