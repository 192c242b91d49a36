"""The equation prior p(f), and data sets drawn from it, in compiled code.

A tree is grown from its root: operators are drawn with the paper's weights and placed on a random
open place until there are as many leaves as wanted, then the leaves are filled. It is written out
as a program of the library's own tokens, without squares with powers as products and without
constants with integers through ``x1/x1``, and put into one canonical order of its sums and products;
with constants it is also rid of those that others make idle.

References
----------
Lample & Charton, ICLR 2020; Holt, Qian, van der Schaar, ICLR 2023, appendix "Dataset Generation
and Training".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.canonical import Rewriting, canonicalise, is_among, simplify, skeleton, subtree_ends
from dgsr.kernels.compilation import compiled
from dgsr.kernels.evaluate import CONSTANT, new_workspace, run_program
from dgsr.kernels.grammar import N_CONSTANTS, is_valid
from dgsr.kernels.random import choice, integer, log_uniform, normal, uniform

_EMPTY = -1
_INTEGER = -2  # kind of a leaf; its value stands in the first child's place

# Limits of one tree; a larger one is drawn again.
_MAX_NODES = 64

# Equations drawn in vain after which there are taken to be none that meet all conditions.
_MAX_TRIALS = 200_000

# Constants of the log-uniform kind: chance of a whole number, of a negative one, range of the others.
_WHOLE_SHARE, _NEGATIVE_SHARE = 0.3, 0.3
_LEAST, _MOST = 0.1, 10.0


class PriorTable(NamedTuple):
    """The prior as arrays; operators are the library's, then the powers 2 to 5."""

    weights: np.ndarray  # (n_operators + 4,) float64
    n_operators: int
    add: int  # token ids the powers and integers are written with
    mul: int
    div: int
    square: int
    cube: int
    pow: int  # drawn with a number as exponent alone
    exponents: np.ndarray  # (n_exponents,) float64
    rewriting: Rewriting
    variable_probability: float
    integer_weights: np.ndarray  # (max_integer,) float64
    min_leaves: int
    max_leaves: int
    constant_low: float
    constant_high: float
    log_uniform: bool  # whether constants are of the log-uniform kind, and not between the two
    noise_low: float
    noise_high: float
    noise_probability: float
    has_constants: bool
    first_variable: int


@compiled()
def _takes_two(operator, prior, grammar):
    """Whether an operator has two subtrees; an exponent is a number and no subtree."""
    return operator < prior.n_operators and grammar.arity[operator] == 2 and operator != prior.pow


@compiled()
def _grow(n_variables, prior, grammar, kind, first, second, state):
    """Draw a tree into `kind`, `first`, `second`; return its number of nodes, 0 if it got too large."""
    n_leaves = prior.min_leaves + integer(state, prior.max_leaves - prior.min_leaves + 1)
    parent = np.full(_MAX_NODES, -1, dtype=np.int64)
    under = np.zeros(_MAX_NODES, dtype=np.bool_)
    places = np.zeros(_MAX_NODES, dtype=np.int64)
    kind[0] = _EMPTY
    n_nodes, n_places = 1, 1
    while True:
        operator = choice(state, prior.weights)
        binary = _takes_two(operator, prior, grammar)
        if binary and n_places == n_leaves:
            break
        at = integer(state, n_places)
        node = places[at]
        if operator < prior.n_operators:
            above = parent[node]
            if grammar.is_trigonometric[operator] and under[node]:
                continue
            if 0 <= above and kind[above] < prior.n_operators:
                if grammar.forbidden_child[kind[above], operator]:
                    continue
        if n_nodes + 2 > _MAX_NODES:
            return 0
        kind[node] = operator
        below = under[node] or (operator < prior.n_operators and grammar.is_trigonometric[operator])
        first[node] = n_nodes
        places[at] = n_nodes
        for k in range(2 if binary else 1):
            if k == 1:
                second[node] = n_nodes
                places[n_places] = n_nodes
                n_places += 1
            kind[n_nodes] = _EMPTY
            parent[n_nodes] = node
            under[n_nodes] = below
            n_nodes += 1

    # Leaves. An operator needs a variable somewhere below it, or it would be a constant.
    for at in range(n_places):
        node = places[at]
        above = parent[node]
        integer_allowed = above >= 0 and _takes_two(kind[above], prior, grammar)
        if integer_allowed:
            sibling = first[above] + second[above] - node
            integer_allowed = kind[sibling] != _INTEGER
        if integer_allowed and uniform(state) >= prior.variable_probability:
            kind[node] = _INTEGER
            first[node] = 1 + choice(state, prior.integer_weights)
        else:
            kind[node] = _EMPTY
            first[node] = integer(state, n_variables)
    # A higher variable only where all lower ones are present.
    present = np.zeros(n_variables, dtype=np.int64)
    for at in range(n_places):
        if kind[places[at]] == _EMPTY:
            present[first[places[at]]] = 1
    rank = np.cumsum(present) - 1
    for at in range(n_places):
        if kind[places[at]] == _EMPTY:
            first[places[at]] = rank[first[places[at]]]
    return n_nodes


