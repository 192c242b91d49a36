"""Levenberg-Marquardt for the constants of many programs, with an analytic Jacobian.

A program f with constants c is fitted as a f(x; c) + b, with the slope a and the intercept b in closed form
for every c (*linear scaling*), or as f(x; c). In data with groups a and b differ between the groups.

References
----------
Keijzer, "Improving symbolic regression with interval arithmetic and linear scaling", EuroGP 2003;
Golub & Pereyra, 1973, and Kaufman, 1975 (variable projection: the steps in c with a and b projected
out); Marquardt, 1963.
"""

from __future__ import annotations

import numpy as np

from dgsr.constants.jacobian import FitTask, Point, Scratch, compute, link
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import allocation_free, compiled, inlined
from dgsr.kernels.evaluate import BLOCK
from dgsr.kernels.random import uniform

# Sums can be vectorised only if the compiler may reorder them.
_summing = compiled(_nrt=False, fastmath={"reassoc", "contract", "nsz"})

#: Damping of the first step, relative to the diagonal of the normal equations.
FIRST_DAMPING = 1e-3
# Smallest damping, relative to the diagonal.
_LEAST_DAMPING = 1e-15
#: Damping at which a fit ends, relative to the diagonal.
MOST_DAMPING = 1e8
# Share of the squared derivatives of a constant that must remain after projecting out slope and intercept;
# below it the constant is redundant.
_REDUNDANT_SHARE = 1e-12
# Squared error that counts as rounding, as a share of the squares of the target; a fit ends there.
_ROUNDING = 1e-31
# Largest squared relative spread of values that count as constant, whose rounding a slope would scale up.
_CONSTANT_SHARE = 1e-16
# Random points that are compared for the second start. From constants of 1.0 alone five steps fit 46 and 66%
# of the true skeletons of drawn:physics and drawn:laws, with the best of 2 more 54 and 72%, of 32 more 79 and
# 84%.
_N_TRIED = 32


@compiled(nogil=True)
def fit_programs(
    programs, slots, table, data, few, scaled, n_iterations, second_start, precision, state, result
):
    """Fit the constants of every program by least squares.

    Parameters
    ----------
    programs : Programs
        Their constants are the starting points, and are overwritten if others fit better.
    slots : ndarray of shape (n_programs, max_constants), int64
        The unknown that each constant is, numbered in the order in which they first occur, so that copies of
        a constant stay equal; -1 for constants that do not change.
    table : TokenTable
    data : DataSet
        The weighted mean of its y must be 0 if slope and intercept are fitted, in every group if it has some.
    few : DataSet
        A few of its rows, on which second starts are compared; the mean of their y must then be 0, too.
    scaled, n_iterations, second_start, precision : bool, int, bool, float
        Those of `dgsr.constants.fitting.fit_constants`.
    state : ndarray of 4 uint64
        State of the random generator; advanced by second starts.
    result : ndarray of shape (n_programs, 3), float64
        Receives the weighted sum of squared residuals (`inf` if a value is not finite), slope and intercept.
    """
    constants = programs.constants
    n_samples, n_constants, width = len(data.y), constants.shape[1], programs.tokens.shape[1]
    total, power = data.weights.sum(), _dot(data.weights, data.y, data.y, n_samples)
    task = FitTask(programs, slots, table, data, scaled, n_iterations, precision, total, power)
    trial = FitTask(programs, slots, table, few, scaled, 0, precision, few.weights.sum(), 0.0)
    scratch = Scratch(
        np.empty(width + 1, dtype=np.int64),
        np.empty(width + 1, dtype=np.bool_),
        np.empty(width + 1, dtype=np.int64),
        np.empty((width, BLOCK)),
        np.empty((width, BLOCK)),
        np.empty((n_constants, n_constants)),
        np.empty(n_constants),
        np.empty(n_constants),
        np.empty((n_constants, n_constants)),
        np.empty(n_constants),
    )
    values, trial_values = np.empty(n_samples), np.empty(n_samples)
    residuals, trial_residuals = np.empty(n_samples), np.empty(n_samples)
    jacobian, trial_jacobian = np.empty((n_constants, n_samples)), np.empty((n_constants, n_samples))
    # Both tables have rows of the same groups, or of some of them.
    n_groups = data.groups.max() + 1 if len(data.groups) > 0 else 0
    by_group, trial_by_group = np.empty((6, n_groups)), np.empty((6, n_groups))
    point = Point(np.empty(n_constants), values, residuals, jacobian, np.empty(3), by_group)
    spare = Point(
        np.empty(n_constants), trial_values, trial_residuals, trial_jacobian, np.empty(3), trial_by_group
    )
    best, second = np.empty(n_constants), np.empty(n_constants)
    for b in range(len(programs.lengths)):
        n_own = link(b, task, scratch)
        n_free = 0
        for p in range(n_own):
            n_free += slots[b, p] == n_free
            best[p] = constants[b, p]
        lowest, slope, intercept = np.inf, 0.0, 0.0
        n_starts = 1
        if second_start and n_free > 0 and n_iterations > 0:
            n_starts = 2
            _find_start(b, n_own, point, trial, scratch, second, state)
        for start in range(n_starts):
            for p in range(n_own):
                point.constants[p] = second[p] if start == 1 else constants[b, p]
            loss = _descend(b, n_own, n_free, point, spare, task, scratch)
            if loss < lowest:
                lowest, slope, intercept = loss, point.scale[0], point.scale[1]
                copy_to(best, point.constants[:n_own])
        copy_to(constants[b], best[:n_own])
        result[b, 0], result[b, 1], result[b, 2] = lowest, slope, intercept


