"""Powers with a column in the exponent, such as (1 + r)**n of compound interest and (1 - d)**n of a decay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.algebra import multiplied
from dgsr.expressions.rewriting.polynomials import quotient_tree
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.linear.dictionary import LEFT_OVER, Columns, Target, Terms, polynomial_of
from dgsr.finders.linear.elimination import Kind, eliminated
from dgsr.finders.terms import over_columns

# Degrees of the numerator and denominator of the quotients by which powers are compared.
_DEGREES = ((3, 1), (2, 2))
# Number of terms to which these quotients are also reduced. Noise hides some powers in fits with all terms.
_FEW = 6
#: Most columns in which powers, and functions in the place of a column, are searched for.
MOST_COLUMNS = 5
# Operators that join 1 and a column to a factor of growth and of decay.
_FACTORS = ("add", "sub")


def bases_of(columns: Columns, operators: Sequence[str] = _FACTORS) -> dict[Tree, np.ndarray]:
    """Return columns x, their factors of growth 1 + x and of decay 1 - x, as trees with their values.

    Only bases that are positive on all rows are returned. A column that reaches 1 in size is read as percent.
    The operators are ``"add"`` for the factor of growth and ``"sub"`` for the factor of decay.
    """
    bases: dict[Tree, np.ndarray] = {}
    for column, values in columns.items():
        rate, share = column, values
        if np.abs(values).max() >= 1.0:
            rate, share = ("mul", 0.01, column), 0.01 * values
        bases[column] = values
        for operator in operators:
            bases[operator, 1.0, rate] = 1.0 + share if operator == "add" else 1.0 - share
    return {tree: own for tree, own in bases.items() if (own > 0.0).all()}


def with_logarithms(columns: Columns, library: Library, most: int) -> Iterator[tuple[Terms, list[Kind]]]:
    """Yield the terms of the logarithm of a product of powers, and the kinds of quotients of these terms.

    The terms are columns, logarithms of columns and of factors of growth, and products of a column and a
    logarithm. The denominator is 1 or has columns, as in the exponent of K*C**(1/n). Factors of decay, which
    are rare, follow in a second set of terms: together with factors of growth they would be more terms that
    fit noise. Where numerator and denominator would have more than `most` terms, factors of growth or decay
    are left out. A kind has the numbers of the terms of numerator and denominator. Nothing is yielded if no
    base is positive or the library cannot write such powers.
    """
    n, plain = len(columns), bases_of(columns, ())
    for operator in _FACTORS if _can_write(library) else ():
        bases = bases_of(columns, (operator,))
        # A denominator of 1 and the columns has n + 1 further terms.
        if (n + 1) * (len(bases) + 2) > most:
            bases = plain
        if bases and (operator == "add" or len(bases) > len(plain)):
            yield _of_logarithms(columns, bases, most)


def _of_logarithms(columns: Columns, bases: Columns, most: int) -> tuple[Terms, list[Kind]]:
    """Return the terms with the logarithms of given bases, and the kinds; see `with_logarithms`."""
    n = len(columns)
    pairs = [(i, n + j) for i in range(n) for j in range(len(bases))]
    factors = [(), *((i,) for i in range(n + len(bases))), *pairs]
    terms = Terms.of({**columns, **{("log", base): np.log(own) for base, own in bases.items()}}, factors)
    single, every = np.arange(n + len(bases) + 1), np.arange(len(factors))
    kinds = [(single, every[:1]), (every, every[:1]), (every, every[: n + 1])]
    return terms, [kind for kind in kinds if sum(map(len, kind)) <= most]


def with_powers(columns: Columns, plain: Terms, library: Library, target: Target, most: int) -> list[Terms]:
    """Return terms with a power of two columns, which replaces its exponent or is added to the columns.

    These are at most two: the terms whose quotients fit best with all terms and with few, if they fit better
    than the terms of the columns alone (`plain`). There are none for other than two to five columns.
    """
    if not _can_write(library) or not 2 <= len(columns) <= MOST_COLUMNS:
        return []
    found = []
    for of_base, exponent in permutations(columns, 2):
        for base, values in bases_of({of_base: columns[of_base]}).items():
            power = values ** columns[exponent]
            if np.isfinite(power).all() and np.ptp(power) > 0.0:
                beside = {("pow", base, exponent): power, **columns}
                in_place = {column: own for column, own in beside.items() if column != exponent}
                found += [Terms.of(in_place), Terms.of(beside)]
    of_plain = _errors(plain, target, most)
    errors = [_errors(terms, target, most) for terms in found]
    best = []
    # With few terms a power need only fit better.
    for number, share in enumerate((LEFT_OVER, 1.0)):
        of_all = [error[number] for error in errors]
        if of_all and np.isfinite(of_plain[number]) and min(of_all) < share * of_plain[number]:
            best.append(of_all.index(min(of_all)))
    return [found[i] for i in dict.fromkeys(best)]


def _can_write(library: Library) -> bool:
    """Return whether the library can write b**e, as a power or as exp(e*log(b))."""
    return "exp" in library.index and ("pow" in library.index or "log" in library.index)


def _errors(terms: Terms, target: Target, most: int) -> list[float]:
    """Return the smallest squared errors of quotients with all terms of a kind and with few."""
    least, up_to = [np.inf, np.inf], terms.up_to
    for degrees in _DEGREES:
        above, below = (up_to[min(degree, len(up_to) - 1)] for degree in degrees)
        if len(above) + len(below) > most:
            continue
        fits = eliminated(terms.values, target.h, target.root, above, below, _FEW)
        for number, fit in enumerate(islice(fits, 2)):
            numerator, denominator = fit.values(terms.values)
            residuals = target.root * (numerator / denominator - target.h)
            least[number] = min(least[number], float(residuals @ residuals))
    return least


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
