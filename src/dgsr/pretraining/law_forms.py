"""The forms of the laws that the prior draws, and their shares.

References
----------
The counts of textbook formulas, `textbook_counts.json`, are made by `benchmarks/shipped_counts.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library


class LawTable(NamedTuple):
    """Shares of the forms of laws, and the tokens they are written in."""

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


#: Exponents; a half is written with sqrt.
POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0)
#: Functions of a dimensionless group g.
FUNCTIONS = (
    *("exp", "exp -", "log", "sin", "cos", "tanh", "1 - exp -", "1 + g", "1 - g", "arcsin", "arccos"),
    "power",  # the exponent is a number that is not whole
)
EXPONENTIAL, DECAY, LOGARITHM, SINE, COSINE, HYPERBOLIC, SATURATION, ONE_PLUS, ONE_MINUS, *_OTHERS = range(
    len(FUNCTIONS)
)
#: Operators that may be applied to a whole law.
AROUND = ("", "sqrt", "log", "exp", "inv", "square")
NOTHING_AROUND, ROOT_AROUND, LOG_AROUND, EXP_AROUND, INVERSE_AROUND, SQUARE_AROUND = range(len(AROUND))
#: Operators by name, in the order of `LawTable.tokens`.
NAMES = (
    *("add", "sub", "mul", "div", "exp", "log", "sin", "cos", "sqrt", "tanh", "neg", "inv"),
    *("arcsin", "arccos", "pow"),
)
ADD, SUB, MUL, DIV, EXP, LOG, SIN, COS, SQRT, TANH, NEG, INV, ARCSIN, ARCCOS, POW = range(len(NAMES))


# The operator that each form needs, in the order of the entries of `LawTable`; a library may lack it.
_NEEDS = {
    "functions": (
        *("exp", "exp", "log", "sin", "cos", "tanh", "exp", "add", "sub", "arcsin", "arccos"),
        "pow",
    ),
    "around": ("add", "sqrt", "log", "exp", "div", "mul"),
    "powers": ("mul", "div", "mul", "div", "sqrt", "sqrt", "mul", "div"),
    "sum_powers": ("mul", "div", "mul", "div", "sqrt", "sqrt", "mul", "div"),
}

#: Shares of the forms of laws, in the order of the entries of `LawTable`. They follow the counts of textbook
#: formulas (`textbook_counts.json`) with three changes: products of one and of two factors are fewer, since
#: any search finds them; exponentials and logarithms, which chemistry, biology and economics have more often
#: than the counted books, most of them on physics, are more frequent; and there are a few of the functions
#: that the books do not have.
SHARES = {
    "terms": (0.76, 0.20, 0.03, 0.01),
    "factors": (0.11, 0.33, 0.33, 0.15, 0.08),
    "kinds": (0.73, 0.13, 0.14),
    "powers": (0.55, 0.24, 0.09, 0.05, 0.03, 0.015, 0.015, 0.01),
    "sum_powers": (0.52, 0.25, 0.05, 0.03, 0.09, 0.06, 0.0, 0.0),
    "functions": (0.06, 0.20, 0.17, 0.17, 0.14, 0.02, 0.06, 0.04, 0.04, 0.015, 0.015, 0.07),
    "around": (0.88, 0.06, 0.02, 0.01, 0.01, 0.02),
}


# The probabilities below are those of choices within the forms. They were not counted but set by eye, so that
# laws look like textbook formulas.

#: The unit of a variable: the probability that it is that of an earlier variable, that added to the
#: probability of a new unit (the rest have none), and the probability that a base unit is part of a new unit.
SAME_UNIT, WITH_UNIT, BASE_UNIT = 0.4, 0.85, 0.5
#: Cumulative probabilities of the powers 1, -1 and 2 in a product with a given unit; the remaining power is
#: -2.
FIRST_POWER, INVERSE, SQUARE = 0.5, 0.85, 0.95
#: Probabilities that a product has a constant factor, that a product of a constant and a variable has a
#: second variable, and that this one is a factor and not a divisor.
WITH_CONSTANT, SECOND_VARIABLE, ABOVE = 0.15, 0.3, 0.5
#: Probabilities that a sum in parentheses begins with a square, has a third term, and has its terms swapped.
FIRST_SQUARE, THIRD_TERM, SWAPPED = 0.25, 0.15, 0.25
#: Probabilities that a further term of a sum is added and not subtracted, that it is 1, and that it is a
#: constant.
PLUS, NUMBER_ONE, FREE_CONSTANT = 0.6, 0.4, 0.2
#: Probabilities that a logarithm is log(1 + g), that a sine or cosine is squared, and that a function is a
#: factor and not a divisor.
LOG_OF_ONE_PLUS, SQUARED_WAVE, FUNCTION_ABOVE = 0.3, 0.2, 0.8
#: Probability that a term gets a constant factor though it has the unit of the first term.
SCALED_TERM = 0.3


def law_table(library: Library) -> LawTable:
    """Return the shares of the forms that a library can write, and its tokens."""
    has = {name: name in library.operators for name in NAMES}
    shares = {name: np.array(values) for name, values in SHARES.items()}
    for name, needs in _NEEDS.items():
        shares[name] *= [has[need] for need in needs]
    if not shares["functions"].any():
        shares["kinds"][2] = 0.0
    tokens, of_functions = (
        np.array([library.index.get(name, -1) for name in names], dtype=np.int64)
        for names in (NAMES, _NEEDS["functions"])
    )
    return LawTable(**shares, tokens=tokens, of_functions=of_functions, n_operators=len(library.operators))
