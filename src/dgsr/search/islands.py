"""Several searches look for one law at the same time, in processes: the islands of a fit with ``n_jobs``.

Every island is a `Search` with its own random numbers and its own shares of the generator and of the stages
of exact search, and every second one gives the rows other weights. Each island's state is sent to a process,
which advances it by a few rounds and returns it. Between these calls the best formulas of all islands enter
one archive and a few of them migrate; each is evaluated with the weights of its destination. A process holds
nothing that another one cannot compute anew: if one is killed, these few rounds are repeated.
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
from dgsr.search.evaluation import Evaluation
from dgsr.search.forms import evaluation_of
from dgsr.search.search import Search
from dgsr.search.threads import one_thread

# Where only evaluations are limited, islands meet after the number of rounds in which an island computes this
# many values of programs, in about a second, so that the same seed gives the same result.
_VALUES = 20_000_000
# Most rounds between two meetings in this case.
_MOST_ROUNDS = 8
# Where seconds are limited, islands meet after this share of the seconds since the search began. After equal
# numbers of rounds, 6.5% of the time was waiting.
_SHARE_OF_SECONDS = 0.1
# Fewest and most seconds between two meetings in this case.
_SECONDS = (1.0, 2.0)
# Rounds of a search in a table of fewer columns before processes take part in it. They take about as long as
# the processes take to start, and most such searches are over by then.
_N_ALONE = 16
# Programs that migrate from each island to the next when they meet. With them 20 of 22 laws were found,
# without 18, a difference within chance.
_N_MIGRANTS = 5
# Failures in a row of calls in which a process was killed; after these the search goes on in its own process.
_MOST_DEATHS = 3
# Seconds within which joblib's thread takes up the calls that were submitted.
_TIME_TO_TAKE = 0.05
# Most seconds to wait for an answer of a cluster, and those after the time of the search has passed.
_LONGEST_CALL = 600.0
_PATIENCE = 120.0

State = dict[str, Any]


def number_of_islands(n_jobs: int | None) -> int:
    """Return the number of islands for `n_jobs`, which has joblib's meaning.

    A positive number of jobs is the number of islands wherever they run, so that a fit inside a parallel
    cross-validation, which has one process, has the same result.
    """
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    return 1 if _is_nested() else max(effective_n_jobs(n_jobs), 1)


def _is_nested() -> bool:
    """Return whether this runs inside a parallel loop, such as a cross-validation, that uses all cores."""
    if (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return False
    try:
        distributed.get_worker()  # joblib's nesting level does not count tasks of dask
    except ValueError:
        return False
    return True


class _Parallel(Parallel):
    """joblib's `Parallel`, in which an interrupt during the submission of calls leaves no traceback."""

    def _abort(self) -> None:
        # The thread that passes calls to loky's processes fails on calls that are cancelled too early.
        time.sleep(_TIME_TO_TAKE)
        super()._abort()


class _WeightGroup(NamedTuple):
    """What islands with the same weights of rows share."""

    evaluation: Evaluation  # evaluates programs of other islands, which have counted them
    arguments: dict[str, Any]  # of their `Search`
    key: str  # the key of their searches in the cache of a process


