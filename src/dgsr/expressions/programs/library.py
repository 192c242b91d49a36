"""The token library: the operators, constants and variables of which an equation may consist.

A token is a small integer: operators first, then ``const`` (where the library has it), then the variables
``x1 .. xd``. So the tokens of a library with few variables are the first tokens of the same library with
more, and one generator serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dgsr.expressions.trees.user_operators import UserOperator


class Opcode(IntEnum):
    """The instruction that the compiled evaluator executes at a node."""

    VARIABLE, CONSTANT, ADD, SUB, MUL, DIV, EXP, LOG, SIN, COS = range(10)
    SQRT, SQUARE, CUBE, POW, NEG, INV, TANH, ABS, ARCSIN, ARCCOS, USER_UNARY, USER_BINARY = range(10, 22)


@dataclass(frozen=True)
class Token:
    """One entry of a library.

    Parameters
    ----------
    name : str
        Name in programs, cards and on the command line.
    arity : int
        Number of children: 0, 1 or 2.
    complexity : int
        c(f_i) of the paper, appendix "Evaluation Metrics".
    opcode : Opcode
        Instruction of the evaluator.
    weight : float
        Relative frequency in random subtrees, small for functions that are rare in laws: with equal weights
        evolution found 7 of 14 Strogatz problems, with these 11.
    """

    name: str
    arity: int
    complexity: int
    opcode: Opcode
    weight: float = 1.0


OPERATORS = {
    token.name: token
    for token in (
        Token("add", 2, 1, Opcode.ADD),
        Token("sub", 2, 1, Opcode.SUB),
        Token("mul", 2, 1, Opcode.MUL),
        Token("div", 2, 2, Opcode.DIV),
        Token("exp", 1, 4, Opcode.EXP),
        Token("log", 1, 4, Opcode.LOG),
        Token("sin", 1, 3, Opcode.SIN),
        Token("cos", 1, 3, Opcode.COS),
        Token("sqrt", 1, 3, Opcode.SQRT, 0.5),
        Token("square", 1, 2, Opcode.SQUARE, 0.7),
        Token("cube", 1, 2, Opcode.CUBE, 0.2),
        Token("pow", 2, 4, Opcode.POW, 0.1),
        Token("neg", 1, 1, Opcode.NEG, 0.1),
        Token("inv", 1, 2, Opcode.INV, 0.4),
        Token("tanh", 1, 4, Opcode.TANH, 0.1),
        Token("abs", 1, 2, Opcode.ABS, 0.05),
        Token("arcsin", 1, 4, Opcode.ARCSIN, 0.05),
        Token("arccos", 1, 4, Opcode.ARCCOS, 0.05),
    )
}

#: Operators as people type them.
SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "**": "pow"}

# Operators that write what another one can write, too, in fewer tokens.
_SHORTER = {"mul": ("square", "cube"), "pow": ("sqrt",), "sub": ("neg",), "div": ("inv",)}

_KOZA = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos")
_PHYSICS = (*_KOZA, "sqrt", "square", "cube", "pow", "neg", "inv", "tanh", "abs", "arcsin", "arccos")

#: The operators of each preset, and whether it has fitted constants.
PRESETS: dict[str, tuple[tuple[str, ...], bool]] = {
    "koza": (_KOZA, False),
    "koza-const": (_KOZA, True),
    "physics": (_PHYSICS, True),
    "synth": (("add", "sub", "mul", "div"), False),
}

#: Largest complexity of a token; it bounds the archive of a search, which has an entry for every bit of a
#: length.
MOST_COMPLEX = 100


class TokenTable(NamedTuple):
    """A library as arrays, for the compiled kernels; one entry per token."""

    arity: np.ndarray  # (n_tokens,) int64
    opcode: np.ndarray  # (n_tokens,) int64
    argument: np.ndarray  # (n_tokens,) int64: column of X, or address of a user's operator, else 0
    complexity: np.ndarray  # (n_tokens,) int64


@dataclass(frozen=True)
class Library:
    """An ordered set of tokens.

    Parameters
    ----------
    name : str
        Name of a preset, or any other name.
    operators : tuple of str
        Keys of `OPERATORS`, and names of `user_operators`.
    has_constants : bool
        Whether the token ``const``, a fitted number, is among the tokens.
    n_variables : int
        Number of input variables d.
    user_operators : tuple of UserOperator
        User-defined operators, which `with_operator` appends.
    complexities : tuple of (str, int)
        Complexities that differ from the default, by token name; see `with_complexities`.

    Raises
    ------
    ValueError
        If an operator is unknown or repeated, `n_variables` is below 1, or a complexity is no whole number
        from 1 to 100.
    """

    name: str
    operators: tuple[str, ...]
    has_constants: bool
    n_variables: int
    user_operators: tuple[UserOperator, ...] = ()
    complexities: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        known = (*OPERATORS, *self.functions)
        unknown = [name for name in self.operators if name not in known]
        if unknown:
            raise ValueError(f"operators={unknown} are unknown; choose from {', '.join(known)}.")
        if len(set(self.operators)) != len(self.operators):
            raise ValueError(f"operators={self.operators} repeats a name; name each operator once.")
        if self.n_variables < 1:
            raise ValueError(f"n_variables={self.n_variables} must be at least 1.")
        for name, complexity in self.complexities:
            if type(complexity) is not int or not 1 <= complexity <= MOST_COMPLEX:
                raise ValueError(
                    f"complexity={complexity!r} of {name!r} must be a whole number from 1 to {MOST_COMPLEX}."
                )

    def __getstate__(self) -> dict[str, Any]:
        # Only the fields are pickled, since the addresses in `table` are valid in this process only.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def functions(self) -> dict[str, UserOperator]:
        """User-defined operators by name."""
        return {operator.name: operator for operator in self.user_operators}

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        own = dict(self.complexities)
        return tuple(replace(t, complexity=own.get(t.name, t.complexity)) for t in self._usual_tokens)

    @cached_property
    def _usual_tokens(self) -> tuple[Token, ...]:
        constant = (Token("const", 0, 1, Opcode.CONSTANT),) if self.has_constants else ()
        variables = tuple(Token(name, 0, 1, Opcode.VARIABLE) for name in self.variable_names)
        kinds = {1: Opcode.USER_UNARY, 2: Opcode.USER_BINARY}
        known = OPERATORS | {
            name: Token(name, operator.arity, operator.complexity, kinds[operator.arity])
            for name, operator in self.functions.items()
        }
        return tuple(known[name] for name in self.operators) + constant + variables

    @cached_property
    def relative_complexities(self) -> np.ndarray:
        """The complexity of every token divided by its default, shape (n_tokens,)."""
        return self.table.complexity / [token.complexity for token in self._usual_tokens]

    @cached_property
    def index(self) -> dict[str, int]:
        """Token id by token name."""
        return {token.name: i for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def first_variable(self) -> int:
        """Token id of ``x1``."""
        return len(self) - self.n_variables

    @cached_property
    def variable_names(self) -> tuple[str, ...]:
        """The names ``x1 .. xd``."""
        return tuple(f"x{i + 1}" for i in range(self.n_variables))

    @cached_property
    def table(self) -> TokenTable:
        """The library as arrays for the kernels; the library must exist as long as the table is used."""
        rows = [(t.arity, t.opcode, self._argument(i), t.complexity) for i, t in enumerate(self.tokens)]
        columns = np.array(rows, dtype=np.int64).T.copy()  # so that each column is contiguous
        columns.setflags(write=False)
        return TokenTable(*columns)

    def _argument(self, token: int) -> int:
        operator = self.functions.get(self.tokens[token].name)
        return max(token - self.first_variable, 0) if operator is None else operator.address

    def with_operator(
        self,
        name: str,
        function: Callable[..., float],
        sympy: Callable[..., Any] | None = None,
        complexity: int = 3,
        derivative: Callable[..., float] | tuple[Callable[..., float], ...] | None = None,
    ) -> Library:
        """Return the library with one more operator, placed last before ``const`` and the variables.

        Parameters
        ----------
        name : str
            Name in formulas: ``name(f)`` or ``name(f, g)``.
        function : callable
            A Python function of one or two floats that numba can compile. Where an operand is not finite the
            operator's value is NaN, whatever the function returns.
        sympy : callable, optional
            The same function of sympy expressions; an undefined function of that name by default.
        complexity : int
            Number that each use adds to an expression's complexity.
        derivative : callable or tuple of callable, optional
            The derivative; for two arguments the pair of partial derivatives. By default it is approximated
            by central differences.

        Raises
        ------
        ValueError
            If the name is not valid or already used, or numba cannot compile a function.

        Examples
        --------
        >>> import math
        >>> library = get_library("koza", 1).with_operator("gauss", lambda x: math.exp(-x * x))
        >>> library.operators[-1]
        'gauss'
        """
        operator = UserOperator(name, function, sympy, complexity, derivative)
        if name in self.operators:
            raise ValueError(f"name={name!r} is an operator of the library already; choose another.")
        _ = operator.address  # the operator is compiled here, so that an error is raised here
        operators, user_operators = (*self.operators, name), (*self.user_operators, operator)
        return replace(self, operators=operators, user_operators=user_operators)

    def without(self, operators: Collection[str]) -> Library:
        """Return the library without some operators; names that it does not have are ignored."""
        return replace(
            self,
            operators=tuple(name for name in self.operators if name not in operators),
            user_operators=tuple(own for own in self.user_operators if own.name not in operators),
        )

    def with_complexities(self, complexities: Mapping[str, int]) -> Library:
        """Return the library with other complexities of some tokens.

        They change the complexity of a formula and its description length: the bits of a token are multiplied
        by the ratio of its complexity to the default.

        Parameters
        ----------
        complexities : mapping of str to int
            Whole numbers from 1 to 100 by token name; names that the library does not have are ignored.

        Raises
        ------
        ValueError
            If a complexity is not whole, or out of range.

        Examples
        --------
        >>> library = get_library("koza", 1).with_complexities({"sin": 9})
        >>> [token.complexity for token in library.tokens if token.name in ("sin", "cos")]
        [9, 3]
        """
        usual = {token.name: token.complexity for token in self._usual_tokens}
        given = {name: int(n) if isinstance(n, np.integer) else n for name, n in complexities.items()}
        own = {**dict(self.complexities), **given}
        # Default values are left out, so that libraries with equal complexities compare equal.
        return replace(self, complexities=tuple(sorted(p for p in own.items() if usual.get(p[0]) != p[1])))

    def to_json(self) -> dict[str, Any]:
        """Return the library as an object for JSON; ValueError if it has user-defined operators."""
        if self.user_operators:
            names = ", ".join(self.functions)
            raise ValueError(f"The library has operators of your own, {names}: no file can hold their code.")
        entry = {name: getattr(self, name) for name in ("name", "operators", "has_constants", "n_variables")}
        entry["operators"] = list(self.operators)
        return entry | ({"complexities": dict(self.complexities)} if self.complexities else {})

    @classmethod
    def from_json(cls, entry: Any) -> Library:
        """Return the library from an entry that `to_json` returned.

        Raises
        ------
        ValueError
            If the entry lacks a value, or has one that is unknown, of another type or out of range.
        """
        types = {
            "name": str, "operators": list, "has_constants": bool, "n_variables": int, "complexities": dict
        }  # fmt: skip
        if isinstance(entry, dict):
            entry = {"complexities": {}, **entry}  # libraries with the default ones lack the entry
        if not isinstance(entry, dict) or entry.keys() != types.keys():
            raise ValueError(f"a library must have the entries {', '.join(types)}, and no others")
        for name, expected in types.items():
            if type(entry[name]) is not expected:
                raise ValueError(f"{name}={entry[name]!r} of a library must be of type {expected.__name__}")
        if not all(type(operator) is str for operator in entry["operators"]):
            raise ValueError(f"operators={entry['operators']!r} of a library must be names")
        complexities = tuple(sorted(entry["complexities"].items()))
        return cls(**{**entry, "operators": tuple(entry["operators"]), "complexities": complexities})

    def with_variables(self, n_variables: int) -> Library:
        """Return the same library over another number of variables."""
        return self if n_variables == self.n_variables else replace(self, n_variables=n_variables)


def get_library(name: str, n_variables: int = 1) -> Library:
    """Return the preset `name` over `n_variables` variables; ValueError if there is no such preset."""
    if name not in PRESETS:
        raise ValueError(f"library={name!r} is unknown; choose from {', '.join(PRESETS)}.")
    operators, has_constants = PRESETS[name]
    return Library(name, operators, has_constants, n_variables)


def library_of(operators: Sequence[str]) -> Library:
    """Return the library ``"physics"`` with some of its operators, by name or symbol, such as ``"+"``.

    It also has those that write the same values more shortly, such as squares where there are products.
    Raises ValueError if a name is unknown, or if addition or multiplication is missing, which write the
    offset and the scale of a formula.
    """
    names = [SYMBOLS.get(name, name) for name in operators]
    for given, name in zip(operators, names):
        if name not in OPERATORS:
            raise ValueError(
                f"operators has {given!r}, which is unknown; choose from {', '.join(OPERATORS)}, or give a "
                "Library with an operator of your own."
            )
    for name, symbol in (("add", "+"), ("mul", "*")):
        if name not in names:
            raise ValueError(f"operators lacks {symbol!r}, without which formulas have no constants; add it.")
    known = {*names, *(shorter for name in names for shorter in _SHORTER.get(name, ()))}
    return get_library("physics").without([name for name in _PHYSICS if name not in known])


def library_over(library: str | Library, n_variables: int) -> Library:
    """Return the library that a parameter specifies, over `n_variables` variables.

    `library` is a preset, ``"auto"``, which is ``"physics"``, or any library; ValueError for other texts.
    """
    if isinstance(library, Library):
        return library.with_variables(n_variables)
    return get_library("physics" if library == "auto" else library, n_variables)
