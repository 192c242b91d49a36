"""Several searches look for one law at the same time, in processes: the islands of a fit with ``n_jobs``.

Every island is a `Search` with its own random numbers and its own shares of the generator and of the exact
stages, and every second one gives rows other weights. A few rounds at a time, each island's state goes to a
process and comes back advanced; between these the best formulas of all enter one archive and a few of them
migrate, both judged by the weights of where they arrive. So a process holds nothing that another
one cannot make anew: where one is killed, these few rounds are done again.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import reduce
from itertools import count
from typing import Any, NamedTuple, cast

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from dgsr.data.dataset import DataSet
from dgsr.data.scored import Scored
from dgsr.finders.budget import COUNTS, Budget
from dgsr.kernels.random import new_state
from dgsr.pareto import ParetoArchive
from dgsr.reporting.warning import warn_in_search
from dgsr.search.compiling import compile_kernels
from dgsr.search.evaluation import Evaluation, evaluation_of
from dgsr.search.search import Search
from dgsr.search.threads import one_thread

# Values of programs that an island computes before the islands meet, in about a second, and the most rounds,
# where the budget is one of evaluations alone and the same seed must give the same result.
_VALUES, _MOST_ROUNDS = 20_000_000, 8
# Where seconds are the budget, islands meet after this share of those that have passed, within these bounds:
# rounds take unequal times, and after equal numbers of them one island would wait for the other.
_SHARE_OF_SECONDS, _FEWEST_SECONDS, _MOST_SECONDS = 0.1, 1.0, 2.0
# Programs that migrate from each island to the next when they meet.
_N_MIGRANTS = 5
# Bytes by which a process may grow beyond what it took after its first call.
_MOST_GROWTH = 2 * 10**9
# Times in a row that processes may die before the fit goes on without any.
_MOST_DEATHS = 3

# Seconds in which joblib's thread is sure to have taken the calls that it was given.
_TIME_TO_TAKE = 0.05

# Seconds after which a cluster counts as one that does not answer: at most, and beyond those that the search
# has left.
_LONGEST_CALL, _PATIENCE = 600.0, 120.0

State = dict[str, Any]


def number_of_islands(n_jobs: int | None) -> int:
    """Return how many islands `n_jobs` stands for, in joblib's terms.

    A positive number of jobs is the number of islands wherever they run, so that a fit inside a parallel
    cross-validation, which has one process, finds the same.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    return 1 if _is_nested() else max(effective_n_jobs(n_jobs), 1)


