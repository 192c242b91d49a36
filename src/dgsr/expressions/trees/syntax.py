"""Formulas as text: a small grammar, which `parse` reads and `to_text` writes. No code is executed.

expression := operand (operator operand)*     operators: + - * / ** (also ^), ** binds to the right
operand    := number | name | function "(" arguments ")" | "(" expression ")" | ("-" | "+") operand
arguments  := expression ("," expression)*    as many as the function has: one, or two for some user-defined
                                              operators
name       := letters, digits and _ | "`" characters "`"    the second for all other names, such as `m/s^2`;
                                              a backslash escapes "`" and itself
"""

from __future__ import annotations

import decimal
import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from dgsr.expressions.trees.evaluation import MAX_EXPONENT, Functions
from dgsr.expressions.trees.infix import ATOM, NEGATION, POWER, PRODUCT, SUM, InfixWriter
from dgsr.expressions.trees.trees import (
    ALIASES,
    FUNCTIONS,
    MAX_LEVELS,
    SHORT_NAMES,
    Tree,
    is_number,
    variables_of,
)

#: Most characters of a formula.
MAX_TEXT = 20_000
# Most characters of a formula in an error message.
_MAX_SHOWN = 80
# Most characters of a number without its exponent.
_MAX_DIGITS = 50

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<quoted>`(?:[^`\\]|\\.)*`)"
    r"|(?P<operator>\*\*|[-+*/^(),]))"
)
_NAME = re.compile(r"[^\W\d]\w*")
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4}|.)")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}

_BINARY = {
    "+": ("add", SUM), "-": ("sub", SUM), "*": ("mul", PRODUCT), "/": ("div", PRODUCT), "**": ("pow", POWER)
}  # fmt: skip


def parse(text: str, variables: Sequence[str] | None = None, functions: Functions | None = None) -> Tree:
    """Read a formula.

    Parameters
    ----------
    text : str
        A formula, such as ``"2*sin(x1)**2 - x2/3"``.
    variables : sequence of str, optional
        Names that may occur; by default all names that are not functions. ``pi`` is the constant, and a
        variable of this name is written in backticks.
    functions : mapping of str to UserOperator, optional
        User-defined operators, `Library.functions`.

    Returns
    -------
    tree
        Decimals become exact fractions.

    Raises
    ------
    ValueError
        If the text cannot be read; the message has the position, the text there and what to write instead.

    Examples
    --------
    >>> parse("x1**2 - sin(x2)")
    ('sub', ('pow', 'x1', 2), ('sin', 'x2'))
    """
    return _Parser(text, variables, functions or {}).parse()


def parse_form(
    text: str, columns: Sequence[str], functions: Functions | None = None
) -> tuple[Tree, dict[str, int], list[str]]:
    """Read a form: a formula with unknown functions, such as ``"f(T)*g(p, c) + k"``, and constants.

    Parameters
    ----------
    text : str
        Names before a parenthesis that are neither operators nor columns are unknown functions, of formulas
        with at least one column; other names that are no columns are constants.
    columns : sequence of str
    functions : mapping of str to UserOperator, optional
        User-defined operators, `Library.functions`.

    Returns
    -------
    tree
        An application of an unknown function is a node with its name.
    dict of str to int
        The unknown functions, in the order of the text, with their numbers of arguments.
    list of str
        The constants, in the order of the text.

    Raises
    ------
    ValueError
        If the text cannot be read; the message has the position, the text there and what to write instead.

    Examples
    --------
    >>> parse_form("k*f(x1) - f(x2)", ["x1", "x2"])
    (('sub', ('mul', 'k', ('f', 'x1')), ('f', 'x2')), {'f': 1}, ['k'])
    """
    parser = _FormParser(text, columns, functions or {})
    return parser.parse(), parser.unknown, [*parser.constants]


class _Parser:
    """Precedence climbing: two Python frames for each level of nesting."""

    def __init__(self, text: str, variables: Sequence[str] | None, functions: Functions) -> None:
        if not isinstance(text, str):
            raise ValueError(f"A formula must be a str, not {type(text).__name__}.")
        if len(text) > MAX_TEXT:
            raise ValueError(f"The formula has {len(text)} characters; shorten it to at most {MAX_TEXT}.")
        self.text = text
        self.arities = dict.fromkeys(FUNCTIONS, 1) | {name: f.arity for name, f in functions.items()}
        self.variables = None if variables is None else frozenset(variables)
        self.tokens = list(self._tokenise())
        self.at = 0
        self.nesting = 0

    def _tokenise(self) -> Iterator[tuple[str, str, int]]:
        position, end = 0, len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None:
                position += len(self.text[position:]) - len(self.text[position:].lstrip())
                raise self._error(position, self.text[position], "remove it or write an operator")
            kind = str(match.lastgroup)
            yield kind, "**" if match[kind] == "^" else match[kind], match.start(kind)
            position = match.end()
        yield "end", "the end", len(self.text)

    def _error(self, position: int, found: str, mend: str) -> ValueError:
        return ValueError(
            f"Cannot read the formula {shown(self.text)!r}: position {position}, {found!r}: {mend}."
        )

    def parse(self) -> Tree:
        tree, _ = self._expression(0)
        kind, value, position = self.tokens[self.at]
        if kind != "end":
            mend = "there is no '(' for it" if value == ")" else "write an operator before it"
            raise self._error(position, value, mend)
        return tree

    def _expression(self, level: int) -> tuple[Tree, int]:
        """Read operands joined by operators of at least precedence `level`; return a tree and its depth.

        The depth is limited here, since every level of nesting passes through this method.
        """
        self.nesting += 1
        self._check_depth(self.nesting)
        left, depth = self._operand()
        while True:
            _, value, _ = self.tokens[self.at]
            name, precedence = _BINARY.get(value, ("", -1))
            if precedence < level:
                self.nesting -= 1
                return left, depth
            self.at += 1
            right, right_depth = self._expression(precedence + (name != "pow"))
            depth = max(depth, right_depth) + 1
            self._check_depth(depth)
            left = (name, left, right)

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_LEVELS:
            _, value, position = self.tokens[self.at]
            raise self._error(position, value, f"over {MAX_LEVELS} levels deep; shorten the formula")

    def _operand(self) -> tuple[Tree, int]:
        kind, value, position = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return self._number(value, position), 1
        if kind == "name":
            return self._name(value, position)
        if kind == "quoted":
            name = _unquoted(value)
            if self.variables is not None and name not in self.variables:
                raise self._unknown(value, position)
            return name, 1
        if value == "(":
            result = self._expression(0)
            self._close(position)
            return result
        if value == "-":
            inner, depth = self._expression(NEGATION)
            is_negative = is_number(inner) and inner != 0  # -0 stays a negation, as it is written again
            return (-inner, depth) if is_negative else (("neg", inner), depth + 1)
        if value == "+":
            return self._expression(NEGATION)
        raise self._error(position, value, "a number, a variable, a function or '(' must stand here")

    def _close(self, opened: int) -> None:
        _, value, position = self.tokens[self.at]
        if value != ")":
            raise self._error(position, value, f"close the '(' of position {opened} or write an operator")
        self.at += 1

    def _arguments(self, function: str, opened: int) -> tuple[Tree, int]:
        """Read the arguments of a function after its '('; return the function's tree and its depth."""
        arguments = [self._expression(0)]
        while len(arguments) < self.arities[function]:
            _, value, position = self.tokens[self.at]
            if value != ",":
                mend = f"{function} takes {self.arities[function]} arguments; write ','"
                raise self._error(position, value, mend)
            self.at += 1
            arguments.append(self._expression(0))
        self._close(opened)
        children, depths = zip(*arguments)
        return (function, *children), max(depths) + 1

    def _name(self, name: str, position: int) -> tuple[Tree, int]:
        if self.tokens[self.at][1] == "(":
            opened = self.tokens[self.at][2]
            function = ALIASES.get(name, name)
            if function not in self.arities:
                mend = f"not a function; write '*' before '(' or use one of {', '.join(self.arities)}"
                raise self._error(position, name, mend)
            self.at += 1
            return self._arguments(function, opened)
        if name == "pi":
            return ("pi",), 1
        if self.variables is None:
            if ALIASES.get(name, name) in self.arities:
                raise self._error(position, name, "a function; write its argument in parentheses")
        elif name not in self.variables:
            raise self._unknown(name, position)
        return name, 1

    def _unknown(self, name: str, position: int) -> ValueError:
        known = ", ".join(map(quoted, sorted(self.variables or ())))
        return self._error(position, name, f"not a variable; the variables are {known}")

    def _number(self, text: str, position: int) -> int | Fraction:
        mantissa, _, exponent = text.lower().partition("e")
        if len(mantissa) > _MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_EXPONENT:
            mend = f"write at most {_MAX_DIGITS} digits and exponents up to {MAX_EXPONENT}"
            raise self._error(position, text, mend)
        value = Fraction(text)
        return value.numerator if value.denominator == 1 else value


class _FormParser(_Parser):
    """The parser of `parse_form`."""

    def __init__(self, text: str, columns: Sequence[str], functions: Functions) -> None:
        super().__init__(text, None, functions)
        self.columns = columns
        self.unknown: dict[str, int] = {}
        self.constants: dict[str, None] = {}
        self.outer = ""  # the unknown function in whose arguments the parser is

    def _name(self, name: str, position: int) -> tuple[Tree, int]:
        is_call = self.tokens[self.at][1] == "("
        if is_call and ALIASES.get(name, name) not in self.arities:
            return self._application(name, position)
        if not is_call and name != "pi" and name not in self.columns:
            self._check_constant(name, position)
            self.constants[name] = None
        return super()._name(name, position)

    def _check_constant(self, name: str, position: int) -> None:
        if name in self.unknown:
            raise self._error(position, name, "an unknown function; write its arguments, or another name")
        if len(name) > 2 and (similar := difflib.get_close_matches(name, self.columns, 1, 0.75)):
            raise self._error(position, name, f"no column; did you mean {similar[0]!r}?")

    def _application(self, name: str, position: int) -> tuple[Tree, int]:
        if name in self.columns or name in self.constants:
            kind = "column" if name in self.columns else "constant"
            raise self._error(position, name, f"a {kind} and no function; write '*' before '('")
        if self.outer:
            mend = f"an unknown function inside another one, {self.outer}; write {self.outer} of columns"
            raise self._error(position, name, mend)
        self.outer = name
        opened = self.tokens[self.at][2]
        arguments = list[tuple[Tree, int]]()
        while not arguments or self.tokens[self.at][1] == ",":
            self.at += 1
            arguments.append(self._argument())
        self._close(opened)
        self.outer = ""
        n_arguments = self.unknown.setdefault(name, len(arguments))
        if n_arguments != len(arguments):
            mend = f"it has {len(arguments)} arguments here and {n_arguments} before; write as many"
            raise self._error(position, name, mend)
        children, depths = zip(*arguments)
        return (name, *children), max(depths) + 1

    def _argument(self) -> tuple[Tree, int]:
        _, value, position = self.tokens[self.at]
        tree, depth = self._expression(0)
        if variables_of(tree).isdisjoint(self.columns):
            known = ", ".join(map(quoted, self.columns[:20]))
            raise self._error(position, value, f"an argument has no column; the columns are {known}")
        return tree, depth


def quoted(name: str) -> str:
    """Return the text of a variable's name in a formula, in backticks where it would be ambiguous.

    Examples
    --------
    >>> quoted("m/s^2"), quoted("speed")
    ('`m/s^2`', 'speed')
    """
    if _NAME.fullmatch(name) and name != "pi" and name not in FUNCTIONS and name not in ALIASES:
        return name
    escaped = "".join("\\" + c if c in "\\`" else _printable(c) for c in name)
    return f"`{escaped}`"


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _unquoted(text: str) -> str:
    """Return the name that `quoted` wrote."""

    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROLS.get(code, code)

    return _ESCAPE.sub(character, text[1:-1])


