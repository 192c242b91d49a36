"""An exhaustive search for laws with one constant inside: h(y) = a f(c m) + b, or h(y) = a log(m + c) + b.

m is a column, a simple function of a column, or two columns joined by an operator; f is an exponential, a
sine, a cosine or a hyperbolic tangent; h is one of the functions of the target in `two_terms`. a and b follow
from least squares, so that only the values of c need to be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.finders.finder import Deadline, Found, Problem, never
from dgsr.finders.linear.two_terms import FEWEST_ROWS, MOST_ROWS, TRANSFORMS, Transform
from dgsr.finders.terms import Term, columns_of, is_usable, joined, population_of

# Most columns that are joined in pairs.
_MOST_COLUMNS = 12
# Most terms m.
_MOST_TERMS = 200
# Best terms of each f and h for which c is refined.
_REFINED = 8
# Best terms of each f and h that become programs.
_BEST = 3
# Smallest range of values, as a share of their largest size, at which they are not constant.
_LEAST_VARIED = 1e-9
# Steps of a golden-section search, which shrink the interval to 1e-10 of its width.
_STEPS = 48


class _Function(NamedTuple):
    """A function f and the values of c that are tried, in units of the size of m."""

    value: Callable[[np.ndarray], np.ndarray]
    numbers: np.ndarray
    of_range: bool  # whether the unit is 1 over the range of m, and not 1 over its largest absolute value


# Absolute values of c times the largest |m| that are tried in exponentials and logarithms.
_SIZES = np.geomspace(0.02, 40.0, 56)
# The functions f by the names of their operators.
_FUNCTIONS = {
    "exp": _Function(np.exp, np.concatenate([-_SIZES, _SIZES]), False),
    "tanh": _Function(np.tanh, np.geomspace(0.05, 20.0, 40), False),
    "sin": _Function(np.sin, np.arange(0.5, 40.0, 0.4), True),
    "cos": _Function(np.cos, np.arange(0.5, 40.0, 0.4), True),
    "log": _Function(np.log1p, _SIZES, False),
}


def one_number(problem: Problem, deadline: Deadline = never) -> Found:
    """Find the best formulas of a function of a term and a constant, without an outer scale and offset.

    Parameters
    ----------
    problem : Problem
        A problem whose library has constants. Rows of almost no weight are left out, and all others count
        alike.
    deadline : callable
        It is called before each function f.

    Returns
    -------
    Found
        At most 75 programs, 3 for each f and h; none for fewer than six rows. The candidates are all
        combinations of a term, a value of c and a function h that were tried.
    """
    library, found, n_tried = problem.library, list[Term](), 0
    problem = problem._replace(data=problem.data.usual_rows(MOST_ROWS))
    y = problem.data.y
    if len(y) >= FEWEST_ROWS and {"add", "mul"} <= set(library.index):
        with np.errstate(all="ignore"):
            terms, values = _terms_of(problem)
            transforms = [transform for transform in TRANSFORMS if transform.can_be_written(library)]
            for name, function in _FUNCTIONS.items():
                if name in library.index and len(terms) and not deadline():
                    found += _of_function(name, function, terms, values, transforms, y, library)
                    n_tried += len(function.numbers) * len(terms) * len(transforms)
    return Found(population_of(library, list(dict.fromkeys(found))), False, n_tried)


def _terms_of(problem: Problem) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the terms m and their values, shape (n_terms, n_rows)."""
    library, columns = problem.library, columns_of(problem.grammar)
    unary = [library.index[name] for name in ("square", "inv", "sqrt") if name in library.index]
    few = columns[:_MOST_COLUMNS]
    terms = [*columns, *((operator, *column) for operator in unary for column in columns)]
    terms += [term for term in joined(library, few, few) if term[1] != term[2]]
    terms = terms[:_MOST_TERMS]
    population = population_of(library, [(term, ()) for term in terms])
    values = population.predict(problem.data.columns.T)
    kept = is_usable(values, _LEAST_VARIED) & problem.valid.terms(population)
    return [term for term, is_kept in zip(terms, kept) if is_kept], values[kept]