@inlined
def _find_start(b, n_own, point, task, scratch, found, state):
    """Write the best starting point of program `b`, by its fit on the rows of `task`, into `found`.

    The candidates are 1.0 for every free constant, and `_N_TRIED` random points of either sign between 0.1
    and 10. If the program is finite at none of them, it starts at 1.0.
    """
    constants = task.programs.constants
    lowest = np.inf
    shift = int(uniform(state) * _N_TRIED)
    for trial in range(1 + _N_TRIED):
        for p in range(n_own):
            point.constants[p] = constants[b, p]
            first = _first_copy(task.slots[b], p)
            if first < p:
                point.constants[p] = point.constants[first]
            elif task.slots[b, p] >= 0:
                point.constants[p] = 1.0
                if trial > 0:
                    # Stratified sampling: each constant visits all strata once, in an order of its own.
                    place = ((trial + shift) * (2 * p + 1)) % _N_TRIED + uniform(state)
                    place *= 2.0 / _N_TRIED
                    size = 10.0 ** (2.0 * (place % 1.0) - 1.0)
                    point.constants[p] = size if place < 1.0 else -size
        loss = np.inf
        if compute(b, n_own, False, point, task, scratch):
            loss = _scale(point, task)
        if trial == 0 or loss < lowest:
            lowest = loss
            copy_to(found, point.constants[:n_own])


@inlined
def _first_copy(slots, p):
    """Return the position of the first constant that is the same unknown as constant `p`."""
    if slots[p] >= 0:
        for q in range(p):
            if slots[q] == slots[p]:
                return q
    return p


@inlined
def _descend(b, n_own, n_free, start, spare, task, scratch):
    """Fit program `b` from the constants of `start`; return its weighted sum of squared residuals, or inf.

    The program has `n_own` constants, of which `n_free` are free, and `scratch` is linked to it. The best
    constants, slope and intercept are written into `start`; `spare` is another Point.
    """
    fits = n_free > 0 and task.n_iterations > 0
    point, trial = start, spare
    if not compute(b, n_own, fits, point, task, scratch):
        return np.inf
    loss = _scale(point, task)
    if not loss < np.inf:
        return np.inf
    damping, n_tried = FIRST_DAMPING, 0
    while fits and n_tried < task.n_iterations and loss > _ROUNDING * task.power and point.scale[0] != 0.0:
        _normal_equations(point, n_free, task, scratch)
        decrease = -1.0
        while n_tried < task.n_iterations and damping < MOST_DAMPING:
            n_tried += 1
            trial_loss = np.inf
            if _solve(scratch, damping, n_free):
                for p in range(n_own):
                    trial.constants[p] = point.constants[p]
                    slot = task.slots[b, p]
                    if slot >= 0:
                        limit = 5.0 * (1.0 + abs(point.constants[p]))
                        trial.constants[p] += min(max(scratch.step[slot], -limit), limit)
                if compute(b, n_own, fits, trial, task, scratch):
                    trial_loss = _scale(trial, task)
            if trial_loss < loss:
                decrease = (loss - trial_loss) / loss
                loss = trial_loss
                point, trial = trial, point
                damping = max(0.1 * damping, _LEAST_DAMPING)
                break
            damping *= 10.0
        if decrease < task.precision:
            break
    copy_to(start.constants, point.constants[:n_own])
    copy_to(start.scale, point.scale[:2])
    return loss


@allocation_free
def _scale(point, task):
    """Fit slope and intercept, and write them and the residuals into `point`.

    Values are centred if the task is `scaled`. Return the weighted sum of squared residuals.
    """
    values, residuals, scale = point.values, point.residuals, point.scale
    y, w, total = task.data.y, task.data.weights, task.total
    n = len(y)
    if not task.scaled:
        scale[0], scale[1] = 1.0, 0.0
        for j in range(n):
            residuals[j] = y[j] - values[j]
        return _dot(w, residuals, residuals, n)
    if len(task.data.groups) > 0:
        return _scale_by_group(point, task.data)
    mean = _sum(w, values, n) / total
    for j in range(n):
        values[j] -= mean
    spread = _dot(w, values, values, n)
    slope = 0.0
    if spread > _CONSTANT_SHARE * (spread + total * mean * mean) and spread < np.inf:
        slope = _dot(w, values, y, n) / spread
    scale[0], scale[1], scale[2] = slope, -slope * mean, spread
    for j in range(n):
        residuals[j] = y[j] - slope * values[j]
    return _dot(w, residuals, residuals, n)