def shown(text: str) -> str:
    """Return the text of a formula for an error message, which has its beginning if it is long."""
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar known one, or the first 60.

    Examples
    --------
    >>> suggestion("doze", ["dose", "rate"])
    "did you mean 'dose'?"
    """
    names = list(known)
    similar = difflib.get_close_matches(str(name), names, 1, 0.6)
    return f"did you mean {similar[0]!r}?" if similar else f"choose from {', '.join(names[:60])}."


def to_text(tree: Tree) -> str:
    """Write a tree as text that `parse` reads back to a tree of the same values.

    Examples
    --------
    >>> to_text(("mul", ("add", "x1", -2), ("neg", ("pow", "x2", 2))))
    '(x1 - 2)*(-x2**2)'
    """
    return _FormulaWriter().text(tree)[0]


class _FormulaWriter(InfixWriter):
    def leaf(self, leaf: Tree) -> tuple[str, int]:
        return (quoted(leaf), ATOM) if isinstance(leaf, str) else _number_text(leaf)

    def call(self, name: str, operands: Sequence[Tree]) -> tuple[str, int]:
        if name == "pi":
            return "pi", ATOM
        return f"{SHORT_NAMES.get(name, name)}({', '.join(self.text(child)[0] for child in operands)})", ATOM


def _number_text(value: int | float | Fraction) -> tuple[str, int]:
    if isinstance(value, float):
        text = repr(float(value))  # float(): numpy's own repr names its type
    elif isinstance(value, int) and abs(value) < 10**15:
        text = str(value)
    else:
        text = _decimal(value)
        if not text:
            return f"{value.numerator}/{value.denominator}", PRODUCT
    return text, NEGATION if text.startswith("-") else ATOM


def _decimal(value: int | Fraction) -> str:
    """Write a number as a decimal that `parse` reads exactly, or return an empty text."""
    context = decimal.Context(prec=_MAX_DIGITS - 1)
    number = context.divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))
    text = str(number)
    if "E" in text:
        text = str(number.normalize(context))  # without zeros at the end
    return text.lower() if Fraction(text) == value else ""
