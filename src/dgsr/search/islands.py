"""Several searches for one law at a time, in processes: the islands of a fit with ``n_jobs``.

Every island is a `Search` with its own random numbers and its own shares of the generator and of the exact
stages. A few rounds at a time, each island's state goes to a process and comes back advanced; between these
the best formulas of all enter one archive and a few of them migrate. So nothing of a fit lives in a process
but while it computes: one that is killed costs these few rounds, which another one does again.
"""

from __future__ import annotations

import gc
import os
import pickle
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import reduce
from itertools import count
from typing import Any, NamedTuple

import cloudpickle
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

# Entries of a state that the islands exchange.
_SHARED = ("archive", "queue", "generation", "evolved", "budget", "restarts", "history")

State = dict[str, Any]


def number_of_islands(n_jobs: int | None) -> int:
    """Return how many islands `n_jobs` stands for, in joblib's terms.

    A positive number of jobs is the number of islands wherever they run, so that a fit inside a parallel
    cross-validation, which has one process, finds the same.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    return max(effective_n_jobs(n_jobs), 1)


class Island(NamedTuple):
    """The state of a search (`Search.state_dict`) between its rounds."""

    shared: State  # what the islands exchange
    own: bytes  # the rest, pickled

    @classmethod
    def of(cls, state: State) -> Island:
        """Return the state of a search in two parts."""
        own = {name: value for name, value in state.items() if name not in _SHARED}
        return cls({name: state[name] for name in _SHARED}, pickle.dumps(own))

    def state(self) -> State:
        """Return the state as one."""
        return self.shared | pickle.loads(self.own)


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
        self._islands: list[Island] = []
        self._is_warm = False  # whether processes have been started
        self._key = uuid.uuid4().hex
        alone = {name: value for name, value in arguments.items() if name != "budget"}
        # An array, since joblib's own processes are given a large one once and not with every call.
        self._recipe: Any = np.frombuffer(cloudpickle.dumps(alone), dtype=np.uint8)
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
        return Parallel(n, prefer="processes", batch_size=1, pre_dispatch=n)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the processes, and what they share, from one call of `advance` to the next."""
        if self._cluster is not None and isinstance(self._recipe, np.ndarray):
            # Every worker has a copy, so that one that dies does not take it along.
            self._recipe = self._cluster.scatter(self._recipe, broadcast=True, hash=False)
        with self._parallel:
            yield

    def advance(self) -> None:
        """Let every island do a few rounds, and take in what they found."""
        if not self._islands:
            self._islands = [self._new_island(i) for i in range(self.n_islands)]
        if not self._is_warm:
            with self.budget.stopped_clock():
                self._in_processes(0)
            self._is_warm = True
        islands = self._in_processes(self._n_rounds)
        self._gather(islands)
        self._islands = self._with_migrants(islands)

    def _new_island(self, number: int) -> Island:
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
        return Island.of(state)

    def _in_processes(self, n_rounds: int) -> list[Island]:
        """Return the islands after some rounds."""
        shares = np.full(self.n_islands, self.budget.n_left // self.n_islands)
        shares[: self.budget.n_left % self.n_islands] += 1

        def calls() -> Iterator[Any]:
            for island, share in zip(self._islands, shares.tolist(), strict=True):
                seconds = max(self.budget.max_time - self.seconds, 0.0)
                yield delayed(_advanced)(
                    self._key, os.getpid(), self._recipe, island, n_rounds, share, seconds
                )

        workers = self._workers()
        for n_deaths in count(1):
            try:
                islands = list(self._parallel(calls()))
                if workers - self._workers():
                    warnings.warn("A worker of the cluster is gone; others do its part again.", stacklevel=2)
                return islands
            except BrokenProcessPool:
                goes_on = "others take its place"
                if n_deaths == _MOST_DEATHS:
                    self._parallel, goes_on = self._processes(1), "the search goes on in this one"
                warnings.warn(f"A process of the search was killed; {goes_on}.", stacklevel=2)
        raise AssertionError("unreachable")

    def _workers(self) -> set[str]:
        """Return the addresses of the workers of a cluster; joblib's own processes have none."""
        return set() if self._cluster is None else set(self._cluster.ncores())

    def _gather(self, islands: list[Island]) -> None:
        """Count what the islands evaluated, and take in what they found."""
        for before, after in zip(self._islands, islands, strict=True):
            for name in ("n_evaluations", "n_invalid"):
                n_new = after.shared["budget"][name] - before.shared["budget"][name]
                setattr(self.budget, name, getattr(self.budget, name) + n_new)
        for best in self._of_all(islands, "archive"):
            entered = np.flatnonzero(best.nmse < self.archive.nmse)
            self.archive.update(best.programs[entered], best.nmse[entered])
        for name, n in (("queue", self.config.queue_size), ("generation", self.config.batch_size)):
            setattr(self, name, _together(self._of_all(islands, name)).best(n))
        self.evolved = _together(self._of_all(islands, "evolved"))
        self.restarts.n = sum(island.shared["restarts"]["n"] for island in islands)
        entries = [entry for island in islands for entry in island.shared["history"]]
        if entries:
            mean_reward = float(np.mean([entry["mean_reward"] for entry in entries]))
            self._add_to_history(mean_reward, max(entry["best_reward"] for entry in entries))

    def _of_all(self, islands: list[Island], name: str) -> list[Scored]:
        """Return the programs of a name in the states of all islands."""
        return [Scored.from_state_dict(self.library, island.shared[name]) for island in islands]

    def _with_migrants(self, islands: list[Island]) -> list[Island]:
        """Give every island the archive of all, and the best programs of the island before it."""
        archive = self.archive.state_dict()
        generations = self._of_all(islands, "generation")
        found = []
        for island, before, own in zip(islands, [generations[-1], *generations], generations):
            shared = island.shared | {"history": [], "archive": archive}
            if len(own.nmse):  # one that has just begun again stays by itself
                shared["generation"] = own.and_also(before.best(_N_MIGRANTS)).state_dict()
            found.append(Island(shared, island.own))
        return found

    def state_dict(self) -> State:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        islands = {str(i): island.state() for i, island in enumerate(self._islands)}
        return super().state_dict() | {"islands": islands}

    def load_state_dict(self, saved: State) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        super().load_state_dict(saved)
        self._islands = [Island.of(saved["islands"][str(i)]) for i in range(len(saved["islands"]))]


def _together(parts: list[Scored]) -> Scored:
    """Return the programs of several sets as one."""
    return reduce(Scored.and_also, parts)


# The last search that this process advanced, by the key of its fit: making one anew takes time.
_kept: dict[str, Search] = {}


def _advanced(
    key: str,
    pid: int,
    recipe: Any,
    island: Island,
    n_rounds: int,
    n_evaluations: int,
    seconds: float,
) -> Island:
    """Return an island after some rounds.

    Parameters
    ----------
    key : str
        What tells the fit from others.
    pid : int
        The process of the fit.
    recipe : ndarray of uint8, or a future of dask with it
        The pickled arguments of the `Search`.
    island : Island
    n_rounds : int
    n_evaluations, seconds : int, float
        Evaluations and seconds that are left to the island.
    """
    with one_thread(), np.errstate(all="ignore"):
        # Taken out while it is used, since a backend may run two islands in threads of one process.
        search = _kept.pop(key, None)
        if search is None:
            if not isinstance(recipe, np.ndarray):
                # Where dask has one core left, joblib computes in this process and resolves no futures.
                recipe = recipe.result()
            search = Search(**pickle.loads(recipe.data))
            compile_kernels(search.library.has_constants)
            if os.getpid() != pid:
                # loky collects garbage every second, which would take a tenth of it with all these modules.
                gc.unfreeze()
                gc.collect()
                gc.freeze()
        search.load_state_dict(island.state())
        search.budget.allow(n_evaluations, seconds)
        for _ in range(n_rounds):
            if search.stop_reason() is not None:
                break
            search.advance()
        advanced = Island.of(search.state_dict())
    _kept.clear()
    _kept[key] = search
    return advanced
