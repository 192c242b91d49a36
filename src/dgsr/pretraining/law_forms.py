"""The forms of the laws that the prior draws, and their shares.

References
----------
`benchmarks/shipped_counts.py` makes the counts of textbook formulas, `textbook_counts.json`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library


class LawTable(NamedTuple):
    """Shares of the forms of laws, and the tokens with which they are written."""

    terms: np.ndarray  # shares of laws of 1, 2, ... terms
    factors: np.ndarray  # shares of terms of 1, 2, ... factors
    kinds: np.ndarray  # shares of factors: a power of a variable, a power of a sum, a function
    powers: np.ndarray  # shares of `POWERS` as exponents of variables
    sum_powers: np.ndarray  # shares of `POWERS` as exponents of sums
    functions: np.ndarray  # shares of `FUNCTIONS`
    around: np.ndarray  # shares of `AROUND`
    tokens: np.ndarray  # token ids of `NAMES`; -1 where the library lacks one
    of_functions: np.ndarray  # token ids of the roots of `FUNCTIONS`; -1 where the library lacks one
    n_operators: int


#: Exponents; 0.5 is written with sqrt.
POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0)
#: Functions of a dimensionless group g.
FUNCTIONS = (
    *("exp", "exp -", "log", "sin", "cos", "tanh", "1 - exp -", "1 + g", "1 - g", "arcsin", "arccos"),
    "power",  # the exponent is a number that is not whole
)
_, DECAY, LOGARITHM, SINE, COSINE, _, SATURATION, ONE_PLUS, ONE_MINUS = range(9)
#: Operators that may be applied to a whole law.
AROUND = ("", "sqrt", "log", "exp", "inv", "square")
_, ROOT_AROUND, LOG_AROUND, EXP_AROUND, INVERSE_AROUND, SQUARE_AROUND = range(len(AROUND))
#: Operators by name, in the order of `LawTable.tokens`.
NAMES = (
    *("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "sqrt", "tanh", "neg", "inv"),
    *("arcsin", "arccos", "pow"),
)
ADD, SUB, MUL, DIV, EXP, LOG, SIN, COS, SQRT, TANH, NEG, INV, ARCSIN, ARCCOS, POW = range(len(NAMES))


# The operator that each form needs, in the order of the entries of `LawTable`. A library may lack some.
_NEEDS = {
    "functions": (
        *("exp", "exp", "log", "sin", "cos", "tanh", "exp", "add", "sub", "arcsin", "arccos"),
        "pow",
    ),
    "around": ("add", "sqrt", "log", "exp", "div", "mul"),
    "powers": ("mul", "div", "mul", "div", "sqrt", "sqrt", "mul", "div"),
    "sum_powers": ("mul", "div", "mul", "div", "sqrt", "sqrt", "mul", "div"),
}

#: Shares of the forms of laws, in the order of the entries of `LawTable`. They follow the counts of 1,488
#: textbook formulas (`textbook_counts.json`) with three changes. Products of one and of two factors are
#: rarer, since any search finds them. Exponentials and logarithms are more frequent, as in chemistry, biology
#: and economics, since most of the counted books are on physics. Functions that the books do not have get
#: small shares.
SHARES = {
    "terms": (0.76, 0.20, 0.03, 0.01),
    "factors": (0.11, 0.33, 0.33, 0.15, 0.08),
    "kinds": (0.73, 0.13, 0.14),
    "powers": (0.55, 0.24, 0.09, 0.05, 0.03, 0.015, 0.015, 0.01),
    "sum_powers": (0.52, 0.25, 0.05, 0.03, 0.09, 0.06, 0.0, 0.0),
    "functions": (0.06, 0.20, 0.17, 0.17, 0.14, 0.02, 0.06, 0.04, 0.04, 0.015, 0.015, 0.07),
    "around": (0.88, 0.06, 0.02, 0.01, 0.01, 0.02),
}


# The numbers below are probabilities of choices within the forms. They were chosen by judgement and not
# counted, so that laws resemble textbook formulas.

#: A variable has the unit of an earlier variable.
SAME_UNIT = 0.4
#: A variable has the unit of an earlier variable or a new unit; otherwise it has none.
WITH_UNIT = 0.85
#: The exponent of a variable in a product with a given unit is 1, -1, 2, -2.
SMALL_POWERS = np.array([0.5, 0.35, 0.1, 0.05])
#: A product has a constant factor.
WITH_CONSTANT = 0.15
#: A product of a constant and a variable has a second variable.
SECOND_VARIABLE = 0.3
#: A sum in parentheses begins with a square.
FIRST_SQUARE = 0.25
#: A sum in parentheses has a third term.
THIRD_TERM = 0.15
#: A further term of a sum in parentheses comes before the earlier ones.
SWAPPED = 0.25
#: A further term of a sum is added and not subtracted.
PLUS = 0.6
#: A further term of a dimensionless sum in parentheses is 1.
NUMBER_ONE = 0.4
#: A further term of a sum in parentheses that is not 1 is a constant.
FREE_CONSTANT = 0.2
#: A logarithm is log(1 + g).
LOG_OF_ONE_PLUS = 0.3
#: A sine or cosine is squared.
SQUARED_WAVE = 0.2
#: A function is a factor and not a divisor.
FUNCTION_ABOVE = 0.8
#: A term with the unit of the first term nevertheless has a constant factor.
SCALED_TERM = 0.3


def law_table(library: Library) -> LawTable:
    """Return the shares of the forms that a library has operators for, and its tokens."""
    shares = {name: np.array(values) for name, values in SHARES.items()}
    for name, needs in _NEEDS.items():
        shares[name] *= [need in library.operators for need in needs]
    if not shares["functions"].any():
        shares["kinds"][2] = 0.0
    tokens, of_functions = (
        np.array([library.index.get(name, -1) for name in names], dtype=np.int64)
        for names in (NAMES, _NEEDS["functions"])
    )
    return LawTable(**shares, tokens=tokens, of_functions=of_functions, n_operators=len(library.operators))
