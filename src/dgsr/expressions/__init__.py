"""Equations: token libraries, constraints, and the formula that a person sees of a program."""

from dgsr.expressions.constraints import Constraints, Grammar
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import OPERATORS, PRESETS, Library, Token, get_library
from dgsr.expressions.user import UserOperator

__all__ = [
    "OPERATORS",
    "PRESETS",
    "Constraints",
    "Expression",
    "Grammar",
    "Library",
    "Token",
    "UserOperator",
    "get_library",
]
