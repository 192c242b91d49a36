"""The rule of restarts.

A search that is stuck in a local optimum breeds and trains on near misses, and does better when it is
restarted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

_COUNTS = ("n", "n_stale", "best")


@dataclass
class Restarts:
    """Counter of the rounds without a better program."""

    patience: int  # rounds without a better program after which the search restarts; 0 means never
    gain: float  # share by which a round must lower the best NMSE to count as better
    n: int = 0  # number of restarts so far
    n_stale: int = 0  # rounds without a better program since the last restart
    best: float = math.inf  # lowest NMSE since the last restart

    def is_due(self, best: float) -> bool:
        """Count a round by its lowest NMSE, and return whether the search should restart."""
        self.n_stale = 0 if best < (1.0 - self.gain) * self.best else self.n_stale + 1
        self.best = min(best, self.best)
        if self.n_stale != self.patience or self.patience == 0:
            return False
        self.n, self.n_stale, self.best = self.n + 1, 0, math.inf
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the counts, for `load_state_dict`."""
        return {name: getattr(self, name) for name in _COUNTS}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from saved counts."""
        for name in _COUNTS:
            setattr(self, name, saved[name])
