"""Equations of the prior p(f) and their data sets, in compiled code.

A tree is drawn (`prior_trees`) and written as a program (`prior_programs`); its sums and products are put
into a canonical order, and redundant constants are removed. An equation is accepted if it satisfies the
constraints, is not excluded and cannot be simplified further. It is then evaluated on random inputs.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "Dataset Generation and Training".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.canonical import canonicalise, is_among, simplify, skeleton, subtree_ends
from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.evaluate import CONSTANT, new_workspace, run_program
from dgsr.kernels.grammar import N_CONSTANTS, is_valid
from dgsr.kernels.growth import MOST_ATTEMPTS
from dgsr.kernels.random import integer, log_uniform, normal, uniform
from dgsr.pretraining.prior_inputs import change_units, draw_inputs, draw_varied_inputs
from dgsr.pretraining.prior_laws import N_UNITS, grow_law
from dgsr.pretraining.prior_programs import Subprograms, new_subprograms, write_program
from dgsr.pretraining.prior_trees import Tree, grow_tree, new_tree

# Absolute value below which all targets must be.
_LARGEST = 1e8
# Variance of a target, as a share of its squared mean, above which it must be.
_LEAST_VARIANCE = 1e-10
# Relative difference up to which values are equal except for rounding.
_ROUNDING = 1e-9


class _Workspace(NamedTuple):
    """Scratch arrays that are reused for every equation."""

    tree: Tree
    units: np.ndarray  # (n_columns, N_UNITS) int64: exponents of the base units of each variable of a law
    parts: Subprograms
    ends: np.ndarray  # (max_length + 1,) int64: ends of subtrees
    values: np.ndarray  # (max_length, n_points): values of subtrees at the points of comparison
    is_used: np.ndarray  # (n_columns,) bool: whether the program has the variable of the column
    counters: np.ndarray  # a tree state, see `dgsr.kernels.grammar.TreeState`
    open_nodes: np.ndarray
    stack: np.ndarray  # stack of the evaluator
    work: np.ndarray  # workspace of the evaluator


@compiled()
def _new_workspace(max_length, n_columns, n_points, has_constants):
    stack, work = new_workspace(n_columns, max_length)
    return _Workspace(
        new_tree(),
        np.zeros((n_columns, N_UNITS), dtype=np.int64),
        new_subprograms(max_length, has_constants),
        np.empty(max_length + 1, dtype=np.int64),
        np.empty((max_length, n_points)),
        np.empty(n_columns, dtype=np.bool_),
        np.zeros(5, dtype=np.int64),
        np.zeros((4, max_length + 1), dtype=np.int64),
        stack,
        work,
    )


@allocation_free
def _are_equal(a, b):
    """Return whether two rows of values are equal up to rounding; rows with NaN are not."""
    for j in range(len(a)):
        if not abs(a[j] - b[j]) <= _ROUNDING * (1.0 + abs(b[j])):
            return False
    return True


@allocation_free
def _is_flat(a):
    """Return whether all values are equal up to rounding."""
    for j in range(len(a)):
        if not abs(a[j] - a[0]) <= _ROUNDING * abs(a[0]):
            return False
    return True


@allocation_free
def _match(values, held_out):
    """Return whether values equal those of a held-out function at all points where these are not NaN."""
    for j in range(len(values)):
        tolerance = _ROUNDING * (1.0 + abs(held_out[j]))
        if not np.isnan(held_out[j]) and not abs(values[j] - held_out[j]) <= tolerance:
            return False
    return True


@allocation_free
def is_left_out(values, excluded):
    """Return whether values (n_points,) belong to a function that must not be drawn."""
    value = values[excluded.key]
    if np.isfinite(value):
        margin = 2.0 * _ROUNDING * (1.0 + abs(value))  # wider than the tolerance of `_match`
        ordered = excluded.values[: excluded.n_ordered, excluded.key]
        i = np.searchsorted(ordered, value - margin)
        while i < len(ordered) and ordered[i] <= value + margin:
            if _match(values, excluded.values[i]):
                return True
            i += 1
    for i in range(excluded.n_ordered, len(excluded.values)):
        if _match(values, excluded.values[i]):
            return True
    return False


@allocation_free
def scale_away(values):
    """Scale and shift the values of f to 0 and 1 at the first two points; all a*f + b have the same result.

    If the first two do not differ or are not finite, all become NaN, which is not compared.
    """
    low, span = values[0], values[1] - values[0]
    if not abs(span) > _ROUNDING * abs(low):
        low = np.nan
    for j in range(len(values)):
        values[j] = (values[j] - low) / span


@allocation_free
def _evaluated(tokens, length, constants, table, n_rows, w):
    """Evaluate a program on the columns in `w.work`; return the row of `w.work` that has the values."""
    return run_program(tokens, length, constants, table.opcode, table.argument, w.work, n_rows, w.stack, True)


@allocation_free
def _can_be_simplified(tokens, length, constants, table, has_constants, points, w):
    """Return whether a subtree equals one inside it, as in x1 + (x2 - x1) and x2*(x1/x1).

    In a library with constants the result is also True if a subtree is constant, such as x1/x1. If it is
    False, the values of all subtrees at `points` are in `w.values`. `w.counters` must be of the program.
    """
    n_columns, n_points = points.shape
    for c in range(n_columns):
        copy_to(w.work[c], points[c])
    subtree_ends(tokens, length, table.arity, w.ends)
    n_before = w.counters[N_CONSTANTS]  # number of constants before the subtree
    for i in range(length - 1, -1, -1):
        n_before -= table.opcode[tokens[i]] == CONSTANT
        end = w.ends[i]
        row = _evaluated(tokens[i:end], end - i, constants[n_before:], table, n_points, w)
        copy_to(w.values[i], w.work[row, :n_points])
        if table.arity[tokens[i]] > 0:
            if has_constants and _is_flat(w.values[i]):
                return True
            for k in range(i + 1, end):
                if _are_equal(w.values[i], w.values[k]):
                    return True
    return False


@allocation_free
def _agree(a, b):
    """Return whether two rows are equal up to rounding where both are finite, and both are somewhere."""
    compared = False
    for j in range(len(a)):
        if np.isfinite(a[j]) and np.isfinite(b[j]):
            compared = True
            if not abs(a[j] - b[j]) <= _ROUNDING * (1.0 + abs(b[j])):
                return False
    return compared


@allocation_free
def _has_an_idle_column(tokens, length, constants, table, points, w):
    """Return whether the values of a program do not depend on one of its columns, as on x2 in x1*x2*x3/x2.

    `w` must be as `_leaves_out_a_variable` and `_can_be_simplified` leave it.
    """
    n_columns, n_points = points.shape
    for c in range(n_columns):
        if not w.is_used[c]:
            continue
        for j in range(n_points):
            w.work[c, j] = points[c, (j + 1) % n_points]
        row = _evaluated(tokens, length, constants, table, n_points, w)
        if _agree(w.work[row, :n_points], w.values[0]):
            return True
        copy_to(w.work[c], points[c])
    return False


@allocation_free
def _leaves_out_a_variable(tokens, length, first_variable, is_used):
    """Return whether a program has a variable and lacks the one before it, as x1*x3 does.

    Which variables it has is written to `is_used`.
    """
    is_used[:] = False
    for i in range(length):
        if tokens[i] >= first_variable:
            is_used[tokens[i] - first_variable] = True
    for c in range(1, len(is_used)):
        if is_used[c] and not is_used[c - 1]:
            return True
    return False


@allocation_free
def _draw_program(tokens, constants, n_variables, table, grammar, prior, law, excluded, w, state):
    """Draw an equation; return its length, or 0 if it must be drawn again."""
    parts = w.parts
    w.units[:] = 0
    if prior.law_share > 0.0 and uniform(state) < prior.law_share:
        n_nodes = grow_law(n_variables, law, w.tree, w.units, state)
    else:
        n_nodes = grow_tree(n_variables, prior, grammar, w.tree, state)
    if n_nodes == 0 or not write_program(n_nodes, w.tree, prior, grammar, parts, state):
        return 0
    length = parts.lengths[0]
    copy_to(tokens, parts.tokens[0])
    if prior.has_constants:
        length = simplify(
            tokens, length, parts.constants[0], grammar.arity, prior.rewriting, grammar.linear_scaling
        )
    else:
        canonicalise(tokens, length, parts.constants[0], grammar.arity, prior.rewriting)
    if not is_valid(tokens, length, grammar, w.counters, w.open_nodes):
        return 0
    # Held-out functions have the first variables.
    if _leaves_out_a_variable(tokens, length, prior.first_variable, w.is_used):
        return 0
    if is_among(skeleton(tokens, length), excluded.skeletons):
        return 0
    constants[:] = 1.0
    copy_to(constants, parts.constants[0, : w.counters[N_CONSTANTS]])
    if _can_be_simplified(tokens, length, constants, table, prior.has_constants, excluded.points, w):
        return 0
    # Held-out functions depend on the first columns, so no equation may depend on others only.
    if _has_an_idle_column(tokens, length, constants, table, excluded.points, w):
        return 0
    if grammar.linear_scaling:
        scale_away(w.values[0])
    return 0 if is_left_out(w.values[0], excluded) else length


@allocation_free
def _evaluate(tokens, length, constants, table, X, y, w):
    """Write the values of an equation to `y`; return their variance, or 0 if the target is not usable."""
    n_samples, n_columns = X.shape
    mean = 0.0
    for start in range(0, n_samples, w.work.shape[1]):
        n_rows = min(w.work.shape[1], n_samples - start)
        for c in range(n_columns):
            copy_to(w.work[c], X[start : start + n_rows, c])
        row = _evaluated(tokens, length, constants, table, n_rows, w)
        for j in range(n_rows):
            value = w.work[row, j]
            if not abs(value) < _LARGEST:  # also for NaN
                return 0.0
            y[start + j] = value
            mean += value / n_samples
    variance = 0.0
    for j in range(n_samples):
        variance += (y[j] - mean) ** 2 / n_samples
    return variance if variance > _LEAST_VARIANCE * (mean * mean + 1e-6) else 0.0


@allocation_free
def _add_noise(y, variance, prior, state):
    """Add Gaussian noise to the target, with the prior's probability."""
    low, high, probability = prior.noise
    if probability > 0.0 and uniform(state) < probability:
        scale = np.sqrt(variance) * log_uniform(state, low, high)
        for j in range(len(y)):
            y[j] += scale * normal(state)


