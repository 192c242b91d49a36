"""Values of syntax trees: on arrays, equal to those of the compiled evaluator, and to many digits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dgsr.expressions.trees.trees import COMMON_FUNCTIONS, FUNCTIONS, SHORT_NAMES, Tree, as_float, is_number
from dgsr.expressions.trees.user_operators import UserOperator

Functions = Mapping[str, UserOperator]

#: Positions of the operands that an operator may hide, because its value is finite where they are infinite.
HIDDEN_OPERANDS = {"div": (1,), "pow": (0, 1), "exp": (0,), "tanh": (0,)}

#: Operators that Python applies in the same way to arrays, sympy expressions, mpmath numbers and tensors.
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "abs": abs,
    "square": lambda a: a * a,
    "cube": lambda a: a * a * a,
}
_ON_ARRAYS: dict[str, Callable[..., Any]] = {
    **ARITHMETIC,
    "div": np.true_divide,  # Python's own raises an error for floats
    "pow": np.power,  # np.float_power would round squares differently from x * x
    "cot": lambda a: 1.0 / np.tan(a),
    **{name: getattr(np, name) for name in COMMON_FUNCTIONS},
}
#: Largest absolute decimal exponent of a number; an evaluation in mpmath ends there, since exp(exp(x)) would
#: take forever.
MAX_EXPONENT = 400


def evaluate(
    tree: Tree, variables: Mapping[str, Any], module: Any = np, functions: Functions | None = None
) -> Any:
    """Evaluate a tree; a tree without variables gives a number.

    Parameters
    ----------
    tree : tree
    variables : mapping of str to ndarray or mpf
    module : module or mpmath context
        `numpy`, for arrays of float64 (undefined is NaN or inf, silently), or an mpmath context such as
        ``mpmath.mp``, for scalars at its precision.
    functions : mapping of str to UserOperator, optional
        User-defined operators, for arrays.

    Raises
    ------
    ArithmeticError
        In an mpmath context, where a part is undefined, not real, beyond 1e400, or a user-defined operator,
        which has values in float64 only.
    ValueError
        If a variable or a function has no value.
    """
    if module is np:
        with np.errstate(all="ignore"):
            return _on_arrays(tree, variables, functions or {}, is_strict=False)
    return _precisely(tree, variables, module)


def evaluate_strictly(
    tree: Tree, variables: Mapping[str, np.ndarray], functions: Functions | None = None
) -> Any:
    """Evaluate a tree on arrays as the compiled evaluator does; see `evaluate`.

    If an intermediate value is infinite, the result is not finite: 1/(1/x) has no value where x is 0.
    """
    with np.errstate(all="ignore"):
        return _on_arrays(tree, variables, functions or {}, is_strict=True)


def fold_numbers(tree: Tree, functions: Functions | None = None) -> Tree:
    """Return the tree with a float in place of each part that has no variable.

    A part becomes NaN if an operand that its operator hides is infinite, since it then has no finite value.
    """
    if not isinstance(tree, tuple):
        return float(tree) if isinstance(tree, Fraction) else tree
    children = [fold_numbers(child, functions) for child in tree[1:]]
    tree = (tree[0], *children)
    if all(map(is_number, children)):
        return float(evaluate_strictly(tree, {}, functions))
    hidden = [children[place] for place in HIDDEN_OPERANDS.get(tree[0], ())]
    if any(is_number(child) and not math.isfinite(child) for child in hidden):
        return math.nan
    return tree


def _value_of(name: str, variables: Mapping[str, Any]) -> Any:
    if name not in variables:
        raise ValueError(f"variables has no value for {name!r}; it has {', '.join(variables)}.")
    return variables[name]


def _on_arrays(tree: Tree, variables: Mapping[str, Any], functions: Functions, is_strict: bool) -> Any:
    if isinstance(tree, str):
        return _value_of(tree, variables)
    if not isinstance(tree, tuple):
        return np.float64(as_float(tree))
    if tree[0] == "pi":
        return np.float64(math.pi)
    function = _ON_ARRAYS.get(tree[0]) or functions.get(tree[0])
    if function is None:
        raise ValueError(f"functions has no {tree[0]!r}, which the formula uses.")
    operands = [_on_arrays(child, variables, functions, is_strict) for child in tree[1:]]
    result = function(*operands)
    if is_strict:
        for place in HIDDEN_OPERANDS.get(tree[0], ()):
            result = result + 0.0 * operands[place]
    return result


def _precisely(tree: Tree, variables: Mapping[str, Any], context: Any) -> Any:
    if isinstance(tree, str):
        return _value_of(tree, variables)
    if isinstance(tree, Fraction):
        return context.mpf(tree.numerator) / tree.denominator
    if not isinstance(tree, tuple):
        return context.mpf(tree)
    name: str = tree[0]
    if name == "pi":
        return +context.pi
    operands = [_precisely(child, variables, context) for child in tree[1:]]
    if name == "pow":
        function = context.power
    elif name in ARITHMETIC:
        function = ARITHMETIC[name]
    elif name in FUNCTIONS:
        function = getattr(context, SHORT_NAMES.get(name, name))
    else:
        raise ArithmeticError(f"{name} has no value of more digits than float64's.")
    try:
        result = function(*operands)
    except ValueError as error:  # mpmath raises this at a pole
        raise ArithmeticError(f"{name} is undefined there.") from error
    if isinstance(result, context.mpc):
        raise ArithmeticError(f"{name} is not real there.")
    if not abs(result) < 10**MAX_EXPONENT:  # also false for NaN
        raise OverflowError(f"{name} is beyond the largest number there.")
    return result
