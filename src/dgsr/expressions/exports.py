"""A formula as source code in Python and C.

It gives the numbers of the compiled evaluator: operators are applied in the order of the program,
constants are written with all their digits, and a value that is infinite on the way is not finite in the
end. Where arithmetic would make a finite number of an infinite operand, as in 1/x, exp(-x) and tanh(x), the
code asks whether the operand was finite. Only below 1e-307 it differs: there the evaluator's exp is 0.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dgsr.expressions import syntax
from dgsr.expressions.simple_numbers import recognised
from dgsr.expressions.symbolic import from_sympy
from dgsr.expressions.syntax import Tree, is_number, map_leaves
from dgsr.expressions.tidy import tidy

if TYPE_CHECKING:
    from dgsr.expressions.user import UserOperator

Functions = Mapping[str, "UserOperator"]

#: The operands that an operator may hide: it is finite where they are infinite, by their places.
HIDDEN = {"div": (1,), "pow": (0, 1), "exp": (0,), "tanh": (0,)}

#: What `form_of` calls the operands.
OPERANDS = ("a", "b")

# Significant digits of a constant that is there to be read.
_DIGITS = 5


# Values ------------------------------------------------------------------------------------------


def values(tree: Tree, variables: Mapping[str, np.ndarray], functions: Functions | None = None) -> Any:
    """Evaluate a tree on arrays; a value that is infinite on the way is not finite in the end.

    Parameters
    ----------
    tree : tree
    variables : mapping of str to ndarray
    functions : mapping of str to UserOperator, optional

    Returns
    -------
    ndarray or float

    Raises
    ------
    ValueError
        If a variable or a function has no value.
    """
    if not isinstance(tree, tuple) or tree == ("pi",):
        return syntax.evaluate(tree, variables)
    operands = [values(child, variables, functions) for child in tree[1:]]
    node = (tree[0], *OPERANDS[: len(operands)])
    result = syntax.evaluate(node, dict(zip(OPERANDS, operands)), functions=functions)
    with np.errstate(all="ignore"):
        for place in HIDDEN.get(tree[0], ()):
            result = result + 0.0 * operands[place]
    return result


def folded(tree: Tree, functions: Functions | None = None) -> Tree:
    """Return the tree with numbers in place of all its parts that have no variable."""
    if isinstance(tree, Fraction):
        return float(tree)
    if not isinstance(tree, tuple):
        return tree
    if tree == ("pi",):
        return math.pi
    children = [folded(child, functions) for child in tree[1:]]
    tree = (tree[0], *children)
    if all(map(is_number, children)):
        return float(values(tree, {}, functions))
    hidden = [children[place] for place in HIDDEN.get(tree[0], ())]
    if any(is_number(child) and not math.isfinite(child) for child in hidden):
        return math.nan
    return tree


def form_of(operator: UserOperator) -> Tree:
    """Return the tree of an operator of the user's own, its variables named as in `OPERANDS`.

    Raises
    ------
    ValueError
        If the operator has no sympy form, or one of functions that cannot be exported.
    """
    import sympy

    if operator.sympy is None:
        raise ValueError(
            f"Operator {operator.name!r} is a Python function alone and cannot be exported; give it its "
            f"formula too, with_operator({operator.name!r}, ..., sympy=...)."
        )
    names = OPERANDS[: operator.arity]
    try:
        form = operator.to_sympy(*map(sympy.Symbol, names))
        tree = from_sympy(_expression_of(form))
    except ValueError as error:
        raise ValueError(
            f"Operator {operator.name!r} cannot be exported by its sympy form: {error}"
        ) from error
    strange = sorted({leaf for leaf in syntax.leaves(tree) if isinstance(leaf, str)} - set(names))
    if strange:
        raise ValueError(
            f"Operator {operator.name!r} cannot be exported: its sympy form has the symbols "
            f"{', '.join(strange)}; write numbers in their place."
        )
    return folded(tree)


def _expression_of(form: Any) -> Any:
    """Return what a user's sympy form gave as an expression; text, which sympy would execute, is none."""
    import sympy

    if isinstance(form, sympy.Expr):
        return form
    if isinstance(form, Integral):
        return sympy.Integer(int(form))
    if isinstance(form, Real):
        return sympy.Float(float(form))
    raise ValueError(f"it is {form!r}, which is neither a sympy expression nor a number.")


# Source code -------------------------------------------------------------------------------------


class _Language(NamedTuple):
    """How a language writes what differs from another."""

    number: Callable[[Any], str]
    functions: Mapping[str, str]  # by operator: a pattern for its operand
    pow: str  # an infix operator, or a pattern for two operands
    largest_product: int  # powers up to this are products


