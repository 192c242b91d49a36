"""The archive of a search: the best program of every length in bits that it has evaluated."""

from __future__ import annotations

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import BITS_OF_CONSTANT, largest_bits, structure_bits
from dgsr.expressions.programs.library import Library

#: Share by which a longer program must lower the NMSE to be on the front. Smaller gains may be rounding.
LEAST_GAIN = 1e-6


class ParetoArchive:
    """The best program of every length in bits that a search has evaluated.

    The length is that of the structure (`dgsr.expressions.formulas.description_length.structure_bits`), since
    the digits of the constants are not known yet. The paper's complexity would let formulas fit the noise
    that are less probable than the law: on 260 tables 50.4% of the laws were then on the front, with bits
    55.4%.

    Parameters
    ----------
    library : Library
    max_length, max_constants : int
        Most tokens and constants of a program.
    tolerance : float
        NMSE that counts as exact; nothing longer than an exact program is on the front.
    data : DataSet, optional
        The data of the search. With them no program with more bits than it explains of the targets counts as
        exact.
    """

    def __init__(
        self,
        library: Library,
        max_length: int,
        max_constants: int,
        tolerance: float = 0.0,
        data: DataSet | None = None,
    ) -> None:
        self.library = library
        self.tolerance = tolerance
        self._data = data
        n = int(largest_bits(library) * max_length) + 1
        self.nmse = np.full(n, np.inf)
        self.tokens = np.zeros((n, max_length), dtype=np.int64)
        self.lengths = np.zeros(n, dtype=np.int64)
        self.constants = np.ones((n, max_constants))

    def places(self, population: Population) -> np.ndarray:
        """Return the place of every program in the archive: its bits, rounded down."""
        return structure_bits(self.library, population.tokens, population.lengths).astype(np.int64)

    def without_long_exact_fits(self, programs: Population, nmse: np.ndarray) -> np.ndarray:
        """Return the NMSE, raised above the tolerance for exact fits that are too long, shape (n_programs,).

        Each constant counts as many bits as one target, since it can fit one exactly.
        """
        data, exact = self._data, nmse <= self.tolerance
        if data is None or not exact.any():
            return nmse
        # In data with groups each of them has a slope and an intercept, too.
        n_constants = programs.is_constant.sum(axis=1) + 2 * len(np.unique(data.groups))
        bits = self.places(programs) - BITS_OF_CONSTANT * programs.is_constant.sum(axis=1)
        is_long = bits > (1.0 - n_constants / data.n_independent) * data.bits_explained(nmse)
        return np.where(exact & is_long, np.nextafter(self.tolerance, np.inf), nmse)

    def update(self, population: Population, nmse: np.ndarray) -> None:
        """Enter evaluated programs, with `nmse` of shape (n_programs,)."""
        places, nmse = self.places(population), self.without_long_exact_fits(population, nmse)
        better = np.flatnonzero(nmse < self.nmse[places])
        # In falling order of the NMSE, so that the best program of each length is written last.
        for i in better[np.argsort(-nmse[better], kind="stable")]:
            at = places[i]
            self.nmse[at] = np.inf  # so that Ctrl-C cannot combine the NMSE of one program with another
            self.tokens[at, : population.tokens.shape[1]] = population.tokens[i]
            self.lengths[at] = population.lengths[i]
            self.constants[at, : population.constants.shape[1]] = population.constants[i]
            self.nmse[at] = nmse[i]

    def front(self) -> np.ndarray:
        """Return the places, in rising order, whose program fits better than all shorter ones.

        Gains below `LEAST_GAIN` do not count, since another way to write a formula changes the NMSE by
        rounding.
        """
        best_shorter = np.minimum.accumulate(np.concatenate([[np.inf], self.nmse[:-1]]))
        better = self.nmse < (1.0 - LEAST_GAIN) * best_shorter
        return np.flatnonzero(better & (best_shorter > self.tolerance))

    def population(self) -> Population:
        """Return the programs of the front, in the order of `front`."""
        at = self.front()
        return Population(self.library, self.tokens[at], self.lengths[at], self.constants[at])

    def best_nmse(self) -> float:
        """Return the lowest NMSE so far, `inf` if there is none."""
        return float(self.nmse.min())

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays, for `load_state_dict`."""
        names = ("nmse", "tokens", "lengths", "constants")
        return {name: getattr(self, name).copy() for name in names}

    @classmethod
    def from_state_dict(
        cls, library: Library, state: dict[str, np.ndarray], tolerance: float = 0.0
    ) -> ParetoArchive:
        """Return the archive of a saved state, with its widths."""
        archive = cls(library, state["tokens"].shape[1], state["constants"].shape[1], tolerance)
        archive.load_state_dict(state)
        return archive

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        for name, array in state.items():
            getattr(self, name)[...] = array
