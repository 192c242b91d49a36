"""Trees of n-ary sums and products, parsed from the tokens of `mathml`.

Juxtaposed symbols are a product. What leaves doubt raises `LeftOut` with the reason. A tree is

    ("var", name), ("const", name), ("num", Fraction), ("pi",)
    ("sum", ((sign, tree), ...))
    ("prod", coefficient, (tree, ...), (tree, ...))    coefficient * product above / product below
    ("pow", base, exponent), (function, argument)
"""

from __future__ import annotations

import re
from fractions import Fraction

from _textbooks.mathml import BRACKETS, LeftOut, Token, joined

Node = tuple

_INVERSE = {"sin": "arcsin", "cos": "arccos", "tan": "arctan"}
#: Letters that end an argument without brackets.
_ANGLES = set("θφϕαβγδ")


def product(factors: list[tuple[Node, int]]) -> Node:
    """Return the product of trees, each to the power 1 or -1, with one rational coefficient."""
    coefficient = Fraction(1)
    sides: dict[int, list[Node]] = {1: [], -1: []}
    for tree, power in factors:
        if tree[0] == "num":
            if tree[1] == 0:
                raise LeftOut("product with zero")
            coefficient *= tree[1] ** power
        elif tree[0] == "prod":
            coefficient *= tree[1] ** power
            sides[power].extend(tree[2])
            sides[-power].extend(tree[3])
        elif tree[0] == "pow" and tree[2][0] == "num" and tree[2][1] < 0:
            sides[-power].append(power_of(tree[1], ("num", -tree[2][1])))
        else:
            sides[power].append(tree)
    if not sides[1] and not sides[-1]:
        return ("num", coefficient)
    if coefficient == 1 and len(sides[1]) == 1 and not sides[-1]:
        return sides[1][0]
    return ("prod", coefficient, tuple(sides[1]), tuple(sides[-1]))


def total(terms: list[tuple[int, Node]]) -> Node:
    """Return the sum of signed trees, flat, with every sign in front of its term."""
    flat: list[tuple[int, Node]] = []
    for sign, tree in terms:
        if tree[0] == "sum":
            flat.extend((sign * inner, term) for inner, term in tree[1])
        elif tree[0] == "prod" and tree[1] < 0:
            flat.append((-sign, product([(tree, 1), (("num", Fraction(-1)), 1)])))
        elif tree[0] == "num" and tree[1] < 0:
            flat.append((-sign, ("num", -tree[1])))
        else:
            flat.append((sign, tree))
    if len(flat) == 1:
        sign, tree = flat[0]
        return tree if sign > 0 else product([(("num", Fraction(-1)), 1), (tree, 1)])
    return ("sum", tuple(flat))


def power_of(base: Node, exponent: Node) -> Node:
    """Return a power by its shortest name."""
    names = {Fraction(2): "square", Fraction(3): "cube", Fraction(1, 2): "sqrt"}
    if exponent[0] == "num" and exponent[1] == 1:
        return base
    if exponent[0] == "num" and base[0] == "num" and exponent[1].denominator == 1 and abs(exponent[1]) < 20:
        return ("num", base[1] ** int(exponent[1]))
    if exponent[0] == "num" and exponent[1] in names:
        return (names[exponent[1]], base)
    if exponent[0] == "num" and exponent[1] == -1:
        return product([(base, -1)])
    return ("pow", base, exponent)


