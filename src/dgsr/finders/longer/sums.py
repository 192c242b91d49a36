"""Sums of terms that a search has found, for data that no short formula fits.

The terms are parts of the last programs of the search, and simple functions of the columns. Orthogonal
matching pursuit (Pati, Rezaiifar and Krishnaprasad, 1993) selects them one after the other: each step adds
the term that shortens the description of formula and residuals the most.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.population import Population
from dgsr.finders.finder import Problem
from dgsr.finders.terms import (
    BITS_OF_TERM,
    Term,
    TermPool,
    orthogonal,
    population_of,
    sample_for,
    simple_terms,
    subprograms,
    terms_of,
)

# Most tokens of a term.
_LONGEST = 12
# Most terms of a sum, and of an extension.
MOST_TERMS = 25
# Fewest effective rows for each constant of a longer formula. With as many constants as rows, a formula fits
# any data exactly.
ROWS_PER_CONSTANT = 4
# Iterations of the fit of all constants together.
STEPS = 30
#: Successive terms after which the selection, or an extension, ends if none of them shortens the description.
PATIENCE = 3
#: Smallest norm of the part of a term, or of a tangent, that is orthogonal to those of the formula, relative
#: to the whole norm.
LEAST_NEW = 1e-3


def sums_of_terms(programs: Sequence[Population], problem: Problem, max_length: int) -> Population:
    """Return sums of two terms up to as many as shorten the description of the data.

    The library has ``add``, ``mul`` and ``const``, and parts of the programs are terms. There is a sum of at
    most `max_length` tokens, with fitted constants, for each of a few numbers of terms.
    """
    data, library = problem.data, problem.library
    parts = (part for each in programs for part in _parts(each))
    terms = list(dict.fromkeys([*simple_terms(library, problem.grammar), *parts]))
    # Terms are compared on a sample of rows, whose effective number also counts in the description.
    sample = sample_for(len(terms), data)
    pool = TermPool.of(terms, problem._replace(data=sample))
    root, largest = np.sqrt(sample.weights), np.abs(pool.values).max(axis=1)
    values, y = pool.values / largest[:, None] * root, sample.y * root
    chosen = _pursue(values, y, root, pool.bits, sample.n_effective)
    sums = []
    for n in sorted({n for n in (2, 3, 5, 8, 12, 17, len(chosen)) if 2 <= n <= len(chosen)}):
        design = np.column_stack([values[chosen[:n]].T, root])
        factors = np.linalg.lstsq(design, y, rcond=None)[0]
        factors[:-1] /= largest[chosen[:n]]
        tokens, constants = _sum([pool.terms[i] for i in chosen[:n]], factors.tolist(), library.index)
        if len(tokens) <= max_length and ROWS_PER_CONSTANT * len(constants) <= data.n_independent:
            sums.append((tokens, constants))
    found = population_of(library, sums)
    if len(found):
        fit_constants(found, data, scaled=False, n_iterations=STEPS)
    return found


def _parts(programs: Population) -> list[Term]:
    """Return the subprograms that have a variable and at most `_LONGEST` tokens."""
    library = programs.library
    found: list[Term] = []
    for tokens, constants in terms_of(programs):
        # The first of several equally good terms is selected, so inner parts come before outer ones.
        for at, own in reversed(subprograms(library, tokens)):
            part = tokens[at]
            if len(part) <= _LONGEST and max(part) >= library.first_variable:
                found.append((part, constants[own]))
    return found


def _pursue(values: np.ndarray, y: np.ndarray, ones: np.ndarray, bits: np.ndarray, n: float) -> list[int]:
    """Return the terms of the sum with the shortest description, in the order of their selection.

    The values of the terms, (n_terms, n_rows), the target and the constant term `ones` of every sum are
    multiplied by root weights. `n` is the effective number of rows.
    """
    left = orthogonal(values, ones / np.linalg.norm(ones))
    least = LEAST_NEW * np.linalg.norm(left, axis=1)
    residuals = y - ones * (ones @ y) / (ones @ ones)
    chosen: list[int] = []
    total, shortest, n_kept = 0.0, 0.0, 0
    while len(chosen) < min(MOST_TERMS, len(y) - 2, n_kept + PATIENCE):
        norms = np.linalg.norm(left, axis=1)
        is_new = norms > np.maximum(least, 1e-12)
        squares = float(residuals @ residuals)
        if squares == 0.0 or not is_new.any():
            break
        gains = np.where(is_new, (left @ residuals) / np.where(is_new, norms, 1.0), 0.0) ** 2
        shares = np.maximum(1.0 - gains / squares, 1e-30)
        changes = np.where(is_new, 0.5 * n * np.log2(shares) + bits + BITS_OF_TERM, np.inf)
        best = int(np.argmin(changes))
        direction = left[best] / norms[best]
        residuals, left = orthogonal(residuals, direction), orthogonal(left, direction)
        chosen.append(best)
        total += changes[best]
        if total < shortest:
            shortest, n_kept = total, len(chosen)
    return chosen[:n_kept]


def _sum(terms: Sequence[Term], factors: Sequence[float], index: dict[str, int]) -> Term:
    """Return the sum of terms times factors and of an offset, which is the last factor."""
    tokens, constants = [index["add"]] * len(terms), list[float]()
    for (own, inner), factor in zip(terms, factors):
        tokens += [index["mul"], index["const"], *own]
        constants += [factor, *inner]
    return (*tokens, index["const"]), (*constants, factors[-1])
