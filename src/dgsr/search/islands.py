"""Several searches for one law at a time, in processes: the islands of a fit with ``n_jobs``.

Every island is a `Search` with its own random numbers and its own shares of the generator and of the exact
stages. A few rounds at a time, each island's state goes to a process and comes back advanced; between these
the best formulas of all enter one archive and a few of them migrate. So nothing of a fit lives in a process
but while it computes: one that is killed costs these few rounds, which another one does again.
"""

from __future__ import annotations

import gc
import os
import uuid
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from functools import reduce
from itertools import count
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from dgsr.kernels.random import new_state
from dgsr.search.compiling import compile_kernels
from dgsr.search.scored import Scored
from dgsr.search.search import Search
from dgsr.search.threads import one_thread

# Values of programs that an island computes before the islands meet, in about a second, and the most rounds.
_VALUES, _MOST_ROUNDS = 20_000_000, 8
# Programs that migrate from each island to the next when they meet.
_N_MIGRANTS = 5
# Times in a row that processes may die before the fit goes on without any.
_MOST_DEATHS = 3

State = dict[str, Any]


def number_of_islands(n_jobs: int | None) -> int:
    """Return how many islands `n_jobs` stands for, in joblib's terms.

    A positive number of jobs is the number of islands wherever they run, so that a fit inside a parallel
    cross-validation, which has one process, finds the same.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    return max(effective_n_jobs(n_jobs), 1)


class Islands(Search):
    """A search whose rounds are those of several searches, in processes of joblib's active backend.

    What comes before the rounds, it does itself. Its archive holds the best programs of all islands, and its
    budget counts them together.

    Parameters
    ----------
    n_islands : int
        Number of searches.
    **arguments
        Those of `Search`.
    """

    def __init__(self, *, n_islands: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.n_islands = n_islands
        self._seed: int = arguments["seed"]
        self._states: list[State] = []
        # What a process needs to make the search of an island, and the name that it keeps the search by.
        self._arguments = {name: value for name, value in arguments.items() if name != "budget"}
        self._key = uuid.uuid4().hex
        self._has_begun = False  # whether processes have been started
        config = self.config
        n_values = len(self.data.y) * config.batch_size * (config.evolution.generations + 1)
        self._n_rounds = int(np.clip(_VALUES // n_values, 1, _MOST_ROUNDS))
        backend = get_active_backend()[0]
        self._cluster = getattr(backend, "client", None)  # of dask, else None
        # Inside a parallel loop, as of a cross-validation, all cores are taken.
        is_nested = (backend.nesting_level or 0) > 0
        self._parallel = self._processes(1 if is_nested else n_islands)

    @staticmethod
    def _processes(n: int) -> Parallel:
        return Parallel(n, prefer="processes", batch_size=1, pre_dispatch=n, max_nbytes=None)

    def running(self) -> AbstractContextManager[Any]:
        """Return the context that keeps the processes from one call of `advance` to the next."""
        return self._parallel

    def advance(self) -> None:
        """Let every island do a few rounds, and take in what they found."""
        if not self._states:
            self._states = [self._new_island(i) for i in range(self.n_islands)]
        everyone = range(self.n_islands)
        if not self._has_begun:
            with self.budget.stopped_clock():
                self._in_processes(everyone, 0, self._arguments)
            self._has_begun = True
        found = self._in_processes(everyone, self._n_rounds)
        # A process that took no part so far, or took the place of another, does not have the search yet.
        missing = [i for i in everyone if found[i] is None]
        if missing:
            for i, state in zip(missing, self._in_processes(missing, self._n_rounds, self._arguments)):
                found[i] = state
        states = [state for state in found if state is not None]
        self._gather(states)
        self._states = self._with_migrants(states)

    def _new_island(self, number: int) -> State:
        """Return what an island begins with: the state of this search, but for what tells islands apart."""
        state = super().state_dict()
        state["history"] = []
        if number > 0:
            seed = np.random.SeedSequence([self._seed, number]).generate_state(1)[0]
            state["random_state"] = new_state(int(seed))
            # The number of restarts decides on the shares of the generator among samples and mutations.
            state["restarts"]["n"] = number
        state["stage"] += number
        state["stage_step"] = self.n_islands
        return state

    def _in_processes(
        self, numbers: Sequence[int], n_rounds: int, arguments: State | None = None
    ) -> list[State | None]:
        """Return some islands after some rounds, None for one whose process does not have the search."""
        shares = np.full(self.n_islands, self.budget.n_left // self.n_islands)
        shares[: self.budget.n_left % self.n_islands] += 1

        def calls() -> Iterator[Any]:
            for i in numbers:
                left = int(shares[i]), max(self.budget.max_time - self.seconds, 0.0)
                yield delayed(_advanced)(self._key, os.getpid(), arguments, self._states[i], n_rounds, *left)

        workers = self._workers()
        for n_deaths in count(1):
            try:
                found = list(self._parallel(calls()))
                break
            except BrokenProcessPool:
                goes_on = "others take its place"
                if n_deaths == _MOST_DEATHS:
                    self._parallel, goes_on = self._processes(1), "the search goes on in this one"
                warnings.warn(f"A process of the search was killed; {goes_on}.", stacklevel=2)
        if workers - self._workers():
            warnings.warn("A worker of the cluster is gone; others do its part again.", stacklevel=2)
        return found

    def _workers(self) -> set[str]:
        """Return the addresses of the workers of a cluster; joblib's own processes have none."""
        return set() if self._cluster is None else set(self._cluster.ncores())

    def _gather(self, states: list[State]) -> None:
        """Count what the islands evaluated, and take in what they found."""
        for before, after in zip(self._states, states, strict=True):
            for name in ("n_evaluations", "n_invalid"):
                n_new = after["budget"][name] - before["budget"][name]
                setattr(self.budget, name, getattr(self.budget, name) + n_new)
        for best in self._of_all(states, "archive"):
            entered = np.flatnonzero(best.nmse < self.archive.nmse)
            self.archive.update(best.programs[entered], best.nmse[entered])
        for name, n in (("queue", self.config.queue_size), ("generation", self.config.batch_size)):
            setattr(self, name, _together(self._of_all(states, name)).best(n))
        self.evolved = _together(self._of_all(states, "evolved"))
        self.restarts.n = sum(state["restarts"]["n"] for state in states)
        entries = [entry for state in states for entry in state["history"]]
        if entries:
            mean_reward = float(np.mean([entry["mean_reward"] for entry in entries]))
            self._add_to_history(mean_reward, max(entry["best_reward"] for entry in entries))

    def _of_all(self, states: list[State], name: str) -> list[Scored]:
        """Return the programs of a name in the states of all islands."""
        return [Scored.from_state_dict(self.library, state[name]) for state in states]

    def _with_migrants(self, states: list[State]) -> list[State]:
        """Give every island the archive of all, and the best programs of the island before it."""
        shared = {"archive": self.archive.state_dict(), "history": []}
        generations = self._of_all(states, "generation")
        found = []
        for state, before, own in zip(states, [generations[-1], *generations], generations):
            changed = dict(shared)
            if len(own.nmse):  # one that has just begun again stays by itself
                changed["generation"] = own.and_also(before.best(_N_MIGRANTS)).state_dict()
            found.append(state | changed)
        return found

    def state_dict(self) -> State:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        return super().state_dict() | {"islands": {str(i): state for i, state in enumerate(self._states)}}

    def load_state_dict(self, saved: State) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        super().load_state_dict(saved)
        self._states = [saved["islands"][str(i)] for i in range(len(saved["islands"]))]


