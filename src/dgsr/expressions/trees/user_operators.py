"""User-defined operators: scalar Python functions that are used wherever a built-in operator is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.expressions.trees.trees import RESERVED

if TYPE_CHECKING:
    import sympy as sympy_module

#: Names of the operands in the tree of an operator.
OPERANDS = ("a", "b")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"x\d+")


@dataclass(frozen=True, eq=False)
class UserOperator:
    """One user-defined operator; see `Library.with_operator` for its parameters.

    It can be called with arrays: ``operator(a)`` or ``operator(a, b)`` returns the values of the compiled
    evaluator. Two operators are equal if their names, complexities and functions are equal; functions that
    were pickled by value are equal if their code and the values it encloses are.

    Parameters
    ----------
    name : str
    function : callable
    sympy : callable, optional
    complexity : int
    derivative : callable or tuple of callable, optional

    Raises
    ------
    ValueError
        If the name cannot be used, or the functions are not of one or two arguments.
    """

    name: str
    function: Callable[..., float]
    sympy: Callable[..., Any] | None = None
    complexity: int = 3
    derivative: Callable[..., float] | tuple[Callable[..., float], ...] | None = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"name={name!r} must be a word of letters, digits and _, such as 'gauss'.")
        if name.lower() in RESERVED or _VARIABLE.fullmatch(name):
            raise ValueError(f"name={name!r} is taken by the formulas' grammar; choose another.")
        is_whole = isinstance(self.complexity, (int, np.integer)) and not isinstance(self.complexity, bool)
        if not is_whole or self.complexity < 1:
            raise ValueError(
                f"complexity={self.complexity!r} of operator {name!r} must be at least 1 and whole."
            )
        if self.sympy is not None and not callable(self.sympy):
            raise ValueError(f"sympy={self.sympy!r} of operator {name!r} must be callable, or None.")
        arity = _n_arguments(self.function)
        if arity not in (1, 2):
            raise ValueError(
                f"function={self.function!r} of operator {name!r} must be a Python function of one or two "
                "floats; write one with def or lambda."
            )
        derivatives = self.derivatives
        if derivatives is not None and [_n_arguments(d) for d in derivatives] != [arity] * arity:
            wanted = "one function of one float" if arity == 1 else "a tuple of two functions of two floats"
            raise ValueError(f"derivative={self.derivative!r} of operator {name!r} must be {wanted}.")

    @property
    def arity(self) -> int:
        """Number of operands, 1 or 2."""
        return _n_arguments(self.function)

    @property
    def derivatives(self) -> tuple[Callable[..., float], ...] | None:
        """One function for each operand."""
        if self.derivative is None:
            return None
        return self.derivative if isinstance(self.derivative, tuple) else (self.derivative,)

    @property
    def address(self) -> int:
        """The address of the compiled operator in this process, which the first access compiles.

        The operator must exist as long as the address is used. ValueError if numba cannot compile one of the
        functions.
        """
        # The compiled operator is not a field, so that it is not pickled. If two threads compile, the first
        # result is used.
        loop = self.__dict__.get("_compiled")
        return (self.__dict__.setdefault("_compiled", self._compile()) if loop is None else loop).address

    def _compile(self) -> Any:
        # This is imported here, so that formulas can be read and written without loading numba.
        from dgsr.kernels.operators import compile_loop

        functions = None if self.derivatives is None else tuple(map(_python_function, self.derivatives))
        try:
            return compile_loop(_python_function(self.function), self.arity, functions)
        except Exception as error:  # numba raises many kinds
            lines = [line.strip() for line in str(error).splitlines()]
            reason = next((line for line in lines if line and not line.startswith("Failed in")), "")
            raise ValueError(
                f"Operator {self.name!r} cannot be compiled by numba ({reason}); use floats, math, numpy's "
                "functions of scalars and functions decorated with numba.njit, and return a float."
            ) from error

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the operator's values; arrays broadcast against each other."""
        from dgsr.kernels.operators import call_loop

        if len(arrays) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} arrays, not {len(arrays)}.")
        values = np.broadcast_arrays(*[np.asarray(array, dtype=np.float64) for array in arrays])
        left, right = (np.ascontiguousarray(values[i].ravel()) for i in (0, -1))
        result = np.empty(left.shape)
        call_loop(self.address, left, right, result)
        return result.reshape(values[0].shape)[()]

    def to_sympy(self, *arguments: sympy_module.Expr) -> sympy_module.Expr:
        """Return the operator's sympy expression, or an undefined function where the user gave none."""
        import sympy

        return (self.sympy or sympy.Function(self.name))(*arguments)

    def _key(self) -> tuple:
        functions = (self.function, *(self.derivatives or ()), self.sympy)
        return self.name, int(self.complexity), tuple(map(_identity, functions))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UserOperator):
            return NotImplemented
        try:
            return self is other or bool(self._key() == other._key())
        except ValueError:  # the functions enclose arrays, whose comparison is ambiguous
            return False

    def __hash__(self) -> int:
        return hash((self.name, int(self.complexity)))

    def __reduce__(self) -> tuple:
        return UserOperator, (self.name, self.function, self.sympy, self.complexity, self.derivative)

    def __deepcopy__(self, memo: dict) -> UserOperator:
        return self  # an operator cannot be changed, and a copy would be compiled again


def _python_function(function: Any) -> Any:
    """Return the Python function inside one that is decorated with numba.njit, other functions unchanged."""
    return getattr(function, "py_func", function)


def _n_arguments(function: Any) -> int:
    """Return the number of arguments without default; 0 for other kinds, and for no Python function."""
    function = _python_function(function)
    if not isinstance(function, FunctionType):
        return 0
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in positional) if len(positional) == len(parameters) else 0


def _identity(function: Any) -> Any:
    """Return a value that a function shares with its copies from pickles and with no other function."""
    function = _python_function(function)
    if not isinstance(function, FunctionType):
        return function
    enclosed = tuple(cell.cell_contents for cell in function.__closure__ or ())
    return function.__module__, function.__qualname__, function.__code__, function.__defaults__, enclosed
