"""What every operator computes, and its derivatives: the one place for both.

A value that is infinite on the way is infinite or NaN in the end (see `dgsr.kernels.evaluate`): where
IEEE arithmetic would make a finite number of an infinite operand, as in 1/x, 2**-x and tanh(x), a term
0*x makes it NaN. What is undefined is NaN.

An operator of the user's own is one compiled loop over rows (`compile_loop`), called through its address: the
interpreter is compiled once, whatever operators there are.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from dgsr.kernels.compilation import compiled
from dgsr.kernels.elementary import exp, fill_sine

# As Opcode.
VARIABLE, CONSTANT, ADD, SUB, MUL, DIV, EXP, LOG, SIN, COS = range(10)
SQRT, SQUARE, CUBE, POW, NEG, INV, TANH, ABS, ARCSIN, ARCCOS, USER_UNARY, USER_BINARY = range(10, 22)

_compiled = compiled(error_model="numpy", fastmath={"contract"}, _nrt=False)

_VALUE = -1  # the side that stands for the value itself, not a derivative


@intrinsic
def _call_loop(typing_context, address, side, left, right, adjoint, result, n):
    """Call a loop that `compile_loop` made."""
    for array in (left, right, adjoint, result):
        if not (isinstance(array, types.Array) and array.layout == "C" and array.dtype == types.float64):
            raise TypingError(f"a row must be a contiguous float64 array, not {array}")
    signature = types.void(types.int64, types.int64, left, right, adjoint, result, types.int64)

    def generate(context, builder, signature, arguments):
        row, integer = ir.DoubleType().as_pointer(), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [integer, row, row, row, row, integer])
        loop = builder.inttoptr(arguments[0], kind.as_pointer())
        rows = [
            context.make_array(array)(context, builder, value).data
            for array, value in zip(signature.args[2:6], arguments[2:6])
        ]
        builder.call(loop, [arguments[1], *rows, arguments[6]])
        return context.get_dummy_value()

    return signature, generate


@compiled(forceinline=True)
def is_binary(op):
    """Whether an operator has two operands."""
    return op <= DIV or op == POW or op == USER_BINARY


@_compiled
def apply(op, address, left, right, out, n):
    """out[:n] = op(left[:n], right[:n]).

    Parameters
    ----------
    op : int
        Opcode of an operator.
    address : int
        The token's entry in `TokenTable.argument`; read for an operator of the user's own.
    left, right : ndarray of shape (at least n,), float64, contiguous
        Values of the first and the second operand; `right` is any row for an operator of one.
    out : ndarray of shape (at least n,), float64, contiguous
        None of the operands.
    n : int
    """
    # Nested: the compiler makes two small tables of jumps of it, faster than a large one.
    if op <= DIV:
        if op == ADD:
            for j in range(n):
                out[j] = left[j] + right[j]
        elif op == SUB:
            for j in range(n):
                out[j] = left[j] - right[j]
        elif op == MUL:
            for j in range(n):
                out[j] = left[j] * right[j]
        else:
            for j in range(n):
                out[j] = left[j] / right[j] + 0.0 * right[j]
    elif op <= COS:
        if op == EXP:
            for j in range(n):
                out[j] = exp(left[j])
        elif op == LOG:
            for j in range(n):
                out[j] = math.log(left[j])
        elif op == SIN:
            fill_sine(left, out, n, 0)
        else:
            fill_sine(left, out, n, 1)
    else:
        _apply_more(op, address, left, right, out, n)


@_compiled
def _apply_more(op, address, left, right, out, n):
    if op == SQRT:
        for j in range(n):
            out[j] = math.sqrt(left[j])
    elif op == SQUARE:
        for j in range(n):
            out[j] = left[j] * left[j]
    elif op == CUBE:
        for j in range(n):
            out[j] = left[j] * left[j] * left[j]
    elif op == POW:
        for j in range(n):
            out[j] = left[j] ** right[j] + 0.0 * left[j] + 0.0 * right[j]
    elif op == NEG:
        for j in range(n):
            out[j] = -left[j]
    elif op == INV:
        for j in range(n):
            out[j] = 1.0 / left[j] + 0.0 * left[j]
    elif op == TANH:
        for j in range(n):
            out[j] = math.tanh(left[j]) + 0.0 * left[j]
    elif op == ABS:
        for j in range(n):
            out[j] = abs(left[j])
    elif op == ARCSIN:
        for j in range(n):
            out[j] = math.asin(left[j])
    elif op == ARCCOS:
        for j in range(n):
            out[j] = math.acos(left[j])
    else:
        _call_loop(address, _VALUE, left, right, left, out, n)


@_compiled
def differentiate(op, address, side, left, right, out, adjoint, result, n):
    """result[:n] = adjoint[:n] * d op(left, right) / d operand: one step of reverse-mode differentiation.

    Parameters
    ----------
    op, address
        The same as for `apply`.
    side : int
        The operand: 0 is `left`, 1 is `right`.
    left, right, out : ndarray of shape (at least n,), float64, contiguous
        Operands and values of `apply`.
    adjoint : ndarray of shape (at least n,), float64, contiguous
        Derivative by the operator's value.
    result : ndarray of shape (at least n,), float64, contiguous
        Derivative by the operand; none of the other arrays. Where the operator has no derivative, it is
        infinite or NaN; that of abs at 0 is 0.
    n : int
    """
    if op == ADD or (op == SUB and side == 0):
        for j in range(n):
            result[j] = adjoint[j]
    elif op == SUB or op == NEG:
        for j in range(n):
            result[j] = -adjoint[j]
    elif op == MUL:
        other = right if side == 0 else left
        for j in range(n):
            result[j] = adjoint[j] * other[j]
    elif op == DIV:
        if side == 0:
            for j in range(n):
                result[j] = adjoint[j] / right[j]
        else:
            for j in range(n):
                result[j] = -adjoint[j] * (out[j] / right[j])
    elif op == EXP:
        for j in range(n):
            result[j] = adjoint[j] * out[j]
    elif op == LOG:
        for j in range(n):
            result[j] = adjoint[j] / left[j]
    elif op == SIN:
        fill_sine(left, result, n, 1)
        for j in range(n):
            result[j] *= adjoint[j]
    elif op == COS:
        fill_sine(left, result, n, 0)
        for j in range(n):
            result[j] *= -adjoint[j]
    elif op == SQRT:
        for j in range(n):
            result[j] = 0.5 * adjoint[j] / out[j]
    elif op == SQUARE:
        for j in range(n):
            result[j] = 2.0 * left[j] * adjoint[j]
    elif op == CUBE:
        for j in range(n):
            result[j] = 3.0 * left[j] * left[j] * adjoint[j]
    elif op == POW:
        _differentiate_power(side, left, right, out, adjoint, result, n)
    elif op == INV:
        for j in range(n):
            result[j] = -adjoint[j] * out[j] * out[j]
    elif op == TANH:
        for j in range(n):
            result[j] = adjoint[j] * (1.0 - out[j]) * (1.0 + out[j])
    elif op == ABS:
        for j in range(n):
            result[j] = adjoint[j] * np.sign(left[j])
    elif op == ARCSIN:
        for j in range(n):
            result[j] = adjoint[j] / math.sqrt((1.0 - left[j]) * (1.0 + left[j]))
    elif op == ARCCOS:
        for j in range(n):
            result[j] = -adjoint[j] / math.sqrt((1.0 - left[j]) * (1.0 + left[j]))
    else:
        _call_loop(address, side, left, right, adjoint, result, n)


@_compiled
def _differentiate_power(side, left, right, out, adjoint, result, n):
    for j in range(n):
        if side == 0:
            # Not right*out/left, which has no value at a base of 0.
            slope = 0.0 if right[j] == 0.0 else right[j] * left[j] ** (right[j] - 1.0)
        else:
            slope = 0.0 if left[j] == 0.0 and out[j] == 0.0 else out[j] * math.log(left[j])
        result[j] = adjoint[j] * slope


# Operators of the user's own ---------------------------------------------------------------------

# Step of central differences, by the size of the argument: the cube root of the rounding unit.
_STEP = 6e-6


def compile_loop(function, arity, derivatives):
    """Compile a scalar function into a loop over rows, its derivatives with it.

    Parameters
    ----------
    function : Python function of `arity` floats
        What it makes of an operand that is not finite does not matter: the value is NaN.
    arity : int
        1 or 2.
    derivatives : tuple of `arity` Python functions, or None
        Of the same arguments; central differences if None.

    Returns
    -------
    object with the attribute `address`
        Of a C function ``(side, left, right, adjoint, result, n)``; keep the object alive as long as the
        address is used.

    Raises
    ------
    Exception
        Of any kind, where numba cannot compile a function.
    TypeError
        If a function does not return a number.
    """
    value = _of_two(function, arity)
    if derivatives is None:
        by_left, by_right = _difference(value, 0), _difference(value, 1)
    else:
        by_left, by_right = _of_two(derivatives[0], arity), _of_two(derivatives[-1], arity)

    row = types.CPointer(types.float64)

    @cfunc(types.void(types.int64, row, row, row, row, types.int64), error_model="numpy")
    def loop(side, left, right, adjoint, result, n):
        if side == _VALUE:
            for j in range(n):
                result[j] = value(left[j], right[j]) + 0.0 * left[j] + 0.0 * right[j]
        elif side == 0:
            for j in range(n):
                result[j] = adjoint[j] * by_left(left[j], right[j])
        else:
            for j in range(n):
                result[j] = adjoint[j] * by_right(left[j], right[j])

    return loop


@compiled()
def call_loop(address, left, right, out):
    """Call a compiled loop for its values: out = function(left, right)."""
    _call_loop(address, _VALUE, left, right, left, out, len(out))


def _of_two(function, arity):
    """Compile a function as one of two floats; one of one float ignores the second."""
    scalar = njit(error_model="numpy")(function)
    scalar.compile((types.float64,) * arity)
    for overload in scalar.overloads.values():
        returned = overload.signature.return_type
        if not isinstance(returned, (types.Float, types.Integer, types.Boolean)):
            raise TypeError(f"it returns {returned}, not a float")

    # What raises an error is undefined.
    if arity == 2:

        @njit(error_model="numpy")
        def of_two(a, b):
            try:
                return 1.0 * scalar(a, b)
            except Exception:
                return np.nan

    else:

        @njit(error_model="numpy")
        def of_two(a, b):
            try:
                return 1.0 * scalar(a)
            except Exception:
                return np.nan

    return of_two


def _difference(function, side):
    """Central differences; those of one side where the other is outside the function's domain."""

    @njit(error_model="numpy")
    def difference(a, b):
        at = a if side == 0 else b
        step = _STEP * max(abs(at), 1.0)
        above, below = at + step, at - step
        upper = function(above, b) if side == 0 else function(a, above)
        lower = function(below, b) if side == 0 else function(a, below)
        if math.isfinite(upper) and math.isfinite(lower):
            return (upper - lower) / (above - below)
        middle = function(a, b)
        return (upper - middle) / (above - at) if math.isfinite(upper) else (middle - lower) / (at - below)

    return difference
