"""The child process of `dgsr.benchmarking.recovery`, which proves one equality with sympy.

Reads a request as JSON from standard input and writes True or False to standard output.
"""

from __future__ import annotations

import json
import sys

from dgsr.expressions.exports.symbolic import to_sympy
from dgsr.expressions.trees.syntax import parse


def prove(relation: str, candidate: str, truth: str, variables: list[tuple[str, float, float]]) -> bool:
    """Return whether sympy simplifies the difference to 0, or the difference or ratio to a number.

    The `relation` is "equal", "difference" or "ratio". A variable, (name, low, high), whose range has no
    negative numbers becomes a positive symbol, so that sympy can combine logarithms and roots.
    """
    import sympy

    names = [name for name, _, _ in variables]
    symbols = {
        name: sympy.Symbol(name, positive=True) if low >= 0 else sympy.Symbol(name, real=True)
        for name, low, _ in variables
    }
    a, b = (to_sympy(parse(text, names), symbols) for text in (candidate, truth))
    left = a / b if relation == "ratio" else a - b
    # `expand` comes first, since it is fast and sufficient for polynomials and rational functions.
    for simplify in (sympy.expand, lambda e: sympy.expand(sympy.together(e)), _cancelled, sympy.simplify):
        simplified = simplify(left)
        if simplified == 0 if relation == "equal" else simplified.is_number:
            return True
    return False


def _cancelled(expression):
    import sympy

    return sympy.cancel(sympy.expand_log(sympy.expand(expression), force=True))


def main() -> None:
    print(prove(**json.load(sys.stdin)))


if __name__ == "__main__":
    main()
