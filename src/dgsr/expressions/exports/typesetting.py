"""Formulas in LaTeX and MathML, with constants of five digits and names of any characters."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy.printing.latex import LatexPrinter, tex_greek_dictionary, translate
from sympy.printing.mathml import MathMLPresentationPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pretty.pretty_symbology import greek_letters
from sympy.printing.printer import Printer

from dgsr.expressions.exports.identifiers import spelled
from dgsr.expressions.exports.symbolic import placeholder, rebuilt, to_sympy
from dgsr.expressions.trees.evaluation import Functions
from dgsr.expressions.trees.simple_numbers import DIGITS_SHOWN, digits_of, is_far
from dgsr.expressions.trees.trees import Tree, is_number, rewritten, variables_of

# Largest absolute exponent of a power whose sign and other properties sympy may examine.
_PLAIN_POWER = 10

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*")
# Characters that LaTeX does not print literally in a formula, and the LaTeX that prints them.
_LATEX = {c: f"\\{c}" for c in "%#&$_{}"} | {c: f"{{{c}}}" for c in "+-*/=<>,;:|!?()[]"}
_LATEX |= {" ": r"\ ", "\\": r"{\backslash}", "^": r"{\wedge}", "~": r"{\sim}", '"': "''", "`": "'"}


def _prepared(tree: Tree, functions: Functions) -> tuple[sympy.Expr, dict[Any, Any]]:
    """Return a tree in sympy with placeholders, and the part that each of them represents."""
    shown: dict[Any, Any] = {}
    symbols: dict[str, sympy.Symbol] = {name: sympy.Symbol(name) for name in variables_of(tree)}

    def hidden(node: Tree) -> Tree:
        if node[0] != "sub":
            return node
        first, second = node[1:]
        if isinstance(first, str) and is_number(second) and is_far(second):
            distance = symbols[first], "+" if second < 0 else "-", _written_out(abs(second))
        elif is_number(first) and is_far(first) and isinstance(second, str):
            distance = _written_out(first), "-", symbols[second]
        else:
            return node
        name = f"{first} - {second}"
        symbols[name] = placeholder(len(shown))
        shown[symbols[name]] = distance
        return name

    # sympy would distribute over the difference of a column and a large number, x - 1700000000.
    expression = to_sympy(rewritten(tree, hidden), symbols, functions)
    return _with_placeholders(expression, shown), shown


def to_latex(tree: Tree, functions: Functions) -> str:
    """Write a tree in LaTeX, as sympy writes it: floats of 5 digits, and names of any characters."""
    expression, shown = _prepared(tree, functions)
    return _LatexPrinter(shown).doprint(expression)


def to_mathml(tree: Tree, functions: Functions) -> str:
    """Write a tree in presentation MathML, as sympy writes it, in an element ``math``.

    The text is ASCII, and floats have 5 digits. Names are printed literally and escaped; Greek letters and
    indices are typeset.
    """
    expression, shown = _prepared(tree, functions)
    # Adjacent words would read as one word.
    has_words = not all(_is_letter(_latin(name)) for name in variables_of(tree))
    text = _MathmlPrinter(shown, {"mul_symbol": "dot" if has_words else None}).doprint(expression)
    text = text.replace("<mn>-", "<mn>&#8722;").replace("<mo>-</mo>", "<mo>&#8722;</mo>")
    text = text.replace("&ExponentialE;", "e")  # few fonts have the double-struck letter of this entity
    # XML has only five named entities.
    text = re.sub(r"&(?!amp;|lt;|gt;)[A-Za-z]+;", lambda match: html.unescape(match[0]), text)
    text = text.encode("ascii", "xmlcharrefreplace").decode()
    return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{text}</math>'


def _with_placeholders(expression: Any, shown: dict[Any, Any]) -> Any:
    """Return the expression with a symbol for each operand and exponent that is not plain.

    The hidden part of each symbol is added to `shown`. sympy's printers examine whether exponents are
    negative, which may take forever for functions of functions and for high powers.
    """
    parts = []
    for part in expression.args:
        parts.append(_with_placeholders(part, shown))
    # The base of a power is not hidden, since it may need parentheses.
    is_power = expression.is_Pow
    if is_power or isinstance(expression, sympy.Function):
        for place in range(int(is_power), len(parts)):
            if not _is_plain(parts[place]):
                symbol = placeholder(len(shown))
                shown[symbol] = parts[place]
                parts[place] = symbol
    return rebuilt(expression, parts)


def _is_plain(part: Any) -> bool:
    if part.is_Symbol or part.is_number:
        return True
    exponents = [power.exp for power in part.atoms(sympy.Pow)]
    return not part.has(sympy.Function, sympy.Dummy) and all(
        exponent.is_Rational and abs(exponent) <= _PLAIN_POWER for exponent in exponents
    )


class _Restoring(Printer):
    """A printer of sympy that prints the hidden parts of the placeholders of `_with_placeholders`."""

    def __init__(self, shown, settings=None):
        super().__init__(settings)
        self.shown = shown

    def _print_Dummy(self, symbol):
        part = self.shown.get(symbol, symbol)
        if isinstance(part, tuple):  # the parts of a difference, in which texts are numbers and signs
            return self._print_distance(part)
        return self._print_Symbol(symbol) if part is symbol else self._print(part)


class _LatexPrinter(_Restoring, LatexPrinter):
    def _print_distance(self, distance):
        shown = [part if isinstance(part, str) else self._print(part) for part in distance]
        return rf"\left({' '.join(shown)}\right)"

    def _print_Float(self, number):
        return super()._print_Float(sympy.Float(number, DIGITS_SHOWN))

    def _print_Symbol(self, symbol, style="plain"):
        name = _latin(symbol.name)
        if _PLAIN.fullmatch(name):
            return super()._print_Symbol(sympy.Symbol(name), style)
        letters = [
            f"{{{translate(spelled(c))}}}" if spelled(c) != c else _LATEX.get(c, c) for c in _visible(name)
        ]
        return rf"\mathrm{{{''.join(letters)}}}"


class _MathmlPrinter(_Restoring, MathMLPresentationPrinter):
    """A printer that escapes names; sympy's own does not, and splits names at underscores."""

    def _as_ordered_terms(self, expr, order=None):
        # This prints 5 - x rather than -x + 5.
        terms = super()._as_ordered_terms(expr, order=order)
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    def _print_Symbol(self, symbol, style="plain"):
        name = _latin(symbol.name)
        if _is_letter(name):
            return super()._print_Symbol(sympy.Symbol(name), style)
        return self._element("mi", _visible(symbol.name))

    def _print_UnevaluatedExpr(self, expr):
        return self._print(expr.args[0])

    def _print_distance(self, distance):
        return self._row(self._element("mo", "("), *map(self._part, distance), self._element("mo", ")"))

    def _part(self, part):
        if not isinstance(part, str):
            return self._print(part)
        return self._element("mo" if part in "+-" else "mn", part)

    def _row(self, *parts, name="mrow"):
        row = self.dom.createElement(name)
        for part in parts:
            row.appendChild(part)
        return row

    def _print_Float(self, number):
        mantissa, _, exponent = _shortened(number).partition("e")
        if not exponent:
            return self._element("mn", mantissa)
        power = self._row(self._element("mn", "10"), self._element("mn", str(int(exponent))), name="msup")
        return self._row(self._element("mn", mantissa), self._element("mo", "\N{MULTIPLICATION SIGN}"), power)

    def parenthesize(self, item, level, strict=False):
        # sympy has no parentheses in (2*10^-7)^x, since it treats every number as an atom.
        if item.is_Float and level >= PRECEDENCE["Pow"] and "e" in _shortened(item):
            return self._row(self._element("mo", "("), self._print(item), self._element("mo", ")"))
        return super().parenthesize(item, level, strict)

    def emptyPrinter(self, expr):
        return self._element("mtext", str(expr))

    def _element(self, name, text):
        element = self.dom.createElement(name)
        # sympy's document does not escape its text.
        element.appendChild(self.dom.createTextNode(html.escape(text, quote=False)))
        return element


