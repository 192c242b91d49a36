"""The part of a search that calls finders: before its rounds, between them and at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.finders.fewer_columns.parts import SearchIn
from dgsr.finders.finder import Deadline, Finder, Problem
from dgsr.finders.longer.finder import Longer
from dgsr.finders.scheduler import Scheduler
from dgsr.search.record import SearchRecord


class FindingSearch(SearchRecord):
    """A search without rounds, which evaluates the programs that finders return.

    Parameters
    ----------
    search_in : callable or None
        Searches in a table of fewer columns; None if symmetries are not tested.
    *record
        The arguments of `SearchRecord`.
    """

    def __init__(self, search_in: SearchIn | None, *record: Any) -> None:
        super().__init__(*record)
        valid, tolerance = self.evaluation.valid, self.config.tolerance
        problem = Problem(self.data, self.library, self.grammar, valid, tolerance)
        self.scheduler = Scheduler(problem, self.budget, self.config.look_up, search_in)

    def find(self, finder: Finder) -> None:
        """Call a finder, if there is time, and evaluate the programs that it finds."""
        before = self.n_evaluations
        found = self.scheduler.before_rounds(finder, self.best_nmse <= self.config.tolerance)
        if found is None:
            return
        nmse = self._take_whole(found.programs) if found.are_whole else self._take_scaled(found.programs)
        if self.n_evaluations > before:
            self.record(nmse)

    def _take_whole(self, programs: Population) -> np.ndarray:
        """Enter whole formulas and count them; return the lowest NMSE of the search, shape (1,)."""
        programs = programs[: self.budget.n_left]
        # `enter` computes their NMSE; to compute it here would compile another kernel.
        are_finite = np.isfinite(programs.predict(self.data.columns.T)).all(axis=1)
        self.budget.count(np.where(are_finite, 0.0, np.inf))
        self.enter(programs)
        return np.array([self.best_nmse])

    def _take_scaled(self, programs: Population) -> np.ndarray:
        """Return the NMSE of programs with a scale and an offset, both of which are fitted."""
        programs = programs.of_width(*self.widths)
        # Other constraints of the grammar are not checked, since evolution does not begin with these programs
        # and the check would compile another kernel.
        is_able = (programs.lengths >= self.grammar.min_length) & self.evaluation.valid.scaled(programs)
        programs = programs[np.flatnonzero(is_able)]
        return self.evaluate(programs, len(programs))

    def solve_further(self) -> None:
        """Run the next stage of exact search, if there is one and time for it, and evaluate its programs."""
        found = self.scheduler.next_stage(self.should_stop)
        if len(found):
            self.record(self.evaluate(found))

    def repair(self, near_misses: Population) -> None:
        """Repair near misses by exact search, and evaluate the programs that it returns."""
        found = self.scheduler.repaired(near_misses, self.should_stop)
        if len(found):
            self.evaluate(found)

    def at_the_end(self, data: DataSet, deadline: Deadline) -> Iterator[Population]:
        """Yield the programs that finders find at the end, in the coordinates of the search.

        The rows of `data` may be more than those of the search.
        """
        problem = self.scheduler.problem._replace(data=data)
        longer = Longer(self.archive, self.evolved, self.long.programs)
        is_exact = self.archive.best_nmse() <= self.archive.tolerance
        return self.scheduler.at_the_end(problem, longer, is_exact, deadline)
