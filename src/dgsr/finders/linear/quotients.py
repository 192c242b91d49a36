"""Quotients of polynomials of several columns, h(y) = p(x)/q(x), such as the rate laws of enzymes.

h is the identity, the square or the logarithm, whose inverse then appears in the formula. The terms are
products of columns up to a degree, with a function of a column in its place (module ``dictionary``) or a
power of two columns (module ``powers``) among the factors; backward elimination selects them (module
``elimination``). Evolution rarely finds such laws if they have four or more constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from dgsr.constants.uncertainty import LEAST_LEFT, Directions
from dgsr.data.dataset import DataSet
from dgsr.expressions.programs.library import Library
from dgsr.expressions.rewriting.polynomials import polynomial_tree, quotient_tree
from dgsr.expressions.trees.trees import Tree
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION
from dgsr.finders.finder import Deadline, Found, Problem, never
from dgsr.finders.linear.dictionary import BEST, Target, Terms, polynomial_of, targets_of, with_functions
from dgsr.finders.linear.elimination import Kind, RationalFit, eliminated
from dgsr.finders.linear.powers import MOST_COLUMNS, product_of_powers, with_logarithms, with_powers
from dgsr.finders.terms import (
    BITS_OF_TERM,
    LEAST_ROWS_PER_CONSTANT,
    WIDEST_TABLE,
    columns_of,
    over_columns,
    population_of,
    term_of,
)

# Fewest rows of a table that is searched.
_FEWEST_ROWS = 8
# Most terms of numerator and denominator of a quotient. The logarithm of a product of powers may have as many
# as the rows allow, 100 for the 200 rows on which quotients are compared.
_MOST_TERMS = 60
# Degrees of numerator and denominator of the quotients that are fitted.
_DEGREES = (
    (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2), (2, 2),
    (3, 0), (0, 3), (3, 1), (1, 3), (3, 2), (2, 3), (3, 3), (4, 0), (5, 0), (6, 0),
)  # fmt: skip
# Most terms of a formula, and most formulas that are returned.
_MOST = 12
# Best formulas of each kind that are compared.
_OF_EACH_KIND = 3
# Largest ratio of the residual variances of a kind with all its terms and of the best one before it.
_LEAST_GAIN = 0.9
# Largest NMSE that is a rounding error.
_ROUNDING = 1e-23
# NMSE up to which a fit must be a law to be valid. Twelve terms approximate many functions to 1e-21.
_NEARLY_EXACT = 1e-16
# Most terms of an inexact formula, at least two, as a share of the rows that make up the variance.
_SHARE_OF_ROWS = 0.8
# Largest ratio of the squared leave-one-out errors and residuals, relative to its typical value.
_MOST_LEFT_OUT = 4.0
# Smallest factor by which the NMSE of a law grows when it loses a term.
_CLIFF = 1e12


class _Candidate(NamedTuple):
    """A fitted quotient for a function of the target."""

    bits: float  # description length of formula and residuals
    nmse: float
    variance: float  # NMSE divided by the residual degrees of freedom
    fit: RationalFit
    terms: Terms
    target: Target


def quotients_of_polynomials(problem: Problem, deadline: Deadline = never) -> Found:
    """Find the best quotients of two polynomials of the columns, in a library with constants.

    At most twelve formulas are found, with the shortest descriptions of formula and residuals; none for more
    than twelve columns or fewer than eight rows. The deadline is called after each candidate.
    """
    library = problem.library
    usable = [token - library.first_variable for (token,) in columns_of(problem.grammar)]
    sample = problem.data.ordinary_rows()
    is_usable = 0 < len(usable) <= WIDEST_TABLE and len(sample.y) >= _FEWEST_ROWS
    if not is_usable or not {"add", "sub", "mul", "div"} <= set(library.index):
        return Found(population_of(library, []), are_complete=True)
    with np.errstate(all="ignore"):
        best: dict[tuple, _Candidate] = {}  # best candidate of each form
        found = list(takewhile(lambda _: not deadline(), _candidates(sample, usable, library)))
        for each in sorted(found, key=lambda each: each.bits):
            best.setdefault(_form(each), each)
        with_columns = (each for each in best.values() if any(map(np.any, _exponents(each))))
        programs = (term_of(_tree(each), library) for each in with_columns)
        formulas = (each for each in programs if each is not None and np.isfinite(each[1]).all())
        best_formulas = population_of(library, list(islice(formulas, _MOST)))
        return Found(best_formulas, True, CANDIDATES_PER_EVALUATION * len(found))


def _candidates(sample: DataSet, usable: list[int], library: Library) -> Iterator[_Candidate]:
    """Yield the best fits of all kinds up to the first exact one."""
    columns: dict[Tree, np.ndarray] = {f"x{column + 1}": sample.columns[column] for column in usable}
    plain, targets = Terms.of(columns), list(targets_of(sample.y, sample.weights, library))
    room = len(sample.y) // LEAST_ROWS_PER_CONSTANT
    most = min(_MOST_TERMS, room)

    def kinds_of_terms() -> Iterator[tuple[Terms, Target, Iterable[Kind]]]:
        yield from ((plain, target, _kinds(plain, target, most)) for target in targets)
        of = {target.inverse: target for target in targets}
        if "exp" in of:
            for terms, kinds in with_logarithms(columns, library, room):
                yield terms, of["exp"], kinds
        if None in of:
            for terms in with_powers(columns, plain, library, of[None], most):
                yield terms, of[None], _kinds(terms, of[None], most)
        if len(columns) <= MOST_COLUMNS:
            for terms, target in with_functions(columns, plain, library, targets, most):
                yield terms, target, _kinds(terms, target, most)

    for terms, target, kinds in kinds_of_terms():
        for candidate in _best(terms, target, kinds, sample):
            yield candidate
            if candidate.nmse <= _ROUNDING:
                return


def _best(terms: Terms, target: Target, kinds: Iterable[Kind], sample: DataSet) -> Iterator[_Candidate]:
    """Yield the best fits of every kind that improves on the kinds before it."""
    least = np.inf
    for kind in kinds:
        scored: list[_Candidate] = []
        for fit in eliminated(terms.values, target.h, target.root, *kind):
            candidate = _scored(fit, terms, target, sample)
            if not scored and candidate.variance > _LEAST_GAIN * least:
                break
            scored.append(candidate)
        finite = [each for each in _without_approximations(scored) if np.isfinite(each.bits)]
        best = filter(_predicts, sorted(finite, key=lambda each: each.bits))
        shortest = list(islice(best, _OF_EACH_KIND))
        yield from shortest
        least = min([least, *(each.variance for each in shortest)])


def _predicts(candidate: _Candidate) -> bool:
    """Return whether the leave-one-out errors of a fit are nearly as small as its residuals."""
    if candidate.nmse <= _ROUNDING:
        return True
    fit, terms, target = candidate.fit, candidate.terms, candidate.target
    if len(fit.coefficients) > max(_SHARE_OF_ROWS * target.n_varying, 2):
        return False
    numerator, denominator = fit.values(terms.values)
    predicted = numerator / denominator
    slopes = np.hstack([terms.values[:, fit.above], -predicted[:, None] * terms.values[:, fit.below]])
    slopes *= (target.root / denominator)[:, None]
    if not (np.isfinite(slopes).all() and slopes.any(axis=0).all()):
        return False
    residuals = target.root * (predicted - target.h)
    left_out = residuals / np.maximum(1.0 - Directions.of(slopes).leverages, LEAST_LEFT)
    n, k = slopes.shape
    typical = (n / max(n - k, 1)) ** 2
    return float(left_out @ left_out) <= _MOST_LEFT_OUT * typical * float(residuals @ residuals)


def _without_approximations(scored: list[_Candidate]) -> Iterator[_Candidate]:
    """Yield all fits except those that are nearly exact without being laws.

    Twelve terms approximate many smooth functions to such precision. With each term that is lost, the error
    of an approximation grows by a few powers of ten, and the error of a law by about twenty.
    """
    errors = [each.nmse for each in scored]
    for number, fit in enumerate(scored):
        without = next(filter(np.isfinite, errors[number + 1 :]), np.inf)
        is_law = without > _CLIFF * max(fit.nmse, _ROUNDING)
        if fit.nmse > _NEARLY_EXACT or is_law:
            yield fit


def _scored(fit: RationalFit, terms: Terms, target: Target, sample: DataSet) -> _Candidate:
    """Return a fit with its NMSE and its description length."""
    numerator, denominator = fit.values(terms.values)
    residuals = target.predicted(numerator / denominator) - sample.y
    nmse = float(np.mean(sample.weights * residuals**2) / sample.variance)
    n = len(fit.coefficients)
    bits = float(sample.bits_of_residuals(np.maximum(nmse, _ROUNDING))) + BITS_OF_TERM * n
    variance = nmse / max(len(sample.y) - n, 1)
    return _Candidate(bits if n <= _MOST else np.inf, nmse, variance, fit, terms, target)


def _kinds(terms: Terms, target: Target, most: int) -> Iterator[Kind]:
    """Yield the kinds, which are the terms allowed in numerator and denominator, in order of their number."""
    up_to = terms.up_to
    kinds = [(up_to[above], up_to[below]) for above, below in _DEGREES if max(above, below) < len(up_to)]
    values, products = target.root[:, None] * terms.values, up_to[-1][1:]
    times_h = target.h[:, None] * values
    for polynomial in {degree: up_to[degree] for degree in (2, len(up_to) - 1)}.values():
        if len(polynomial) < most:
            nearest = _nearest(values[:, products], times_h[:, polynomial])
            kinds += [(products[[i]], polynomial) for i in nearest]
            nearest = _nearest(times_h[:, products], values[:, polynomial])
            kinds += [(polynomial, products[[i]]) for i in nearest]
    kinds = [kind for kind in kinds if sum(map(len, kind)) <= most]
    yield from sorted(kinds, key=lambda kind: sum(map(len, kind)))


def _nearest(vectors: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the numbers of the vectors, (n_rows, n_vectors), that a basis explains best."""
    inside = np.linalg.qr(basis)[0].T @ vectors
    shares = (inside**2).sum(axis=0) / (vectors**2).sum(axis=0)
    return np.argsort(-shares, kind="stable")[:BEST]


