"""Products of powers and exponentials, such as k*a**m*b**n and K*C**(1/n), by the logarithm of the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dgsr.expressions.rewriting.algebra import multiplied
from dgsr.expressions.rewriting.polynomials import quotient_tree
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.linear.dictionary import Terms, polynomial_of
from dgsr.finders.terms import over_columns


def with_logarithms(
    columns: Mapping[Tree, np.ndarray], most: int
) -> Iterator[tuple[Terms, list[tuple[np.ndarray, np.ndarray]]]]:
    """Yield the terms of the logarithm of a product of powers, and the kinds of quotients of these terms.

    The terms are columns, logarithms of positive columns, and products of a column and a logarithm. The
    denominator is 1 or has columns, as in the exponent of K*C**(1/n). A kind has the numbers of the terms of
    numerator and denominator, at most `most`. Nothing is yielded if no column is positive.
    """
    logarithms = {("log", column): np.log(own) for column, own in columns.items() if (own > 0.0).all()}
    if not logarithms:
        return
    n, n_single = len(columns), len(columns) + len(logarithms)
    pairs = [(i, j) for i in range(n) for j in range(n, n_single)]
    factors = [(), *((i,) for i in range(n_single)), *pairs]
    every = np.arange(len(factors))
    kinds = [(every[: n_single + 1], every[:1]), (every, every[:1]), (every, every[: n + 1])]
    terms = Terms.of({**columns, **logarithms}, factors)
    yield terms, [kind for kind in kinds if sum(map(len, kind)) <= most]


def product_of_powers(
    above: np.ndarray, below: np.ndarray, coefficients: np.ndarray, columns: Sequence[Tree]
) -> Tree | None:
    """Return exp(p/q) as a product of powers, with b**e for exp(e*log(b)).

    `above` and `below`, of shape (n_terms, n_columns), have the exponents of the columns, some of which are
    logarithms, in the terms of p and q. The coefficients are those of p, and q is one product with the factor
    1. The result is None if q has several terms or a logarithm, or a term of p more than one logarithm.
    """
    are_logarithms = np.array([isinstance(tree, tuple) and tree[0] == "log" for tree in columns])
    if len(below) > 1 or below[0, are_logarithms].any() or (above[:, are_logarithms].sum(axis=1) > 1).any():
        return None
    of_logarithm: dict[int | None, list[int]] = {}  # the terms with each logarithm
    for number, term in enumerate(above):
        of = next(iter(np.flatnonzero(term * are_logarithms).tolist()), None)
        of_logarithm.setdefault(of, []).append(number)
    factors: list[Tree] = []
    for of, numbers in of_logarithm.items():
        rest = np.where(are_logarithms, 0, above[numbers])
        common = np.minimum(rest.min(axis=0), below[0])
        numerator = polynomial_of(rest - common, coefficients[numbers])
        quotient = quotient_tree(numerator, {tuple((below[0] - common).tolist()): 1.0})
        exponent = over_columns(quotient, columns)
        factors.append(("exp", exponent) if of is None else ("pow", columns[of][1], exponent))
    return multiplied(factors)