class Parser:
    """Reads one side of a formula from its tokens by precedence."""

    def __init__(self, found: tuple[Token, ...] | list[Token]) -> None:
        self.tokens = joined(list(found))
        self.place = 0

    def all(self) -> Node:
        """Return the tree of all tokens."""
        tree = self._sum()
        if self.place < len(self.tokens):
            raise LeftOut(self._next()[1] if self._next()[0] == "bad" else "not read to its end")
        return tree

    def _next(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else ("end",)

    def _sum(self) -> Node:
        terms = []
        sign = self._signs()
        while True:
            terms.append((sign, self._product()))
            if self._next() not in (("op", "+"), ("op", "-")):
                return total(terms)
            sign = self._signs()

    def _signs(self) -> int:
        sign = 1
        while self._next() in (("op", "+"), ("op", "-")):
            sign *= -1 if self._next()[1] == "-" else 1
            self.place += 1
        return sign

    def _product(self, bare: bool = False) -> Node:
        """Read factors; `bare` for the argument of a function without brackets and for a denominator."""
        factors = [(self._power(), 1)]
        while True:
            token, before = self._next(), self.tokens[self.place - 1]
            if bare and (
                token[0] == "fn" or token[0] == "op" or (before[0] == "id" and before[1][0] in _ANGLES)
            ):
                break
            if token == ("op", "*"):
                self.place += 1
                factors.append((product([(("num", Fraction(self._signs())), 1), (self._power(), 1)]), 1))
            elif token == ("op", "/"):
                self.place += 1
                number = self._next()[0] == "num" and before[0] == "num"
                factors.append((self._power() if number else self._product(bare=True), -1))
            elif token[0] in ("num", "id", "fn", "frac", "root", "open"):
                if token[0] == "num" and before[0] in ("num", "frac"):
                    raise LeftOut("number with a unit")
                factors.append((self._power(), 1))
            else:
                break
        return product(factors)

    def _power(self) -> Node:
        token = self._next()
        self.place += 1
        if token[0] == "fn":
            return self._function(token[1])
        tree = self._primary(token)
        while self._next()[0] == "sup":
            exponent = Parser(self._next()[1]).all()
            self.place += 1
            plain = exponent[0] == "num" and exponent[1] > 0
            if tree == ("num", Fraction(10)) and exponent[0] == "num":
                raise LeftOut("number with a unit")
            tree = ("exp", exponent) if tree == ("var", "e") and not plain else power_of(tree, exponent)
        return tree

    def _function(self, name: str) -> Node:
        power: Node | None = None
        if self._next()[0] == "sup":
            power = Parser(self._next()[1]).all()
            self.place += 1
            if power == ("num", Fraction(-1)) and name in _INVERSE:
                name, power = _INVERSE[name], None
        brackets = self._next()[0] == "open"
        argument = self._power() if brackets else self._product(bare=True)
        tree = (name, argument)
        return tree if power is None else power_of(tree, power)

    def _species(self) -> Node | None:
        """Return the concentration of a chemical species in square brackets, which is one symbol."""
        name = ""
        for place in range(self.place, len(self.tokens)):
            if self.tokens[place][0] != "id":
                if self.tokens[place] != ("close", "]") or not name:
                    return None
                self.place = place + 1
                return ("var", f"[{name}]" if len(name) > 1 else name)
            name += self.tokens[place][1]
        return None

    def _primary(self, token: Token) -> Node:
        kind = token[0]
        if kind == "num":
            return _number(token[1])
        if kind == "id":
            called = [self._next(ahead)[0] for ahead in range(3)]
            if called == ["open", "id", "close"] and self._next()[1] == "(":
                self.place += 3
            return ("pi",) if token[1] == "π" else ("var", token[1])
        if kind == "frac":
            heads = [side[0] if side else ("end",) for side in token[1:]]
            if all(head[0] == "id" and re.match("d(_|$)", head[1]) for head in heads):
                raise LeftOut("derivative")
            return product([(Parser(token[1]).all(), 1), (Parser(token[2]).all(), -1)])
        if kind == "root":
            index = Parser(token[2]).all()
            if index[0] != "num":
                raise LeftOut("root with a variable index")
            return power_of(Parser(token[1]).all(), ("num", 1 / index[1]))
        if kind == "open":
            species = self._species() if token[1] == "[" else None
            if species is not None:
                return species
            tree = self._sum()
            if self._next() != ("close", BRACKETS[token[1]]):
                raise LeftOut("brackets that do not match or enclose a list")
            self.place += 1
            return tree
        if kind == "bar":
            tree = self._sum()
            if self._next() != ("bar",):
                raise LeftOut("brackets that do not match or enclose a list")
            self.place += 1
            return ("abs", tree)
        raise LeftOut(token[1] if kind == "bad" else "not read to its end")


def _number(text: str) -> Node:
    value = Fraction(text)
    small = value.denominator == 1 and value <= 100
    return ("num", value) if small else ("const", "#" + text)
