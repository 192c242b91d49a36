"""An exhaustive search for laws of two terms: h(y) = a f(x) + b g(x) + c, or y = a f(x) g(x).

f and g are among the simplest terms of the columns; h is one of a few functions, whose inverse then appears
in the formula. The share of the variance that a pair explains follows from inner products alone, and products
are found by sorting the logarithms of the terms. Evolution does not start from the pairs: it would refine
near misses of two terms and miss other laws.

References
----------
Ouyang et al., Phys. Rev. Materials 2, 083802, 2018 (SISSO): pairs from large spaces of features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.finders.finder import Deadline, Found, Problem, never
from dgsr.finders.terms import Term, TermPool, columns_of, functions_of, joined, population_of

# Most columns from which terms are made.
_MOST_COLUMNS = 60
# Most terms whose pairs are compared, and for which partners in products are examined. Half a million pairs
# take 30 ms, and where values repeat, thousands of terms have partners.
_MOST_IN_PAIRS = 1_000
# Approximate number of terms whose products and quotients are compared.
_MOST_IN_PRODUCTS = 20_000
# Fewest rows on which terms are compared.
_FEWEST_ROWS = 6
# Best pairs for each h, and simplest products, that become programs, and partners examined for each term.
_BEST = 20
# Smallest unexplained share of the variance; smaller ones are rounding errors.
_ROUNDING = 1e-14
# Smallest value of 1 - r**2 for the correlation r of two terms of a pair. Terms with less are collinear.
_ALIKE = 1e-7
# Relative difference of values, and distance of logarithms, that rounding explains.
_SAME = 1e-9


class _Transform(NamedTuple):
    """A function h of the target, and the program with h(y) = a f + b g + c solved for y."""

    forward: Callable[[np.ndarray], np.ndarray]
    outer: tuple[str, ...]  # operators of its inverse, the outermost first
    is_even: bool  # whether the inverse is defined for positive values only

    def can_be_written(self, library: Library) -> bool:
        """Return whether a library with add and mul has all operators of the program."""
        needed = {*self.outer, "sub"} if self.is_even else set(self.outer)
        return needed <= library.index.keys()

    def solved(self, term: Term, factor: float, offset: float, library: Library) -> Term:
        """Return the program of h(y) = factor * term + offset, solved for y up to a scale and an offset."""
        index, (tokens, constants) = library.index, term
        outer = tuple(index[name] for name in self.outer)
        if not outer:
            return tokens, constants
        if self.is_even and factor < 0.0:
            return (*outer, index["sub"], index["const"], *tokens), (offset / -factor, *constants)
        return (*outer, index["add"], *tokens, index["const"]), (*constants, offset / factor)


# Functions of the target under which terms are compared.
_TRANSFORMS = (
    _Transform(lambda y: y, (), False),
    _Transform(lambda y: 1.0 / y, ("inv",), False),
    _Transform(lambda y: y**2, ("sqrt",), True),
    _Transform(lambda y: 1.0 / y**2, ("inv", "sqrt"), True),
    _Transform(lambda y: np.sqrt(np.abs(y)), ("square",), False),
)


class _Pairs:
    """All pairs of some terms, with the inner products that comparisons with all targets share."""

    def __init__(self, terms: TermPool) -> None:
        self.tokens, self._values, bits = terms.tokens, terms.values, terms.bits
        self._units = _units(self._values)
        alike = self._units @ self._units.T
        first, second = np.triu_indices(len(bits), 1)
        is_pair = 1.0 - alike[first, second] ** 2 > _ALIKE
        self._first, self._second = first[is_pair], second[is_pair]
        self._alike = alike[self._first, self._second]
        self._left = 1.0 - self._alike**2
        self._bits = (bits[self._first] + bits[self._second]).astype(np.float32)

    def __len__(self) -> int:
        return len(self._bits)

    def best(self, target: np.ndarray) -> Iterator[tuple[int, int, float, float, float]]:
        """Yield the numbers of the pairs with the shortest descriptions of a target, and their a, b and c."""
        n = min(_BEST, len(self._bits))
        if n == 0 or not np.isfinite(target).all() or np.ptp(target) <= _SAME * np.abs(target).max():
            return
        shares = self._units @ _units(target[None])[0]
        one, other = shares[self._first], shares[self._second]
        explained = one**2 + other**2 - 2.0 * one * other * self._alike
        unexplained = np.maximum(1.0 - explained / self._left, _ROUNDING).astype(np.float32)
        lengths = np.float32(0.5 * len(target)) * np.log2(unexplained) + self._bits
        for at in np.sort(np.argpartition(lengths, n - 1)[:n]).tolist():
            i, j = int(self._first[at]), int(self._second[at])
            design = np.column_stack([self._values[i], self._values[j], np.ones(len(target))])
            sizes = np.abs(design).max(axis=0)
            a, b, c = (np.linalg.lstsq(design / sizes, target, rcond=None)[0] / sizes).tolist()
            if a != 0.0 and b != 0.0:
                yield i, j, a, b, c


def two_terms(problem: Problem, deadline: Deadline = never) -> Found:
    """Find the best formulas of two terms, without an outer scale and offset, in a library with constants.

    Rows of almost no weight are left out, and all others count alike. At most 140 programs are found, 20 for
    each function of the target and 20 products; none for fewer than six rows. The candidates are the pairs
    that were compared. The deadline is called before each comparison.
    """
    library = problem.library
    problem = problem._replace(data=problem.data.ordinary_rows())
    y, found, n_compared = problem.data.y, list[Term](), 0
    if len(y) < _FEWEST_ROWS or not {"add", "mul"} <= library.index.keys():
        return Found(population_of(library, []), are_complete=False)
    with np.errstate(all="ignore"):
        terms = _terms_of(problem, deadline)
        if not deadline():
            found += _products(terms, y, library)
            pairs = _Pairs(_best_terms(terms, _MOST_IN_PAIRS, y))
            for transform in _TRANSFORMS:
                if transform.can_be_written(library) and not deadline():
                    found += _of_pairs(transform, pairs, y, library)
                    n_compared += len(pairs)
            if {"exp", "pow"} <= library.index.keys() and not deadline():
                found += _powers(pairs, y, library)
                n_compared += len(pairs)
    return Found(population_of(library, list(dict.fromkeys(found))), False, n_compared)


def _best_terms(terms: TermPool, n: int, y: np.ndarray) -> TermPool:
    """Return at most n terms: the simplest, and those that describe the target alone most shortly."""
    if len(terms.bits) <= n:
        return terms
    units, shares = _units(terms.values), np.zeros(len(terms.bits))
    for target in (y, np.log(np.abs(y))):
        if np.isfinite(target).all() and np.ptp(target) > 0.0:
            shares = np.maximum(shares, (units @ _units(target[None])[0]) ** 2)
    scores = terms.bits + 0.5 * len(y) * np.log2(np.maximum(1.0 - shares, _ROUNDING))
    best = np.union1d(np.arange(n // 2), np.argsort(scores, kind="stable")[: n // 2])
    return terms.chosen(best)


def _terms_of(problem: Problem, deadline: Deadline) -> TermPool:
    """Return the columns, their functions and pairs, and functions of these and their pairs with columns."""
    library, y = problem.library, problem.data.y

    def pool(tokens: list[tuple[int, ...]]) -> TermPool:
        return TermPool.of([(term, ()) for term in tokens], problem, _SAME).simplest_first()

    columns = _best_terms(pool(columns_of(problem.grammar)), _MOST_COLUMNS, y).tokens
    second = pool([*functions_of(library, columns), *joined(library, columns, columns)])
    if deadline():
        return second
    per_term = len(functions_of(library, columns[:1])) + 6 * len(columns)
    inner = _best_terms(second, _MOST_IN_PRODUCTS // max(per_term, 1), y).tokens
    third = [*functions_of(library, inner), *joined(library, inner, columns)]
    return pool([*columns, *second.tokens, *third])


def _units(values: np.ndarray) -> np.ndarray:
    """Return rows minus their means, scaled to length 1."""
    centred = values - values.mean(axis=1, keepdims=True)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def _of_pairs(transform: _Transform, pairs: _Pairs, y: np.ndarray, library: Library) -> list[Term]:
    """Return the programs of the best pairs under one function of the target."""
    add, mul, const = (library.index[name] for name in ("add", "mul", "const"))
    found: list[Term] = []
    for i, j, a, b, c in pairs.best(transform.forward(y)):
        f, g = pairs.tokens[i], pairs.tokens[j]
        if transform.is_even and a < 0.0 < b:
            f, g, a, b = g, f, b, a
        found.append(transform.solved(((add, *f, mul, const, *g), (b / a,)), a, c, library))
    return found


def _powers(pairs: _Pairs, y: np.ndarray, library: Library) -> list[Term]:
    """Return products of powers and exponentials, which solve log|y| = a f + b g + c."""
    index = library.index

    def factor(term: tuple[int, ...], power: float) -> Term:
        if term[0] == index.get("log"):
            return (index["pow"], *term[1:], index["const"]), (power,)
        return (index["exp"], index["mul"], index["const"], *term), (power,)

    found: list[Term] = []
    for i, j, a, b, _ in pairs.best(np.log(np.abs(y))):
        (first, power), (second, other) = factor(pairs.tokens[i], a), factor(pairs.tokens[j], b)
        found.append(((index["mul"], *first, *second), (*power, *other)))
    return found


def _products(terms: TermPool, y: np.ndarray, library: Library) -> list[Term]:
    """Return the simplest products and quotients of two terms that equal y up to a factor."""
    ratios = np.log(np.abs(terms.values / terms.values[:, :1]))[:, 1:]
    target = np.log(np.abs(y / y[0]))[1:]
    numbers = np.flatnonzero(np.isfinite(ratios).all(axis=1))
    if not np.isfinite(target).all() or len(numbers) == 0:
        return []
    ratios, at = ratios[numbers], int(np.argmax(np.abs(target)))
    order = np.argsort(ratios[:, at], kind="stable")
    ranked = ratios[order, at]
    found: list[tuple[float, Term]] = []
    needs = {"mul": target[at] - ratios[:, at], "div": ratios[:, at] - target[at]}
    for name, needed in needs.items():
        if name not in library.index:
            continue
        sign = 1.0 if name == "mul" else -1.0
        first, last = np.searchsorted(ranked, needed - _SAME), np.searchsorted(ranked, needed + _SAME)
        for i in np.flatnonzero(last > first)[:_MOST_IN_PAIRS].tolist():
            near = order[first[i] : min(last[i], first[i] + _BEST)]
            is_same = np.abs(ratios[i] + sign * ratios[near] - target).max(axis=1) < 10.0 * _SAME
            for j in near[is_same].tolist():
                pair = numbers[i], numbers[j]
                one, other = pair if name == "div" else sorted(pair)  # the factors of a product commute
                tokens = (library.index[name], *terms.terms[one][0], *terms.terms[other][0])
                found.append((float(terms.bits[one] + terms.bits[other]), (tokens, ())))
    return [term for _, term in sorted(set(found))[:_BEST]]
