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

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.translation import tree_of_tokens
from dgsr.expressions.programs.units import Unit, Units
from dgsr.expressions.trees.trees import LARGEST_EXPONENT, Tree

# Factors by which functions multiply the exponents of a unit.
_POWERS = {"sqrt": 0.5, "square": 2.0, "cube": 3.0, "neg": 1.0, "abs": 1.0}
# Largest difference of exponents, or of a factor from 1, that counts as rounding.
_ROUNDING = 1e-6
# Largest denominator of an exponent that is written as a fraction.
_LARGEST_DENOMINATOR = 12

# The exponents of a unit, the logarithm of its factor, and its powers of the units that are written; None
# where the unit is not determined.
_Vector = np.ndarray | None


def units_of_constants(expression: Expression, units: Units) -> tuple[str, ...]:
    """Return the unit of every constant of a formula of the raw columns, made of the units of these.

    The texts are such as ``kJ/(mol*K)``, or in base units where that is the same and shorter; ``?`` where the
    unit is not determined. The text of a constant without a dimension is empty, or its value in base units if
    that differs, ``= 0.5``. The tuple is empty if constants have no units.
    """
    if units.unitless_constants:
        return ()
    derivation = _Derivation(expression, units)
    numbered = [("const", i) for i in range(len(derivation.constants))]
    tree = tree_of_tokens(expression.library, expression.tokens, numbered)
    derivation.hand_down(tree, _vector(units.target))
    return tuple(
        "?" if unit is None else _text(value, unit, units)
        for value, unit in zip(derivation.constants, derivation.found)
    )


class _Derivation:
    """The units of the parts of a formula, in whose tree constants are nodes with their index."""

    def __init__(self, expression: Expression, units: Units) -> None:
        self.none = np.zeros(len(units.base) + 1 + len(units.written))
        self.columns = dict(zip(expression.library.variable_names, map(_vector, units.columns)))
        self.constants = expression.constants.tolist()
        self.found: list[_Vector] = [None] * len(self.constants)

    def _exponent(self, tree: Tree) -> float | None:
        """Return the exponent of a power; None for other nodes and for an exponent that is not a constant."""
        match tree:
            case ("pow", _, ("const", i)):
                return self.constants[i]
        return _POWERS.get(tree[0])

    def _unit(self, tree: Tree) -> _Vector:
        """Return the unit of a part as far as columns determine it."""
        match tree:
            case str():
                return self.columns[tree]
            case ("const", _):
                return None
            case ("add" | "sub", first, second):
                unit = self._unit(first)
                return self._unit(second) if unit is None else unit
            case ("mul" | "div" as name, first, second):
                return _sum(self._unit(first), self._unit(second), 1.0 if name == "mul" else -1.0)
            case (_, base, *_) if (exponent := self._exponent(tree)) is not None:
                unit = self._unit(base)
                return None if unit is None else exponent * unit
        return self.none  # also of the number 1 in 1/x

    def hand_down(self, tree: Tree, asked: _Vector) -> None:
        """Store the units of the constants in a part whose value must have the unit `asked`."""
        if not isinstance(tree, tuple):
            return
        own = self._unit(tree)
        unit, exponent = asked if own is None else own, self._exponent(tree)
        of_operands: list[_Vector] = [self.none, self.none]
        match tree:
            case ("const", i):
                self.found[i], of_operands = asked, []
            case ("add" | "sub", _, _):
                of_operands = [unit, unit]
            case ("mul", first, second):
                of_operands = [_sum(unit, self._unit(second), -1.0), _sum(unit, self._unit(first), -1.0)]
            case ("div", first, second):
                of_operands = [_sum(unit, self._unit(second), 1.0), _sum(self._unit(first), unit, -1.0)]
            case _ if exponent is not None:
                of_operands[0] = None if unit is None or exponent == 0.0 else unit / exponent
        for operand, of_one in zip(tree[1:], of_operands):
            self.hand_down(operand, of_one)


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