@compiled()
def _append(texts, sizes, node, source, size):
    """Append the first `size` tokens of row `source` to row `node`; False if they do not fit."""
    at = sizes[node]
    if at + size > texts.shape[1]:
        return False
    copy_to(texts[node, at:], texts[source, :size])
    sizes[node] = at + size
    return True


@compiled()
def _append_token(texts, sizes, node, token):
    if sizes[node] == texts.shape[1]:
        return False
    texts[node, sizes[node]] = token
    sizes[node] += 1
    return True


@compiled()
def _append_repeated(texts, sizes, node, operator, source, times):
    """Append f, f o f, f o (f o f), ... with `times` copies of row `source`."""
    fits = True
    for i in range(times):
        if i < times - 1:
            fits = fits and _append_token(texts, sizes, node, operator)
        fits = fits and _append(texts, sizes, node, source, sizes[source])
    return fits


@compiled()
def _append_integer(texts, sizes, node, value, prior):
    """Append `value` as (x1 + ... + x1)/x1."""
    fits = _append_token(texts, sizes, node, prior.div)
    for i in range(value):
        if i < value - 1:
            fits = fits and _append_token(texts, sizes, node, prior.add)
        fits = fits and _append_token(texts, sizes, node, prior.first_variable)
    return fits and _append_token(texts, sizes, node, prior.first_variable)


@compiled()
def _draw_constant(prior, state):
    if not prior.log_uniform:
        return prior.constant_low + (prior.constant_high - prior.constant_low) * uniform(state)
    sign = -1.0 if uniform(state) < _NEGATIVE_SHARE else 1.0
    if uniform(state) < _WHOLE_SHARE:
        return sign * (1.0 + choice(state, prior.integer_weights))
    return sign * log_uniform(state, _LEAST, _MOST)


@compiled()
def _append_power(texts, sizes, node, source, power, prior):
    """Append a power of row `source`, 2 to 5, with square and cube where there are such tokens."""
    if prior.square >= 0 and power == 2:
        fits = _append_token(texts, sizes, node, prior.square)
    elif prior.cube >= 0 and power == 3:
        fits = _append_token(texts, sizes, node, prior.cube)
    elif prior.square >= 0 and power >= 4:
        fits = True
        if power == 5:
            fits = _append_token(texts, sizes, node, prior.mul)
            fits = fits and _append(texts, sizes, node, source, sizes[source])
        for _ in range(2):
            fits = fits and _append_token(texts, sizes, node, prior.square)
    else:
        return _append_repeated(texts, sizes, node, prior.mul, source, power)
    return fits and _append(texts, sizes, node, source, sizes[source])


@compiled()
def _write(n_nodes, kind, first, second, prior, grammar, texts, sizes, constants, n_constants, state):
    """Write every subtree of a tree in prefix order; the whole equation is then row 0.

    Integers take the fewest tokens: a small multiple of a short factor becomes a repeated sum.
    False if a subtree is too long, has too many constants, or would repeat one.
    """
    for node in range(n_nodes - 1, -1, -1):  # children have higher numbers than their parent
        sizes[node] = 0
        n_constants[node] = 0
        k = kind[node]
        left, right = first[node], second[node]
        if k == _EMPTY:
            texts[node, 0] = prior.first_variable + left
            sizes[node] = 1
            continue
        if k == _INTEGER:
            if prior.has_constants:
                texts[node, 0] = prior.first_variable - 1
                sizes[node] = 1
                constants[node, 0] = _draw_constant(prior, state)
                n_constants[node] = 1
            elif not _append_integer(texts, sizes, node, left, prior):
                return False
            continue
        if k >= prior.n_operators:
            power = k - prior.n_operators + 2
            if not _append_power(texts, sizes, node, left, power, prior):
                return False
            once = prior.cube >= 0 if power == 3 else prior.square >= 0 and power != 5
            if n_constants[left] > 0 and not once:
                return False
            n_constants[node] = n_constants[left]
            constants[node] = constants[left]
            continue
        binary = _takes_two(k, prior, grammar)
        if binary and not prior.has_constants:
            if k == prior.mul and (kind[left] == _INTEGER or kind[right] == _INTEGER):
                value, factor = (first[left], right) if kind[left] == _INTEGER else (first[right], left)
                size = sizes[factor]
                if value * size + value - 1 <= 2 * value + 2 + size:
                    if not _append_repeated(texts, sizes, node, prior.add, factor, value):
                        return False
                    continue
            if k == prior.div and kind[right] == _INTEGER and first[right] == 1:
                if not _append(texts, sizes, node, left, sizes[left]):
                    return False
                continue
        if not _append_token(texts, sizes, node, k):
            return False
        if not _append(texts, sizes, node, left, sizes[left]):
            return False
        if k == prior.pow and not _append_token(texts, sizes, node, prior.first_variable - 1):
            return False
        n_left = n_constants[left]
        n_right = n_constants[right] if binary else 0
        if binary and not _append(texts, sizes, node, right, sizes[right]):
            return False
        if n_left + n_right > constants.shape[1]:
            return False
        for i in range(n_left):
            constants[node, i] = constants[left, i]
        for i in range(n_right):
            constants[node, n_left + i] = constants[right, i]
        n_constants[node] = n_left + n_right
        if k == prior.pow:
            if n_left == constants.shape[1]:
                return False
            constants[node, n_left] = prior.exponents[integer(state, len(prior.exponents))]
            n_constants[node] += 1
    return True


