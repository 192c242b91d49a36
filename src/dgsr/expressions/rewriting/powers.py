"""Powers of one base in a product: f**2.3 for f*f**1.3, sqrt(f) for f/sqrt(f)."""

from __future__ import annotations

from fractions import Fraction

from dgsr.expressions.rewriting.algebra import Number, clean
from dgsr.expressions.rewriting.nodes import Call, Node, is_call


def merge_powers(factors: dict[Node, int]) -> dict[Node, int]:
    """Return the factors with one power of each f: f**2.3 for f*f**1.3, f**1.3 for 1/f**(-1.3)."""
    powers_of: dict[Node, list[tuple[Node, Number]]] = {}
    for node in factors:
        base, exponent = _as_power(node)
        powers_of.setdefault(base, []).append((node, exponent))
    merged = dict(factors)
    for base, powers in powers_of.items():
        node, exponent = powers[0]
        if len(powers) > 1 or (exponent < 0 and factors[node] < 0):
            exponent = sum(merged.pop(node) * exponent for node, exponent in powers)
            # The base of one power may be another one: sqrt(f)**1.3*sqrt(f)**0.7 is f, and so is a factor f.
            for factor, power in _factors_of_power(base, exponent).items():
                merged[factor] = merged.get(factor, 0) + power
    return {node: power for node, power in merged.items() if power != 0}


def _as_power(node: Node) -> tuple[Node, Number]:
    """Return f and c of a power f**c or a root; any other node has the exponent 1."""
    if is_call(node, "sqrt") and node.arguments[0][0] == 1:
        return node.arguments[0][1], Fraction(1, 2)
    if is_call(node, "pow") and node.arguments[0][0] == 1 and node.arguments[1][1] == 1:
        return node.arguments[0][1], node.arguments[1][0]
    return node, 1


def _factors_of_power(base: Node, exponent: Number) -> dict[Node, int]:
    """Return f**c as factors: f*sqrt(f) for f**1.5."""
    sign = 1 if exponent > 0 else -1
    halves = 2 * abs(exponent)
    if halves != int(halves):
        return {Call("pow", ((1, base), (clean(abs(exponent)), 1))): sign}
    whole, half = divmod(int(halves), 2)
    root = Call("sqrt", ((1, base),))
    return {node: sign * power for node, power in ((base, whole), (root, half)) if power != 0}
