"""The door of the exact search: it solves for the whole law, stage by stage, and repairs near misses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, lru_cache

import numpy as np

from dgsr.exact_search.backpropagation import repair
from dgsr.exact_search.bank import (
    LARGE,
    N_POINTS,
    Catalogue,
    Short,
    choose_rows,
    fill_short,
    new_catalogue,
    new_short,
    rows_to_look_at,
    short_of,
)
from dgsr.exact_search.stages import DEEPEST, SHALLOW, complete_whole
from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library, TokenTable
from dgsr.kernels.evaluate import predictions
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.programs import Programs
from dgsr.population import DataSet, Population

#: Repaired programs of one call at most.
_MOST = 200
# What all repairs of one call may cost, counted as in `dgsr.exact_search.join`: a second or two. On common
# data none comes near.
_MOST_WORK = 200_000_000
# Mean square of what is written otherwise and rounded otherwise, of that of the target.
_ROUNDING = 1e-8


@cache
def catalogue_of(library: Library, n_variables: int) -> Catalogue:
    """The short programs of a library over so many columns."""
    return new_catalogue(library.table.opcode, library.table.argument, n_variables)


@lru_cache(maxsize=2)  # one is 57 MB
def large_catalogue_of(library: Library, n_variables: int, size: int = LARGE) -> Catalogue:
    """The same, and many more."""
    return new_catalogue(library.table.opcode, library.table.argument, n_variables, size)


def _short(points: np.ndarray, catalogue: Catalogue) -> Short:
    short = short_of(new_short(1, catalogue), 0)
    fill_short(points, catalogue, *short)
    return short


def is_law(
    program: np.ndarray,
    n: int,
    grammar: Grammar,
    table: TokenTable,
    columns: np.ndarray,
    y: np.ndarray,
) -> bool:
    """Whether the first n tokens meet the constraints, and are the law at all rows: it is looked up at a few.

    Parameters
    ----------
    program : ndarray of shape (at least n,), int64
    columns : ndarray of shape (C, n_samples), float64
    y : ndarray of shape (n_samples,), float64
    """
    tokens, lengths = program[None, :n], np.array([n])
    if not are_valid(tokens, lengths, grammar)[0]:
        return False
    values = predictions(Programs(tokens, lengths, np.ones((1, 0))), table, columns)[0]
    return bool(np.mean((values - y) ** 2) <= _ROUNDING * np.mean(y**2))


class ExactSolver:
    """Finds programs that have the values of the target, without constants to fit.

    Parameters
    ----------
    library : Library
        Without fitted constants.
    data : DataSet
    grammar : Grammar
        What is found and does not meet it, is left out.
    size : int
        Number of programs of the large catalogue, in which all stages but the first search.

    Attributes
    ----------
    n_stages : int
        Stages of the search for the whole law. The first takes milliseconds, the second a second or two, each
        of the others up to one.
    """

    n_stages = 2 + DEEPEST - SHALLOW

    def __init__(self, library: Library, data: DataSet, grammar: Grammar, size: int = LARGE) -> None:
        self.library, self.size = library, size
        self.grammar = grammar
        self._works = len(data.y) >= N_POINTS
        rows = rows_to_look_at(len(data.y))
        self._rows = np.ascontiguousarray(data.columns[:, rows]), data.y[rows].astype(np.float64)
        if self._works:
            points = np.empty(N_POINTS, dtype=np.int64)
            choose_rows(np.ascontiguousarray(data.columns[:, rows]), points)
            rows = rows[points]
        self._catalogue = catalogue_of(library, len(data.columns))
        self._points = np.ascontiguousarray(data.columns[:, rows])
        self._target = data.y[rows].astype(np.float64)
        self._short = _short(self._points, self._catalogue)
        self._deepest = self._short, self._catalogue  # of what has been made so far

    def solve(self, stage: int, should_stop: Callable[[], bool] = lambda: False) -> Population:
        """Search for the whole law at one stage; return the program, or none.

        Parameters
        ----------
        stage : int
            From 0, in the small catalogue, to ``n_stages - 1``.
        should_stop : callable
            Asked ten times a second or so whether to end without having found anything; not at stage 0.
        """
        tokens = np.zeros((1, self.grammar.max_length), dtype=np.int64)
        n = 0
        if self._works and stage == 0:
            n = complete_whole(self._target, self._short, self._catalogue, self._accepts, 0, tokens[0])
        elif self._works:
            self._deepest = self._large
            depth = SHALLOW + stage - 1
            start = 0 if stage == 1 else depth
            arguments = self._accepts, depth, tokens[0], start, should_stop
            n = complete_whole(self._target, *self._large, *arguments)
        return self._population(tokens[: n > 0], np.array([n] if n > 0 else [], dtype=np.int64))

    def _accepts(self, program: np.ndarray, n: int) -> bool:
        return is_law(program, n, self.grammar, self.library.table, *self._rows)

    @cached_property
    def _large(self) -> tuple[Short, Catalogue]:
        catalogue = large_catalogue_of(self.library, len(self._points), self.size)
        return _short(self._points, catalogue), catalogue

    def repair(self, near_misses: Population, should_stop: Callable[[], bool] = lambda: False) -> Population:
        """Return programs that are near misses but for one subtree, and exact at a few rows.

        Parameters
        ----------
        near_misses : Population
        should_stop : callable
            Asked before each of them whether to leave out the rest.
        """
        width = self.grammar.max_length
        tokens, lengths = np.zeros((_MOST, width), dtype=np.int64), np.zeros(_MOST, dtype=np.int64)
        n, work = 0, np.array([_MOST_WORK])
        if self._works:
            data = self.library.table, self._points, self._target, *self._deepest, work
            for b in range(len(near_misses)):
                if should_stop():
                    break
                program = near_misses.tokens[b, :width], near_misses.lengths[b]
                n += repair(*program, *data, tokens[n:], lengths[n:])
        return self._population(tokens[:n], lengths[:n])

    def _population(self, tokens: np.ndarray, lengths: np.ndarray) -> Population:
        kept = are_valid(tokens, lengths, self.grammar)
        return Population(self.library, tokens[kept], lengths[kept], np.ones((kept.sum(), 0)))


def solve_all(
    library: Library, X: np.ndarray, y: np.ndarray, grammar: Grammar, n_stages: int = 1
) -> np.ndarray:
    """Solve for the laws of many data sets.

    Parameters
    ----------
    library : Library
        Without fitted constants.
    X : ndarray of shape (D, n, C), float64
    y : ndarray of shape (D, n), float64
    grammar : Grammar
        What a law must meet.
    n_stages : int
        Stages of `ExactSolver` that are gone through, from the first, until one finds the law.

    Returns
    -------
    ndarray of shape (D, max_length), int64
        Tokens of the laws, -1 after the end of each; all -1 where no law is found.
    """
    found = np.full((len(y), grammar.max_length), -1)
    for d in range(len(y)):
        solver = ExactSolver(library, DataSet.from_arrays(X[d], y[d]), grammar)
        for stage in range(n_stages):
            law = solver.solve(stage)
            if len(law):
                found[d, : law.lengths[0]] = law.tokens[0, : law.lengths[0]]
                break
    return found