class Islands(Search):
    """A search whose rounds are done by several searches, in processes of joblib's active backend.

    The steps before the rounds, and `n_alone` rounds, are done once, in this process. The archive holds the
    best programs of all islands, and the budget counts the evaluations of all. Every second island multiplies
    the weights of the rows by `precision_of` of the data, if it is given, but not in libraries without
    constants, where a process would fill the bank of exact search twice. The other arguments are those of
    `Search`.
    """

    def __init__(
        self,
        *,
        n_islands: int,
        precision_of: Callable[[DataSet], np.ndarray] | None = None,
        n_alone: int = 0,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.n_islands, self._seed, self._n_alone = n_islands, arguments["seed"], n_alone
        self._precision_of = precision_of
        self._states: list[State] = []
        self._has_begun = False  # whether processes have been started
        weighted = [self.data]
        if precision_of is not None and self.evaluation.fits_constants:
            precision = precision_of(self.data)
            if precision.min() < precision.max():
                weighted.append(self.data.with_precision(precision))
        self._groups = [self._group_of(data, arguments) for data in weighted]
        self._groups[0].evaluation.archive = self.archive
        n_values = len(self.data.y) * self.config.batch_size * (self.config.evolution.generations + 1)
        self._n_rounds = int(np.clip(_VALUES // n_values, 1, _MOST_ROUNDS))
        self._cluster, self._parallel = None, Parallel(backend="sequential")
        if not _is_nested():
            self._cluster = getattr(get_active_backend()[0], "client", None)  # dask's client, or None
            self._parallel = _Parallel(
                n_islands, prefer="processes", batch_size=1, pre_dispatch=n_islands, max_nbytes=None
            )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Return the context in which processes live from one call of `advance` to the next."""
        try:
            with self._parallel:
                yield
        finally:
            for group in self._groups:
                _kept.pop(group.key, None)  # where islands took turns in this process

    def _search_of(self, **arguments: Any) -> Search:
        own = self._precision_of
        return Islands(n_islands=self.n_islands, precision_of=own, n_alone=_N_ALONE, **arguments)

    def _group_of(self, data: DataSet, arguments: dict[str, Any]) -> _WeightGroup:
        unlimited = Budget(np.iinfo(np.int64).max, None)
        settings = arguments["library"], arguments["constraints"], self.config
        own = {name: value for name, value in arguments.items() if name != "budget"} | {"data": data}
        return _WeightGroup(evaluation_of(data, *settings, unlimited), own, uuid.uuid4().hex)

    def _group(self, number: int) -> _WeightGroup:
        """Return what an island shares with others; the first such group has the weights of the fit."""
        return self._groups[number % len(self._groups)]

    def advance(self) -> None:
        """Advance every island by a few rounds, and gather what they found."""
        if self._n_alone > 0:
            self._n_alone -= 1
            super().advance()
            return
        if not self._states:
            self._states = [self._new_island(i) for i in range(self.n_islands)]
        everyone = range(self.n_islands)
        if not self._has_begun:
            with self.budget.stopped_clock():
                self._in_processes(everyone, 0, send_search=True)
            self._has_begun = True
        found = self._in_processes(everyone, self._n_rounds)
        # A process that is new, or that had no island before, does not have the search yet.
        missing = [i for i in everyone if found[i] is None]
        if missing:
            for i, state in zip(missing, self._in_processes(missing, self._n_rounds, send_search=True)):
                found[i] = state
        states = cast(list[State], found)
        self._gather(states)
        self._states = self._with_migrants(states)

    def _new_island(self, number: int) -> State:
        """Return the first state of an island: that of this search, with what distinguishes the island."""
        state = super().state_dict()
        state["history"] = []
        if number > 0:
            seed = np.random.SeedSequence([self._seed, number]).generate_state(1)[0]
            state["random_state"] = new_state(int(seed))
            # The number of restarts determines the shares of the generator among samples and in mutations.
            state["restarts"]["n"] = number
        if state["solving"] is not None:
            state["solving"]["stage"] += number
            state["solving"]["step"] = self.n_islands
        group = self._group(number)
        if group is not self._groups[0]:
            group.evaluation.enter(self.archive.population())
            state["archive"] = group.evaluation.archive.state_dict()
            for name in ("queue", "generation"):
                state[name] = _revalued(getattr(self, name), group).state_dict()
        return state

    def _in_processes(
        self, numbers: Sequence[int], n_rounds: int, send_search: bool = False
    ) -> list[State | None]:
        """Return the states of some islands after some rounds, None where a process lacked the search."""
        shares = np.full(self.n_islands, self.budget.n_left // self.n_islands)
        shares[: self.budget.n_left % self.n_islands] += 1
        meeting = np.inf
        if np.isfinite(self.budget.limits[1]) and n_rounds > 0:
            n_rounds = np.iinfo(np.int64).max
            meeting = float(np.clip(_SHARE_OF_SECONDS * self.seconds, *_SECONDS))

        def calls() -> Iterator[Any]:
            for i in numbers:
                limits = n_rounds, int(shares[i]), max(self.budget.max_time - self.seconds, 0.0), meeting
                group = self._group(i)
                search = group.key, group.arguments if send_search else None
                yield delayed(_advanced)(*search, os.getpid(), self._states[i], *limits)

        workers = self._workers()
        if self._cluster is not None:
            # joblib would wait for ever for a task of dask that kills its worker repeatedly.
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
        """Add up the counts of the islands, and gather their programs, archives and history."""
        for before, after in zip(self._states, states, strict=True):
            for name in COUNTS:
                n_new = after["budget"][name] - before["budget"][name]
                setattr(self.budget, name, getattr(self.budget, name) + n_new)
        for i, best in enumerate(self._of_all(states, "archive")):
            if self._group(i) is self._groups[0]:
                entered = np.flatnonzero(best.nmse < self.archive.nmse)
                self.archive.update(best.programs[entered], best.nmse[entered])
            else:
                archive = ParetoArchive.from_state_dict(self.library, states[i]["archive"])
                self._groups[0].evaluation.enter(archive.population())
        self.restarts.n = sum(state["restarts"]["n"] - i for i, state in enumerate(states))
        alike = states[:: len(self._groups)]  # islands with the weights of the fit, so with comparable errors
        for name, n in (("queue", self.config.queue_size), ("generation", self.config.batch_size)):
            setattr(self, name, Scored.concatenate(self._of_all(alike, name)).best(n))
        self.evolved = Scored.concatenate(self._of_all(alike, "evolved"))
        entries = [entry for state in alike for entry in state["history"]]
        if entries:
            mean_reward = float(np.mean([entry["mean_reward"] for entry in entries]))
            n_refinements = sum(state["refinement"]["steps"] for state in states if state["refinement"])
            self.add_to_history(mean_reward, max(entry["best_reward"] for entry in entries), n_refinements)

    def _of_all(self, states: list[State], name: str) -> list[Scored]:
        """Return the programs under a name in the state of every island."""
        return [Scored.from_state_dict(self.library, state[name]) for state in states]

    def _with_migrants(self, states: list[State]) -> list[State]:
        """Return the states of the islands, each with the best programs of the one before it.

        Those whose rows have the weights of the fit get the shared archive, too.
        """
        shared = self.archive.state_dict()
        generations = self._of_all(states, "generation")
        found = []
        for i, (state, own) in enumerate(zip(states, generations)):
            group = self._group(i)
            changed: State = {"history": []}
            if group is self._groups[0]:
                changed["archive"] = shared
            if len(own.nmse):  # an island that has just restarted gets none
                migrants = generations[i - 1].best(_N_MIGRANTS)
                if group is not self._group((i - 1) % self.n_islands):
                    migrants = _revalued(migrants, group)
                changed["generation"] = own.with_migrants(migrants).state_dict()
            found.append(state | changed)
        return found

    def state_dict(self) -> State:
        """Return all that `load_state_dict` needs to go on exactly as this search would.

        It has the decoder of the island with the best program, for a search that begins with this state.
        """
        state = super().state_dict()
        if self._states:
            alike = self._states[:: len(self._groups)]
            best = min(alike, key=lambda island: island["queue"]["nmse"].min(initial=np.inf))
            state["refinement"] = best["refinement"]
        return state | {"islands": {str(i): island for i, island in enumerate(self._states)}}

    def load_state_dict(self, saved: State) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        super().load_state_dict(saved)
        self._states = [saved["islands"][str(i)] for i in range(len(saved["islands"]))]


def _revalued(found: Scored, group: _WeightGroup) -> Scored:
    """Return programs with constants and NMSE that are fitted with the weights of another island."""
    programs = found.programs[np.arange(len(found.nmse))]  # a copy
    return Scored(programs, group.evaluation(programs, len(programs)))


# Cache of the searches that this process has advanced, since making one takes time, by the last two keys,
# which are those of one fit. There are several of a key where islands run in threads of one process.
_kept: dict[str, list[Search]] = {}
_lock = threading.Lock()


def _let_grow() -> None:
    """Keep loky from ending this process, and from slowing it down, for the size of a search."""
    # loky ends a process that has grown by 300 MB since its first call. A search with its kernels takes as
    # much, so that a process started in place of another would be ended repeatedly.
    loky = sys.modules["joblib.externals.loky.process_executor"]
    loky._MAX_MEMORY_LEAK_SIZE = np.inf  # type: ignore[attr-defined]
    # loky collects garbage every second, which with all these modules would take a tenth of a second.
    gc.unfreeze()
    gc.collect()
    gc.freeze()


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

    It is None if this process neither has the search in its cache, by `key`, nor is given its `arguments`.
    The island may spend `n_evaluations` and `seconds`, and stops after the round whose end is nearest to the
    `meeting`, in seconds from now. The process of the fit is `pid`.
    """
    with _lock:
        search = _kept[key].pop() if _kept.get(key) else None
    with one_thread(), np.errstate(all="ignore"):
        if search is None:
            if arguments is None:
                return None
            compile_kernels(arguments["library"].has_constants)
            search = Search(**arguments)
            if os.getpid() != pid and multiprocessing.current_process().name.startswith("Loky"):
                _let_grow()
        search.load_state_dict(state)
        search.budget.allow(n_evaluations, seconds)
        begun = search.seconds
        for n_done in range(n_rounds):
            is_nearest = (search.seconds - begun) * (1 + 0.5 / max(n_done, 1)) > meeting
            if is_nearest or search.stop_reason() is not None:
                break
            search.advance()
        advanced = search.state_dict()
    with _lock:
        _kept[key] = [*_kept.pop(key, []), search]
        for other in [*_kept][:-2]:
            del _kept[other]
    return advanced