@allocation_free
def _transform(y, variance, prior, state):
    """Give the target a scale and perhaps an offset as `Prior.transformed` states."""
    if prior.transformed > 0.0 and uniform(state) < prior.transformed:
        scale = log_uniform(state, 0.01, 100.0) * (1.0 if uniform(state) < 0.5 else -1.0)
        offset = 0.0
        if uniform(state) < 0.5:
            offset = normal(state) * log_uniform(state, 0.1, 10.0) * np.sqrt(variance)
        for j in range(len(y)):
            y[j] = scale * (y[j] + offset)


@compiled(nogil=True)
def draw_datasets(n_variables, table, grammar, prior, law, excluded, programs, X, y, state):
    """Draw equations from the prior and evaluate each on random inputs.

    `programs` are empty and receive the equations; lengths stay 0 from the first data set on for which none
    is found. `X` (n_datasets, n_samples, n_columns) has zeros and receives the inputs of the first
    `n_variables` columns. `y` (n_datasets, n_samples) receives the values with the noise and the
    transformation of the prior, which are finite and not constant. Functions of `excluded` are not drawn.
    """
    tokens, lengths, constants = programs
    w = _new_workspace(tokens.shape[1], X.shape[2], excluded.points.shape[1], prior.has_constants)
    b = n_trials = 0
    while b < len(lengths) and n_trials < MOST_ATTEMPTS:
        n_trials += 1
        own = tokens[b], constants[b]
        length = _draw_program(*own, n_variables, table, grammar, prior, law, excluded, w, state)
        if length == 0:
            continue
        if prior.varied:
            draw_varied_inputs(X[b], n_variables, prior, state)
        else:
            draw_inputs(X[b], n_variables, prior, state)
        variance = _evaluate(tokens[b], length, constants[b], table, X[b], y[b], w)
        if variance == 0.0:
            continue
        _add_noise(y[b], variance, prior, state)
        if grammar.linear_scaling:
            _transform(y[b], variance, prior, state)
        if prior.varied and grammar.linear_scaling:  # other units change the scale of a law
            change_units(X[b], n_variables, w.units, prior, state)
        tokens[b, length:] = 0
        lengths[b] = length
        b += 1
        n_trials = 0


@compiled(nogil=True)
def canonicalise_all(programs, arity, rewriting):
    """Put the operands of every program into canonical order."""
    for b in range(len(programs.lengths)):
        canonicalise(programs.tokens[b], programs.lengths[b], programs.constants[b], arity, rewriting)


@compiled(nogil=True)
def draw_orders(n_orders, n, state):
    """Return random permutations of n numbers, shape (n_orders, n)."""
    orders = np.empty((n_orders, n), dtype=np.int64)
    for order in orders:
        for last in range(n):
            other = integer(state, last + 1)
            order[last] = order[other]
            order[other] = last
    return orders
