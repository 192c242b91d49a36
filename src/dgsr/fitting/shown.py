"""The best formula that is shown during a search, with its NMSE on the rows of the front."""

from __future__ import annotations

import numpy as np

from dgsr.data import Prepared
from dgsr.data.dataset import MANY_ROWS
from dgsr.data.population import Population
from dgsr.pareto import ParetoArchive


class Shown:
    """The best formula of an archive and its NMSE on all rows, of which the search uses a sample."""

    def __init__(self, rows: Prepared) -> None:
        data = rows.data if len(rows.data.y) <= MANY_ROWS else rows.data.evenly_spaced(MANY_ROWS)
        self._data = data._replace(columns=rows.coordinates.measured(data.columns))
        self._known: dict[tuple[bytes, bytes], float] = {}  # the NMSE of the programs of the last call

    def best(self, archive: ParetoArchive) -> tuple[Population, float]:
        """Return the program that fits the rows of the search best, and its NMSE on all rows.

        It is a population of one, in the coordinates of the search. Programs that are not finite on all rows
        are skipped; if there is no other one, the population is empty and the NMSE infinite.
        """
        programs, known = archive.population(), {}
        found = programs[:0], np.inf
        for i in reversed(range(len(programs))):  # the best first
            program = programs[i : i + 1]
            key = program.tokens.tobytes(), program.constants.tobytes()
            known[key] = self._known[key] if key in self._known else float(program.nmse(self._data)[0])
            if np.isfinite(known[key]):
                found = program, known[key]
                break
        self._known = known
        return found
