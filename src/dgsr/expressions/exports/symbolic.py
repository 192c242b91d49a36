"""Translation of syntax trees to sympy and back, node by node, without reading text."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import cmp_to_key, reduce
from numbers import Integral, Real
from typing import Any

import sympy

from dgsr.expressions.trees.evaluation import ARITHMETIC, Functions, evaluate, fold_numbers
from dgsr.expressions.trees.trees import (
    ALIASES,
    FUNCTIONS,
    LARGEST_EXPONENT,
    SHORT_NAMES,
    WHOLE_POWERS,
    Tree,
    as_float,
    variables_of,
)
from dgsr.expressions.trees.user_operators import OPERANDS, UserOperator


def to_sympy(
    tree: Tree, symbols: Mapping[str, sympy.Symbol] | None = None, functions: Functions | None = None
) -> sympy.Expr:
    """Build the sympy expression of a tree, with sympy's automatic evaluation, so that x1/x1 is 1.

    Integers and fractions stay exact; a float has the digits that identify it among floats. A formula with a
    part that is infinite or undefined everywhere, such as x1/0, or with a number that float64 cannot hold, is
    NaN, as in `predict`. A power that sympy would multiply out to thousands of digits stays a power.

    Parameters
    ----------
    tree : tree
    symbols : mapping of str to sympy.Symbol, optional
        Symbols with the variables' names by default.
    functions : mapping of str to UserOperator, optional
        User-defined operators; other unknown operators become undefined functions.
    """
    builder = _Builder(symbols, functions or {})
    return builder.restored(builder.build(tree))


# Longest integer, in bits, of an exact number and of a power that is multiplied out; Python refuses to print
# 4300 digits.
_MAX_BITS = 2**12
# Most nodes of an exact number; longer ones become floats, because sympy evaluates numbers repeatedly.
_MAX_NUMBER_NODES = 50
# Digits of floats while sympy computes. A float has fewer, so that 0.1*3 becomes 0.3.
_WORKING_DIGITS = 25

_BASIC = ("add", "sub", "mul", "div", "neg")
_KNOWN = frozenset((*_BASIC, "pow", *FUNCTIONS))
# Results of sympy's divisions by 0; a formula with such a part has no value.
_UNDEFINED = (sympy.zoo, sympy.oo, -sympy.oo, sympy.nan)


def placeholder(n: int) -> sympy.Dummy:
    """Return the symbol for the hidden part number `n` of an expression.

    sympy orders symbols by their names and numbers unnamed ones through the process, so that without a name
    the same formula would once be sin(a - b) and once -sin(b - a).
    """
    return sympy.Dummy(f"placeholder_{n:06d}")


class _Builder:
    """Builds one expression at a bounded cost.

    For every function and power, sympy examines whether the operands are real, positive, integer and so on,
    for which it expands them. This takes forever for a few nested ones, so parts of the operands are hidden
    behind placeholders: symbols that `restored` replaces without evaluation.
    """

    def __init__(self, symbols: Mapping[str, sympy.Symbol] | None, functions: Functions) -> None:
        self.symbols = symbols
        self.functions = functions
        self.placeholders: dict[sympy.Expr, sympy.Dummy] = {}  # by the part that each hides
        self.hidden: dict[sympy.Expr, sympy.Expr] = {}  # the parts by their placeholders
        self.known: dict[sympy.Expr, sympy.Expr] = {}  # results of `restored`

    def build(self, tree: Tree) -> sympy.Expr:
        if isinstance(tree, str):
            return sympy.Symbol(tree) if self.symbols is None else self.symbols[tree]
        if tree == ("pi",):
            return sympy.pi
        if isinstance(tree, tuple):
            operands = []
            for child in tree[1:]:  # no comprehension, which would double the frames of deep trees
                operands.append(self.build(child))
            if sympy.nan in operands:
                return sympy.nan
            result = _bounded(self._apply(tree[0], operands))
            # No operand is infinite here, so that only the sympy form of a user-defined operator can have
            # infinity in a deeper node.
            parts = sympy.preorder_traversal(result) if tree[0] in self.functions else (result, *result.args)
            return sympy.nan if any(part in _UNDEFINED for part in parts) else result
        if isinstance(tree, Fraction):
            return _bounded(sympy.Rational(tree.numerator, tree.denominator))
        if isinstance(tree, int):
            return _bounded(sympy.Integer(tree))
        return sympy.Float(repr(float(tree)), _WORKING_DIGITS) if math.isfinite(tree) else sympy.nan

    def _apply(self, name: str, operands: list[sympy.Expr]) -> sympy.Expr:
        if name in self.functions:
            return self.functions[name].to_sympy(*map(self._with_placeholders, operands))
        if name in WHOLE_POWERS:
            name, operands = "pow", [operands[0], sympy.Integer(WHOLE_POWERS[name])]
        if name in _KNOWN and all(operand.is_number for operand in operands):
            number = _float_or_nan(name, operands)
            if number is not None:
                return number
        if name in _BASIC:
            return ARITHMETIC[name](*operands)
        if name == "pow":
            return self._power(*operands)
        if name == "exp":
            return self._exponential(operands[0])
        if name == "sqrt" and operands[0].is_Pow and operands[0].exp.is_Integer and operands[0].exp.is_odd:
            # Both sqrt(f**3) and f**(3/2) need an f that is not negative.
            return self._power(operands[0].base, operands[0].exp / 2)
        operands = list(map(self._with_placeholders, operands))
        if name not in FUNCTIONS:
            return sympy.Function(name)(*operands)
        return getattr(sympy, "Abs" if name == "abs" else SHORT_NAMES.get(name, name))(*operands)

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        if _power_bits(base, exponent) > _MAX_BITS:
            base = sympy.UnevaluatedExpr(base)
        if exponent.is_Integer:
            return base**exponent
        if base.is_Number and base.is_zero and not exponent.is_number:
            # sympy writes 0**(-f) as zoo**f, though both are 0 where f is negative.
            base = sympy.UnevaluatedExpr(base)
        return self._with_placeholders(base) ** self._with_placeholders(exponent)

    def _exponential(self, exponent: sympy.Expr) -> sympy.Expr:
        # sympy turns exp(c*log(b)) into the power b**c.
        logarithms = exponent.atoms(sympy.log)
        bits = max((_power_bits(log.args[0], exponent) for log in logarithms), default=0)
        # It turns exp(85000.0 - x) into the product of exp(-x) and a number beyond float64.
        is_far = any(abs(number) > LARGEST_EXPONENT for number in exponent.args if number.is_Float)
        if bits > _MAX_BITS or is_far:
            return sympy.exp(sympy.UnevaluatedExpr(exponent))
        return sympy.exp(self._with_placeholders(exponent, logarithms))

    def _with_placeholders(self, expression: sympy.Expr, shown: Collection[sympy.Expr] = ()) -> sympy.Expr:
        """Return a sum of products with placeholders for factors other than numbers, symbols and `shown`."""
        terms = []
        for term in sympy.Add.make_args(expression):
            factors = [self._placeholder(factor, shown) for factor in sympy.Mul.make_args(term)]
            terms.append(sympy.Mul(*factors))
        return sympy.Add(*terms)

    def _placeholder(self, part: sympy.Expr, shown: Collection[sympy.Expr]) -> sympy.Expr:
        if part.is_Symbol or part.is_number or part in shown:
            return part
        if part not in self.placeholders:
            self.placeholders[part] = placeholder(len(self.placeholders))
            self.hidden[self.placeholders[part]] = part
        return self.placeholders[part]

    def restored(self, expression: sympy.Expr) -> sympy.Expr:
        """Return the expression with its hidden parts restored, and its floats with the digits they need."""
        if expression in self.known:
            return self.known[expression]
        if expression.is_Float:
            return _with_its_digits(expression)
        if expression in self.hidden:
            result = self.restored(self.hidden[expression])
        else:
            parts = []
            for part in expression.args:
                parts.append(self.restored(part))
            result = rebuilt(expression, parts)
        self.known[expression] = result
        return result


def rebuilt(expression: sympy.Expr, parts: list[sympy.Expr]) -> sympy.Expr:
    """Return an expression of the same kind made of `parts`, in sympy's order and without evaluation."""
    if all(new is old for new, old in zip(parts, expression.args)):
        return expression
    if expression.is_Add or expression.is_Mul:
        n_numbers = int(parts[0].is_Number)
        rest = sorted(parts[n_numbers:], key=cmp_to_key(sympy.Basic.compare))
        return expression.func._from_args([*parts[:n_numbers], *rest])
    if expression.is_Pow or isinstance(expression, sympy.Function):
        return expression.func(*parts, evaluate=False)
    return expression.func(*parts)