def _form(candidate: _Candidate) -> tuple:
    """Return a key that all fits share which differ only in their coefficients."""
    columns = candidate.terms.columns
    above, below = (
        frozenset(frozenset((column, n) for column, n in zip(columns, term) if n) for term in exponents)
        for exponents in (of.tolist() for of in _exponents(candidate))
    )
    return candidate.target.inverse, above, below


def _exponents(candidate: _Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return the exponents of the terms of p and q, after common factors of all terms of each are removed."""
    above, below = (candidate.terms.exponents[of] for of in (candidate.fit.above, candidate.fit.below))
    common = np.minimum(above.min(axis=0), below.min(axis=0))
    return above - common, below - common


def _tree(candidate: _Candidate) -> Tree:
    """Return the formula of a fit in the units of the data.

    The denominator is positive on most rows. The coefficient of its largest term with a column, or of a
    constant denominator, is 1 or -1.
    """
    fit, terms, target = candidate.fit, candidate.terms, candidate.target
    n = len(fit.above)
    above, below = _exponents(candidate)
    sizes = np.where(below.any(axis=1), np.abs(fit.coefficients[n:]), 0.0)
    coefficients = fit.coefficients / np.prod(terms.sizes ** np.vstack([above, below]), axis=1)
    coefficients /= abs(coefficients[n + int(np.argmax(sizes))])
    coefficients *= np.copysign(1.0, np.median(fit.values(terms.values)[1]))
    coefficients[:n] *= target.size
    tree = None
    if target.inverse == "exp":
        tree = product_of_powers(above, below, coefficients[:n] / coefficients[n], terms.columns)
    if tree is None:
        if target.inverse == "sqrt":
            tree = _root(above, below, coefficients, terms.are_positive)
        else:
            numerator = polynomial_of(above, coefficients[:n])
            tree = quotient_tree(numerator, polynomial_of(below, coefficients[n:]))
            tree = tree if target.inverse is None else (target.inverse, tree)
        tree = over_columns(tree, terms.columns)
    return tree if target.sign > 0.0 else ("neg", tree)


def _root(above: np.ndarray, below: np.ndarray, coefficients: np.ndarray, are_positive: np.ndarray) -> Tree:
    """Return the square root of a quotient, as x1*sqrt(p/q) for sqrt(x1**2*p/q) if x1 is positive."""
    n, roots = len(above), [each.min(axis=0) // 2 * are_positive for each in (above, below)]
    numerator = polynomial_of(above - 2 * roots[0], coefficients[:n])
    denominator = polynomial_of(below - 2 * roots[1], coefficients[n:])
    outside = [{tuple(each.tolist()): 1.0} for each in roots]
    if len(numerator) == 1 and not (above - 2 * roots[0]).any() and coefficients[0] > 0.0:
        outside[0] = {tuple(roots[0].tolist()): float(np.sqrt(coefficients[0]))}
        return ("div", quotient_tree(*outside), ("sqrt", polynomial_tree(denominator)))
    root = ("sqrt", quotient_tree(numerator, denominator))
    return ("mul", quotient_tree(*outside), root) if any(each.any() for each in roots) else root
