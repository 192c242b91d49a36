"""The value and the derivatives of every operator.

Where an operand is infinite, the value is infinite or NaN (see `dgsr.kernels.evaluate` for the reason): where
IEEE arithmetic would return a finite number, as for 1/x, 2**-x and tanh(x), an added term 0*x makes it NaN.
An undefined value is NaN.

A user-defined operator is a compiled loop over samples (`compile_loop`) that is called through its address,
so that the kernels are compiled once for all operators.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from dgsr.kernels.compilation import compiled, contracted
from dgsr.kernels.elementary import exp, fill_sine

# The values of `dgsr.expressions.programs.library.Opcode`, as plain integers for compiled code.
VARIABLE, CONSTANT, ADD, SUB, MUL, DIV, EXP, LOG, SIN, COS = range(10)
SQRT, SQUARE, CUBE, POW, NEG, INV, TANH, ABS, ARCSIN, ARCCOS, USER_UNARY, USER_BINARY = range(10, 22)

# The `side` with which a compiled loop computes the value and not a derivative.
_VALUE = -1


@intrinsic
def _call_loop(typing_context, address, side, left, right, adjoint, result, n):
    """Call the loop of a user-defined operator (`compile_loop`) at its address."""
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
    """Return whether an operator has two operands."""
    return op <= DIV or op == POW or op == USER_BINARY


@contracted
def apply(op, address, left, right, out, n):
    """Write ``out[:n] = op(left[:n], right[:n])``, into another array than an operand.

    The arrays are float64 and contiguous. A unary operator does not read `right`. `address` is the token's
    entry in `TokenTable.argument`, which is read only for a user-defined operator.
    """
    # The conditions are nested, since two small jump tables are faster than a large one.
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


@contracted
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


@contracted
def differentiate(op, address, side, left, right, out, adjoint, result, n):
    """Write ``result[:n] = adjoint[:n] * d op(left, right) / d operand``, into another array than the others.

    This is one step of reverse-mode differentiation: `adjoint` is the derivative of a program's value by that
    of the operator. The operand is `left` for side 0 and `right` for side 1; the other arguments are those of
    `apply`. Where the operator has no derivative, the result is infinite or NaN, but that of abs at 0 is 0.
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


@contracted
def _differentiate_power(side, left, right, out, adjoint, result, n):
    for j in range(n):
        if side == 0:
            # right*out/left would be undefined at a base of 0.
            slope = 0.0 if right[j] == 0.0 else right[j] * left[j] ** (right[j] - 1.0)
        else:
            slope = 0.0 if left[j] == 0.0 and out[j] == 0.0 else out[j] * math.log(left[j])
        result[j] = adjoint[j] * slope


# User-defined operators --------------------------------------------------------------------------

# Step of central differences, relative to arguments above 1, at which rounding and curvature err alike.
_STEP = float(np.cbrt(np.finfo(float).eps))

# The decorator of functions that only compiled code calls. Without wrappers for Python and C they compile in
# two thirds of the time.
_inner = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compile_loop(function, arity, derivatives):
    """Compile a scalar function and its derivatives into a loop over rows.

    The result has the attribute `address`, that of a C function ``(side, left, right, adjoint, result, n)``,
    and must exist as long as the address is used.

    Parameters
    ----------
    function : Python function of `arity` floats
        Where an operand is not finite the value is NaN, whatever the function returns.
    arity : int
        1 or 2.
    derivatives : tuple of `arity` Python functions, or None
        Derivatives by each argument, as functions of the same arguments; None means central differences.

    Raises
    ------
    Exception
        If numba cannot compile a function; the class is numba's.
    TypeError
        If a function does not return a number.
    """
    value = _of_two(function, arity)
    if derivatives is None:
        slopes = [_difference(value, side) for side in range(arity)]
    else:
        slopes = [_of_two(derivative, arity) for derivative in derivatives]
    by_left, by_right = slopes[0], slopes[-1]  # a function of one operand has no second derivative

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
    """Write ``out = function(left, right)`` by the compiled loop at an address, for arrays (n,), float64."""
    _call_loop(address, _VALUE, left, right, left, out, len(out))


def _of_two(function, arity):
    """Return a compiled function of two floats; a function of one float ignores the second."""
    scalar = _inner(function)
    scalar.compile((types.float64,) * arity)
    for overload in scalar.overloads.values():
        returned = overload.signature.return_type
        if not isinstance(returned, (types.Float, types.Integer, types.Boolean)):
            raise TypeError(f"it returns {returned}, not a float")

    called = scalar if arity == 2 else _inner(lambda a, b: scalar(a))

    @_inner
    def of_two(a, b):
        try:
            return 1.0 * called(a, b)
        except Exception:  # the value is undefined
            return np.nan

    return of_two


def _difference(function, side):
    """Return the derivative of a function by central differences, one-sided at the border of its domain."""

    @_inner
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
