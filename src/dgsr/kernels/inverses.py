"""Inverses of unary operators: the operands for which an operator has given values."""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import ARCCOS, ARCSIN, COS, CUBE, EXP, INV, LOG, NEG, SIN, SQRT, SQUARE, TANH

_INVERTIBLE = (EXP, LOG, SIN, COS, SQRT, SQUARE, CUBE, INV, TANH, ARCSIN, ARCCOS)


def invertible_operators(opcodes):
    """Return the opcodes, int64, of the unary operators by which a target may be inverted.

    These are the operators of a library that `unary_operand` can invert, given the opcodes in
    `Library.table`; exp and 1/x are always included.
    """
    return np.array([op for op in _INVERTIBLE if op in (EXP, INV) or op in opcodes], dtype=np.int64)


@compiled()
def unary_operand(op, values, out):
    """Write the operand for which a unary operator has given values; return False if it is unknown.

    It is the principal value where there are several, and NaN where there is none. The operand of exp is
    log|values|, so that callers have to check the sign.
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
