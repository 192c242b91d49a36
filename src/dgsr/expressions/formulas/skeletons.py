"""Skeletons of formulas: the structure of a formula of one column whose numbers are free.

``12.3*x/(6.7 + x)`` and ``x/(0.5 + 0.08*x)`` have the same skeleton, and so have ``exp(2 - 3*x)`` and
``5*exp(-x)``. A skeleton is a nested tuple that can be compared and hashed: `NUMBER`, `COLUMN`, ``("+",
terms)``, ``("*", powers)`` with pairs of a base and its exponent, or a function's name and its arguments.
Terms and powers come with their counts, since a sum of two exponentials is not an exponential. Factors that
are numbers are left out everywhere, also in the terms of a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.trees import POWER_TOKENS

#: A number that may have any value.
NUMBER = "number"
#: The column.
COLUMN = "column"
#: A nested tuple, `NUMBER` or `COLUMN`.
Skeleton = Any

# Largest absolute exponent that a skeleton has literally, if it is a multiple of 1/2; others are free.
_LITERAL = 3.0
# Largest absolute exponent of a skeleton: nobody would call x**20 a power law.
_LARGEST = 10.0
# Exponents of the operators that are powers.
_EXPONENTS = {name: Fraction(exponent) for exponent, name in POWER_TOKENS.items()}


class Part(NamedTuple):
    """A subprogram."""

    skeleton: Skeleton | None  # None where an exponent is too large or not a number
    columns: frozenset[int] = frozenset()  # tokens of its columns; all of them are `COLUMN` in the skeleton
    value: float | None = None  # its value, if it is a constant


def parts_of(library: Library, tokens: Sequence[int], constants: Sequence[float]) -> list[Part]:
    """Return the subprogram at each token of a program."""
    left = list(constants)
    stack: list[Part] = []
    found: list[Part] = []
    for token in reversed(tokens):
        entry = library.tokens[token]
        if entry.name == "const":
            part = Part(NUMBER, value=left.pop())
        elif entry.arity == 0:
            part = Part(COLUMN, frozenset([token]))
        else:
            children = [stack.pop() for _ in range(entry.arity)]
            columns = frozenset(column for child in children for column in child.columns)
            part = Part(_joined(entry.name, children), columns)
        stack.append(part)
        found.append(part)
    return found[::-1]


def _joined(name: str, parts: Sequence[Part]) -> Skeleton | None:
    """Return the skeleton of an operator applied to parts, or None."""
    if any(part.skeleton is None for part in parts):
        return None
    first, last = parts[0].skeleton, parts[-1].skeleton
    if all(part.skeleton == NUMBER for part in parts):
        return NUMBER
    if name in ("add", "sub"):
        return summed([first, last])
    if name == "neg":
        return first
    if name in ("mul", "div"):
        return _product([(first, Fraction(1)), (last, Fraction(1 if name == "mul" else -1))])
    if name in _EXPONENTS:
        return _product([(first, _EXPONENTS[name])])
    if name == "exp" or (name == "pow" and first == NUMBER):
        return _exponential(last)
    if name == "pow":
        return _power(first, parts[1].value)
    if name == "cos":
        name = "sin"  # with another phase, which is free
    return (name, *(part.skeleton for part in parts))


def summed(terms: Sequence[Skeleton]) -> Skeleton:
    """Return the skeleton of a sum whose terms have free factors."""
    counts: Counter[Skeleton] = Counter()
    for term in terms:
        counts.update(_terms_of(term))
    for single in (NUMBER, COLUMN):  # 2*x + 3*x is 5*x
        counts[single] = min(counts[single], 1)
    counts = +counts
    return next(iter(counts)) if counts.total() == 1 else ("+", frozenset(counts.items()))


def _terms_of(skeleton: Skeleton) -> Mapping[Skeleton, int]:
    return dict(skeleton[1]) if skeleton[0] == "+" else {skeleton: 1}


def _power(base: Skeleton, exponent: float | None) -> Skeleton | None:
    """Return the skeleton of a power, or None if its exponent is not a constant or too large."""
    if exponent is None or abs(exponent) > _LARGEST:
        return None
    is_literal = abs(exponent) <= _LITERAL and 2.0 * exponent == round(2.0 * exponent)
    return _product([(base, Fraction(exponent) if is_literal else None)])


def _product(factors: Sequence[tuple[Skeleton, Fraction | None]]) -> Skeleton:
    """Return the skeleton of a product of powers; an exponent of None is free."""
    powers: Counter[tuple[Skeleton, Fraction | None]] = Counter()
    of_column: Fraction | None = Fraction(0)
    for factor, outer in factors:
        for (base, inner), count in _powers_of(factor).items():
            exponent = None if inner is None or outer is None else inner * outer
            if base == COLUMN:
                of_column = None if exponent is None or of_column is None else of_column + exponent
            elif base != NUMBER:
                if base[0] == "exp" and exponent is not None:  # 1/exp(f) is exp(-f)
                    exponent = abs(exponent)
                powers[base, exponent] += count
    if of_column != 0:
        powers[COLUMN, of_column] = 1
    if not powers:
        return NUMBER
    ((base, exponent), count), *others = powers.items()
    is_base = not others and count == 1 and exponent == 1
    return base if is_base else ("*", frozenset(powers.items()))


def _powers_of(skeleton: Skeleton) -> Mapping[tuple[Skeleton, Fraction | None], int]:
    return dict(skeleton[1]) if skeleton[0] == "*" else {(skeleton, Fraction(1)): 1}


def _exponential(argument: Skeleton) -> Skeleton:
    """Return the exponential of an argument without its number, which is a factor of the exponential."""
    terms = [term for term, count in _terms_of(argument).items() for _ in range(count)]
    return ("exp", summed([term for term in terms if term != NUMBER]))
