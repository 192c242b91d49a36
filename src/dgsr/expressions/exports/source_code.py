"""A formula as source code: the common part of the exports to Python and to C.

The code computes the same numbers as the compiled evaluator: operators are applied in the order of the
program, constants are written with all their digits, and an infinite intermediate value makes the result not
finite. Where the value of an infinite operand would be finite, as in 1/x, exp(-x) and tanh(x), the code tests
whether the operand was finite. Results differ only below 1e-307, where the evaluator's exp is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dgsr.expressions.exports.identifiers import fresh, identifiers
from dgsr.expressions.rewriting.tidy import tidy
from dgsr.expressions.trees.evaluation import HIDDEN_OPERANDS, Functions, fold_numbers
from dgsr.expressions.trees.simple_numbers import recognised
from dgsr.expressions.trees.syntax import ATOM, NEGATION, POWER, PRODUCT, SUM, to_text
from dgsr.expressions.trees.trees import WHOLE_POWERS, Tree, is_far, is_number, leaves, map_leaves, rename
from dgsr.expressions.trees.user_operators import OPERANDS, UserOperator

# Significant digits of a constant in the comment of the exported code.
_DIGITS = 5
# The same for numbers that a column may be measured from (`is_far`).
_DIGITS_OF_FAR = 12


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

    Raises
    ------
    ValueError
        If a user-defined operator has no form to export.
    """
    taken = {*language.reserved, name}
    arguments = identifiers(names, taken, language.is_c)
    tree = rename(tree, {f"x{i + 1}": argument for i, argument in enumerate(arguments)})
    folded = fold_numbers(tree, functions)
    writer = _Writer(language, functions, {*taken, *arguments})
    value, _ = writer.text(folded, checks=True)
    present = set(leaves(folded))
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
        if not isinstance(leaf, float):
            return leaf
        return float(f"{leaf:.{_DIGITS_OF_FAR if is_far(leaf) else _DIGITS}g}")

    lines = [
        to_text(tidy(map_leaves(recognised(tree), shortened))),
        "Not finite where the formula is undefined or infinite on the way.",
    ]
    renamed = [f"    {argument}: {name!r}" for argument, name in zip(arguments, names) if argument != name]
    return [*lines, "Arguments, and the columns they stand for:", *renamed] if renamed else lines


class _Writer:
    """Writes one tree whose variables are identifiers of the language.

    Attributes
    ----------
    lines : dict of str to str
        Names of the operands that need one, by their texts, in the order of computation.
    checked : list of str
        Names whose values must be finite.
    """

    def __init__(self, language: Language, functions: Functions, taken: Collection[str]) -> None:
        self.language = language
        self.functions = functions
        self.taken = set(taken)
        self.lines: dict[str, str] = {}
        self.checked: list[str] = []

    def text(self, tree: Tree, checks: bool) -> tuple[str, int]:
        """Return the text and its precedence; `checks` is false in a user-defined operator."""
        if isinstance(tree, str):
            return tree, ATOM
        if not isinstance(tree, tuple):
            text = self.language.number(tree)
            return text, NEGATION if text.startswith("-") else ATOM
        name, children = tree[0], list(tree[1:])
        if checks:
            for place in HIDDEN_OPERANDS.get(name, ()):
                children[place] = self._named(children[place], checks)
                self._check(children[place])
        if name in ("add", "sub"):
            return self._sum(children[0], children[1], name == "sub", checks)
        if name in ("mul", "div"):
            # A product on the right keeps its parentheses: a*(b/c) may be finite where a*b is not.
            left = self._within(children[0], PRODUCT, checks)
            right = self._within(children[1], NEGATION, checks, no_minus=True)
            return f"{left}{'*' if name == 'mul' else '/'}{right}", PRODUCT
        if name == "neg":
            return f"-{self._within(children[0], PRODUCT, checks, no_minus=True)}", NEGATION
        if name == "pow" or name in WHOLE_POWERS:
            return self._power(children[0], WHOLE_POWERS.get(name) or children[1], checks)
        if name in self.language.functions:
            return self.language.functions[name].format(self.text(children[0], checks)[0]), ATOM
        return self._users_own(self.functions[name], children)

    def _named(self, tree: Tree, checks: bool) -> Tree:
        """Return a leaf for the tree: the tree itself if it is one, else the name of a new line."""
        if not isinstance(tree, tuple):
            return tree
        text = self.text(tree, checks)[0]
        if text not in self.lines:
            self.lines[text] = fresh("t", self.taken, start=1)
            self.taken.add(self.lines[text])
        return self.lines[text]

    def _check(self, leaf: Tree) -> None:
        if isinstance(leaf, str) and leaf not in self.checked:
            self.checked.append(leaf)

    def _within(self, tree: Tree, level: int, checks: bool, no_minus: bool = False) -> str:
        text, precedence = self.text(tree, checks)
        return f"({text})" if precedence < level or (no_minus and text.startswith("-")) else text

    def _sum(self, left: Tree, right: Tree, minus: bool, checks: bool) -> tuple[str, int]:
        first = self._within(left, SUM, checks)
        positive = _without_minus(right)
        if positive is not None:
            right, minus = positive, not minus
        second = self._within(right, PRODUCT, checks, no_minus=True)
        return f"{first} {'-' if minus else '+'} {second}", SUM

    def _power(self, base: Tree, exponent: Tree, checks: bool) -> tuple[str, int]:
        if is_number(exponent) and 1 < exponent <= self.language.largest_product and exponent % 1 == 0:
            factor = self._named(base, checks)
            return "*".join([self._within(factor, ATOM, checks)] * int(exponent)), PRODUCT
        if self.language.pow == "**":
            return f"{self._within(base, ATOM, checks)}**{self._within(exponent, POWER, checks)}", POWER
        return self.language.pow.format(self.text(base, checks)[0], self.text(exponent, checks)[0]), ATOM

    def _users_own(self, operator: UserOperator, operands: list[Tree]) -> tuple[str, int]:
        # This is imported here, since most formulas need no sympy, which takes half a second to import.
        from dgsr.expressions.exports.symbolic import form_of

        names = dict(zip(OPERANDS, [self._named(operand, True) for operand in operands]))
        for leaf in names.values():
            self._check(leaf)
        form = map_leaves(form_of(operator), lambda leaf: names[leaf] if isinstance(leaf, str) else leaf)
        return self.text(fold_numbers(form), False)


def _without_minus(tree: Tree) -> Tree | None:
    """Return the negative of a tree that starts with a minus; None for other trees."""
    if is_number(tree):
        return -tree if tree < 0 else None
    if isinstance(tree, tuple) and tree[0] == "neg":
        return tree[1]
    if isinstance(tree, tuple) and tree[0] in ("mul", "div"):
        first = _without_minus(tree[1])
        return None if first is None else (tree[0], first, tree[2])
    return None
