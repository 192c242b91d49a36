"""A formula as source code: the common part of the exports to Python and to C.

The code computes the same numbers as the compiled evaluator: operators in the order of the program, constants
with all their digits, and no finite result with an infinite intermediate value. Where the value of an
infinite operand would be finite, as in 1/x, exp(-x) and tanh(x), the code tests whether the operand was
finite. Results differ only below 1e-307, where the evaluator's exp is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from dgsr.expressions.exports.identifiers import fresh, identifiers
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.evaluation import HIDDEN_OPERANDS, Functions, fold_numbers
from dgsr.expressions.trees.infix import ATOM, NEGATION, PRODUCT, InfixWriter
from dgsr.expressions.trees.simple_numbers import digits_of, recognised
from dgsr.expressions.trees.syntax import to_text
from dgsr.expressions.trees.trees import Tree, is_number, map_leaves, rename, variables_of
from dgsr.expressions.trees.user_operators import OPERANDS, UserOperator


class Language(NamedTuple):
    """The differences between programming languages."""

    number: Callable[[Any], str]
    functions: Mapping[str, str]  # a pattern for the operand, by operator
    pow: str  # an infix operator, or a pattern for two operands
    largest_product: int  # powers up to this are written as products
    reserved: frozenset[str]  # words that no variable can have
    is_c: bool


class SourceCode(NamedTuple):
    """The parts of a function in some language."""

    arguments: list[str]  # arguments of the function, one for each variable
    used: list[str]  # arguments on which the value depends
    lines: list[tuple[str, str]]  # names and texts of intermediate values, in the order of their computation
    checked: list[str]  # names of values that must be finite for the result to be finite
    value: str
    comment: list[str]  # lines for a person
    taken: set[str]  # words that are in use


def write_source(
    tree: Tree, names: Sequence[str], functions: Functions, name: str, language: Language
) -> SourceCode:
    """Write the parts of the function `name` of a tree whose variables are x1 .. xd.

    Raise ValueError if a user-defined operator has no form to export.
    """
    taken = {*language.reserved, name}
    arguments = identifiers(names, taken, language.is_c)
    tree = rename(tree, {f"x{i + 1}": argument for i, argument in enumerate(arguments)})
    folded = fold_numbers(tree, functions)
    writer = _Writer(language, functions, {*taken, *arguments})
    value, _ = writer.text(folded)
    present = variables_of(folded)
    return SourceCode(
        arguments,
        [argument for argument in arguments if argument in present],
        [(operand, text) for text, operand in writer.lines.items()],
        writer.checked,
        value,
        _comment(tree, names, arguments),
        writer.taken,
    )


def _comment(tree: Tree, names: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return lines with the formula, its constants shortened, and the columns with changed names."""

    def shortened(leaf: Tree) -> Tree:
        return float(f"{leaf:.{digits_of(leaf)}g}") if isinstance(leaf, float) else leaf

    lines = [
        to_text(tidy(map_leaves(recognised(tree), shortened))),
        "Not finite where the formula is undefined or infinite on the way.",
    ]
    renamed = [f"    {argument}: {name!r}" for argument, name in zip(arguments, names) if argument != name]
    return [*lines, "Arguments, and the columns they stand for:", *renamed] if renamed else lines


class _Writer(InfixWriter):
    """Writes one tree whose variables are identifiers of the language."""

    regroups = False  # a*(b/c) may be finite where a*b is not

    def __init__(self, language: Language, functions: Functions, taken: Collection[str]) -> None:
        self.language = language
        self.functions = functions
        self.taken = set(taken)
        self.lines: dict[str, str] = {}  # names of the operands that need one, by their texts, in order
        self.checked: list[str] = []  # names whose values must be finite
        self.checks = True  # whether operands are checked, as they are not within a user-defined operator

    def leaf(self, leaf: Tree) -> tuple[str, int]:
        text = leaf if isinstance(leaf, str) else self.language.number(leaf)
        return text, NEGATION if text.startswith("-") else ATOM

    def operands(self, tree: Tree) -> list[Tree]:
        operands = list(tree[1:])
        for place in HIDDEN_OPERANDS.get(tree[0], ()) if self.checks else ():
            operands[place] = self._named(operands[place])
            self._check(operands[place])
        return operands

    def power(self, base: Tree, exponent: Tree) -> tuple[str, int]:
        if is_number(exponent) and 1 < exponent <= self.language.largest_product and exponent % 1 == 0:
            return "*".join([self.within(self._named(base), ATOM)] * int(exponent)), PRODUCT
        if self.language.pow == "**":
            return super().power(base, exponent)
        return self.language.pow.format(self.text(base)[0], self.text(exponent)[0]), ATOM

    def call(self, name: str, operands: Sequence[Tree]) -> tuple[str, int]:
        if name in self.language.functions:
            return self.language.functions[name].format(self.text(operands[0])[0]), ATOM
        return self._users_own(self.functions[name], operands)

    def without_minus(self, tree: Tree) -> Tree | None:
        if isinstance(tree, tuple) and tree[0] in ("mul", "div"):
            first = self.without_minus(tree[1])
            return None if first is None else (tree[0], first, tree[2])
        return super().without_minus(tree)

    def _named(self, tree: Tree) -> Tree:
        """Return a leaf for the tree: the tree itself if it is one, else the name of a new line."""
        if not isinstance(tree, tuple):
            return tree
        text = self.text(tree)[0]
        if text not in self.lines:
            self.lines[text] = fresh("t", self.taken, start=1)
            self.taken.add(self.lines[text])
        return self.lines[text]

    def _check(self, leaf: Tree) -> None:
        if isinstance(leaf, str) and leaf not in self.checked:
            self.checked.append(leaf)

    def _users_own(self, operator: UserOperator, operands: Sequence[Tree]) -> tuple[str, int]:
        # This is imported here, since most formulas need no sympy, which takes half a second to import.
        from dgsr.expressions.exports.symbolic import form_of

        names = dict(zip(OPERANDS, map(self._named, operands)))
        for leaf in names.values():
            self._check(leaf)
        within = copy(self)  # it has the same lines
        within.checks = False
        return within.text(fold_numbers(rename(form_of(operator), names)))
