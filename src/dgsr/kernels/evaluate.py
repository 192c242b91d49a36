"""Values and squared errors of programs on a data set, in blocks of samples that fit into the cache.

A program is read from its last token to its first with a stack of row indices of a workspace, whose first
rows are the variables, so that these are never copied.

Where a subexpression is infinite, the value of the program is infinite or NaN: x/inf and exp(-inf) are NaN
here and not 0. Otherwise a meaningless formula such as 1/(2 + x/log(0)) would fit.
"""

from __future__ import annotations

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled, contracted
from dgsr.kernels.operators import CONSTANT, DIV, VARIABLE, apply, is_binary

#: Samples that are evaluated together, so few that all rows of the workspace fit into the first-level cache.
BLOCK = 128


@contracted
def run_program(tokens, length, constants, opcode, argument, work, n_rows, stack, whole):
    """Run one program on `n_rows` samples; return the row of `work` that holds its values.

    `opcode` and `argument` are arrays of `Library.table`; `work` and `stack` are those of `new_workspace`,
    and the first rows of `work` hold the variables. If `whole` is False, -1 is returned as soon as an
    intermediate value of one of three samples is not finite, since the result is then not finite, either.
    This check finds most invalid programs, almost half of random ones, at almost no cost.
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
def new_workspace(n_variables, max_length):
    """Return a stack, and rows of BLOCK samples for the variables and for each position of the stack.

    A loop is vectorised only if its result does not overwrite an operand; so each position has two rows.
    """
    stack = np.empty(max_length // 2 + 2, dtype=np.int64)
    return stack, np.empty((n_variables + 2 * len(stack), BLOCK))


@compiled(nogil=True)
def squared_errors(programs, table, data):
    """Return the weighted sums of squared residuals, (n_programs,), `inf` where a prediction is not finite.

    The table is `Library.table`.
    """
    tokens, lengths, constants = programs
    opcode, argument = table.opcode, table.argument
    columns, y, weights = data.columns, data.y, data.weights
    n_programs = len(lengths)
    n_variables, n_samples = columns.shape
    stack, work = new_workspace(n_variables, tokens.shape[1])
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
            row = run_program(
                tokens[b], lengths[b], constants[b], opcode, argument, work, n_rows, stack, False
            )
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
def predictions(programs, table, columns):
    """Return the values of programs, (n_programs, n_samples), which are not finite where they are undefined.

    The table is `Library.table`, and the columns have the shape (n_features, n_samples).
    """
    tokens, lengths, constants = programs
    opcode, argument = table.opcode, table.argument
    n_programs = len(lengths)
    n_variables, n_samples = columns.shape
    stack, work = new_workspace(n_variables, tokens.shape[1])
    result = np.empty((n_programs, n_samples))
    for start in range(0, n_samples, BLOCK):
        n_rows = min(BLOCK, n_samples - start)
        for c in range(n_variables):
            copy_to(work[c], columns[c, start : start + n_rows])
        for b in range(n_programs):
            row = run_program(
                tokens[b], lengths[b], constants[b], opcode, argument, work, n_rows, stack, True
            )
            copy_to(result[b, start:], work[row, :n_rows])
    return result
