"""What an equation is: token library, constraints, and the formula a person sees."""

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