@compiled()
def _equal(a, b):
    """Whether two rows of values are the same to rounding; rows with NaN never are."""
    for j in range(len(a)):
        if not abs(a[j] - b[j]) <= 1e-9 * (1.0 + abs(b[j])):
            return False
    return True


@compiled()
def _is_flat(a):
    """Whether all values are the same to rounding."""
    for j in range(len(a)):
        if not abs(a[j] - a[0]) <= 1e-9 * abs(a[0]):
            return False
    return True


@compiled()
def _is_excluded(values, excluded):
    """Whether values equal those of an excluded function wherever that has one (NaN elsewhere)."""
    for j in range(len(values)):
        if not np.isnan(excluded[j]) and not abs(values[j] - excluded[j]) <= 1e-9 * (1.0 + abs(excluded[j])):
            return False
    return True


@compiled()
def scale_away(values):
    """Make values at some points those of the function's kin a*f + b too, in place: 0 and 1 at the first two.

    Not a number, which is not compared, where the first two do not differ or are not finite.
    """
    low, span = values[0], values[1] - values[0]
    if not abs(span) > 1e-9 * abs(low):
        low = np.nan
    for j in range(len(values)):
        values[j] = (values[j] - low) / span


@compiled()
def scale_all_away(values):
    """`scale_away` of every row."""
    for row in values:
        scale_away(row)


@compiled()
def _is_unwanted(
    tokens,
    length,
    constants,
    opcode,
    argument,
    grammar,
    has_constants,
    points,
    excluded,
    ends,
    values,
    work,
    stack,
):
    """Whether the program is an excluded function, or a part of it takes the value of a smaller part.

    The second is what a computer algebra system would simplify: x1 + (x2 - x1), x2*(x1/x1). In a
    library with constants no part may have the same value everywhere either: x1/x1 is a constant.
    """
    arity = grammar.arity
    n_columns, n_points = points.shape
    for c in range(n_columns):
        copy_to(work[c], points[c])
    subtree_ends(tokens, length, arity, ends)
    n_later_constants = 0
    n_constants = 0
    for i in range(length):
        if opcode[tokens[i]] == CONSTANT:
            n_constants += 1
    for i in range(length - 1, -1, -1):
        if opcode[tokens[i]] == CONSTANT:
            n_later_constants += 1
        here = constants[n_constants - n_later_constants :]
        row = run_program(
            tokens[i : ends[i]], ends[i] - i, here, opcode, argument, work, n_points, stack, True
        )
        values[i] = work[row, :n_points]
        if arity[tokens[i]] > 0:
            if has_constants and _is_flat(values[i]):
                return True
            for k in range(i + 1, ends[i]):
                if _equal(values[i], values[k]):
                    return True
    if grammar.linear_scaling:
        scale_away(values[0])
    for e in range(excluded.shape[0]):
        if _is_excluded(values[0], excluded[e]):
            return True
    return False


