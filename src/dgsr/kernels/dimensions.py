"""Counts of violations of the rules of dimensions in programs, in compiled code.

A program is read from its last token to its first with a stack, as in `dgsr.kernels.evaluate`; the stack
holds the dimensions of subprograms instead of their values.
"""

from __future__ import annotations

import numpy as np

from dgsr.kernels import operators
from dgsr.kernels.compilation import allocation_free, compiled

# Largest difference of two exponents that counts as rounding.
_ROUNDING = 1e-6


@compiled()
def count_violations(
    programs, opcode, argument, exponents, is_known, carry_units, by_value, needed, stack, counts
):
    """Count the violations of the rules of dimensions in every program.

    There are four rules: terms of a sum have one dimension; exponents, and arguments of functions other than
    roots, squares, cubes, inverses and absolute values, are dimensionless; the base of a power whose exponent
    is not a number is dimensionless; and the whole has the required dimension. A subprogram whose dimension
    is open, because it is a column of unknown unit or has a constant that may carry any unit, violates no
    rule, since it can have the required dimension.

    Parameters
    ----------
    programs : Programs
    opcode, argument : ndarray
        See `Library.table`.
    exponents : ndarray of shape (n_columns, n_dimensions), float64
        Exponents of the base dimensions of every column.
    is_known : ndarray of shape (n_columns,), bool
        False where the unit of a column is unknown.
    carry_units : bool
        Whether constants may carry units. Otherwise they have no dimension.
    by_value : bool
        Whether constants that are exponents are fitted, so that m**1.5 has the dimension of length**1.5.
        Otherwise m**c is open where constants may carry units, and else violates a rule.
    needed : ndarray of shape (n_dimensions,), float64, or of shape (0,)
        Required dimension of the whole; with an empty array any dimension is allowed.
    stack : ndarray of shape (at least max_length // 2 + 2, n_dimensions), float64
        Scratch array for the dimensions of subprograms.
    counts : ndarray of shape (n_programs,), int64
        Receives the numbers of violations.
    """
    tokens, lengths, constants = programs
    is_open = np.zeros(len(stack), dtype=np.bool_)
    number = np.zeros(len(stack), dtype=np.int64)  # index of a subprogram that is a constant, else -1
    for b in range(len(lengths)):
        next_constant = 0
        for i in range(lengths[b]):
            if opcode[tokens[b, i]] == operators.CONSTANT:
                next_constant += 1
        top, count = -1, 0
        for i in range(lengths[b] - 1, -1, -1):
            op = opcode[tokens[b, i]]
            if op == operators.VARIABLE:
                top += 1
                column = argument[tokens[b, i]]
                is_open[top], number[top] = not is_known[column], -1
                _add(stack[top], exponents[column], 0.0, 1.0)
                continue
            if op == operators.CONSTANT:
                top += 1
                next_constant -= 1
                is_open[top], number[top] = carry_units, next_constant
                _multiply(stack[top], 0.0)
                continue
            first = stack[top]
            first_is_open, first_has_none = is_open[top], _has_none(first)
            if not operators.is_binary(op):
                if op == operators.SQRT:
                    _multiply(first, 0.5)
                elif op == operators.SQUARE:
                    _multiply(first, 2.0)
                elif op == operators.CUBE:
                    _multiply(first, 3.0)
                elif op == operators.INV:
                    _multiply(first, -1.0)
                elif op != operators.NEG and op != operators.ABS:
                    count += not (first_is_open or first_has_none)
                    _multiply(first, 0.0)
                    is_open[top] = False
                number[top] = -1
                continue
            top -= 1
            second = stack[top]  # receives the result
            second_is_open, second_has_none = is_open[top], _has_none(second)
            exponent = number[top]
            number[top] = -1
            if op == operators.ADD or op == operators.SUB:
                is_open[top] = first_is_open and second_is_open
                count += not (first_is_open or second_is_open or _are_alike(first, second))
                if second_is_open:
                    _add(second, first, 0.0, 1.0)
            elif op == operators.MUL or op == operators.DIV:
                _add(second, first, 1.0 if op == operators.MUL else -1.0, 1.0)
                is_open[top] = first_is_open or second_is_open
            elif op == operators.POW and exponent >= 0:
                if by_value:
                    _add(second, first, 0.0, constants[b, exponent])
                    is_open[top] = first_is_open
                else:
                    count += not (first_is_open or first_has_none or carry_units)
                    _multiply(second, 0.0)
                    is_open[top] = first_is_open or (carry_units and not first_has_none)
            else:
                count += not (first_is_open or first_has_none)
                count += not (second_is_open or second_has_none)
                _multiply(second, 0.0)
                is_open[top] = False
        if len(needed) > 0 and not is_open[0]:
            count += not _are_alike(stack[0], needed)
        counts[b] = count


@allocation_free
def _multiply(dimension, factor):
    for d in range(len(dimension)):
        # A dimension of an earlier program may have overflowed, and infinity times 0 is not 0.
        dimension[d] = factor * dimension[d] if factor != 0.0 else 0.0


@allocation_free
def _add(second, first, own, factor):
    """Write ``second = own * second + factor * first``."""
    for d in range(len(second)):
        kept = own * second[d] if own != 0.0 else 0.0
        second[d] = kept + (factor * first[d] if factor != 0.0 else 0.0)


@allocation_free
def _has_none(dimension):
    for d in range(len(dimension)):
        if not abs(dimension[d]) <= _ROUNDING:
            return False
    return True


@allocation_free
def _are_alike(first, second):
    for d in range(len(first)):
        if not abs(first[d] - second[d]) <= _ROUNDING:
            return False
    return True
