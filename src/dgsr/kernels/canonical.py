"""One way of writing a program, out of the many that have the same values, in compiled code.

Sums and products are put in order; in a library with fitted constants, a program is also rid of
constants that others make idle, among them the scale and the offset that the fit puts around it.
What is left without the values of its constants is the *skeleton* of a program.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled

# What is fitted around a part of a program, so that it needs none of its own.
OFFSET, SCALE = 1, 2

# Rewriting a program ends after a few rounds; this stops it whatever the library.
_MAX_ROUNDS = 64


class Rewriting(NamedTuple):
    """What the rewriting must know of a library; token ids are -1 for what it lacks."""

    commutative: np.ndarray  # (n_tokens,) bool
    fitted: np.ndarray  # (n_tokens, 2, 4) int64: of each child, given what is fitted around the operator
    add: int
    sub: int
    mul: int
    div: int
    neg: int
    inv: int
    square: int
    cube: int
    pow: int
    constant: int


@compiled()
def subtree_ends(tokens, length, arity, ends):
    """Fill `ends` with where the subtree at each position ends (exclusive)."""
    for i in range(length - 1, -1, -1):
        end = i + 1
        for _ in range(arity[tokens[i]]):
            end = ends[end]
        ends[i] = end


@compiled()
def _is_before(tokens, a, a_end, b, b_end):
    """Whether span a sorts before span b: shorter first, then by tokens, variables first."""
    if a_end - a != b_end - b:
        return a_end - a < b_end - b
    for i in range(a_end - a):
        if tokens[a + i] != tokens[b + i]:
            return tokens[a + i] < tokens[b + i]
    return False


@compiled()
def _count(tokens, start, stop, token):
    """How often `token` stands from `start` to `stop` (exclusive)."""
    count = 0
    for i in range(start, stop):
        if tokens[i] == token:
            count += 1
    return count


@compiled()
def canonicalise(tokens, length, constants, arity, rewriting):
    """Sort the terms of every sum and the factors of every product, in place, as right-deep chains.

    Equal functions that differ only in the order of their operands become one program. Constants
    move with the terms they belong to; their values do not matter for the order.
    """
    constant = rewriting.constant
    ends = np.empty(length + 1, dtype=np.int64)
    starts = np.empty(length, dtype=np.int64)
    stops = np.empty(length, dtype=np.int64)
    scratch = np.empty(length, dtype=np.int64)
    values = np.empty(len(constants))
    for root in range(length - 1, -1, -1):
        operator = tokens[root]
        if not rewriting.commutative[operator]:
            continue
        subtree_ends(tokens, length, arity, ends)
        end = ends[root]
        # The terms: subtrees of the chain of the same operator.
        n_terms = 0
        i = root
        while i < end:
            if tokens[i] == operator:
                i += 1
            else:
                starts[n_terms], stops[n_terms] = i, ends[i]
                n_terms += 1
                i = ends[i]
        for a in range(1, n_terms):
            s, e = starts[a], stops[a]
            b = a - 1
            while b >= 0 and _is_before(tokens, s, e, starts[b], stops[b]):
                starts[b + 1], stops[b + 1] = starts[b], stops[b]
                b -= 1
            starts[b + 1], stops[b + 1] = s, e
        at = 0
        first_constant = _count(tokens, 0, root, constant)
        n_constants = 0
        for a in range(n_terms):
            if a < n_terms - 1:
                scratch[at] = operator
                at += 1
            k = _count(tokens, 0, starts[a], constant)
            for i in range(starts[a], stops[a]):
                scratch[at] = tokens[i]
                at += 1
                if tokens[i] == constant:
                    values[n_constants] = constants[k]
                    n_constants += 1
                    k += 1
        copy_to(tokens[root:end], scratch[:at])
        copy_to(constants[first_constant:], values[:n_constants])


@compiled()
def _delete(tokens, length, constants, at, rewriting):
    """Delete the token at `at`, with its value if it is a constant; return the new length."""
    if tokens[at] == rewriting.constant:
        k = _count(tokens, 0, at, rewriting.constant)
        for i in range(k, len(constants) - 1):
            constants[i] = constants[i + 1]
    for i in range(at, length - 1):
        tokens[i] = tokens[i + 1]
    return length - 1


@compiled()
def _rotate(array, start, middle, stop):
    """Let two neighbouring spans of an array change places."""
    for low, high in ((start, middle - 1), (middle, stop - 1), (start, stop - 1)):
        while low < high:
            array[low], array[high] = array[high], array[low]
            low += 1
            high -= 1


@compiled()
def _swap(tokens, constants, start, middle, stop, rewriting):
    """Let two neighbouring spans of a program change places, with their constants."""
    k = _count(tokens, 0, start, rewriting.constant)
    n_first = _count(tokens, start, middle, rewriting.constant)
    n_second = _count(tokens, middle, stop, rewriting.constant)
    _rotate(tokens, start, middle, stop)
    _rotate(constants, k, k + n_first, k + n_first + n_second)


@compiled()
def _constants_first(tokens, length, constants, arity, rewriting, ends):
    """Write f - c as -c + f and f/c as (1/c)*f, in place."""
    for i in range(length):
        if tokens[i] == rewriting.sub and rewriting.add >= 0:
            operator = rewriting.add
        elif tokens[i] == rewriting.div and rewriting.mul >= 0:
            operator = rewriting.mul
        else:
            continue
        subtree_ends(tokens, length, arity, ends)
        second = ends[i + 1]
        if tokens[second] != rewriting.constant:
            continue
        tokens[i] = operator
        _swap(tokens, constants, i + 1, second, second + 1, rewriting)
        k = _count(tokens, 0, i, rewriting.constant)
        constants[k] = -constants[k] if operator == rewriting.add else 1.0 / constants[k]


@compiled()
def _join(tokens, length, constants, arity, rewriting, ends):
    """Join two constants of one sum or product, and two equal factors; return the new length.

    The program must be in canonical order: there they are neighbours.
    """
    subtree_ends(tokens, length, arity, ends)
    constant = rewriting.constant
    for i in range(length - 2):
        operator = tokens[i]
        if not rewriting.commutative[operator]:
            continue
        a, b = i + 1, ends[i + 1]
        in_chain = tokens[b] == operator
        b = b + 1 if in_chain else b
        inverse = rewriting.sub if operator == rewriting.add else rewriting.div
        at = b + 1 if tokens[b] == inverse else b  # c + (d - f) and c*(d/f) too
        if tokens[a] == constant and tokens[at] == constant:
            if at == b and not in_chain:
                continue  # an operator of constants alone: the grammar refuses it
            k = _count(tokens, 0, a, constant)
            if operator == rewriting.add:
                constants[k + 1] += constants[k]
            else:
                constants[k + 1] *= constants[k]
            length = _delete(tokens, length, constants, a, rewriting)
            return _delete(tokens, length, constants, i, rewriting)
        if operator != rewriting.mul or rewriting.square < 0 or _count(tokens, a, ends[a], constant) > 0:
            continue
        # a*a is square(a), a*square(a) is cube(a): b goes, and so does an operator.
        power = rewriting.square
        start = b
        if rewriting.cube >= 0 and tokens[b] == rewriting.square:
            power, start = rewriting.cube, b + 1
        if ends[start] - start != ends[a] - a:
            continue
        equal = True
        for j in range(ends[a] - a):
            equal = equal and tokens[a + j] == tokens[start + j]
        if equal:
            stop = ends[b]
            # mul a mul b rest -> mul power a rest; mul a b -> power a
            if in_chain:
                for j in range(ends[a] - 1, a - 1, -1):
                    tokens[j + 1] = tokens[j]
                tokens[a] = power
                gap = ends[a] + 1
            else:
                tokens[i] = power
                gap = ends[a]
            for j in range(stop, length):
                tokens[gap + j - stop] = tokens[j]
            return length - (stop - gap)
    return length


@compiled()
def _strip(tokens, length, constants, arity, rewriting, ends, fitted):
    """Take away one part of a program that the fit of scale and offset makes idle; return the new length.

    `fitted` is scratch: for each position, what the fit supplies around it.
    """
    subtree_ends(tokens, length, arity, ends)
    constant = rewriting.constant
    fitted[0] = OFFSET | SCALE
    for i in range(length):
        token = tokens[i]
        if arity[token] == 0:
            continue
        if token == rewriting.neg and fitted[i] & SCALE:
            return _delete(tokens, length, constants, i, rewriting)
        first = i + 1
        fitted[first] = rewriting.fitted[token, 0, fitted[i]]
        if arity[token] == 1:
            continue
        second = ends[first]
        fitted[second] = rewriting.fitted[token, 1, fitted[i]]
        if token == rewriting.pow and tokens[second] != constant:  # the scale of f in f^g is none of all
            fitted[first] = 0
        if token == rewriting.add or token == rewriting.sub:
            idle = fitted[i] & OFFSET
        else:
            idle = (token == rewriting.mul or token == rewriting.div) and fitted[i] & SCALE
        if not idle:
            continue
        if tokens[second] == constant:
            length = _delete(tokens, length, constants, second, rewriting)
            return _delete(tokens, length, constants, i, rewriting)
        if tokens[first] == constant:
            if token == rewriting.div:  # 1/f, of whatever scale
                if rewriting.inv < 0:
                    continue
                tokens[i] = rewriting.inv
                return _delete(tokens, length, constants, first, rewriting)
            if token == rewriting.sub and not fitted[i] & SCALE:  # c - f is -f, of whatever offset
                if rewriting.neg >= 0:
                    tokens[i] = rewriting.neg
                    return _delete(tokens, length, constants, first, rewriting)
                if rewriting.mul >= 0:
                    tokens[i] = rewriting.mul
                    constants[_count(tokens, 0, first, constant)] = -1.0
                    return length
                continue
            length = _delete(tokens, length, constants, first, rewriting)
            return _delete(tokens, length, constants, i, rewriting)
        if token == rewriting.mul and rewriting.div >= 0:
            # f*(c/g) and (c/g)*f are f/g, of whatever scale
            at = second
            if tokens[first] == rewriting.div and tokens[first + 1] == constant:
                _swap(tokens, constants, first, second, ends[i], rewriting)
                at = first + ends[i] - second
            if tokens[at] == rewriting.div and tokens[at + 1] == constant:
                tokens[i] = rewriting.div
                length = _delete(tokens, length, constants, at + 1, rewriting)
                return _delete(tokens, length, constants, at, rewriting)
    return length


@compiled()
def skeleton(tokens, length):
    """Hash of the tokens of a program, whatever the values of its constants: uint64 (FNV-1a)."""
    value = np.uint64(14695981039346656037)
    for i in range(length):
        value = (value ^ np.uint64(tokens[i] + 1)) * np.uint64(1099511628211)
    return value


@compiled()
def simplify(tokens, length, constants, arity, rewriting, linear_scaling):
    """Rewrite a program of a library with constants, in place; return its length.

    Parameters
    ----------
    tokens : ndarray, int64
    length : int
    constants : ndarray of float64
        At least as many as the program has; those that go away leave their places to the next.
    arity : ndarray of int64
    rewriting : Rewriting
    linear_scaling : bool
        Whether scale and offset are taken away.
    """
    ends = np.empty(length + 1, dtype=np.int64)
    fitted = np.zeros(length + 1, dtype=np.int64)
    for _ in range(_MAX_ROUNDS):
        before = skeleton(tokens, length)
        n_before = length
        _constants_first(tokens, length, constants, arity, rewriting, ends)
        canonicalise(tokens, length, constants, arity, rewriting)
        length = _join(tokens, length, constants, arity, rewriting, ends)
        if length == n_before and linear_scaling:
            length = _strip(tokens, length, constants, arity, rewriting, ends, fitted)
        if skeleton(tokens, length) == before:
            break
    return length


@compiled()
def skeletons(tokens, lengths, constants, arity, rewriting, linear_scaling):
    """Hashes of the skeletons of many programs, which are simplified in place: a ndarray of uint64."""
    result = np.empty(len(lengths), dtype=np.uint64)
    for b in range(len(lengths)):
        length = simplify(tokens[b], lengths[b], constants[b], arity, rewriting, linear_scaling)
        result[b] = skeleton(tokens[b], length)
    return result


@compiled()
def is_among(value, ordered):
    """Whether `value` is in an ascending array."""
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low < len(ordered) and ordered[low] == value
