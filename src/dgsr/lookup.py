"""What a search looks up: the whole law, or what makes a near miss exact."""

from __future__ import annotations

from functools import cache

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library
from dgsr.kernels.catalogue import N_POINTS, Catalogue, Short, fill_short, new_catalogue, new_short
from dgsr.kernels.covers import complete_whole
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.repair import repair
from dgsr.population import DataSet, Population

#: Repaired programs of one call at most.
_MOST = 200


@cache
def catalogue_of(library: Library, n_variables: int) -> Catalogue:
    """The short programs of a library over so many columns."""
    return new_catalogue(library.table.opcode, library.table.argument, n_variables)


class LookUp:
    """The short programs of a library on a data set, and what they complete.

    Parameters
    ----------
    library : Library
        Without fitted constants.
    data : DataSet
    grammar : Grammar
        What is found and does not meet it, is left out.
    """

    def __init__(self, library: Library, data: DataSet, grammar: Grammar) -> None:
        self.library = library
        self.grammar = grammar
        n = len(data.y)
        rows = np.arange(N_POINTS) * n // N_POINTS
        self._works = n >= N_POINTS
        self._catalogue = catalogue_of(library, library.n_variables)
        self._points = np.ascontiguousarray(data.columns[:, rows])
        self._target = data.y[rows].astype(np.float64)
        short = new_short(1, self._catalogue)
        self._short = Short(*(array[0] for array in short))
        fill_short(self._points, self._catalogue, *self._short)

    def whole(self, most_covers: int) -> Population:
        """The law, if it can be looked up; else no programs.

        Parameters
        ----------
        most_covers : int
            See `dgsr.kernels.covers.complete_whole`.
        """
        tokens = np.zeros((1, self.grammar.max_length), dtype=np.int64)
        n = 0
        if self._works:
            n = complete_whole(self._target, self._short, self._catalogue, most_covers, tokens[0])
        return self._population(tokens[: n > 0], np.array([n] if n > 0 else [], dtype=np.int64))

    def repaired(self, population: Population) -> Population:
        """Programs that are some of these but for one subtree, and exact at a few rows."""
        width = self.grammar.max_length
        tokens, lengths = np.zeros((_MOST, width), dtype=np.int64), np.zeros(_MOST, dtype=np.int64)
        n = 0
        if self._works:
            programs = population.tokens[:, :width], population.lengths, self.library.table
            arguments = self._points, self._target, self._short, self._catalogue, tokens, lengths
            n = repair(*programs, *arguments)
        return self._population(tokens[:n], lengths[:n])

    def _population(self, tokens: np.ndarray, lengths: np.ndarray) -> Population:
        kept = are_valid(tokens, lengths, self.grammar)
        return Population(self.library, tokens[kept], lengths[kept], np.ones((kept.sum(), 0)))