def _with_its_digits(number: sympy.Float) -> sympy.Float:
    """Return a float64 as a sympy float of 15 digits, the default, or of 17 where 15 do not identify it."""
    value = float(number)
    if not math.isfinite(value) or (value == 0 and number != 0):
        return number
    return sympy.Float(value, 15 if float(f"{value:.15g}") == value else 17)


def _float_or_nan(name: str, operands: list[sympy.Expr]) -> sympy.Expr | None:
    """Return NaN for a number beyond float64, a float for a number of too many parts, and None for others."""
    values = [_float64(operand) for operand in operands]
    if None in values:
        return None
    value = float(evaluate((name, *values), {}))
    if not math.isfinite(value):
        return sympy.nan
    n_nodes = sum(1 for operand in operands for _ in sympy.preorder_traversal(operand))
    if n_nodes > _MAX_NUMBER_NODES or (name == "pow" and _power_bits(*operands) > _MAX_BITS):
        return sympy.Float(value, _WORKING_DIGITS)
    return None


def _float64(number: sympy.Expr) -> float | None:
    """Return the value of a number as `predict` computes it; None if a tree cannot represent it."""
    try:
        return float(evaluate(from_sympy(number), {}))
    except ValueError:
        return None


def _bounded(expression: sympy.Expr) -> sympy.Expr:
    """Return NaN for a rational number beyond float64, a float if it has too many digits, else no change."""
    if not expression.is_Rational:
        return expression
    value = as_float(Fraction(expression.p, expression.q))
    if not math.isfinite(value):
        return sympy.nan
    return expression if _bits(expression) <= _MAX_BITS else sympy.Float(value, _WORKING_DIGITS)


