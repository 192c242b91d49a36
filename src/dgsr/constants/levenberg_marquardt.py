"""Levenberg-Marquardt for the constants of many programs, with an analytic Jacobian.

A program f with constants c is fitted as a f(x; c) + b, with a and b in closed form for every c
(*linear scaling*), or as it stands. The derivatives of f in all its constants come from one pass back
through the program, from the root to the constants: per row, the adjoint of a constant's leaf is its
column of the Jacobian.

References
----------
Keijzer, "Improving symbolic regression with interval arithmetic and linear scaling", EuroGP 2003;
Golub & Pereyra, 1973, and Kaufman, 1975 (variable projection: the steps in c with a and b projected
out); Marquardt, 1963.
"""

from __future__ import annotations

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.evaluate import BLOCK
from dgsr.kernels.operators import CONSTANT, DIV, VARIABLE, apply, differentiate
from dgsr.kernels.random import uniform

# Sums may be reordered: only then are they vectorised.
_summing = compiled(_nrt=False, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
_leaf = compiled(_nrt=False, error_model="numpy")

# A function whose relative spread over the rows is below the root of this is constant: scaling it up
# would fit its rounding.
_CONSTANT_SHARE = 1e-16
# Damping of the first step, relative to the diagonal, and its bounds.
_FIRST_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-3, 1e-15, 1e8
# A constant with less than this share of its column left is one that slope and intercept can undo.
_REDUNDANT_SHARE = 1e-12
# A residual below this share of the target's variance is rounding.
_ROUNDING = 1e-31


@_summing
def _sum(w, x, n):
    total = 0.0
    for j in range(n):
        total += w[j] * x[j]
    return total


@_summing
def _dot(w, x, y, n):
    total = 0.0
    for j in range(n):
        total += w[j] * x[j] * y[j]
    return total


@_leaf
def _link(tokens, length, arity_of, opcode, free, second, moves, stack):
    """Find the second children, and the nodes with a free constant below; return the number of constants."""
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
            moves[i] = free[k]
        elif op != VARIABLE:
            moves[i] = moves[i + 1]
            second[i] = i + 1
            top -= 1
            if arity_of[tokens[i]] == 2:
                second[i] = stack[top]
                moves[i] = moves[i] or moves[second[i]]
                top -= 1
        top += 1
        stack[top] = i
    return n_constants


@_leaf
def _evaluate(
    tokens,
    length,
    constants,
    free,
    opcode,
    argument,
    columns,
    second,
    moves,
    work,
    adjoints,
    rows,
    values,
    jacobian,
    with_jacobian,
):
    """Fill `values` with f and the rows of `jacobian` with its derivatives; False where not finite."""
    n_variables, n_samples = columns.shape
    for start in range(0, n_samples, BLOCK):
        n = min(BLOCK, n_samples - start)
        for v in range(n_variables):
            for j in range(n):
                work[v, j] = columns[v, start + j]
        k = 0
        for i in range(length):
            k += opcode[tokens[i]] == CONSTANT
        for i in range(length - 1, -1, -1):
            token = tokens[i]
            op = opcode[token]
            if op == VARIABLE:
                rows[i] = argument[token]
                continue
            rows[i] = n_variables + i
            out = work[rows[i]]
            if op == CONSTANT:
                k -= 1
                for j in range(n):
                    out[j] = constants[k]
                continue
            apply(op, argument[token], work[rows[i + 1]], work[rows[second[i]]], out, n)
            if op >= DIV and not 0.0 * out[0] + 0.0 * out[n // 2] + 0.0 * out[n - 1] == 0.0:
                return False
        result = work[rows[0]]
        check = 0.0
        for j in range(n):
            values[start + j] = result[j]
            check += 0.0 * result[j]
        if not check == 0.0:
            return False
        if not with_jacobian:
            continue
        for j in range(n):
            adjoints[0, j] = 1.0
        k = at = 0
        for i in range(length):
            token = tokens[i]
            op = opcode[token]
            if op == CONSTANT:
                if free[k]:
                    for j in range(n):
                        jacobian[at, start + j] = adjoints[i, j]
                    at += 1
                k += 1
            elif moves[i]:
                left, right, out = work[rows[i + 1]], work[rows[second[i]]], work[rows[i]]
                if moves[i + 1]:
                    differentiate(op, argument[token], 0, left, right, out, adjoints[i], adjoints[i + 1], n)
                if second[i] != i + 1 and moves[second[i]]:
                    differentiate(
                        op, argument[token], 1, left, right, out, adjoints[i], adjoints[second[i]], n
                    )
    return True


@_leaf
def _scale(values, y, w, n, total, scaled, residuals, scale):
    """Set `scale` to slope, intercept, mean and spread; return the sum of squared residuals.

    `values` are centred when `scaled`.
    """
    if not scaled:
        scale[0], scale[1] = 1.0, 0.0
        for j in range(n):
            residuals[j] = y[j] - values[j]
        return _dot(w, residuals, residuals, n)
    mean = _sum(w, values, n) / total
    for j in range(n):
        values[j] -= mean
    spread = _dot(w, values, values, n)
    slope = 0.0
    if spread > _CONSTANT_SHARE * (spread + total * mean * mean) and spread < np.inf:
        slope = _dot(w, values, y, n) / spread
    scale[0], scale[1], scale[2], scale[3] = slope, -slope * mean, mean, spread
    for j in range(n):
        residuals[j] = y[j] - slope * values[j]
    return _dot(w, residuals, residuals, n)


@_leaf
def _normal_equations(values, jacobian, residuals, w, n, total, k, scaled, scale, matrix, vector, shares):
    """Fill the normal equations of a step in the constants, slope and intercept projected out."""
    for p in range(k):
        column = jacobian[p]
        if scaled:
            mean = _sum(w, column, n) / total
            for j in range(n):
                column[j] -= mean
            shares[p] = _dot(w, column, values, n)
        else:
            shares[p] = 0.0
        vector[p] = _dot(w, column, residuals, n) / scale[0]
    for p in range(k):
        for q in range(p + 1):
            entry = _dot(w, jacobian[p], jacobian[q], n)
            rest = entry - shares[p] * shares[q] / scale[3] if scaled else entry
            if p == q and not rest > _REDUNDANT_SHARE * entry:
                vector[p] = 0.0
                rest = entry if entry > 0.0 else 1.0
            matrix[p, q] = rest


@_leaf
def _solve(matrix, vector, damping, k, factor, step):
    """Solve (M + damping diag M) step = vector by Cholesky; False where M is not positive or not finite."""
    for p in range(k):
        for q in range(p + 1):
            entry = matrix[p, q]
            if p == q:
                entry += damping * entry
            for r in range(q):
                entry -= factor[p, r] * factor[q, r]
            if p == q:
                if not 0.0 < entry < np.inf:
                    return False
                factor[p, p] = np.sqrt(entry)
            else:
                factor[p, q] = entry / factor[q, q]
    for p in range(k):
        entry = vector[p]
        for r in range(p):
            entry -= factor[p, r] * step[r]
        step[p] = entry / factor[p, p]
    for p in range(k - 1, -1, -1):
        entry = step[p]
        for r in range(p + 1, k):
            entry -= factor[r, p] * step[r]
        step[p] = entry / factor[p, p]
    return True


@compiled(nogil=True)
def fit_programs(
    tokens,
    lengths,
    constants,
    free,
    table,
    columns,
    y,
    weights,
    scaled,
    n_iterations,
    n_starts,
    precision,
    state,
    result,
):
    """Fit the constants of every program by least squares.

    Parameters
    ----------
    tokens : ndarray of shape (n_programs, max_length), int64
    lengths : ndarray of shape (n_programs,), int64
    constants : ndarray of shape (n_programs, max_constants), float64
        Starting values; overwritten where others fit better.
    free : ndarray of shape (n_programs, max_constants), bool
        Which constants to fit; the others stay as they are.
    table : TokenTable
    columns : ndarray of shape (n_features, n_samples), float64
    y : ndarray of shape (n_samples,), float64
        Its weighted mean must be 0 if `scaled`.
    weights : ndarray of shape (n_samples,), float64
    scaled : bool
        Whether slope and intercept are fitted in closed form besides.
    n_iterations : int
        Steps tried from each starting point; 0 leaves the constants as they are.
    n_starts : int
        Starting points besides the one given: all 1.0, then random ones.
    precision : float
        Stop when a step lowers the squared error by less than this share.
    state : ndarray of 4 uint64
        Random state; advanced where random starting points are used.
    result : ndarray of shape (n_programs, 3), float64
        Receives the weighted sum of squared residuals (`inf` where a value is not finite), slope and
        intercept.
    """
    arity, opcode, argument = table.arity, table.opcode, table.argument
    n_variables, n_samples = columns.shape
    width, n_constants = tokens.shape[1], constants.shape[1]
    total, power = weights.sum(), _dot(weights, y, y, n_samples)
    second = np.empty(width + 1, dtype=np.int64)
    rows = np.empty(width + 1, dtype=np.int64)
    stack = np.empty(width + 1, dtype=np.int64)
    moves = np.empty(width + 1, dtype=np.bool_)
    work = np.empty((n_variables + width, BLOCK))
    adjoints = np.empty((width, BLOCK))
    values, trial_values = np.empty(n_samples), np.empty(n_samples)
    residuals, trial_residuals = np.empty(n_samples), np.empty(n_samples)
    jacobian, trial_jacobian = np.empty((n_constants, n_samples)), np.empty((n_constants, n_samples))
    matrix, factor = np.empty((n_constants, n_constants)), np.empty((n_constants, n_constants))
    vector, shares, step = np.empty(n_constants), np.empty(n_constants), np.empty(n_constants)
    current, trial, best = np.empty(n_constants), np.empty(n_constants), np.empty(n_constants)
    scale, trial_scale = np.empty(4), np.empty(4)
    for b in range(len(lengths)):
        program, length = tokens[b], lengths[b]
        n_own = _link(program, length, arity, opcode, free[b], second, moves, stack)
        n_free = 0
        for p in range(n_own):
            n_free += free[b, p]
            best[p] = constants[b, p]
        lowest, slope, intercept = np.inf, 0.0, 0.0
        fits = n_free > 0 and n_iterations > 0
        for start in range(1 + n_starts if fits else 1):
            for p in range(n_own):
                current[p] = constants[b, p]
                if start == 1 and free[b, p]:
                    current[p] = 1.0
                elif start > 1 and free[b, p]:
                    current[p] = 10.0 ** (2.0 * uniform(state) - 1.0)
                    if uniform(state) < 0.5:
                        current[p] = -current[p]
            if not _evaluate(
                program, length, current, free[b], opcode, argument, columns, second, moves, work, adjoints,
                rows, values, jacobian, fits,
            ):  # fmt: skip
                continue
            loss = _scale(values, y, weights, n_samples, total, scaled, residuals, scale)
            if not loss < np.inf:
                continue
            damping, n_tried = _FIRST_DAMPING, 0
            while fits and n_tried < n_iterations and loss > _ROUNDING * power and scale[0] != 0.0:
                _normal_equations(
                    values, jacobian, residuals, weights, n_samples, total, n_free, scaled, scale, matrix,
                    vector, shares,
                )  # fmt: skip
                decrease = -1.0
                while n_tried < n_iterations and damping < _MOST_DAMPING:
                    n_tried += 1
                    accepted = False
                    if _solve(matrix, vector, damping, n_free, factor, step):
                        at = 0
                        for p in range(n_own):
                            trial[p] = current[p]
                            if free[b, p]:
                                limit = 5.0 * (1.0 + abs(current[p]))
                                trial[p] += min(max(step[at], -limit), limit)
                                at += 1
                        if _evaluate(
                            program, length, trial, free[b], opcode, argument, columns, second, moves, work,
                            adjoints, rows, trial_values, trial_jacobian, fits,
                        ):  # fmt: skip
                            trial_loss = _scale(
                                trial_values,
                                y,
                                weights,
                                n_samples,
                                total,
                                scaled,
                                trial_residuals,
                                trial_scale,
                            )
                            accepted = trial_loss < loss
                    if accepted:
                        decrease = (loss - trial_loss) / loss
                        loss = trial_loss
                        current, trial = trial, current
                        values, trial_values = trial_values, values
                        residuals, trial_residuals = trial_residuals, residuals
                        jacobian, trial_jacobian = trial_jacobian, jacobian
                        scale, trial_scale = trial_scale, scale
                        damping = max(0.1 * damping, _LEAST_DAMPING)
                        break
                    damping *= 10.0
                if decrease < precision:
                    break
            if loss < lowest:
                lowest, slope, intercept = loss, scale[0], scale[1]
                for p in range(n_own):
                    best[p] = current[p]
        for p in range(n_own):
            constants[b, p] = best[p]
        result[b, 0], result[b, 1], result[b, 2] = lowest, slope, intercept