def _of_function(
    name: str,
    function: _Function,
    terms: list[tuple[int, ...]],
    values: np.ndarray,
    transforms: list[Transform],
    y: np.ndarray,
    library: Library,
) -> Iterator[Term]:
    """Yield the programs of one function f with the best terms for every h."""
    sizes = np.ptp(values, axis=1) if function.of_range else np.abs(values).max(axis=1)
    numbers = function.numbers / sizes[:, None]  # (n_terms, n_numbers)
    shapes = function.value(numbers[:, :, None] * values[:, None, :])
    centred = shapes - shapes.mean(axis=2, keepdims=True)
    norms = np.sqrt(np.einsum("ijk,ijk->ij", centred, centred))
    is_shape = np.isfinite(norms) & (norms > _LEAST_VARIED * np.abs(shapes).max(axis=2))
    targets, candidates = [], []
    for transform in transforms:
        target = transform.forward(y)
        spread = target - target.mean()
        if not np.isfinite(target).all() or np.ptp(target) <= _LEAST_VARIED * np.abs(target).max():
            continue
        shares = np.where(is_shape, (centred @ spread / norms) ** 2 / (spread @ spread), 0.0)
        best = np.argmax(shares, axis=1)  # number of the best c of each term
        order = np.argsort(-shares[np.arange(len(terms)), best], kind="stable")[:_REFINED]
        targets.append((transform, target))
        candidates += [(len(targets) - 1, i, *_bounds(numbers[i], best[i])) for i in order.tolist()]
    if not candidates:
        return
    of_target, of_term, low, high = (np.array(column) for column in zip(*candidates))
    spreads = np.stack([target - target.mean() for _, target in targets])[of_target]
    found, unexplained = _refined(function, values[of_term], spreads, low, high)
    for k, (transform, target) in enumerate(targets):
        own = np.flatnonzero((of_target == k) & (unexplained < 1.0))
        for at in own[np.argsort(unexplained[own], kind="stable")][:_BEST].tolist():
            i = int(of_term[at])
            yield _program(name, function, transform, terms[i], float(found[at]), values[i], target, library)


def _bounds(numbers: np.ndarray, at: int) -> tuple[float, float]:
    """Return the neighbours of a tried number, between which the best number lies."""
    low, high = sorted((float(numbers[max(at - 1, 0)]), float(numbers[min(at + 1, len(numbers) - 1)])))
    if low < 0.0 < high:  # the two sides of the gap at 0
        low, high = sorted((0.1 * float(numbers[at]), float(numbers[at])))
    return low, high


def _refined(
    function: _Function, terms: np.ndarray, spreads: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best numbers between bounds and the unexplained share of the variance of each.

    The golden-section searches of all candidates run together; one after the other they took a fifth of the
    time of a small fit.

    Parameters
    ----------
    function : _Function
    terms, spreads : ndarray of shape (n_candidates, n_rows)
        The values of the term of each candidate, and its target minus the mean.
    low, high : ndarray of shape (n_candidates,)

    Returns
    -------
    numbers, unexplained : ndarray of shape (n_candidates,)
    """
    variances = np.einsum("ij,ij->i", spreads, spreads)

    def unexplained(numbers: np.ndarray) -> np.ndarray:
        shapes = function.value(numbers[:, None] * terms)
        centred = shapes - shapes.mean(axis=1, keepdims=True)
        slopes = np.einsum("ij,ij->i", centred, spreads) / np.einsum("ij,ij->i", centred, centred)
        left = spreads - slopes[:, None] * centred
        return np.nan_to_num(np.einsum("ij,ij->i", left, left) / variances, nan=np.inf)

    ratio = (np.sqrt(5.0) - 1.0) / 2.0
    lower, upper = high - ratio * (high - low), low + ratio * (high - low)
    at_lower, at_upper = unexplained(lower), unexplained(upper)
    for _ in range(_STEPS):
        is_below = at_lower < at_upper  # the best number is then below the upper one
        low, high = np.where(is_below, low, lower), np.where(is_below, upper, high)
        inner = np.where(is_below, high - ratio * (high - low), low + ratio * (high - low))
        at_inner = unexplained(inner)
        lower, upper = np.where(is_below, inner, upper), np.where(is_below, lower, inner)
        at_lower, at_upper = np.where(is_below, at_inner, at_upper), np.where(is_below, at_lower, at_inner)
    is_below = at_lower < at_upper
    return np.where(is_below, lower, upper), np.where(is_below, at_lower, at_upper)


def _program(
    name: str,
    function: _Function,
    transform: Transform,
    term: tuple[int, ...],
    number: float,
    values: np.ndarray,
    target: np.ndarray,
    library: Library,
) -> Term:
    """Return the program of h(y) = a f(c m) + b, solved for y, without an outer scale and offset."""
    index = library.index
    if name == "log":  # log(1 + c m) = log(m + 1/c) + log(c)
        inner: Term = (index["log"], index["add"], index["const"], *term), (1.0 / number,)
    else:
        inner = (index[name], index["mul"], index["const"], *term), (number,)
    shape = np.log(values + 1.0 / number) if name == "log" else function.value(number * values)
    a, b = np.polyfit(shape, target, 1).tolist()
    return transform.solved(inner, a, b, library)
