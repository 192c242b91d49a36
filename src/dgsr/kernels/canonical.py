"""A canonical form of programs, in compiled code.

The terms of sums and the factors of products are sorted. In a library with fitted constants, redundant
constants are removed, too, such as a scale or an offset of the whole program, which the fit puts around it
anyway. The *skeleton* of a program is its tokens without the values of its constants.

In this file `tokens` and `constants` are rows of `Programs`, which are changed in place; `arity` belongs to
the library.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import allocation_free, compiled

#: Bits of a subprogram around which an offset, or a scale, is fitted, so that its own would be redundant.
OFFSET, SCALE = 1, 2


class Rewriting(NamedTuple):
    """The properties of a library that rewriting needs; the token id of a missing operator is -1."""

    commutative: np.ndarray  # (n_tokens,) bool
    fitted: np.ndarray  # (n_tokens, 2, 4) int64: bits for each child, given those of the operator
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


@allocation_free
def subtree_ends(tokens, length, arity, ends):
    """Write the position after the last token of the subtree at each position into `ends`, int64."""
    for i in range(length - 1, -1, -1):
        end = i + 1
        for _ in range(arity[tokens[i]]):
            end = ends[end]
        ends[i] = end


@allocation_free
def _is_before(tokens, a, a_end, b, b_end):
    """Return whether the tokens from `a` to `a_end` sort before those from `b` to `b_end`.

    The shorter span sorts first; of two equally long spans, the one with the lower token at the first
    difference.
    """
    if a_end - a != b_end - b:
        return a_end - a < b_end - b
    for i in range(a_end - a):
        if tokens[a + i] != tokens[b + i]:
            return tokens[a + i] < tokens[b + i]
    return False


@allocation_free
def _count(tokens, start, stop, token):
    """Return how often `token` occurs from `start` to `stop`, exclusive."""
    count = 0
    for i in range(start, stop):
        if tokens[i] == token:
            count += 1
    return count


@compiled()
def canonicalise(tokens, length, constants, arity, rewriting):
    """Sort the terms of every sum and the factors of every product into right-deep chains.

    Programs that differ only in the order of operands become equal. Constants move with their terms, and
    their values do not affect the order.
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
        # The terms are the subtrees below the chain of the same operator.
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


@allocation_free
def _delete(tokens, length, constants, at, rewriting):
    """Delete the token at `at`, and its value if it is a constant; return the new length."""
    if tokens[at] == rewriting.constant:
        k = _count(tokens, 0, at, rewriting.constant)
        for i in range(k, len(constants) - 1):
            constants[i] = constants[i + 1]
    for i in range(at, length - 1):
        tokens[i] = tokens[i + 1]
    return length - 1


@allocation_free
def _rotate(array, start, middle, stop):
    """Exchange two neighbouring spans of an array."""
    for low, high in ((start, middle - 1), (middle, stop - 1), (start, stop - 1)):
        while low < high:
            array[low], array[high] = array[high], array[low]
            low += 1
            high -= 1


@allocation_free
def _swap(tokens, constants, start, middle, stop, rewriting):
    """Exchange two neighbouring spans of a program, with their constants."""
    k = _count(tokens, 0, start, rewriting.constant)
    n_first = _count(tokens, start, middle, rewriting.constant)
    n_second = _count(tokens, middle, stop, rewriting.constant)
    _rotate(tokens, start, middle, stop)
    _rotate(constants, k, k + n_first, k + n_first + n_second)


@allocation_free
def _constants_first(tokens, length, constants, arity, rewriting, ends):
    """Write f - c as -c + f and f/c as (1/c)*f."""
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


@allocation_free
def _join(tokens, length, constants, arity, rewriting, ends):
    """Join two constants of one sum or product, or two equal factors; return the new length.

    The program must be sorted, so that the two are neighbours.
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
        at = b + 1 if tokens[b] == inverse else b  # the rule holds for c + (d - f) and c*(d/f), too
        if tokens[a] == constant and tokens[at] == constant:
            if at == b and not in_chain:
                continue  # the grammar forbids an operator whose operands are all constants
            k = _count(tokens, 0, a, constant)
            if operator == rewriting.add:
                constants[k + 1] += constants[k]
            else:
                constants[k + 1] *= constants[k]
            length = _delete(tokens, length, constants, a, rewriting)
            return _delete(tokens, length, constants, i, rewriting)
        if operator != rewriting.mul or rewriting.square < 0 or _count(tokens, a, ends[a], constant) > 0:
            continue
        # a*a becomes square(a), and a*square(a) becomes cube(a): b and one operator are deleted.
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


@allocation_free
def _strip(tokens, length, constants, arity, rewriting, ends, fitted):
    """Remove one part of a program that the fit of scale and offset makes redundant; return the new length.

    `fitted`, int64, is a scratch array for the bits OFFSET and SCALE of the subtree at each position.
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
        if token == rewriting.pow and tokens[second] != constant:
            fitted[first] = 0  # a scale of f in f^g is no scale of the power
        if token == rewriting.add or token == rewriting.sub:
            redundant = fitted[i] & OFFSET
        else:
            redundant = (token == rewriting.mul or token == rewriting.div) and fitted[i] & SCALE
        if not redundant:
            continue
        if tokens[second] == constant:
            length = _delete(tokens, length, constants, second, rewriting)
            return _delete(tokens, length, constants, i, rewriting)
        if tokens[first] == constant:
            if token == rewriting.div:  # the scale of 1/f is fitted
                if rewriting.inv < 0:
                    continue
                tokens[i] = rewriting.inv
                return _delete(tokens, length, constants, first, rewriting)
            if token == rewriting.sub and not fitted[i] & SCALE:  # the offset of -f is fitted
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
            # f*(c/g) and (c/g)*f are f/g, whose scale is fitted
            at = second
            if tokens[first] == rewriting.div and tokens[first + 1] == constant:
                _swap(tokens, constants, first, second, ends[i], rewriting)
                at = first + ends[i] - second
            if tokens[at] == rewriting.div and tokens[at + 1] == constant:
                tokens[i] = rewriting.div
                length = _delete(tokens, length, constants, at + 1, rewriting)
                return _delete(tokens, length, constants, at, rewriting)
    return length


@allocation_free
def skeleton(tokens, length):
    """Return a hash of the tokens of a program, uint64, which does not depend on the values of its constants.

    References
    ----------
    Fowler, Noll & Vo, 1991 (the variant FNV-1a).
    """
    value = np.uint64(14695981039346656037)
    for i in range(length):
        value = (value ^ np.uint64(tokens[i] + 1)) * np.uint64(1099511628211)
    return value


@compiled()
def simplify(tokens, length, constants, arity, rewriting, linear_scaling):
    """Rewrite a program of a library with constants into its canonical form; return its length.

    The values of constants that remain move to the front of `constants`. With `linear_scaling`, a scale and
    an offset of the whole program are removed.
    """
    ends = np.empty(length + 1, dtype=np.int64)
    fitted = np.zeros(length + 1, dtype=np.int64)
    for _ in range(2 * length):  # of two rounds, one deletes a token or is the last
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
    """Simplify many programs in place; return the hashes of their skeletons, shape (n_programs,), uint64."""
    result = np.empty(len(lengths), dtype=np.uint64)
    for b in range(len(lengths)):
        length = simplify(tokens[b], lengths[b], constants[b], arity, rewriting, linear_scaling)
        result[b] = skeleton(tokens[b], length)
    return result


@allocation_free
def is_among(value, ordered):
    """Return whether `value` is in an ascending array."""
    at = np.searchsorted(ordered, value)
    return at < len(ordered) and ordered[at] == value
