"""Programs with their NMSE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.library import Library


class Scored(NamedTuple):
    """Programs with their NMSE."""

    programs: Population
    nmse: np.ndarray  # (n_programs,), infinite if a program is not finite on some row

    def best(self, n: int) -> Scored:
        """Return the `n` best different programs with a finite NMSE, sorted by NMSE, then by length."""
        programs, nmse = self
        order = np.lexsort((programs.lengths, nmse))
        order = order[np.isfinite(nmse[order])]
        # np.unique with an axis would turn a Ctrl-C during its comparisons into a TypeError.
        first: dict[bytes, int] = {}
        for i in order.tolist():
            first.setdefault(programs.tokens[i].tobytes(), i)
        kept = np.array([*first.values()][:n], dtype=np.int64)
        return Scored(programs[kept], nmse[kept])

    @classmethod
    def concatenate(cls, parts: Sequence[Scored]) -> Scored:
        """Join programs of one library, in arrays as wide as the widest."""
        programs = Population.concatenate([part.programs for part in parts])
        return cls(programs, np.concatenate([part.nmse for part in parts]))

    def with_migrants(self, others: Scored) -> Scored:
        """Return the programs with the worst replaced by as many others."""
        n_kept = max(len(self.nmse) - len(others.nmse), 0)
        kept = np.sort(np.argsort(self.nmse, kind="stable")[:n_kept])
        return Scored.concatenate([Scored(self.programs[kept], self.nmse[kept]), others])

    @property
    def lowest(self) -> float:
        """The lowest NMSE, infinite if there are no programs."""
        return float(self.nmse.min(initial=np.inf))

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all arrays."""
        arrays = self.programs.arrays._asdict() | {"nmse": self.nmse}
        return {name: array.copy() for name, array in arrays.items()}

    @classmethod
    def from_state_dict(cls, library: Library, saved: dict[str, Any]) -> Scored:
        """Return the programs of a saved state."""
        programs = Population(library, saved["tokens"], saved["lengths"], saved["constants"])
        return cls(programs, saved["nmse"])