@allocation_free
def _normal_equations(point, n_free, task, scratch):
    """Write the normal equations of a step in the constants, with slope and intercept projected out."""
    matrix, vector, shares = scratch.matrix, scratch.vector, scratch.shares
    jacobian, scale, w = point.jacobian, point.scale, task.data.weights
    n, by_group = len(w), task.scaled and len(task.data.groups) > 0
    for p in range(n_free):
        derivatives = jacobian[p]
        total = _sum(w, derivatives, n)
        if not abs(total) < np.inf:
            # This constant is not changed by the step: x**2 has no derivative by its exponent at x < 0.
            total = 0.0
            for j in range(n):
                derivatives[j] = 0.0
        if by_group:
            shares[p] = _project_by_group(derivatives, point, task.data)
        elif task.scaled:
            mean = total / task.total
            for j in range(n):
                derivatives[j] -= mean
            shares[p] = _dot(w, derivatives, point.values, n)
        vector[p] = _dot(w, derivatives, point.residuals, n) / scale[0]
    for p in range(n_free):
        for q in range(p + 1):
            entry = _dot(w, jacobian[p], jacobian[q], n)
            before, rest = entry, entry
            if by_group:
                before = shares[p]
            elif task.scaled:
                rest -= shares[p] * shares[q] / scale[2]
            if p == q and not rest > _REDUNDANT_SHARE * before:
                vector[p] = 0.0
                rest = entry if entry > 0.0 else 1.0
            matrix[p, q] = rest


@allocation_free
def _scale_by_group(point, data):
    """Fit slope and intercept of every group, and write them and the residuals into `point`.

    The values of `point` are centred. Return the weighted sum of squared residuals. `scale[0]` becomes 0 if
    all slopes are 0, and else 1.
    """
    values, residuals, y, w, groups = point.values, point.residuals, data.y, data.weights, data.groups
    totals, means, squares, slopes, _, _ = point.by_group
    point.by_group[...] = 0.0
    n, has_slope, loss = len(y), 0.0, 0.0
    for j in range(n):
        totals[groups[j]] += w[j]
        means[groups[j]] += w[j] * values[j]
    for k in range(len(totals)):
        if totals[k] > 0.0:
            means[k] /= totals[k]
    for j in range(n):
        k = groups[j]
        values[j] -= means[k]
        squares[k] += w[j] * values[j] * values[j]
        slopes[k] += w[j] * values[j] * y[j]
    for k in range(len(totals)):
        least = _CONSTANT_SHARE * (squares[k] + totals[k] * means[k] * means[k])
        if least < squares[k] < np.inf:
            slopes[k] /= squares[k]
            has_slope = 1.0
        else:
            slopes[k] = 0.0
    for j in range(n):
        residuals[j] = y[j] - slopes[groups[j]] * values[j]
        loss += w[j] * residuals[j] * residuals[j]
    point.scale[0], point.scale[1] = has_slope, 0.0
    return loss


@allocation_free
def _project_by_group(derivatives, point, data):
    """Replace the derivatives of f by a constant by those of the fit, whose slopes and intercepts move.

    Return the weighted sum of squares of those at fixed slopes.
    """
    values, w, groups = point.values, data.weights, data.groups
    totals, _, squares, slopes, means, shares = point.by_group
    means[:] = 0.0
    shares[:] = 0.0
    for j in range(len(w)):
        means[groups[j]] += w[j] * derivatives[j]
        shares[groups[j]] += w[j] * derivatives[j] * values[j]
    for k in range(len(totals)):
        if slopes[k] != 0.0:
            means[k] /= totals[k]
            shares[k] *= slopes[k] / squares[k]
    before = 0.0
    for j in range(len(w)):
        k = groups[j]
        centred = slopes[k] * (derivatives[j] - means[k])
        before += w[j] * centred * centred
        derivatives[j] = centred - shares[k] * values[j] if slopes[k] != 0.0 else 0.0
    return before


@allocation_free
def _solve(scratch, damping, n_free):
    """Solve (M + damping diag M) step = vector by Cholesky; return False if M is not positive definite."""
    matrix, vector, factor, step = scratch.matrix, scratch.vector, scratch.factor, scratch.step
    for p in range(n_free):
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
    for p in range(n_free):
        entry = vector[p]
        for r in range(p):
            entry -= factor[p, r] * step[r]
        step[p] = entry / factor[p, p]
    for p in range(n_free - 1, -1, -1):
        entry = step[p]
        for r in range(p + 1, n_free):
            entry -= factor[r, p] * step[r]
        step[p] = entry / factor[p, p]
    return True


@_summing
def _sum(w, x, n):
    """Return the sum of w x over the first n entries."""
    total = 0.0
    for j in range(n):
        total += w[j] * x[j]
    return total


@_summing
def _dot(w, x, y, n):
    """Return the sum of w x y over the first n entries."""
    total = 0.0
    for j in range(n):
        total += w[j] * x[j] * y[j]
    return total