def _together(parts: list[Scored]) -> Scored:
    """Return the programs of several sets as one."""
    return reduce(Scored.and_also, parts)


# The last search that this process advanced, by the key of its fit: making one anew takes time.
_kept: dict[str, Search] = {}


def _advanced(
    key: str,
    pid: int,
    arguments: State | None,
    state: State,
    n_rounds: int,
    n_evaluations: int,
    seconds: float,
) -> State | None:
    """Return the state of an island after some rounds.

    Parameters
    ----------
    key : str
        What tells the fit from others.
    pid : int
        The process of the fit.
    arguments : dict or None
        Those of the `Search`, which a process keeps.
    state : dict
    n_rounds : int
    n_evaluations, seconds : int, float
        Evaluations and seconds that are left to the island.

    Returns
    -------
    dict or None
        None if this process does not have the search, and is not given the arguments either.
    """
    # Taken out while it is used, since a backend may run two islands in threads of one process.
    search = _kept.pop(key, None)
    with one_thread(), np.errstate(all="ignore"):
        if search is None:
            if arguments is None:
                return None
            search = Search(**arguments)
            compile_kernels(search.library.has_constants)
            if os.getpid() != pid:
                # loky collects garbage every second, which would take a tenth of it with all these modules.
                gc.unfreeze()
                gc.collect()
                gc.freeze()
        search.load_state_dict(state)
        search.budget.allow(n_evaluations, seconds)
        for _ in range(n_rounds):
            if search.stop_reason() is not None:
                break
            search.advance()
        advanced = search.state_dict()
    _kept.clear()
    _kept[key] = search
    return advanced