@compiled(nogil=True)
def draw_datasets(
    n_variables, table, grammar, prior, domains, excluded, state, tokens, lengths, constants, X, y
):
    """Draw equations from the prior and evaluate each on random points.

    Parameters
    ----------
    n_variables : int
        Variables an equation may use; the arrays have as many columns as the library variables.
    table : TokenTable
    grammar : Grammar
    prior : PriorTable
    domains : ndarray of shape (n_domains, 3)
        Low, high and weight of the intervals inputs are drawn from; three times in four all
        variables share one.
    excluded : Exclusions
        What must not be drawn.
    state : ndarray of 4 uint64
    tokens : ndarray of shape (n_datasets, max_length), int64
    lengths : ndarray of shape (n_datasets,), int64
        Zeros; they stay so from the first data set on for which no equation is found.
    constants : ndarray of shape (n_datasets, max_constants), float64
    X : ndarray of shape (n_datasets, n_samples, n_columns), float64
        Zeros, as columns beyond `n_variables` stay.
    y : ndarray of shape (n_datasets, n_samples), float64
        Receives finite values that are not constant: the program's, but for the noise of `prior`.
    """
    opcode, argument, points = table.opcode, table.argument, excluded.points
    n_datasets, n_samples, n_columns = X.shape
    max_length = tokens.shape[1]
    kind = np.empty(_MAX_NODES, dtype=np.int64)
    first = np.empty(_MAX_NODES, dtype=np.int64)
    second = np.empty(_MAX_NODES, dtype=np.int64)
    ends = np.empty(max_length + 1, dtype=np.int64)
    values = np.empty((max_length, points.shape[1]))
    texts = np.zeros((_MAX_NODES, max_length), dtype=np.int64)
    sizes = np.zeros(_MAX_NODES, dtype=np.int64)
    # Before it is simplified a program may have more constants than it is to have in the end.
    values_of = np.zeros((_MAX_NODES, max_length if prior.has_constants else 0))
    n_constants = np.zeros(_MAX_NODES, dtype=np.int64)
    counters = np.zeros(5, dtype=np.int64)
    tree = np.zeros((4, max_length + 1), dtype=np.int64)
    stack, work = new_workspace(n_columns, max_length)
    b = n_trials = 0
    while b < n_datasets and n_trials < _MAX_TRIALS:
        n_trials += 1
        n_nodes = _grow(n_variables, prior, grammar, kind, first, second, state)
        if n_nodes == 0 or not _write(
            n_nodes, kind, first, second, prior, grammar, texts, sizes, values_of, n_constants, state
        ):
            continue
        length = sizes[0]
        tokens[b] = texts[0]
        if prior.has_constants:
            length = simplify(
                tokens[b], length, values_of[0], grammar.arity, prior.rewriting, grammar.linear_scaling
            )
        else:
            canonicalise(tokens[b], length, values_of[0], grammar.arity, prior.rewriting)
        if not is_valid(tokens[b], length, grammar, counters, tree):
            continue
        if is_among(skeleton(tokens[b], length), excluded.skeletons):
            continue
        constants[b] = 1.0
        constants[b, : counters[N_CONSTANTS]] = values_of[0, : counters[N_CONSTANTS]]
        if _is_unwanted(
            tokens[b],
            length,
            constants[b],
            opcode,
            argument,
            grammar,
            prior.has_constants,
            points,
            excluded.values,
            ends,
            values,
            work,
            stack,
        ):
            continue
        shared = uniform(state) < 0.75
        domain = choice(state, domains[:, 2])
        for c in range(n_variables):
            if not shared:
                domain = choice(state, domains[:, 2])
            low, high = domains[domain, 0], domains[domain, 1]
            for j in range(n_samples):
                X[b, j, c] = low + (high - low) * uniform(state)
        mean, usable = 0.0, True
        for start in range(0, n_samples, work.shape[1]):
            n_rows = min(work.shape[1], n_samples - start)
            for c in range(n_columns):
                for j in range(n_rows):
                    work[c, j] = X[b, start + j, c]
            row = run_program(tokens[b], length, constants[b], opcode, argument, work, n_rows, stack, True)
            for j in range(n_rows):
                value = work[row, j]
                if not abs(value) < 1e8:  # also false for NaN
                    usable = False
                y[b, start + j] = value
                mean += value / n_samples
        if not usable:
            continue
        variance = 0.0
        for j in range(n_samples):
            variance += (y[b, j] - mean) ** 2 / n_samples
        if not variance > 1e-10 * (mean * mean + 1e-6):
            continue
        if prior.noise_probability > 0.0 and uniform(state) < prior.noise_probability:
            scale = np.sqrt(variance) * log_uniform(state, prior.noise_low, prior.noise_high)
            for j in range(n_samples):
                y[b, j] += scale * normal(state)
        tokens[b, length:] = 0
        lengths[b] = length
        b += 1
        n_trials = 0
