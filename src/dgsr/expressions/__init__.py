"""Equations: token libraries, constraints, and programs as formulas that people read."""

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import OPERATORS, PRESETS, Library, Token, get_library
from dgsr.expressions.trees.user_operators import UserOperator

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
