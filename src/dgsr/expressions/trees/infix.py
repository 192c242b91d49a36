"""Trees as text with infix operators, for formulas that people read and for source code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from dgsr.expressions.trees.trees import WHOLE_POWERS, Tree, is_number

#: Precedences, from the weakest to the strongest binding.
SUM, PRODUCT, NEGATION, POWER, ATOM = 1, 2, 3, 4, 5


class InfixWriter(ABC):
    """Writes a tree with parentheses only where the value depends on them.

    A subclass says how leaves and calls of functions are written; each method returns a text and its
    precedence.
    """

    #: Whether a + (b + c) and a*(b*c) lose their parentheses.
    regroups = True

    @abstractmethod
    def leaf(self, leaf: Tree) -> tuple[str, int]:
        """Return the text of a number or a variable."""

    @abstractmethod
    def call(self, name: str, operands: Sequence[Tree]) -> tuple[str, int]:
        """Return the text of an operator that has no infix sign, such as sin."""

    def operands(self, tree: Tree) -> Sequence[Tree]:
        """Return the operands of a node as they are written."""
        return tree[1:]

    def text(self, tree: Tree) -> tuple[str, int]:
        if not isinstance(tree, tuple):
            return self.leaf(tree)
        name, operands = tree[0], self.operands(tree)
        if name in ("add", "sub"):
            return self._sum(operands[0], operands[1], name == "sub")
        if name in ("mul", "div"):
            level = PRODUCT if name == "mul" and self.regroups else NEGATION
            left, right = self.within(operands[0], PRODUCT), self.within(operands[1], level, no_minus=True)
            return f"{left}{'*' if name == 'mul' else '/'}{right}", PRODUCT
        if name == "neg":
            return "-" + self.within(operands[0], PRODUCT, no_minus=True), NEGATION
        if name == "pow" or name in WHOLE_POWERS:
            return self.power(operands[0], WHOLE_POWERS.get(name) or operands[1])
        return self.call(name, operands)

    def within(self, tree: Tree, level: int, no_minus: bool = False) -> str:
        """Return the text of an operand, in parentheses if its precedence is below `level`.

        With `no_minus` it is also in parentheses if it starts with a minus.
        """
        text, precedence = self.text(tree)
        return f"({text})" if precedence < level or (no_minus and text.startswith("-")) else text

    def _sum(self, left: Tree, right: Tree, minus: bool) -> tuple[str, int]:
        first, positive = self.within(left, SUM), self.without_minus(right)
        if positive is not None:  # a - b for a + -b
            right, minus = positive, not minus
        level = SUM if self.regroups and not minus else PRODUCT
        return f"{first} {'-' if minus else '+'} {self.within(right, level, no_minus=True)}", SUM

    def power(self, base: Tree, exponent: Tree) -> tuple[str, int]:
        return f"{self.within(base, ATOM)}**{self.within(exponent, POWER)}", POWER

    def without_minus(self, tree: Tree) -> Tree | None:
        """Return the negative of a tree that starts with a minus; None for other trees."""
        if is_number(tree):
            return -tree if tree < 0 else None
        return tree[1] if isinstance(tree, tuple) and tree[0] == "neg" else None