def _is_nested() -> bool:
    """Return whether this is inside a parallel loop, as of a cross-validation, which has all cores."""
    if (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()  # a task of dask is on none of joblib's levels
    except ValueError:
        return False
    return True


class _Parallel(Parallel):
    """joblib's, but an interrupt while calls are handed over leaves no traceback."""

    def _abort(self) -> None:
        # The thread that hands calls to loky's processes fails on those that are taken back before it looks.
        time.sleep(_TIME_TO_TAKE)
        super()._abort()


class _Judge(NamedTuple):
    """What the islands that weigh rows alike have in common."""

    evaluation: Evaluation  # of programs of other islands, which have been counted there
    arguments: dict[str, Any]  # of their `Search`
    key: str  # what a process keeps their searches by


class Islands(Search):
    """A search whose rounds are those of several searches, in processes of joblib's active backend.

    What comes before the rounds, it does itself. Its archive holds the best programs of all islands, and its
    budget counts them together.

    Parameters
    ----------
    n_islands : int
        Number of searches.
    precision_of : callable, optional
        A function of the data that returns the precision by which every second island weighs the rows,
        too; see `DataSet.with_precision`. It is not asked for in libraries without constants, where a
        process would fill the bank of exact search twice.
    **arguments
        Those of `Search`.
    """

    def __init__(
        self,
        *,
        n_islands: int,
        precision_of: Callable[[DataSet], np.ndarray] | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.n_islands = n_islands
        self._seed: int = arguments["seed"]
        self._states: list[State] = []
        weighted = [self.data]
        if precision_of is not None and self.evaluation.fits_constants:
            precision = precision_of(self.data)
            if precision.min() < precision.max():
                weighted.append(self.data.with_precision(precision))
        self._judges = [self._judge_of(data, arguments) for data in weighted]
        self._judges[0].evaluation.archive = self.archive
        self._has_begun = False  # whether processes have been started
        config = self.config
        n_values = len(self.data.y) * config.batch_size * (config.evolution.generations + 1)
        self._is_timed = bool(np.isfinite(self.budget.limits[1]))
        self._n_rounds = int(np.clip(_VALUES // n_values, 1, _MOST_ROUNDS))
        self._cluster, self._parallel = None, Parallel(backend="sequential")
        if not _is_nested():
            self._cluster = getattr(get_active_backend()[0], "client", None)  # of dask, else None
            self._parallel = _Parallel(
                n_islands, prefer="processes", batch_size=1, pre_dispatch=n_islands, max_nbytes=None
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the processes from one call of `advance` to the next."""
        try:
            with self._parallel:
                yield
        finally:
            for judge in self._judges:
                _kept.pop(judge.key, None)  # of islands that took turns in this process

    def _judge_of(self, data: DataSet, arguments: dict[str, Any]) -> _Judge:
        """Return what islands have in common that weigh rows as `data` does."""
        unlimited = Budget(np.iinfo(np.int64).max, None)
        settings = arguments["library"], arguments["constraints"], self.config
        own = {name: value for name, value in arguments.items() if name != "budget"} | {"data": data}
        return _Judge(evaluation_of(data, *settings, unlimited), own, uuid.uuid4().hex)

    def _judge(self, number: int) -> _Judge:
        """Return what judges on an island; the first judge weighs rows as the fit does."""
        return self._judges[number % len(self._judges)]

    def advance(self) -> None:
        """Let every island do a few rounds, and take in what they found."""
        if not self._states:
            self._states = [self._new_island(i) for i in range(self.n_islands)]
        everyone = range(self.n_islands)
        if not self._has_begun:
            with self.budget.stopped_clock():
                self._in_processes(everyone, 0, send_search=True)
            self._has_begun = True
        found = self._in_processes(everyone, self._n_rounds)
        # A process that took no part so far, or took the place of another, does not have the search yet.
        missing = [i for i in everyone if found[i] is None]
        if missing:
            for i, state in zip(missing, self._in_processes(missing, self._n_rounds, send_search=True)):
                found[i] = state
        states = cast(list[State], found)
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
        if state["solving"] is not None:
            state["solving"]["stage"] += number
            state["solving"]["step"] = self.n_islands
        judge = self._judge(number)
        if judge is not self._judges[0]:
            judge.evaluation.enter(self.archive.population())
            state["archive"] = judge.evaluation.archive.state_dict()
            for name in ("queue", "generation"):
                state[name] = _judged(getattr(self, name), judge).state_dict()
        return state

    def _in_processes(
        self, numbers: Sequence[int], n_rounds: int, send_search: bool = False
    ) -> list[State | None]:
        """Return some islands after some rounds, None for one whose process does not have the search."""
        shares = np.full(self.n_islands, self.budget.n_left // self.n_islands)
        shares[: self.budget.n_left % self.n_islands] += 1
        meeting = np.inf
        if self._is_timed and n_rounds > 0:
            n_rounds = np.iinfo(np.int64).max
            meeting = float(np.clip(_SHARE_OF_SECONDS * self.seconds, _FEWEST_SECONDS, _MOST_SECONDS))

        def calls() -> Iterator[Any]:
            for i in numbers:
                limits = n_rounds, int(shares[i]), max(self.budget.max_time - self.seconds, 0.0), meeting
                judge = self._judge(i)
                search = judge.key, judge.arguments if send_search else None
                yield delayed(_advanced)(*search, os.getpid(), self._states[i], *limits)

        workers = self._workers()
        if self._cluster is not None:
            # joblib waits without end for a task of dask that killed its worker again and again.
            self._parallel.timeout = min(_LONGEST_CALL, _PATIENCE + self.budget.max_time - self.seconds)
        for n_deaths in count(1):
            try:
                with self.budget.interrupts.raising():
                    found = list(self._parallel(calls()))
                break
            except BrokenProcessPool:
                goes_on = "others take its place"
                if n_deaths == _MOST_DEATHS:
                    self._parallel = Parallel(backend="sequential")
                    goes_on = "the search goes on in this one"
                warn_in_search(f"A process of the search was killed; {goes_on}.")
            except multiprocessing.TimeoutError:
                self._cluster, self._parallel, workers = None, Parallel(backend="sequential"), set()
                warn_in_search("The cluster does not answer; the search goes on in this process.")
        if workers - self._workers():
            warn_in_search("A worker of the cluster is gone; others do its part again.")
        return found

    def _workers(self) -> set[str]:
        """Return the addresses of the workers of a cluster; joblib's own processes have none."""
        return set() if self._cluster is None else set(self._cluster.ncores())

    def _gather(self, states: list[State]) -> None:
        """Count what the islands evaluated, and take in what they found."""
        for before, after in zip(self._states, states, strict=True):
            for name in COUNTS:
                n_new = after["budget"][name] - before["budget"][name]
                setattr(self.budget, name, getattr(self.budget, name) + n_new)
        for i, best in enumerate(self._of_all(states, "archive")):
            if self._judge(i) is self._judges[0]:
                entered = np.flatnonzero(best.nmse < self.archive.nmse)
                self.archive.update(best.programs[entered], best.nmse[entered])
            else:
                archive = ParetoArchive.from_state_dict(self.library, states[i]["archive"])
                self._judges[0].evaluation.enter(archive.population())
        self.restarts.n = sum(state["restarts"]["n"] - i for i, state in enumerate(states))
        alike = states[:: len(self._judges)]  # whose errors can be compared with those of this search
        for name, n in (("queue", self.config.queue_size), ("generation", self.config.batch_size)):
            setattr(self, name, _together(self._of_all(alike, name)).best(n))
        self.evolved = _together(self._of_all(alike, "evolved"))
        entries = [entry for state in alike for entry in state["history"]]
        if entries:
            mean_reward = float(np.mean([entry["mean_reward"] for entry in entries]))
            self.add_to_history(mean_reward, max(entry["best_reward"] for entry in entries))

    def _of_all(self, states: list[State], name: str) -> list[Scored]:
        """Return the programs of a name in the states of all islands."""
        return [Scored.from_state_dict(self.library, state[name]) for state in states]

    def _with_migrants(self, states: list[State]) -> list[State]:
        """Give every island the best programs of the island before it, and the archive if it judges alike."""
        shared = self.archive.state_dict()
        generations = self._of_all(states, "generation")
        found = []
        for i, (state, own) in enumerate(zip(states, generations)):
            judge = self._judge(i)
            changed: State = {"history": []}
            if judge is self._judges[0]:
                changed["archive"] = shared
            if len(own.nmse):  # one that has just begun again stays by itself
                migrants = generations[i - 1].best(_N_MIGRANTS)
                if judge is not self._judge(i - 1 if i else self.n_islands - 1):
                    migrants = _judged(migrants, judge)
                changed["generation"] = own.with_migrants(migrants).state_dict()
            found.append(state | changed)
        return found

    def state_dict(self) -> State:
        """Return all that `load_state_dict` needs to go on exactly as this search would.

        The decoder is that of the island with the best program, for a search that begins with this state.
        """
        state = super().state_dict()
        if self._states:
            alike = self._states[:: len(self._judges)]
            best = min(alike, key=lambda island: island["queue"]["nmse"].min(initial=np.inf))
            state["refinement"] = best["refinement"]
        return state | {"islands": {str(i): island for i, island in enumerate(self._states)}}

    def load_state_dict(self, saved: State) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        super().load_state_dict(saved)
        self._states = [saved["islands"][str(i)] for i in range(len(saved["islands"]))]


def _judged(found: Scored, judge: _Judge) -> Scored:
    """Return programs with their constants and NMSE by the weights of another island."""
    programs = found.programs[np.arange(len(found.nmse))]  # a copy
    return Scored(programs, judge.evaluation(programs, len(programs)))


def _together(parts: list[Scored]) -> Scored:
    """Return the programs of several sets as one."""
    return reduce(Scored.and_also, parts)


# Searches that this process advanced, by key, because making one anew takes time: several where islands run
# in threads of one process. Those of the last two keys, and so of a fit, are kept.
_kept: dict[str, list[Search]] = {}
_lock = threading.Lock()


def _taken(key: str) -> Search | None:
    """Return a search of a key that nobody else uses, if this process has one."""
    with _lock:
        return _kept[key].pop() if _kept.get(key) else None


def _keep(key: str, search: Search) -> None:
    """Keep a search for the next rounds."""
    with _lock:
        _kept[key] = [*_kept.pop(key, []), search]
        for other in [*_kept][:-2]:
            del _kept[other]


def _advanced(
    key: str,
    arguments: State | None,
    pid: int,
    state: State,
    n_rounds: int,
    n_evaluations: int,
    seconds: float,
    meeting: float,
) -> State | None:
    """Return the state of an island after some rounds.

    Parameters
    ----------
    key : str
        What the process keeps the search by.
    arguments : dict or None
        Those of the `Search`.
    pid : int
        The process of the fit.
    state : dict
    n_rounds : int
        Most rounds.
    n_evaluations, seconds : int, float
        Evaluations and seconds that are left to the island.
    meeting : float
        Seconds after which the islands meet: the island ends with the round whose end is nearest.

    Returns
    -------
    dict or None
        None if this process does not have the search, and is not given the arguments either.
    """
    search = _taken(key)
    with one_thread(), np.errstate(all="ignore"):
        if search is None:
            if arguments is None:
                return None
            compile_kernels(arguments["library"].has_constants)
            search = Search(**arguments)
            if os.getpid() != pid and multiprocessing.current_process().name.startswith("Loky"):
                # loky ends a process that has grown by 300 MB since its first call, and a search with its
                # kernels takes as much: one that takes another's place would be ended again and again.
                loky = sys.modules["joblib.externals.loky.process_executor"]
                loky._MAX_MEMORY_LEAK_SIZE = _MOST_GROWTH  # type: ignore[attr-defined]
                # loky collects garbage every second, which would take a tenth of it with all these modules.
                gc.unfreeze()
                gc.collect()
                gc.freeze()
        search.load_state_dict(state)
        search.budget.allow(n_evaluations, seconds)
        begun = search.seconds
        for n_done in range(n_rounds):
            is_nearest = (search.seconds - begun) * (1 + 0.5 / max(n_done, 1)) > meeting
            if is_nearest or search.stop_reason() is not None:
                break
            search.advance()
        advanced = search.state_dict()
    _keep(key, search)
    return advanced
