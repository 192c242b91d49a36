"""Quotients of polynomials of several columns, h(y) = p(x)/q(x), such as the rate laws of enzymes.

h is the identity, the square or the logarithm, whose inverse the formula then has. The terms are products of
columns up to a degree; which of them the law has, and with which coefficients, linear algebra says
(`dgsr.search.rational_fits`). Evolution seldom finds such laws once they have four numbers or so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library
from dgsr.expressions.polynomials import quotient_tree
from dgsr.expressions.trees import Tree, rename
from dgsr.population import DataSet, Population
from dgsr.search.rational_fits import RationalFit, eliminated
from dgsr.search.terms import columns_of, population_of, term_of

# Most columns, rows and terms; rows for each term; fewest rows.
_MOST_COLUMNS, _MOST_ROWS, _MOST_TERMS, _ROWS_PER_TERM, _FEWEST_ROWS = 12, 200, 60, 2, 8
# Highest degree of a term, by the number of columns, and of one of more columns.
_HIGHEST_DEGREES, _USUAL_DEGREE = {1: 6, 2: 5, 3: 4, 4: 3, 5: 3}, 2
# Degrees of numerator and denominator.
_DEGREES = (
    (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2),
    (3, 0), (0, 3), (3, 1), (1, 3), (3, 2), (2, 3), (3, 3), (4, 0), (5, 0), (6, 0),
)  # fmt: skip
# Single products of columns that are looked at further, above or below polynomials of the second or highest
# degree.
_BEST_PRODUCTS = 2
# Bits that a term takes, most terms of a formula, formulas of each kind that are compared, and formulas that
# are returned.
_BITS_OF_TERM, _LONGEST, _OF_EACH_KIND, _BEST = 12.0, 12, 3, 12
# Largest share of the residual variance of smaller kinds at which terms of a kind are left out.
_LEAST_GAIN = 0.9
# NMSE that is nothing but rounding.
_ROUNDING = 1e-24
# Smallest size of a target, as a share of the largest, by which the errors of its square are judged.
_SMALLEST = 1e-3


class _Target(NamedTuple):
    """A function h of the target or, where it is no identity, of the size of a target of one sign."""

    forward: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]  # derivative of h, which an error of y is multiplied by
    backward: Callable[[np.ndarray], np.ndarray]
    inverse: str | None  # operator of the formula


_TARGETS = (
    _Target(lambda y: y, np.ones_like, lambda h: h, None),
    _Target(np.square, lambda y: 2.0 * np.maximum(y, _SMALLEST * y.max()), np.sqrt, "sqrt"),
    _Target(np.log, lambda y: 1.0 / y, np.exp, "exp"),
)


class _Table(NamedTuple):
    """The data, and the terms of the columns, which were brought to sizes near 1."""

    sizes: np.ndarray  # (n_columns,), by which the columns were divided
    exponents: np.ndarray  # (n_terms, n_columns)
    terms: np.ndarray  # (n_rows, n_terms)
    y: np.ndarray  # (n_rows,)
    weights: np.ndarray  # (n_rows,)
    n_effective: float

    @property
    def degrees(self) -> np.ndarray:
        """The degree of each term."""
        return self.exponents.sum(axis=1)

    @property
    def sign(self) -> float:
        """The sign of all values of the target, or 0 if they have several."""
        signs = np.unique(np.sign(self.y))
        return float(signs[0]) if len(signs) == 1 else 0.0


class _Candidate(NamedTuple):
    """A fit of a function of the target."""

    bits: float  # of formula and residuals
    nmse: float
    variance: float  # the NMSE divided by the degrees of freedom that are left
    fit: RationalFit
    target: _Target


def rational_programs(data: DataSet, library: Library, grammar: Grammar) -> Population:
    """Return the best quotients of two polynomials of the columns, as whole formulas.

    Parameters
    ----------
    data : DataSet
    library : Library
        A library with constants.
    grammar : Grammar
        Tells which columns may be used; more than twelve are too many.

    Returns
    -------
    Population
        At most twelve programs, those with the shortest descriptions of formula and residuals; none for fewer
        than eight rows.
    """
    usable = [token - library.first_variable for (token,) in columns_of(grammar)]
    sample = data._replace(weights=data.weights * data.is_usual).evenly_spaced(_MOST_ROWS)
    is_usable = 0 < len(usable) <= _MOST_COLUMNS and len(sample.y) >= _FEWEST_ROWS
    if not is_usable or not {"add", "mul", "div"} <= set(library.index):
        return population_of(library, [])
    with np.errstate(all="ignore"):
        table = _table(sample, usable)
        best: dict[tuple, _Candidate] = {}  # of each form
        for each in sorted(_candidates(table, library), key=lambda each: each.bits):
            best.setdefault(_form(each, table), each)
        trees = [_tree(each, table) for each in list(best.values())[:_BEST]]
    names = {f"x{i + 1}": f"x{column + 1}" for i, column in enumerate(usable)}
    programs = (term_of(rename(tree, names), library) for tree in trees)
    return population_of(library, [program for program in programs if program is not None])


def _table(sample: DataSet, usable: list[int]) -> _Table:
    columns = sample.columns[usable]
    sizes = np.abs(columns).max(axis=1)
    sizes[sizes == 0.0] = 1.0
    degrees = range(1 + _HIGHEST_DEGREES.get(len(usable), _USUAL_DEGREE))
    factors = [of for n in degrees for of in combinations_with_replacement(range(len(usable)), n)]
    exponents = np.array([np.bincount(np.array(of, dtype=int), minlength=len(usable)) for of in factors])
    terms = np.column_stack([np.prod((columns / sizes[:, None])[list(of)], axis=0) for of in factors])
    return _Table(sizes, exponents, terms, sample.y, sample.weights, sample.n_effective)


def _candidates(table: _Table, library: Library) -> Iterator[_Candidate]:
    """Yield the best fits of every kind that may be better than smaller ones, up to the first exact one."""
    for target in _TARGETS:
        if target.inverse is not None and (table.sign == 0.0 or target.inverse not in library.index):
            continue
        y = table.y if target.inverse is None else np.abs(table.y)
        h, root = target.forward(y), np.sqrt(table.weights) / target.slope(y)
        if not np.isfinite(h).all() or not np.isfinite(root).all() or not h.any():
            continue
        size, least = np.abs(h).max(), np.inf
        for kind in _kinds(table, h / size, root):
            judged: list[_Candidate] = []
            for fit in eliminated(table.terms, h / size, root, *kind):
                candidate = _judged(fit.scaled(size), table, target)
                if not judged and candidate.variance > _LEAST_GAIN * least:
                    break
                judged.append(candidate)
            able = [each for each in judged if np.isfinite(each.bits)]
            kept = sorted(able, key=lambda each: each.bits)[:_OF_EACH_KIND]
            yield from kept
            if kept and kept[0].nmse <= _ROUNDING:
                return
            least = min([least, *(each.variance for each in kept)])


def _judged(fit: RationalFit, table: _Table, target: _Target) -> _Candidate:
    """Return a fit with its error and its description length."""
    numerator, denominator = fit.values(table.terms)
    predicted = target.backward(numerator / denominator)
    if target.inverse is not None:
        predicted *= table.sign
    mean = np.average(table.y, weights=table.weights)
    errors, variances = (table.weights @ (each - table.y) ** 2 for each in (predicted, mean))
    nmse, n = float(errors / variances), len(fit.coefficients)
    bits = 0.5 * table.n_effective * np.log2(np.maximum(nmse, _ROUNDING)) + _BITS_OF_TERM * n
    variance = nmse / max(len(table.y) - n, 1)
    return _Candidate(bits if n <= _LONGEST else np.inf, nmse, variance, fit, target)


def _kinds(table: _Table, h: np.ndarray, root: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the terms that numerator and denominator may have, the kinds with the fewest terms first."""
    most = min(_MOST_TERMS, len(h) // _ROWS_PER_TERM)
    up_to = [np.flatnonzero(table.degrees <= degree) for degree in range(table.degrees.max() + 1)]
    kinds = [(up_to[above], up_to[below]) for above, below in _DEGREES if max(above, below) < len(up_to)]
    terms, products = root[:, None] * table.terms, up_to[-1][1:]
    times_h = h[:, None] * terms
    for polynomial in {degree: up_to[degree] for degree in (2, len(up_to) - 1)}.values():
        if len(polynomial) < most:
            nearest = _nearest(terms[:, products], times_h[:, polynomial])
            kinds += [(products[[i]], polynomial) for i in nearest]
            nearest = _nearest(times_h[:, products], terms[:, polynomial])
            kinds += [(polynomial, products[[i]]) for i in nearest]
    kinds = [kind for kind in kinds if sum(map(len, kind)) <= most]
    yield from sorted(kinds, key=lambda kind: sum(map(len, kind)))


def _nearest(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return which of some vectors, (n_rows, n_vectors), combinations of a basis come nearest to."""
    inside = np.linalg.qr(basis)[0].T @ vectors
    shares = (inside**2).sum(axis=0) / (vectors**2).sum(axis=0)
    return np.argsort(-shares, kind="stable")[:_BEST_PRODUCTS]


def _form(candidate: _Candidate, table: _Table) -> tuple:
    """Return what a fit has in common with others that are the same formula with other numbers."""
    above, below = _exponents(candidate.fit, table)
    return candidate.target.inverse, tuple(map(tuple, above.tolist())), tuple(map(tuple, below.tolist()))


def _exponents(fit: RationalFit, table: _Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponents of the terms of p and q, without the columns that all of them share."""
    above, below = table.exponents[fit.above], table.exponents[fit.below]
    common = np.minimum(above.min(axis=0), below.min(axis=0))
    return above - common, below - common


def _tree(candidate: _Candidate, table: _Table) -> Tree:
    """Return the formula of a fit in the units of the data.

    The denominator is positive on most rows, and its largest term has no number; that is one with a column if
    there is any.
    """
    fit, inverse = candidate.fit, candidate.target.inverse
    n = len(fit.above)
    above, below = _exponents(fit, table)
    sizes = np.where(below.any(axis=1), np.abs(fit.coefficients[n:]), 0.0)
    coefficients = fit.coefficients / np.prod(table.sizes ** np.vstack([above, below]), axis=1)
    coefficients /= abs(coefficients[n + int(np.argmax(sizes))])
    coefficients *= np.copysign(1.0, np.median(fit.values(table.terms)[1]))
    tree = quotient_tree(
        *(
            dict(zip(map(tuple, exponents.tolist()), own.tolist()))
            for exponents, own in ((above, coefficients[:n]), (below, coefficients[n:]))
        )
    )
    if inverse is None:
        return tree
    return (inverse, tree) if table.sign > 0.0 else ("neg", (inverse, tree))
