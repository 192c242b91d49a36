"""The budget of a search: evaluations and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.finders.interrupts import Interrupts

#: Names of the counters, which are added up over islands.
COUNTS = ("n_evaluations", "n_invalid", "n_examined", "n_uncharged")
#: Candidates of finders that take as long as one evaluation, 5 to 10 us on 20 to 1,000 rows.
CANDIDATES_PER_EVALUATION = 1_000
# Tokens times samples that are evaluated between two readings of the clock, in about a tenth of a second.
_CHUNK = 20_000_000
# Typical length of a program in tokens, from which the time of its evaluation is estimated.
_USUAL_LENGTH = 15
# Time to finish the formulas after `max_time`, as a share of `max_time`, and seconds in addition. A fit may
# end one second after 1.1 `max_time`; the other 0.4 s are a reserve for a busy machine.
_OVERTIME_SHARE = 0.1
_OVERTIME = 0.6
# Least share of the time to the end of the fit for the search, however long the data took to prepare.
_LEAST_SHARE = 0.3


class Budget:
    """The evaluations and seconds of one search or of several successive ones, spent and remaining.

    Parameters
    ----------
    max_evaluations : int
    max_time : float or None
        Seconds; None means that there is no limit.
    started : float, optional
        Time at which the fit began, by `time.perf_counter`; by default now.
    n_targets : int
        Number of targets whose fits share the 0.6 seconds of finishing.

    Attributes
    ----------
    limits : tuple of float
        Evaluations and seconds of the whole budget.
    n_evaluations, n_invalid : int
        Programs evaluated so far, and those of them that are not finite or break a constraint.
    n_examined, n_uncharged : int
        Candidates that finders examined so far, and those that are not charged, to spare a small budget.
    interrupts : Interrupts
    """

    def __init__(
        self, max_evaluations: int, max_time: float | None, started: float | None = None, n_targets: int = 1
    ) -> None:
        self.limits = max_evaluations, np.inf if max_time is None else max_time
        self.max_evaluations, self.max_time = self.limits
        self.n_evaluations = self.n_invalid = self.n_examined = self.n_uncharged = 0
        self._started = time.perf_counter() if started is None else started
        self._earlier_seconds = 0.0
        self._end = (1.0 + _OVERTIME_SHARE) * self.limits[1] + _OVERTIME / n_targets
        self.interrupts = Interrupts()

    def leave_time(self) -> None:
        """Extend the limit of seconds into the overtime if preparing the data has left too little time."""
        least = self.seconds + _LEAST_SHARE * (self._end - self.seconds)
        self.limits = self.limits[0], max(self.limits[1], least)
        self.max_time = self.limits[1]

    def leave_at_most(self, n_evaluations: int) -> None:
        """Lower the limit of evaluations of the whole budget."""
        self.limits = min(self.limits[0], n_evaluations), self.limits[1]
        self.max_evaluations = min(self.max_evaluations, n_evaluations)

    def end_at(self, share: float) -> None:
        """Set the current limits to a share of the whole budget, with at least one evaluation."""
        self.max_evaluations, self.max_time = max(int(share * self.limits[0]), 1), share * self.limits[1]

    def allow(self, n_evaluations: int, seconds: float) -> None:
        """Set the current limits to this many evaluations and seconds from now."""
        self.max_evaluations, self.max_time = self.n_counted + n_evaluations, self.seconds + seconds

    @contextmanager
    def share_of_rest(self, share: float, most: int) -> Iterator[None]:
        """Limit the budget within the context to a share of its remainder, and to `most` evaluations."""
        limits = self.max_evaluations, self.max_time
        self.allow(min(int(share * self.n_left), most), share * (self.max_time - self.seconds))
        try:
            yield
        finally:
            self.max_evaluations, self.max_time = limits

    @contextmanager
    def stopped_clock(self) -> Iterator[None]:
        """Exclude the seconds within the context from the count."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self._started += time.perf_counter() - before

    @property
    def seconds(self) -> float:
        """Seconds since the fit began, with those before it was resumed, without those of `stopped_clock`."""
        return self._earlier_seconds + time.perf_counter() - self._started

    @property
    def share(self) -> float:
        """The share of the whole budget that is spent, from 0 to 1: the larger of evaluations and seconds."""
        return min(max(self.n_counted / self.limits[0], self.seconds / self.limits[1]), 1.0)

    @property
    def n_counted(self) -> int:
        """Evaluations so far, including those that the candidates of finders are charged."""
        return self.n_evaluations + (self.n_examined - self.n_uncharged) // CANDIDATES_PER_EVALUATION

    @property
    def n_left(self) -> int:
        """Evaluations that remain."""
        return max(self.max_evaluations - self.n_counted, 0)

    def count(self, nmse: np.ndarray) -> None:
        """Count evaluated programs by their NMSE, which is infinite where a program is invalid."""
        self.n_evaluations += len(nmse)
        self.n_invalid += int(np.count_nonzero(np.isinf(nmse)))

    def count_candidates(self, n: int, most: int) -> None:
        """Count candidates that a finder examined, of which at most `most` are charged."""
        self.n_examined += n
        self.n_uncharged += max(n - most, 0)

    @property
    def is_spent(self) -> bool:
        """Whether a limit is reached or Ctrl-C was pressed; this is the deadline of the steps of a search."""
        return self.spent() is not None

    @property
    def is_late(self) -> bool:
        """Whether the seconds are spent or Ctrl-C was pressed."""
        return self.seconds >= self.max_time or self.interrupts.more_than(0)

    def spent(self) -> str | None:
        """Return the name of the limit that is reached, ``"interrupted"`` after Ctrl-C, or None."""
        if self.interrupts.more_than(0):
            return "interrupted"
        if self.n_counted >= self.max_evaluations:
            return "max_evaluations"
        return "max_time" if self.seconds >= self.max_time else None

    def finishing(self, share: float, is_last: bool = True) -> Callable[[], bool]:
        """Return a function that determines whether the finishing of formulas must stop.

        It returns True once a share of the seconds from now to the end is over, or after a further Ctrl-C.
        The end is `max_time`, with the overtime if no search follows (`is_last`).
        """
        n, end = self.interrupts.n, self._end if is_last else self.limits[1]
        until = self.seconds + share * (end - self.seconds)
        return lambda: self.seconds > until or self.interrupts.more_than(n)

    def parts(self, n: int, data: DataSet, cost: int = 1) -> Iterator[slice]:
        """Yield slices of n programs while there is time; a program takes as long as `cost` evaluations."""
        n_features, n_samples = data.columns.shape
        # A slice has enough programs that reading the columns takes no longer than evaluating them.
        at_once = max(_CHUNK // (n_samples * _USUAL_LENGTH * cost), n_features // _USUAL_LENGTH, 1)
        for start in range(0, n, at_once):
            if start > 0 and self.is_late:
                return
            yield slice(start, min(start + at_once, n))

    def state_dict(self) -> dict[str, Any]:
        """Return the counters and seconds, which `load_state_dict` restores."""
        return {**{name: getattr(self, name) for name in COUNTS}, "seconds": self.seconds}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore the counters and seconds of `state_dict`."""
        for name in COUNTS:
            setattr(self, name, saved[name])
        self._earlier_seconds, self._started = saved["seconds"], time.perf_counter()
