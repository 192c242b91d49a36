"""The nodes of the normal form: a variable, 1, a `Sum`, a `Product` of whole powers, or a `Call`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dgsr.expressions.rewriting.algebra import Number

Node = Any
Scaled = tuple[Number, Node]


@dataclass(frozen=True)
class Sum:
    """Two or more terms and their coefficients; the number of the sum is the coefficient of the node 1.

    The sum was divided by one of its coefficients: by an exact one if there is one.
    """

    terms: tuple[tuple[Node, Number], ...]


@dataclass(frozen=True)
class Product:
    """The bases of a product and their powers."""

    factors: tuple[tuple[Node, int], ...]


@dataclass(frozen=True)
class Call:
    """A function of scaled nodes."""

    name: str
    arguments: tuple[Scaled, ...]


def is_call(node: Node, *names: str) -> bool:
    """Return whether a node is a call of a function with one of the given names."""
    return isinstance(node, Call) and node.name in names


def exponent_of(node: Node) -> Number | None:
    """Return the exponent of a root, or of a power whose exponent is a number; None for other nodes."""
    if is_call(node, "pow") and node.arguments[1][1] == 1:
        return node.arguments[1][0]
    return Fraction(1, 2) if is_call(node, "sqrt") else None
