"""The rule of restarts.

Rounds that breed and train on near misses find only more near misses, so that a search that no longer
improves does better from the start.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Restarts:
    """Counter of the rounds without a better program.

    Parameters
    ----------
    patience : int
        Rounds without a better program after which the search restarts; 0 means never.
    gain : float
        Share by which a round must lower the best NMSE to count as better.

    Attributes
    ----------
    n : int
        Number of restarts so far.
    best : float
        Lowest NMSE since the last restart.
    """

    def __init__(self, patience: int, gain: float) -> None:
        self.patience, self.gain = patience, gain
        self.n, self.n_stale, self.best = 0, 0, np.inf

    def is_due(self, best: float) -> bool:
        """Count a round by its lowest NMSE, and return whether the search should restart."""
        self.n_stale = 0 if best < (1.0 - self.gain) * self.best else self.n_stale + 1
        self.best = min(best, self.best)
        if self.n_stale != self.patience or self.patience == 0:
            return False
        self.n, self.n_stale, self.best = self.n + 1, 0, np.inf
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return the counts, for `load_state_dict`."""
        return {"n": self.n, "n_stale": self.n_stale, "best": self.best}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from saved counts."""
        self.n, self.n_stale, self.best = saved["n"], saved["n_stale"], saved["best"]