def _python_number(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(float(value)) if math.isfinite(value) else f"np.{float(value)}".replace("np.-", "-np.")


def _c_number(value: Any) -> str:
    if math.isfinite(value):
        return repr(float(value))  # the shortest text that is read back as the same number
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"


_ONES_OWN = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt")
_INVERSE = ("arcsin", "arccos", "arctan")
_PYTHON = _Language(
    _python_number,
    {name: f"np.{name}({{}})" for name in (*_ONES_OWN, *_INVERSE, "abs")} | {"cot": "(1/np.tan({}))"},
    "**",
    1,
)
_C = _Language(
    _c_number,
    {name: f"{name}({{}})" for name in _ONES_OWN}
    | {name: f"{syntax.SHORT_NAMES[name]}({{}})" for name in _INVERSE}
    | {"abs": "fabs({})", "cot": "(1.0/tan({}))"},
    "pow({}, {})",
    4,
)

_SUM, _PRODUCT, _NEGATION, _POWER, _ATOM = 1, 2, 3, 4, 5


class _Source:
    """Writes one tree, its variables identifiers of the language.

    Attributes
    ----------
    lines : dict of str to str
        Operands that have to be named, by their text, in the order they are to be computed.
    checked : list of str
        Names whose values must be finite.
    """

    def __init__(self, language: _Language, functions: Functions, taken: Collection[str]) -> None:
        self.language = language
        self.functions = functions
        self.taken = set(taken)
        self.lines: dict[str, str] = {}
        self.checked: list[str] = []

    def write(self, tree: Tree) -> str:
        """Return the text of a tree; what it needs before it is in `lines`."""
        return self._text(folded(tree, self.functions), True)[0]

    def _named(self, tree: Tree, checks: bool) -> Tree:
        """Return a leaf that stands for the tree: itself, or the name of a new line."""
        if not isinstance(tree, tuple):
            return tree
        text = self._text(tree, checks)[0]
        if text not in self.lines:
            self.lines[text] = fresh("t", self.taken, start=1)
            self.taken.add(self.lines[text])
        return self.lines[text]

    def _check(self, leaf: Tree) -> None:
        if isinstance(leaf, str) and leaf not in self.checked:
            self.checked.append(leaf)

    def _text(self, tree: Tree, checks: bool) -> tuple[str, int]:
        """Return the text and its precedence; `checks` is false in an operator of the user's own."""
        if isinstance(tree, str):
            return tree, _ATOM
        if not isinstance(tree, tuple):
            text = self.language.number(tree)
            return text, _NEGATION if text.startswith("-") else _ATOM
        name, children = tree[0], list(tree[1:])
        if checks:
            for place in HIDDEN.get(name, ()):
                children[place] = self._named(children[place], checks)
                self._check(children[place])
        if name in ("add", "sub"):
            return self._sum(children[0], children[1], name == "sub", checks)
        if name in ("mul", "div"):
            left, right = self._within(children[0], _PRODUCT, checks), self._right(children[1], checks)
            return f"{left}{'*' if name == 'mul' else '/'}{right}", _PRODUCT
        if name == "neg":
            return f"-{self._within(children[0], _PRODUCT, checks, no_minus=True)}", _NEGATION
        if name in ("pow", "square", "cube"):
            exponent = children[1] if name == "pow" else 2 if name == "square" else 3
            return self._power(children[0], exponent, checks)
        if name in self.language.functions:
            return self.language.functions[name].format(self._text(children[0], checks)[0]), _ATOM
        return self._own(self.functions[name], children)

    def _within(self, tree: Tree, level: int, checks: bool, no_minus: bool = False) -> str:
        text, precedence = self._text(tree, checks)
        return f"({text})" if precedence < level or (no_minus and text.startswith("-")) else text

    def _right(self, tree: Tree, checks: bool) -> str:
        # A product on the right keeps its parentheses: a*(b/c) may be finite where a*b is not.
        return self._within(tree, _NEGATION, checks, no_minus=True)

    def _sum(self, left: Tree, right: Tree, minus: bool, checks: bool) -> tuple[str, int]:
        first = self._within(left, _SUM, checks)
        positive = _without_minus(right)
        if positive is not None:
            right, minus = positive, not minus
        second = self._within(right, _PRODUCT, checks, no_minus=True)
        return f"{first} {'-' if minus else '+'} {second}", _SUM

    def _power(self, base: Tree, exponent: Tree, checks: bool) -> tuple[str, int]:
        if is_number(exponent) and 1 < exponent <= self.language.largest_product and exponent % 1 == 0:
            factor = self._named(base, checks)
            return "*".join([self._within(factor, _ATOM, checks)] * int(exponent)), _PRODUCT
        if self.language.pow == "**":
            return f"{self._within(base, _ATOM, checks)}**{self._within(exponent, _POWER, checks)}", _POWER
        return self.language.pow.format(self._text(base, checks)[0], self._text(exponent, checks)[0]), _ATOM

    def _own(self, operator: UserOperator, operands: list[Tree]) -> tuple[str, int]:
        leaves = dict(zip(OPERANDS, [self._named(operand, True) for operand in operands]))
        for leaf in leaves.values():
            self._check(leaf)
        form = map_leaves(form_of(operator), lambda leaf: leaves[leaf] if isinstance(leaf, str) else leaf)
        return self._text(folded(form), False)


def _without_minus(tree: Tree) -> Tree | None:
    """Return what a tree that starts with a minus is the negative of; None for others."""
    if is_number(tree):
        return -tree if tree < 0 else None
    if isinstance(tree, tuple) and tree[0] == "neg":
        return tree[1]
    if isinstance(tree, tuple) and tree[0] in ("mul", "div"):
        first = _without_minus(tree[1])
        return None if first is None else (tree[0], first, tree[2])
    return None


def to_python(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write a module with one function of numpy arrays.

    Parameters
    ----------
    tree : tree
        With variables named x1 .. xd.
    names : sequence of str
        What the variables are called; made identifiers for the function's arguments.
    functions : mapping of str to UserOperator
    name : str
        Name of the function that is written.

    Raises
    ------
    ValueError
        If `name` cannot be a function's name, or an operator of the user's own has no form to export.
    """
    reserved = {*keyword.kwlist, "__debug__", "np", "float"}
    if not isinstance(name, str) or not name.isidentifier() or name in reserved:
        raise ValueError(f"name={name!r} cannot be a function in Python; write a word such as 'formula'.")
    arguments = identifiers(names, {*reserved, name})
    tree = _renamed(tree, arguments)
    source = _Source(_PYTHON, functions, {*reserved, name, *arguments})
    formula = source.write(tree)
    used = _used(arguments, folded(tree, functions))
    value, shape = fresh("value", source.taken), fresh("shape", source.taken)
    text, *more = [line.replace("\\", r"\\").replace('"', r"\"") for line in _told(tree, names, arguments)]
    lines = [f'"""{text}', "", *more, '"""']
    if len(used) < len(arguments):
        lines.append(f"{shape} = np.broadcast_shapes({', '.join(f'np.shape({a})' for a in arguments)})")
    lines += [f"{argument} = np.asarray({argument}, dtype=float)" for argument in used]
    lines.append('with np.errstate(all="ignore"):')
    lines += [f"    {operand} = {text}" for text, operand in source.lines.items()]
    # Not the argument itself: who changes the result must not change the data.
    lines.append(f"    {value} = {'+' if formula in arguments else ''}{formula}")
    result = value
    if source.checked:
        finite = " & ".join(f"np.isfinite({operand})" for operand in source.checked)
        result = f"np.where({finite}, {value}, np.nan)"
    if len(used) < len(arguments):
        result = f"np.full({shape}, {result})"
    lines.append(f"return {result}" + ("[()]" if result != value else ""))
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    return f"import numpy as np\n\n\ndef {name}({', '.join(arguments)}):\n{body}\n"


# Words of C that arguments must not be called by: keywords, what math.h has, what compilers define.
_C_WORDS = """
    alignas alignof auto bool break case char const constexpr continue default do double else enum extern
    false float for goto if inline int long nullptr register restrict return short signed sizeof static
    static_assert struct switch thread_local true typedef typeof typeof_unqual union unsigned void volatile
    while asm fortran main linux unix i386
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1
    fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround
    log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo
    rint round scalb scalbln scalbn signgam significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    fpclassify isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal
    isunordered signbit issignaling iscanonical iszero issubnormal iseqsig math_errhandling double_t float_t
    NAN INFINITY SNAN HUGE HUGE_VAL HUGE_VALF HUGE_VALL MAXFLOAT DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS
    X_TLOSS EDOM ERANGE
"""
_C_RESERVED = frozenset(_C_WORDS.split())
_C_MACROS = re.compile(r"_.*|(?:M|FP|MATH)_\w*")


def to_c(tree: Tree, names: Sequence[str], functions: Functions, name: str) -> str:
    """Write C99 source with one function of doubles; parameters as for `to_python`.

    Raises
    ------
    ValueError
        If `name` cannot be a function's name, or an operator of the user's own has no form to export.
    """
    is_word = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
    if not is_word or name in _C_RESERVED or _C_MACROS.fullmatch(name):
        raise ValueError(f"name={name!r} cannot be a function in C; write a word such as 'formula'.")
    arguments = identifiers(names, {*_C_RESERVED, name}, is_c=True)
    tree = _renamed(tree, arguments)
    source = _Source(_C, functions, {*_C_RESERVED, name, *arguments})
    formula = source.write(tree)
    used = _used(arguments, folded(tree, functions))
    told = "\n   ".join([*_told(tree, names, arguments), "Not to be compiled with -ffast-math."])
    comment = told.encode("ascii", "backslashreplace").decode().replace("*/", "* /").replace("/*", "/ *")
    lines = [f"(void){argument};" for argument in arguments if argument not in used]
    lines += [f"const double {operand} = {text};" for text, operand in source.lines.items()]
    if source.checked:
        finite = " && ".join(f"isfinite({operand})" for operand in source.checked)
        formula = f"{finite} ? {formula} : NAN"
    lines.append(f"return {formula};")
    body = "\n".join(f"    {line}" for line in lines)
    parameters = ", ".join(f"double {argument}" for argument in arguments)
    return f"#include <math.h>\n\n/* {comment} */\ndouble {name}({parameters})\n{{\n{body}\n}}\n"


def _renamed(tree: Tree, arguments: Sequence[str]) -> Tree:
    return syntax.rename(tree, {f"x{i + 1}": argument for i, argument in enumerate(arguments)})


def _used(arguments: Sequence[str], tree: Tree) -> list[str]:
    present = {leaf for leaf in syntax.leaves(tree) if isinstance(leaf, str)}
    return [argument for argument in arguments if argument in present]


def _told(tree: Tree, names: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Return lines for a person: the formula, its constants shortened, and the columns of odd names."""

    def shortened(leaf: Tree) -> Tree:
        return float(f"{leaf:.{_DIGITS}g}") if isinstance(leaf, float) else leaf

    lines = [
        syntax.to_text(tidy(map_leaves(recognised(tree), shortened))),
        "Not finite where the formula is undefined or infinite on the way.",
    ]
    odd = [f"    {argument}: {name!r}" for argument, name in zip(arguments, names) if argument != name]
    return [*lines, "Arguments, and the columns they stand for:", *odd] if odd else lines


# Names -------------------------------------------------------------------------------------------


def identifiers(names: Sequence[str], taken: Collection[str], is_c: bool = False) -> list[str]:
    """Make distinct identifiers of the names of columns.

    Parameters
    ----------
    names : sequence of str
    taken : collection of str
        Words that must not be used.
    is_c : bool
        Whether only ASCII may be used and no word starts with an underscore, as in C; else as in Python.

    Returns
    -------
    list of str
        A name that is one already stays; of others, what is no letter or digit becomes an underscore.

    Examples
    --------
    >>> identifiers(["mass", "a b", "a-b", "lambda", "2nd"], {"lambda"})
    ['mass', 'a_b', 'a_b_2', 'lambda_', 'x_2nd']
    """
    words = [unicodedata.normalize("NFKC", name) for name in names]  # as Python reads its source

    def is_usable(word: str) -> bool:
        if is_c and not (word.isascii() and not _C_MACROS.fullmatch(word)):
            return False
        return word.isidentifier() and word not in taken

    kept: set[str] = set(filter(is_usable, words))
    used = {*taken, *kept}
    result = []
    for i, word in enumerate(words):
        if word in kept:
            kept.remove(word)  # the first of equal names has it
        else:
            word = _cleaned(word, is_c) or f"x{i + 1}"
            if not word.isidentifier() or (is_c and _C_MACROS.fullmatch(word)):
                word = "x_" + word
            if word in taken:
                word += "_"
            word = fresh(word, used)
            used.add(word)
        result.append(word)
    return result


def _cleaned(word: str, is_c: bool) -> str:
    if is_c:
        decomposed = unicodedata.normalize("NFKD", "".join(map(spelled, word)))
        word = "".join(c for c in decomposed if not unicodedata.combining(c))
    word = re.sub(r"\W+", "_", word, flags=re.ASCII if is_c else 0)
    # Some signs count as letters or digits and are in no identifier.
    word = "".join(c if ("x" + c).isidentifier() else "_" for c in word)
    return word.strip("_")


def spelled(character: str) -> str:
    """Return the English name of a Greek letter, other characters as they are."""
    match = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if match is None:
        return character
    word = match[2].replace("LAMDA", "LAMBDA")
    return word.lower() if match[1] == "SMALL" else word.capitalize()


def fresh(word: str, used: Collection[str], start: int = 0) -> str:
    """Return the word, or, where it is used or `start` is given, the word with a number after it."""
    if not start and word not in used:
        return word
    number, link = (start, "") if start else (2, "_")
    while f"{word}{link}{number}" in used:
        number += 1
    return f"{word}{link}{number}"
