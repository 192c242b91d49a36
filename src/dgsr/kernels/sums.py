"""Short programs on all rows of a data set, and which of them make a sum that fits, in compiled code."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from dgsr.kernels.operators import VARIABLE, apply

# A function of which less is orthogonal to those there are, is one of them but for rounding.
_LEFT = 1e-3
# Less of the square of the values than this, and they do not vary but for rounding.
_VARIES = 1e-18

_compiled = njit(cache=True, error_model="numpy")


@_compiled
def fill_values(opcode, address, first, second, columns, values):
    """Evaluate the programs of a catalogue on all rows: `values` has shape (S, n)."""
    for i in range(len(opcode)):
        if opcode[i] == VARIABLE:
            values[i] = columns[i]
        else:
            apply(opcode[i], address[i], values[first[i]], values[second[i]], values[i], columns.shape[1])


@_compiled
def standardise(values, weights, out):
    """Write rows of values with a weighted mean of zero and a norm of one, times the weights' roots.

    So that the dot product of two is their weighted correlation. What is not finite or does not vary is zero.

    Parameters
    ----------
    values : ndarray of shape (S, n), float64
    weights : ndarray of shape (n,), float64
    out : ndarray of shape (S, n), float32
    """
    n = len(weights)
    total = weights.sum()
    for i in range(len(values)):
        mean = 0.0
        for j in range(n):
            mean += weights[j] * values[i, j]
        mean /= total
        square = 0.0
        for j in range(n):
            square += weights[j] * (values[i, j] - mean) ** 2
        varies = square > _VARIES * mean * mean * total and math.isfinite(square)
        scale = 1.0 / math.sqrt(square) if varies else 0.0
        for j in range(n):
            out[i, j] = (values[i, j] - mean) * scale * math.sqrt(weights[j]) if varies else 0.0


@_compiled
def explain(functions, target, explained):
    """Write the square of what every function (S, n) explains of the target (n,), all standardised."""
    for i in range(len(functions)):
        product = np.float32(0.0)
        for j in range(len(target)):
            product += functions[i, j] * target[j]
        explained[i] = product * product


@_compiled
def find_partners(functions, basis, rest, partner, explained):
    """For each of K bases find the function that explains most of what it leaves of the target.

    The inner loop goes along the K bases, which vectorises without a change in the order of any sum: the
    result is the same on every machine.

    Parameters
    ----------
    functions : ndarray of shape (S, n), float32
        Standardised.
    basis : ndarray of shape (n_basis, n, K), float32
        Orthonormal ones.
    rest : ndarray of shape (n, K), float32
        Of the target, orthogonal to the basis.
    partner : ndarray of shape (K,), int64
        Receives the numbers of functions, -1 where there is none.
    explained : ndarray of shape (K,), float32
        Receives the square of what they explain.
    """
    n_basis, n, n_bases = basis.shape
    on_basis, on_rest = np.empty(n_bases, dtype=np.float32), np.empty(n_bases, dtype=np.float32)
    left = np.empty(n_bases, dtype=np.float32)
    one, least = np.float32(1.0), np.float32(_LEFT)
    partner[:] = -1
    explained[:] = 0.0
    for i in range(len(functions)):
        on_rest[:] = 0.0
        for j in range(n):
            value = functions[i, j]
            for k in range(n_bases):
                on_rest[k] += value * rest[j, k]
        left[:] = one
        for b in range(n_basis):
            on_basis[:] = 0.0
            for j in range(n):
                value = functions[i, j]
                for k in range(n_bases):
                    on_basis[k] += value * basis[b, j, k]
            for k in range(n_bases):
                left[k] -= on_basis[k] * on_basis[k]
        for k in range(n_bases):
            if left[k] > least and on_rest[k] * on_rest[k] > explained[k] * left[k]:
                explained[k], partner[k] = on_rest[k] * on_rest[k] / left[k], i