def _power_bits(base: sympy.Expr, exponent: sympy.Expr) -> int:
    """Return an upper bound on the bits of the integers that sympy computes for a power."""
    return _bits(base) * max((int(abs(number)) for number in exponent.atoms(sympy.Rational)), default=0)


def _bits(expression: sympy.Expr) -> int:
    """Return the bits of the longest numerator or denominator; 0 if all are 1, whose powers are 1."""
    largest = max((max(abs(number.p), number.q) for number in expression.atoms(sympy.Rational)), default=1)
    return largest.bit_length() if largest > 1 else 0


def from_sympy(expression: sympy.Expr) -> Tree:
    """Return the tree of a sympy expression; ValueError if the grammar lacks a part, such as sympy.I."""
    if expression.is_Symbol:
        return expression.name
    if expression.is_Rational:
        return expression.p if expression.q == 1 else Fraction(expression.p, expression.q)
    if expression.is_Float:
        return float(expression)
    if isinstance(expression, sympy.UnevaluatedExpr):
        return from_sympy(expression.args[0])
    if expression is sympy.pi:
        return ("pi",)
    if expression is sympy.E:
        return ("exp", 1)
    if expression.is_Add or expression.is_Mul:
        name = "add" if expression.is_Add else "mul"
        return reduce(lambda left, right: (name, left, right), map(from_sympy, expression.args))
    if expression.is_Pow:
        return ("pow", from_sympy(expression.base), from_sympy(expression.exp))
    name = type(expression).__name__.lower()
    name = ALIASES.get(name, name)
    if name not in FUNCTIONS:
        raise ValueError(f"{expression} cannot be written; use the functions {', '.join(FUNCTIONS)}.")
    return (name, from_sympy(expression.args[0]))


def form_of(operator: UserOperator) -> Tree:
    """Return the tree of a user-defined operator, its variables named as in `OPERANDS`.

    ValueError if the operator has no sympy form, or its form has functions that cannot be exported.
    """
    if operator.sympy is None:
        raise ValueError(
            f"Operator {operator.name!r} is a Python function alone and cannot be exported; give it its "
            f"formula too, with_operator({operator.name!r}, ..., sympy=...)."
        )
    names = OPERANDS[: operator.arity]
    try:
        tree = from_sympy(_expression_of(operator.to_sympy(*map(sympy.Symbol, names))))
    except ValueError as error:
        raise ValueError(
            f"Operator {operator.name!r} cannot be exported by its sympy form: {error}"
        ) from error
    if strange := sorted(variables_of(tree) - set(names)):
        raise ValueError(
            f"Operator {operator.name!r} cannot be exported: its sympy form has the symbols "
            f"{', '.join(strange)}; write numbers in their place."
        )
    return fold_numbers(tree)


def _expression_of(form: Any) -> Any:
    """Return the value of a user's sympy form as an expression; text is refused, as sympy executes it."""
    if isinstance(form, sympy.Expr):
        return form
    if isinstance(form, Integral):
        return sympy.Integer(int(form))
    if isinstance(form, Real):
        return sympy.Float(float(form))
    raise ValueError(f"it is {form!r}, which is neither a sympy expression nor a number.")
