"""The token library: which operators, constants and variables an equation may use.

A token is a small integer. The order is fixed: operators first, then ``const`` (where the library
has it), then the variables ``x1 .. xd``. So the tokens of a library with few variables are the
first tokens of the same library with more, and one generator serves both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np


class Opcode(IntEnum):
    """What the compiled evaluator does at a node."""

    VARIABLE = 0
    CONSTANT = 1
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    EXP = 6
    LOG = 7
    SIN = 8
    COS = 9


@dataclass(frozen=True)
class Token:
    """One entry of a library.

    Parameters
    ----------
    name : str
        The name programs, cards and the command line use.
    arity : int
        Number of children: 0, 1 or 2.
    complexity : int
        c(f_i) of the paper, appendix "Evaluation Metrics".
    opcode : Opcode
        What the evaluator does.
    """

    name: str
    arity: int
    complexity: int
    opcode: Opcode


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
    )
}

_KOZA = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos")

#: Operators and whether there are fitted constants, by preset name.
PRESETS: dict[str, tuple[tuple[str, ...], bool]] = {
    "koza": (_KOZA, False),
    "koza-const": (_KOZA, True),
    "synth": (("add", "sub", "mul", "div"), False),
}


class TokenTable(NamedTuple):
    """A library as arrays, for the compiled kernels; one entry per token."""

    arity: np.ndarray  # (n_tokens,) int64
    opcode: np.ndarray  # (n_tokens,) int64
    argument: np.ndarray  # (n_tokens,) int64: column of X for a variable, else 0
    complexity: np.ndarray  # (n_tokens,) int64


@dataclass(frozen=True)
class Library:
    """An ordered set of tokens.

    Parameters
    ----------
    name : str
        Preset name, or a name of the user's own.
    operators : tuple of str
        Keys of `OPERATORS`.
    has_constants : bool
        Whether the token ``const``, a fitted number, is among the tokens.
    n_variables : int
        Number of input variables d.

    Raises
    ------
    ValueError
        If an operator is unknown or repeated, or `n_variables` is below 1.
    """

    name: str
    operators: tuple[str, ...]
    has_constants: bool
    n_variables: int

    def __post_init__(self) -> None:
        unknown = [name for name in self.operators if name not in OPERATORS]
        if unknown:
            raise ValueError(f"operators={unknown} are unknown; choose from {', '.join(OPERATORS)}.")
        if len(set(self.operators)) != len(self.operators):
            raise ValueError(f"operators={self.operators} repeats a name; name each operator once.")
        if self.n_variables < 1:
            raise ValueError(f"n_variables={self.n_variables} must be at least 1.")

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        constant = (Token("const", 0, 1, Opcode.CONSTANT),) if self.has_constants else ()
        variables = tuple(Token(f"x{i + 1}", 0, 1, Opcode.VARIABLE) for i in range(self.n_variables))
        return tuple(OPERATORS[name] for name in self.operators) + constant + variables

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
    def table(self) -> TokenTable:
        def column(values: list[int]) -> np.ndarray:
            array = np.array(values, dtype=np.int64)
            array.setflags(write=False)
            return array

        return TokenTable(
            column([token.arity for token in self.tokens]),
            column([int(token.opcode) for token in self.tokens]),
            column([max(i - self.first_variable, 0) for i in range(len(self))]),
            column([token.complexity for token in self.tokens]),
        )

    def with_variables(self, n_variables: int) -> Library:
        """Return the same library over another number of variables."""
        return self if n_variables == self.n_variables else replace(self, n_variables=n_variables)


def get_library(name: str, n_variables: int) -> Library:
    """Return the preset `name` over `n_variables` variables.

    Raises
    ------
    ValueError
        If there is no preset of that name.
    """
    if name not in PRESETS:
        raise ValueError(f"library={name!r} is unknown; choose from {', '.join(PRESETS)}.")
    operators, has_constants = PRESETS[name]
    return Library(name, operators, has_constants, n_variables)
