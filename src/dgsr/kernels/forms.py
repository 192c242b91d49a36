"""Whole programs from the unknown functions of a form, which are put where the form applies them.

The functions of one program stand in a *forest*: a row of tokens in prefix order with a ``const`` token for
each constant of the form, two for the scale and the offset of each function, and then one tree for each
function, whose variables x1, x2 .. are its arguments. `dgsr.expressions.programs.form` reads forms and has
the inverse of `fill`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.growth import subtree_end

#: Kinds of instructions: a token, a constant of the form by its number, a number as the form has it, and the
#: application of an unknown function.
TOKEN, NAMED, NUMBER, CALL = range(4)
# Origin of a token that is no constant.
_NO_CONSTANT = -2
# Entries of the counters of a program that is written.
_LENGTH, _N_CONSTANTS = range(2)


class FormCode(NamedTuple):
    """A form as the instructions that write it in prefix order, those of its arguments last."""

    kinds: np.ndarray  # (n_instructions,) int64
    # (n_instructions,) int64: a token, or the index of a constant, a number or an application
    values: np.ndarray
    numbers: np.ndarray  # (n_numbers,) float64
    functions: np.ndarray  # (n_applications,) int64: the function that is applied
    # (n_applications, most_arguments + 1) int64: where the instructions of each argument begin and end
    arguments: np.ndarray
    n_instructions: int  # those of the form itself
    n_named: int  # constants of the form
    n_functions: int


class Tokens(NamedTuple):
    """The tokens that a form is written with."""

    arity: np.ndarray  # (n_tokens,) int64
    constant: int
    add: int
    mul: int
    first_variable: int


@compiled()
def fill(forests, around, code, tokens, filled, origins):
    """Write the program that each forest makes of a form; return a mask of those that have room.

    Parameters
    ----------
    forests : Programs
    around : ndarray of shape (n_programs, n_functions, 2), bool
        Whether each function is multiplied by its scale, and its offset is added to it.
    code : FormCode
    tokens : Tokens
    filled : Programs
        Receives the programs; one without room becomes x1.
    origins : ndarray of shape (n_programs, max_constants), int64
        Receives the index in its forest of each constant of a program, -1 for numbers of the form.
    """
    has_room = np.ones(len(forests.lengths), dtype=np.bool_)
    begins = np.zeros(code.n_functions + 1, dtype=np.int64)
    firsts = np.zeros(code.n_functions + 1, dtype=np.int64)
    counters = np.zeros(2, dtype=np.int64)
    for b in range(len(forests.lengths)):
        _find_trees(forests.tokens[b], code, tokens, begins, firsts)
        counters[:] = 0
        for i in range(code.n_instructions):
            if code.kinds[i] == CALL:
                call = code.values[i]
                f = code.functions[call]
                at = code.n_named + 2 * f
                if around[b, f, 1]:
                    _append(tokens.add, _NO_CONSTANT, 0.0, b, counters, filled, origins)
                if around[b, f, 0]:
                    _append(tokens.mul, _NO_CONSTANT, 0.0, b, counters, filled, origins)
                    _append(tokens.constant, at, forests.constants[b, at], b, counters, filled, origins)
                _apply(forests, b, begins[f], begins[f + 1], firsts[f], call, code, tokens, counters,
                       filled, origins)  # fmt: skip
                if around[b, f, 1]:
                    at += 1
                    _append(tokens.constant, at, forests.constants[b, at], b, counters, filled, origins)
            else:
                _instruct(i, forests, b, code, tokens, counters, filled, origins)
        length, n_constants = counters[_LENGTH], counters[_N_CONSTANTS]
        if length > filled.tokens.shape[1] or n_constants > filled.constants.shape[1]:
            has_room[b] = False
            filled.tokens[b] = 0
            filled.tokens[b, 0] = tokens.first_variable
            length = 1
            origins[b] = -1
        filled.lengths[b] = length
    return has_room


@allocation_free
def _find_trees(row, code, tokens, begins, firsts):
    """Write where the tree of each function begins in a forest, and the number of constants before it."""
    at = k = code.n_named + 2 * code.n_functions
    for f in range(code.n_functions):
        begins[f], firsts[f] = at, k
        end = subtree_end(row, at, tokens.arity)
        for i in range(at, end):
            k += row[i] == tokens.constant
        at = end
    begins[code.n_functions] = at


@allocation_free
def _apply(forests, b, begin, end, k, call, code, tokens, counters, filled, origins):
    """Append the tree of a function with the arguments of an application in the place of its variables."""
    for i in range(begin, end):
        token = forests.tokens[b, i]
        if token >= tokens.first_variable:
            argument = token - tokens.first_variable
            for j in range(code.arguments[call, argument], code.arguments[call, argument + 1]):
                _instruct(j, forests, b, code, tokens, counters, filled, origins)
        elif token == tokens.constant:
            _append(token, k, forests.constants[b, k], b, counters, filled, origins)
            k += 1
        else:
            _append(token, _NO_CONSTANT, 0.0, b, counters, filled, origins)


@allocation_free
def _instruct(i, forests, b, code, tokens, counters, filled, origins):
    """Append what one instruction writes that is no application."""
    kind, value = code.kinds[i], code.values[i]
    if kind == TOKEN:
        _append(value, _NO_CONSTANT, 0.0, b, counters, filled, origins)
    elif kind == NAMED:
        _append(tokens.constant, value, forests.constants[b, value], b, counters, filled, origins)
    else:
        _append(tokens.constant, -1, code.numbers[value], b, counters, filled, origins)


@allocation_free
def _append(token, origin, value, b, counters, filled, origins):
    """Append a token to program `b`, a constant with its value; one without room is only counted."""
    length, n_constants = counters[_LENGTH], counters[_N_CONSTANTS]
    if length < filled.tokens.shape[1]:
        filled.tokens[b, length] = token
    counters[_LENGTH] += 1
    if origin != _NO_CONSTANT:
        if n_constants < filled.constants.shape[1]:
            filled.constants[b, n_constants] = value
            origins[b, n_constants] = origin
        counters[_N_CONSTANTS] += 1
