"""The units of the constants of a formula, as far as the units of columns and target determine them.

Dimensions are derived up the tree of a formula from the columns, and down again from the target: the unit of
a factor is the unit of the product divided by that of the other factor, all summands have one unit, and the
argument of a function has none. The powers of the units that columns and target are written in, and the
logarithm of the factor to base units, are derived in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Opcode
from dgsr.expressions.programs.units import Unit, Units
from dgsr.expressions.trees.trees import LARGEST_EXPONENT

#: Text for the unit of a constant that is not determined.
UNDETERMINED = "?"

# Factors by which operators of one argument multiply the exponents of a unit.
_POWERS = {
    Opcode.SQRT: 0.5, Opcode.SQUARE: 2.0, Opcode.CUBE: 3.0, Opcode.INV: -1.0, Opcode.NEG: 1.0, Opcode.ABS: 1.0
}  # fmt: skip
# Largest difference of exponents, or of a factor from 1, that counts as rounding.
_ROUNDING = 1e-6
# Largest denominator of an exponent that is written as a fraction.
_LARGEST_DENOMINATOR = 12

# The exponents of a unit, the logarithm of its factor, and its powers of the units that are written; None
# where the unit is not determined.
_Vector = np.ndarray | None


class _Node(NamedTuple):
    """A subprogram and its unit."""

    opcode: Opcode
    children: tuple[_Node, ...]
    unit: _Vector
    constant: int  # index of the constant, or -1 for other nodes


def units_of_constants(expression: Expression, units: Units) -> tuple[str, ...]:
    """Return the unit of every constant of a formula of the raw columns, made of the units of these.

    The texts are such as ``kJ/(mol*K)``, or in base units where that is the same and shorter; ``?`` where the
    unit is not determined. The text of a constant without a dimension is empty, or its value in base units if
    that differs, ``= 0.5``. The tuple is empty if constants have no units.
    """
    if units.unitless_constants:
        return ()
    derivation = _Derivation(expression, units)
    derivation.hand_down(derivation.tree, _vector(units.target))
    return tuple(
        UNDETERMINED if unit is None else _text(value, unit, units)
        for value, unit in zip(expression.constants.tolist(), derivation.found, strict=True)
    )


class _Derivation:
    """The units of the subprograms of a formula."""

    def __init__(self, expression: Expression, units: Units) -> None:
        self.none = np.zeros(len(units.base) + 1 + len(units.written))
        self.constants = expression.constants.tolist()
        self.found: list[_Vector] = [None] * len(self.constants)
        library, n_before = expression.library, len(self.constants)
        stack: list[_Node] = []
        for token in reversed(expression.tokens.tolist()):
            opcode, constant = library.tokens[token].opcode, -1
            children = tuple(stack.pop() for _ in range(library.tokens[token].arity))
            unit: _Vector = None
            if opcode == Opcode.VARIABLE:
                unit = _vector(units.columns[token - library.first_variable])
            elif opcode == Opcode.CONSTANT:
                constant = n_before = n_before - 1
            else:
                unit = self._above(opcode, children)
            stack.append(_Node(opcode, children, unit, constant))
        self.tree = stack[0]

    def _exponent(self, children: Sequence[_Node]) -> float | None:
        """Return the exponent of a power, or None if it is not a constant."""
        return None if children[1].constant < 0 else self.constants[children[1].constant]

    def _above(self, opcode: Opcode, children: Sequence[_Node]) -> _Vector:
        """Return the unit of an operator's value from the units of its operands."""
        first, second = children[0].unit, children[-1].unit
        if opcode in (Opcode.ADD, Opcode.SUB):
            return second if first is None else first
        if opcode in (Opcode.MUL, Opcode.DIV):
            return _sum(first, second, 1.0 if opcode == Opcode.MUL else -1.0)
        if opcode in _POWERS:
            return None if first is None else _POWERS[opcode] * first
        if opcode == Opcode.POW and (exponent := self._exponent(children)) is not None:
            return None if first is None else exponent * first
        return self.none

    def hand_down(self, node: _Node, asked: _Vector) -> None:
        """Store the units of the constants below a node whose value must have the unit `asked`."""
        if node.constant >= 0:
            self.found[node.constant] = asked
        unit, children = asked if node.unit is None else node.unit, node.children
        for child, of_child in zip(children, self._below(node.opcode, children, unit)):
            self.hand_down(child, of_child)

    def _below(self, opcode: Opcode, children: Sequence[_Node], unit: _Vector) -> list[_Vector]:
        """Return the units that the operands must have for the operator's value to have a unit."""
        if opcode in (Opcode.ADD, Opcode.SUB):
            return [unit, unit]
        if opcode == Opcode.MUL:
            return [_sum(unit, children[1].unit, -1.0), _sum(unit, children[0].unit, -1.0)]
        if opcode == Opcode.DIV:
            return [_sum(unit, children[1].unit, 1.0), _sum(children[0].unit, unit, -1.0)]
        if opcode in _POWERS:
            return [None if unit is None else unit / _POWERS[opcode]]
        if opcode == Opcode.POW and (exponent := self._exponent(children)) is not None:
            return [None if unit is None or exponent == 0.0 else unit / exponent, self.none]
        return [self.none] * len(children)


def _vector(unit: Unit | None) -> _Vector:
    return None if unit is None else np.array([*unit.exponents, math.log(unit.factor), *unit.powers])


def _sum(first: _Vector, second: _Vector, sign: float) -> _Vector:
    """Return the exponents of a product, or for sign -1 of a quotient; None if a unit is not determined."""
    return None if first is None or second is None else first + sign * second


def _text(value: float, unit: np.ndarray, units: Units) -> str:
    """Return a unit as text, or the value of a number without a dimension in base units."""
    n = len(units.base)
    exponents, log_factor, powers = unit[:n], float(unit[n]), unit[n + 1 :]
    if abs(log_factor) <= _ROUNDING and np.abs(exponents).sum() <= np.abs(powers).sum() + _ROUNDING:
        return _product(units.base, exponents)
    if np.abs(exponents).max(initial=0.0) > _ROUNDING:
        return _product(units.written, powers)
    return f"= {value * math.exp(min(max(log_factor, -LARGEST_EXPONENT), LARGEST_EXPONENT)):.6g}"


def _product(names: Sequence[str], exponents: np.ndarray) -> str:
    above: list[str] = []
    below: list[str] = []
    for name, exponent in zip(names, exponents.tolist()):
        if abs(exponent) > _ROUNDING:
            (above if exponent > 0 else below).append(name + _power(abs(exponent)))
    text = "*".join(above) or ("1" if below else "")
    if len(below) > 1:
        return f"{text}/({'*'.join(below)})"
    return "/".join([text, *below])


def _power(exponent: float) -> str:
    """Return the text of a positive exponent, as a fraction where it is a simple one."""
    simple = Fraction(exponent).limit_denominator(_LARGEST_DENOMINATOR)
    if abs(simple - exponent) > _ROUNDING:
        return f"^{exponent:.4g}"
    if simple.denominator > 1:
        return f"^({simple})"
    return "" if simple == 1 else f"^{simple}"
