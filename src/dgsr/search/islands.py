"""Several searches for one law at a time, in processes: the islands of a fit with ``n_jobs``.

Every island is a `Search` with its own random numbers and its own shares of the generator and of the exact
stages. A few rounds at a time, each island's state goes to a process and comes back advanced; between these
the best formulas of all enter one archive and a few of them migrate. So nothing of a fit lives in a process
but while it computes: one that is killed costs these few rounds, which another one does again.
"""

from __future__ import annotations

import pickle
import uuid
import warnings
from collections.abc import Iterable
from concurrent.futures.process import BrokenProcessPool
from typing import Any

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
_VALUES, _MOST_ROUNDS = 10_000_000, 8
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
        self._key = uuid.uuid4().hex
        alone = {name: value for name, value in arguments.items() if name != "budget"}
        self._recipe = cloudpickle.dumps(alone)
        config = self.config
        n_values = len(self.data.y) * config.batch_size * (config.evolution.generations + 1)
        self._n_rounds = int(np.clip(_VALUES // n_values, 1, _MOST_ROUNDS))
        # Inside a parallel loop, as of a cross-validation, all cores are taken.
        is_nested = (get_active_backend()[0].nesting_level or 0) > 0
        self._n_jobs = 1 if is_nested else n_islands

    def advance(self) -> None:
        """Let every island do a few rounds, and take in what they found."""
        if not self._states:
            self._states = [self._new_island(i) for i in range(self.n_islands)]
            with self.budget.stopped_clock():  # the processes start
                self._in_processes(0)
        states = self._in_processes(self._n_rounds)
        self._gather(states)
        self._migrate(states)
        self._states = states

    def _new_island(self, number: int) -> State:
        """Return the state an island begins with: that of this search, but for what tells islands apart."""
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

    def _in_processes(self, n_rounds: int) -> list[State]:
        """Return the states of all islands after some rounds."""
        shares = np.full(self.n_islands, self.budget.n_left // self.n_islands)
        shares[: self.budget.n_left % self.n_islands] += 1

        def calls() -> Iterable[Any]:
            for state, share in zip(self._states, shares.tolist(), strict=True):
                seconds = max(self.budget.max_time - self.seconds, 0.0)
                saved = pickle.dumps(state)
                yield delayed(_advanced)(self._key, self._recipe, saved, n_rounds, share, seconds)

        n_deaths = 0
        while True:
            parallel = Parallel(self._n_jobs, prefer="processes", batch_size=1, pre_dispatch=self._n_jobs)
            try:
                return [pickle.loads(result) for result in parallel(calls())]
            except BrokenProcessPool:
                n_deaths += 1
                goes_on = "others take its place"
                if n_deaths == _MOST_DEATHS:
                    self._n_jobs, goes_on = 1, "the search goes on in this one"
                warnings.warn(f"A process of the search was killed; {goes_on}.", stacklevel=2)

    def _gather(self, states: list[State]) -> None:
        """Count what the islands evaluated, and take in what they found."""
        found: dict[str, list[Scored]] = {"queue": [], "generation": [], "evolved": []}
        for before, state in zip(self._states, states, strict=True):
            for name in ("n_evaluations", "n_invalid"):
                n_new = state["budget"][name] - before["budget"][name]
                setattr(self.budget, name, getattr(self.budget, name) + n_new)
            best = Scored.from_state_dict(self.library, state["archive"])
            entered = np.flatnonzero(best.nmse < self.archive.nmse)
            self.archive.update(best.programs[entered], best.nmse[entered])
            for name, parts in found.items():
                parts.append(Scored.from_state_dict(self.library, state[name]))
        for name, parts in found.items():
            together = parts[0]
            for part in parts[1:]:
                together = together.and_also(part)
            setattr(self, name, together)
        self.queue = self.queue.best(self.config.queue_size)
        self.generation = self.generation.best(self.config.batch_size)
        entries = [entry for state in states for entry in state["history"]]
        self.restarts.n = sum(state["restarts"]["n"] for state in states)
        if entries:
            self.history.append(
                {
                    "evaluations": self.n_evaluations,
                    "seconds": self.seconds,
                    "best_nmse": self.archive.best_nmse(),
                    "mean_reward": float(np.mean([entry["mean_reward"] for entry in entries])),
                    "best_reward": max(entry["best_reward"] for entry in entries),
                    "invalid": self.budget.n_invalid,
                    "restarts": self.restarts.n,
                }
            )

    def _migrate(self, states: list[State]) -> None:
        """Give every island the archive of all, and the best programs of the island before it."""
        archive = self.archive.state_dict()
        generations = [Scored.from_state_dict(self.library, state["generation"]) for state in states]
        for i, state in enumerate(states):
            state["history"] = []
            state["archive"] = archive
            if len(generations[i].nmse):  # one that has just begun again stays by itself
                with_migrants = generations[i].and_also(generations[i - 1].best(_N_MIGRANTS))
                state["generation"] = with_migrants.state_dict()

    def state_dict(self) -> State:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        return super().state_dict() | {"islands": {str(i): state for i, state in enumerate(self._states)}}

    def load_state_dict(self, saved: State) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        super().load_state_dict(saved)
        self._states = [saved["islands"][str(i)] for i in range(len(saved["islands"]))]


# The last search that this process advanced, by the key of its fit: making one anew takes time.
_kept: dict[str, Search] = {}


def _advanced(
    key: str, recipe: bytes, saved: bytes, n_rounds: int, n_evaluations: int, seconds: float
) -> bytes:
    """Return the pickled state of a search after some rounds.

    Parameters
    ----------
    key : str
        What tells the fit from others.
    recipe : bytes
        The pickled arguments of the `Search`.
    saved : bytes
        The pickled state before the rounds.
    n_rounds : int
    n_evaluations, seconds : int, float
        Evaluations and seconds that are left to the search.
    """
    with one_thread(), np.errstate(all="ignore"):
        # Taken out while it is used, since a backend may run two islands in threads of one process.
        search = _kept.pop(key, None)
        if search is None:
            search = Search(**pickle.loads(recipe))
            compile_kernels(search.library.has_constants)
        search.load_state_dict(pickle.loads(saved))
        search.budget.allow(n_evaluations, seconds)
        for _ in range(n_rounds):
            if search.stop_reason() is not None:
                break
            search.advance()
        state = pickle.dumps(search.state_dict())
    _kept.clear()
    _kept[key] = search
    return state