def _written_out(number: int | float | Fraction) -> str:
    """Return a number without a power of ten."""
    return np.format_float_positional(float(number), precision=digits_of(number), fractional=False, trim="-")


def _shortened(number: Any) -> str:
    """Return a number to five digits."""
    value = float(number)
    if math.isinf(value) or (value == 0 and number != 0):
        return str(number.n(DIGITS_SHOWN))  # the number is beyond a float
    if value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.{DIGITS_SHOWN}g}"


def _is_letter(name: str) -> bool:
    """Return whether a name is a Latin or Greek letter, or one with an index."""
    indexed = re.fullmatch(r"([A-Za-z]+)(?:_?\d+)?", name)
    if indexed is None:
        return False
    letter = indexed[1]
    return len(letter) == 1 or letter.lower() in greek_letters or letter in tex_greek_dictionary


def _latin(name: str) -> str:
    """Spell out the Greek letter of a name that is one letter with numbers or subscripts."""
    name = unicodedata.normalize("NFKC", name)
    return spelled(name[0]) + name[1:] if re.fullmatch(r".\d*(?:_[A-Za-z0-9]+)*", name) else name


def _visible(name: str) -> str:
    """Return a name without control characters and surrogates, which XML must not have."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Cn", "Zl", "Zp") else c for c in name)
