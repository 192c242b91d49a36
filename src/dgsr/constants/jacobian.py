"""Values of programs and their derivatives by the constants, for `dgsr.constants.levenberg_marquardt`.

One backward pass through a program gives the derivatives by all constants (reverse-mode differentiation): the
adjoint of a constant is its row of the Jacobian. In this file `b` is the index of a program, `n_own` the
number of its constants, `task` a FitTask, `point` a Point and `scratch` a Scratch. Functions that run for
every program are inlined, since passing so many arrays would take time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dgsr.kernels.compilation import allocation_free, inlined
from dgsr.kernels.evaluate import BLOCK
from dgsr.kernels.operators import ARCCOS, ARCSIN, CONSTANT, DIV, POW, SQRT, VARIABLE, apply, differentiate
from dgsr.kernels.programs import Programs

if TYPE_CHECKING:
    from dgsr.data.dataset import DataSet
    from dgsr.expressions.programs.library import TokenTable


class FitTask(NamedTuple):
    """Programs to fit, and the options of their fits."""

    programs: Programs
    # (n_programs, max_constants) int64: the unknown that a constant is, numbered in the order in which they
    # first occur, or -1 if the constant is fixed
    slots: np.ndarray
    table: TokenTable
    data: DataSet
    scaled: bool
    n_iterations: int
    precision: float
    total: float  # sum of the weights
    power: float  # weighted sum of the squares of y


class Point(NamedTuple):
    """Constants of a program, and its values and derivatives with them."""

    constants: np.ndarray  # (max_constants,) float64
    values: np.ndarray  # (n_samples,) float64: values of f, minus their mean if the task is scaled
    residuals: np.ndarray  # (n_samples,) float64
    jacobian: np.ndarray  # (max_constants, n_samples) float64: derivatives of f by each unknown
    scale: np.ndarray  # (3,) float64: slope, intercept, and sum of squares of `values`
    # (6, n_groups) float64: weight, mean of f, sum of squares of `values`, slope, and two entries of scratch
    by_group: np.ndarray


class Scratch(NamedTuple):
    """Arrays for one program at a time."""

    # The tree, and values and derivatives of its nodes on one block of samples:
    second: np.ndarray  # (max_length + 1,) int64: position of the last child of a node
    moves: np.ndarray  # (max_length + 1,) bool: whether the node is or contains a free constant
    stack: np.ndarray  # (max_length + 1,) int64
    work: np.ndarray  # (max_length, BLOCK) float64: values of the nodes
    adjoints: np.ndarray  # (max_length, BLOCK) float64: derivative of the root by the node
    # The normal equations of a step in the free constants:
    matrix: np.ndarray  # (max_constants, max_constants) float64, below the diagonal
    vector: np.ndarray  # (max_constants,) float64
    shares: np.ndarray  # (max_constants,) float64: inner products of the derivatives with the values
    factor: np.ndarray  # (max_constants, max_constants) float64: Cholesky factor of the damped matrix
    step: np.ndarray  # (max_constants,) float64: solution


@allocation_free
def link(b, task, scratch):
    """Write the tree of program `b` into `second` and `moves`; return the number of its constants."""
    tokens, length, slots = task.programs.tokens[b], task.programs.lengths[b], task.slots[b]
    arity, opcode = task.table.arity, task.table.opcode
    second, moves, stack = scratch.second, scratch.moves, scratch.stack
    k = 0
    for i in range(length):
        k += opcode[tokens[i]] == CONSTANT
    n_constants = k
    top = -1
    for i in range(length - 1, -1, -1):
        op = opcode[tokens[i]]
        moves[i] = False
        if op == CONSTANT:
            k -= 1
            moves[i] = slots[k] >= 0
        elif op != VARIABLE:
            moves[i] = moves[i + 1]
            second[i] = i + 1
            top -= 1
            if arity[tokens[i]] == 2:
                second[i] = stack[top]
                moves[i] = moves[i] or moves[second[i]]
                top -= 1
        top += 1
        stack[top] = i
    return n_constants


@allocation_free
def compute(b, n_own, with_jacobian, point, task, scratch):
    """Write the values of program `b` into `point`, and its Jacobian if `with_jacobian`.

    Return False if a value is not finite.
    """
    n_samples = len(task.data.y)
    for start in range(0, n_samples, BLOCK):
        n = min(BLOCK, n_samples - start)
        if not _compute_values(b, n_own, start, n, point, task, scratch):
            return False
        if with_jacobian:
            _compute_jacobian(b, start, n, point, task, scratch)
    return True


@inlined
def _compute_values(b, n_own, start, n, point, task, scratch):
    """Write the values on `n` samples from `start` on into `point`; return False if one is not finite."""
    tokens, opcode, argument = task.programs.tokens[b], task.table.opcode, task.table.argument
    columns, work = task.data.columns, scratch.work
    k = n_own
    for i in range(task.programs.lengths[b] - 1, -1, -1):
        token = tokens[i]
        op, out = opcode[token], work[i]
        if op == VARIABLE:  # only columns of the program are read, since a table may have a thousand
            v = argument[token]
            for j in range(n):
                out[j] = columns[v, start + j]
            continue
        if op == CONSTANT:
            k -= 1
            for j in range(n):
                out[j] = point.constants[k]
            continue
        apply(op, argument[token], work[i + 1], work[scratch.second[i]], out, n)
        if op >= DIV and not 0.0 * out[0] + 0.0 * out[n // 2] + 0.0 * out[n - 1] == 0.0:
            return False
    result = work[0]
    check = 0.0
    for j in range(n):
        point.values[start + j] = result[j]
        check += 0.0 * result[j]
    return check == 0.0


@inlined
def _compute_jacobian(b, start, n, point, task, scratch):
    """Write the derivatives by the free constants, on the samples of `_compute_values`, into `point`."""
    tokens, opcode, argument = task.programs.tokens[b], task.table.opcode, task.table.argument
    second, moves = scratch.second, scratch.moves
    work, adjoints = scratch.work, scratch.adjoints
    for j in range(n):
        adjoints[0, j] = 1.0
    k = at = 0
    for i in range(task.programs.lengths[b]):
        token = tokens[i]
        op = opcode[token]
        if op == CONSTANT:
            slot = task.slots[b, k]
            if slot == at:
                for j in range(n):
                    point.jacobian[slot, start + j] = adjoints[i, j]
                at += 1
            elif slot >= 0:  # a copy of an earlier constant
                for j in range(n):
                    point.jacobian[slot, start + j] += adjoints[i, j]
            k += 1
        elif moves[i]:
            left, right, out = work[i + 1], work[second[i]], work[i]
            if moves[i + 1]:
                differentiate(op, argument[token], 0, left, right, out, adjoints[i], adjoints[i + 1], n)
                if op == SQRT or op == POW or op == ARCSIN or op == ARCCOS:
                    # At an end of its domain such a function is infinitely steep. One such row would stop the
                    # fit, so it does not enter the derivatives, but it does enter the residuals.
                    for j in range(n):
                        if not abs(adjoints[i + 1, j]) < np.inf:
                            adjoints[i + 1, j] = 0.0
            if second[i] != i + 1 and moves[second[i]]:
                differentiate(op, argument[token], 1, left, right, out, adjoints[i], adjoints[second[i]], n)
