"""Trees of the prior as programs in the tokens of a library, in compiled code.

Without the token ``square`` powers are written as products, and in a library without constants integers are
quotients of sums of x1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.random import choice, integer, log_uniform, uniform
from dgsr.pretraining.prior_trees import INTEGER, MAX_NODES, NUMBER, VARIABLE, takes_two


class Subprograms(NamedTuple):
    """The programs of all subtrees of a tree, by node; the program of node 0 is that of the tree."""

    tokens: np.ndarray  # (MAX_NODES, max_length) int64
    lengths: np.ndarray  # (MAX_NODES,) int64
    constants: np.ndarray  # (MAX_NODES, most constants) float64
    n_constants: np.ndarray  # (MAX_NODES,) int64


@compiled()
def new_subprograms(max_length, has_constants):
    """Return empty `Subprograms`, with room for the constants that simplification removes."""
    return Subprograms(
        np.zeros((MAX_NODES, max_length), dtype=np.int64),
        np.zeros(MAX_NODES, dtype=np.int64),
        np.zeros((MAX_NODES, max_length if has_constants else 0)),
        np.zeros(MAX_NODES, dtype=np.int64),
    )


@allocation_free
def write_program(n_nodes, tree, prior, grammar, parts, state):
    """Write a tree as a program, which is stored at node 0 of `parts`.

    `state` is the state of the random number generator by which constants are drawn. The result is False if
    a subtree is too long, has too many constants, or would repeat a constant.
    """
    for node in range(n_nodes - 1, -1, -1):  # children before their parents
        parts.lengths[node] = 0
        parts.n_constants[node] = 0
        kind = tree.kind[node]
        if kind < 0:
            written = _write_leaf(node, tree, prior, parts, state)
        elif kind >= prior.n_operators:
            written = _write_power(node, tree.first[node], kind - prior.n_operators + 2, prior, parts, state)
        else:
            written = _write_operator(node, tree, prior, grammar, parts, state)
        if not written:
            return False
    return True


@allocation_free
def _write_leaf(node, tree, prior, parts, state):
    """Write a variable or a number."""
    value = tree.first[node]
    if tree.kind[node] == VARIABLE:
        return _append_token(parts, node, prior.first_variable + value)
    if prior.has_constants:
        is_given = tree.kind[node] == NUMBER
        parts.constants[node, 0] = float(value) if is_given else _draw_constant(prior, state)
        parts.n_constants[node] = 1
        return _append_token(parts, node, prior.rewriting.constant)
    return _append_integer(parts, node, value, prior)


@allocation_free
def _write_power(node, base, power, prior, parts, state):
    """Write a power; a base that would be repeated must not have constants."""
    once = prior.rewriting.cube >= 0 if power == 3 else prior.rewriting.square >= 0 and power != 5
    if parts.n_constants[base] > 0 and not once:
        return False
    fits = append_power(parts, node, base, power, prior)
    return fits and _join_constants(node, base, -1, False, prior, parts, state)


@allocation_free
def _write_operator(node, tree, prior, grammar, parts, state):
    """Write an operator and its subtrees; an integer multiple is written as a product or a repeated sum."""
    kind, first = tree.kind, tree.first
    operator, left, right = kind[node], first[node], tree.second[node]
    binary, is_pow = takes_two(operator, prior, grammar), operator == prior.rewriting.pow
    if binary and not prior.has_constants:
        if operator == prior.rewriting.mul and (kind[left] == INTEGER or kind[right] == INTEGER):
            value, factor = (first[left], right) if kind[left] == INTEGER else (first[right], left)
            length = parts.lengths[factor]
            if value * length + value - 1 <= 2 * value + 2 + length:
                return _append_repeated(parts, node, prior.rewriting.add, factor, value)
        if operator == prior.rewriting.div and kind[right] == INTEGER and first[right] == 1:
            return _append(parts, node, left)
    fits = _append_token(parts, node, operator) and _append(parts, node, left)
    if is_pow:
        fits = fits and _append_token(parts, node, prior.rewriting.constant)
    if binary:
        fits = fits and _append(parts, node, right)
    return fits and _join_constants(node, left, right if binary else -1, is_pow, prior, parts, state)


@allocation_free
def _join_constants(node, left, right, is_pow, prior, parts, state):
    """Write the constants of the operands and of an exponent; return False if there are too many."""
    constants = parts.constants
    n_left = parts.n_constants[left]
    n_right = parts.n_constants[right] if right >= 0 else 0
    if n_left + n_right + is_pow > constants.shape[1]:
        return False
    copy_to(constants[node], constants[left, :n_left])
    copy_to(constants[node, n_left:], constants[right, :n_right])
    if is_pow:
        constants[node, n_left] = prior.exponents[integer(state, len(prior.exponents))]
    parts.n_constants[node] = n_left + n_right + is_pow
    return True


@allocation_free
def _draw_constant(prior, state):
    """Return a random constant; the shares and bounds are those that `Prior.constants` states."""
    if not prior.log_uniform:
        low, high = prior.constant_range
        return low + (high - low) * uniform(state)
    sign = -1.0 if uniform(state) < 0.3 else 1.0
    if uniform(state) < 0.3:
        return sign * (1.0 + choice(state, prior.integer_weights))
    return sign * log_uniform(state, 0.1, 10.0)


# The functions below append tokens and return False where there is no room.


@allocation_free
def _append(parts, node, source):
    """Append the program of node `source` to the program of `node`."""
    at, length = parts.lengths[node], parts.lengths[source]
    if at + length > parts.tokens.shape[1]:
        return False
    copy_to(parts.tokens[node, at:], parts.tokens[source, :length])
    parts.lengths[node] = at + length
    return True


@allocation_free
def _append_token(parts, node, token):
    """Append a token to the program of `node`."""
    at = parts.lengths[node]
    if at == parts.tokens.shape[1]:
        return False
    parts.tokens[node, at] = token
    parts.lengths[node] = at + 1
    return True


@allocation_free
def _append_repeated(parts, node, operator, source, times):
    """Append f, f o f, f o (f o f), ... with `times` copies of the program of `source`."""
    fits = True
    for _ in range(times - 1):
        fits = fits and _append_token(parts, node, operator) and _append(parts, node, source)
    return fits and _append(parts, node, source)


@allocation_free
def _append_integer(parts, node, value, prior):
    """Append `value` as (x1 + ... + x1)/x1."""
    x1 = prior.first_variable
    fits = _append_token(parts, node, prior.rewriting.div)
    for _ in range(value - 1):
        fits = fits and _append_token(parts, node, prior.rewriting.add) and _append_token(parts, node, x1)
    return fits and _append_token(parts, node, x1) and _append_token(parts, node, x1)


@allocation_free
def append_power(parts, node, base, power, prior):
    """Append a power, 2 to 5, of the program of `base`, with the tokens square and cube if they exist."""
    square, cube, fits = prior.rewriting.square, prior.rewriting.cube, True
    if cube >= 0 and power == 3:
        fits = _append_token(parts, node, cube)
    elif square >= 0 and power != 3:
        if power == 5:
            fits = _append_token(parts, node, prior.rewriting.mul) and _append(parts, node, base)
        for _ in range(power // 2):
            fits = fits and _append_token(parts, node, square)
    else:
        return _append_repeated(parts, node, prior.rewriting.mul, base, power)
    return fits and _append(parts, node, base)
