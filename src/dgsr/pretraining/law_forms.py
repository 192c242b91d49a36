"""The forms of the laws that the prior draws, and their shares.

References
----------
`benchmarks/shipped_counts.py` makes the counts of textbook formulas, `textbook_counts.json`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library


class LawTable(NamedTuple):
    """Shares of the forms of laws, the tokens with which they are written, and probabilities of choices.

    The probabilities were chosen by judgement and not counted, so that laws resemble textbook formulas.
    """

    terms: np.ndarray  # shares of laws of 1, 2, ... terms
    factors: np.ndarray  # shares of terms of 1, 2, ... factors
    kinds: np.ndarray  # shares of factors: a power of a variable, a power of a sum, a function
    powers: np.ndarray  # shares of `POWERS` as exponents of variables
    sum_powers: np.ndarray  # shares of `POWERS` as exponents of sums
    small_powers: np.ndarray  # shares of 1, -1, 2, -2 as exponents of variables in a product of a given unit
    functions: np.ndarray  # shares of `FUNCTIONS`
    around: np.ndarray  # shares of `AROUND`
    tokens: np.ndarray  # token ids of `NAMES`; -1 where the library lacks one
    of_functions: np.ndarray  # token ids of the roots of `FUNCTIONS`; -1 where the library lacks one
    n_operators: int
    same_unit: float = 0.4  # a variable has the unit of an earlier variable
    with_unit: float = 0.85  # a variable has the unit of an earlier variable or a new unit; others have none
    with_constant: float = 0.15  # a product has a constant factor
    second_variable: float = 0.3  # a product of a constant and a variable has a second variable
    first_square: float = 0.25  # a sum in parentheses begins with a square
    third_term: float = 0.15  # a sum in parentheses has a third term
    swapped: float = 0.25  # a further term of a sum in parentheses comes before the earlier ones
    plus: float = 0.6  # a further term of a sum is added and not subtracted
    number_one: float = 0.4  # a further term of a dimensionless sum in parentheses is 1
    free_constant: float = 0.2  # a further term of a sum in parentheses that is not 1 is a constant
    log_of_one_plus: float = 0.3  # a logarithm is log(1 + g)
    squared_wave: float = 0.2  # a sine or cosine is squared
    function_above: float = 0.8  # a function is a factor and not a divisor
    scaled_term: float = 0.3  # a term with the unit of the first term nevertheless has a constant factor


#: Exponents; 0.5 is written with sqrt.
POWERS = (1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0)
#: Functions of a dimensionless group g, and the operator that each needs.
FUNCTIONS = {
    "exp": "exp", "exp -": "exp", "log": "log", "sin": "sin", "cos": "cos", "tanh": "tanh",
    "1 - exp -": "exp", "1 + g": "add", "1 - g": "sub", "arcsin": "arcsin", "arccos": "arccos",
    "power": "pow",  # the exponent is a number that is not whole
}  # fmt: skip
_, DECAY, LOGARITHM, SINE, COSINE, _, SATURATION, ONE_PLUS, ONE_MINUS = range(9)
#: Operators that may be applied to a whole law, and the operator that each needs.
AROUND = {"": "add", "sqrt": "sqrt", "log": "log", "exp": "exp", "inv": "div", "square": "mul"}
_, ROOT_AROUND, LOG_AROUND, EXP_AROUND, INVERSE_AROUND, SQUARE_AROUND = range(len(AROUND))
#: Operators by name, in the order of `LawTable.tokens`.
NAMES = ("add", "sub", "mul", "div", "exp", "log", "sqrt", "neg", "inv")
ADD, SUB, MUL, DIV, EXP, LOG, SQRT, NEG, INV = range(len(NAMES))


#: Shares of the forms of laws, in the order of the entries of `LawTable`. They follow the counts of 1,488
#: textbook formulas (`textbook_counts.json`) with three changes. Products of one and of two factors are
#: rarer, since any search finds them. Exponentials and logarithms are more frequent, as in chemistry, biology
#: and economics, since most of the counted books are on physics. Functions that the books do not have get
#: small shares. The small powers were chosen by judgement.
SHARES = {
    "terms": (0.76, 0.20, 0.03, 0.01),
    "factors": (0.11, 0.33, 0.33, 0.15, 0.08),
    "kinds": (0.73, 0.13, 0.14),
    "powers": (0.55, 0.24, 0.09, 0.05, 0.03, 0.015, 0.015, 0.01),
    "sum_powers": (0.52, 0.25, 0.05, 0.03, 0.09, 0.06, 0.0, 0.0),
    "small_powers": (0.5, 0.35, 0.1, 0.05),
    "functions": (0.06, 0.20, 0.17, 0.17, 0.14, 0.02, 0.06, 0.04, 0.04, 0.015, 0.015, 0.07),
    "around": (0.88, 0.06, 0.02, 0.01, 0.01, 0.02),
}


def law_table(library: Library) -> LawTable:
    """Return the shares of the forms that a library has operators for, and its tokens."""
    shares: dict[str, Any] = {name: np.array(values) for name, values in SHARES.items()}
    of_powers = ["sqrt" if abs(power) == 0.5 else "mul" for power in POWERS]
    of_functions, around = list(FUNCTIONS.values()), list(AROUND.values())
    needs = {"powers": of_powers, "sum_powers": of_powers, "functions": of_functions, "around": around}
    for name, operators in needs.items():
        shares[name] *= [operator in library.operators for operator in operators]
    if not shares["functions"].any():
        shares["kinds"][2] = 0.0
    tokens, roots = (
        np.array([library.index.get(name, -1) for name in names], dtype=np.int64)
        for names in (NAMES, of_functions)
    )
    return LawTable(**shares, tokens=tokens, of_functions=roots, n_operators=len(library.operators))
