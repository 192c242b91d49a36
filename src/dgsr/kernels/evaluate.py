"""Evaluate a population on a data set: one interpreter, rows in cache-sized blocks.

A program is read from its last token to its first with a stack of rows. Variables are never
copied: the stack holds row numbers, and the first rows of the workspace are the data themselves.

A value that is infinite on the way is infinite or NaN in the end: x/inf and exp(-inf) are NaN here and
not 0. Otherwise a formula like 1/(2 + x/log(0)) would fit without having a meaning.
"""

from __future__ import annotations

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.operators import CONSTANT, DIV, VARIABLE, apply, is_binary

# Rows evaluated together: every row of the workspace stays in the first-level cache.
BLOCK = 128


@compiled(fastmath={"contract"}, _nrt=False)
def _run(tokens, length, constants, opcode, argument, work, n_rows, stack, whole):
    """Run one program on one block; return the row of `work` that holds its values.

    Unless `whole`, it returns -1 as soon as a value is seen not to be finite: the result then is not
    finite in that row either. Three rows are looked at, which finds most of them for next to nothing;
    of random programs almost half are invalid.

    `work` holds the variables in its first rows, then two scratch rows per stack place: a result
    never overwrites an operand, which lets the loops be vectorised.
    """
    n_variables = work.shape[0] - 2 * len(stack)
    next_constant = 0
    for i in range(length):
        if opcode[tokens[i]] == CONSTANT:
            next_constant += 1
    top = -1
    for i in range(length - 1, -1, -1):
        token = tokens[i]
        op = opcode[token]
        if op == VARIABLE:
            top += 1
            stack[top] = argument[token]
            continue
        if op == CONSTANT:
            top += 1
            next_constant -= 1
            row = n_variables + 2 * top
            for j in range(n_rows):
                work[row, j] = constants[next_constant]
            stack[top] = row
            continue
        left = right = work[stack[top]]
        first = second = stack[top]
        if is_binary(op):
            top -= 1
            second = stack[top]
            right = work[second]
        row = n_variables + 2 * top
        if first == row or second == row:
            row += 1
        out = work[row]
        apply(op, argument[token], left, right, out, n_rows)
        if not whole and op >= DIV:
            if not 0.0 * out[0] + 0.0 * out[n_rows // 2] + 0.0 * out[n_rows - 1] == 0.0:
                return -1
        stack[top] = row
    return stack[0]


@compiled()
def _workspace(n_variables, max_length):
    stack = np.empty(max_length // 2 + 2, dtype=np.int64)
    return stack, np.empty((n_variables + 2 * len(stack), BLOCK))


@compiled(nogil=True)
def squared_errors(tokens, lengths, constants, opcode, argument, columns, y, weights):
    """Weighted sum of squared residuals of every program.

    Parameters
    ----------
    tokens : ndarray of shape (n_programs, max_length), int64
    lengths : ndarray of shape (n_programs,), int64
    constants : ndarray of shape (n_programs, max_constants), float64
    opcode, argument : ndarray of shape (n_tokens,), int64
        From `Library.table`.
    columns : ndarray of shape (n_features, n_samples), float64
        The data, one row per variable.
    y, weights : ndarray of shape (n_samples,), float64

    Returns
    -------
    ndarray of shape (n_programs,)
        `inf` where any prediction is not finite.
    """
    n_programs = len(lengths)
    n_variables, n_samples = columns.shape
    stack, work = _workspace(n_variables, tokens.shape[1])
    total = np.zeros(n_programs)
    for start in range(0, n_samples, BLOCK):
        n_rows = min(BLOCK, n_samples - start)
        for c in range(n_variables):
            copy_to(work[c], columns[c, start : start + n_rows])
        target = y[start : start + n_rows]
        weight = weights[start : start + n_rows]
        for b in range(n_programs):
            if total[b] == np.inf:
                continue
            row = _run(tokens[b], lengths[b], constants[b], opcode, argument, work, n_rows, stack, False)
            if row < 0:
                total[b] = np.inf
                continue
            values = work[row]
            error = 0.0
            for j in range(n_rows):
                residual = target[j] - values[j]
                error += weight[j] * residual * residual
            total[b] = total[b] + error if np.isfinite(error) else np.inf
    return total


@compiled(nogil=True)
def predictions(tokens, lengths, constants, opcode, argument, columns):
    """Values of every program: a ndarray of shape (n_programs, n_samples).

    Parameters are those of `squared_errors`.
    """
    n_programs = len(lengths)
    n_variables, n_samples = columns.shape
    stack, work = _workspace(n_variables, tokens.shape[1])
    result = np.empty((n_programs, n_samples))
    for start in range(0, n_samples, BLOCK):
        n_rows = min(BLOCK, n_samples - start)
        for c in range(n_variables):
            copy_to(work[c], columns[c, start : start + n_rows])
        for b in range(n_programs):
            row = _run(tokens[b], lengths[b], constants[b], opcode, argument, work, n_rows, stack, True)
            copy_to(result[b, start:], work[row, :n_rows])
    return result
