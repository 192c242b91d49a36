"""Algorithm 2 of the paper: sample, evolve, train the decoder on the best programs if asked, and repeat.

=== ========================================================== =============================
1   load the pre-trained generator, which defines p_theta(f|D) `Search`
2   while evaluations are below the budget                     `run`
3   F_generator: sample k programs from p_theta(f|D)           `Search.ask`
4   F_GP: the result of GP(F_generator)                        `Search.tell`
5   F_train: the union of F_generator and the best of F_GP     `Search.tell`
6   compute the rewards of F_train                             `Search.evaluate`
7   train the decoder's parameters phi                         `ConditionedGenerator.refine`
8   store the best program so far                              `Search.archive`
=== ========================================================== =============================

Three things differ. Of the k programs of a round most are the best of the last one, and some of the others
are random (line 3). The decoder is trained where that is asked for, or where no guide drives evolution (line
7). And finders look for laws by other means before the rounds, between them and at the end (`dgsr.finders`).

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Pseudocode and System Description".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.finders.finder import Deadline, Finder, Problem
from dgsr.finders.longer.finder import Longer, too_long
from dgsr.finders.scheduler import Scheduler
from dgsr.kernels.random import new_state
from dgsr.pareto import ParetoArchive
from dgsr.search.config import SearchConfig
from dgsr.search.evaluation import evaluation_of
from dgsr.search.evolution import Engine, get_engine
from dgsr.search.proposals import Proposals
from dgsr.search.restarts import Restarts

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Samples of the generator that are evaluated before the rounds. With them and the guide, evolution found 51,
# 64 and 48 of three sets of 84 equations, without 46, 58 and 39.
_N_FIRST = 50
# Most entries of the history. Beyond it every second entry is removed, to limit memory and the size of files.
_MOST_ENTRIES = 20_000
# The sets of programs in the state of a search, by the names of their attributes.
_SETS = ("queue", "generation", "evolved", "long")
# Share by which a round must lower the NMSE in a search among fewer columns, without which it restarts. Such
# a search finds the law soon or not at all, so it restarts earlier than others.
_GAIN_OF_FEWER_COLUMNS = 0.5


class Search:
    """One search for the law behind one data set, round by round.

    The search itself is ``while not search.stop_reason(): search.tell(search.ask())``. Budgets, progress and
    resuming are handled by callers that loop over the two; `run` also calls finders before and between the
    rounds.

    The tokens of the library, over the features of the data, are the first tokens of the generator's library.
    The generator is not changed: a copy of its decoder is refined where the configuration asks for it. None
    means genetic programming alone, by ``"compiled"``, ``"deap"``, or an object with their method `evolve`,
    and random programs instead of samples. The budget may be shared with other searches; by default it is
    that of the configuration.
    """

    def __init__(
        self,
        data: DataSet,
        library: Library,
        constraints: Constraints,
        config: SearchConfig,
        generator: Generator | None,
        engine: str | Engine = "compiled",
        seed: int = 0,
        budget: Budget | None = None,
    ) -> None:
        self.data, self.library, self.config = data, library, config
        self.arguments = constraints, generator, engine, seed
        self.budget = Budget(config.max_evaluations, config.max_time) if budget is None else budget
        # The grammar is over the generator's tokens, which may be more than the library's.
        tokens_of = library if generator is None else generator.library
        self.grammar = constraints.grammar(tokens_of, library.n_variables)
        self.evaluation = evaluation_of(data, library, constraints, config, self.budget)
        self.archive = self.evaluation.archive  # the best programs of every length in bits
        self.widths = constraints.max_length, self.evaluation.n_constants  # most tokens and constants
        self._nothing = Scored.none(library, *self.widths)
        self.queue = self.generation = self._nothing
        self.evolved = self._nothing  # the programs of the last round, also after a restart
        # The formulas that are too long for the archive.
        self.long = too_long(self.evolved.programs, self.archive, data, self.grammar)
        self.history: list[dict[str, float]] = []
        # The NMSE of the archive in the history: its lowest one, on the rows of the search or on others.
        self.nmse_shown: Callable[[ParetoArchive], float] = ParetoArchive.best_nmse
        self.restarts = Restarts(config.patience, self.evaluation.gain)
        problem = Problem(data, library, self.grammar, self.evaluation.valid, config.tolerance)
        search_in = partial(_search_in_table, self) if config.symmetries else None
        self.scheduler = Scheduler(problem, self.budget, config.look_up, search_in)
        self.engine, self.state = get_engine(engine, config.evolution), new_state(seed)
        parts = self.grammar, self.evaluation, self.restarts, self.state
        self.proposals = Proposals(generator, *parts, seed)  # line 1
        self.conditioned = self.proposals.conditioned
        self.n_prepared = 0  # number of completed steps of those before the rounds
        self._n_new = 0  # new programs, fitted from a second start; 0 in a round without survivors

    @property
    def generator(self) -> Generator | None:
        """The generator, whose decoder may be refined."""
        return None if self.conditioned is None else self.conditioned.generator

    @property
    def best_nmse(self) -> float:
        """The lowest NMSE of the archive and of the formulas that are too long for it."""
        return min(self.archive.best_nmse(), self.long.lowest)

    @property
    def n_evaluations(self) -> int:
        """Programs evaluated so far."""
        return self.budget.n_evaluations

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return self.budget.seconds

    def stop_reason(self) -> str | None:
        """Return the reason why the search should end now, or None if it should go on."""
        return "exact fit" if self.best_nmse <= self.config.tolerance else self.budget.spent()

    def should_stop(self) -> bool:
        """Return whether a round should end early; where constants are fitted an exact fit is no reason."""
        return self.budget.is_spent if self.evaluation.fits_constants else self.stop_reason() is not None

    def evaluate(self, population: Population, n_new: int = 0) -> np.ndarray:
        """Return the NMSE of every program, count the programs, and archive the best; see `Evaluation`."""
        return self.evaluation(population, n_new)

    def enter(self, programs: Population) -> None:
        """Enter whole formulas that are valid into the archive.

        In libraries with constants the best of those that are too long for it are stored for the end.
        """
        is_long_enough = programs.lengths >= self.grammar.min_length
        programs = programs[np.flatnonzero(self.evaluation.valid.whole(programs) & is_long_enough)]
        self.evaluation.enter(
            programs.of_width(self.archive.tokens.shape[1], self.archive.constants.shape[1])
        )
        if self.evaluation.fits_constants:
            self.long = too_long(programs, self.archive, self.data, self.grammar, self.long)

    def record(self, nmse: np.ndarray) -> None:
        """Add an entry to the history, by the NMSE of new programs, of which there is at least one."""
        rewards = rewards_of(nmse)
        self.add_to_history(float(rewards.mean()), float(rewards.max()))

    def add_to_history(self, mean_reward: float, best_reward: float) -> None:
        """Add an entry to the history, of the mean and best reward of new programs."""
        shown = self.nmse_shown(self.archive)
        if self.long.lowest <= self.config.tolerance:  # an exact fit that is too long for the archive
            shown = min(shown, self.long.lowest)
        self.history.append(
            {
                "evaluations": self.n_evaluations,
                "seconds": self.seconds,
                "best_nmse": shown,
                "mean_reward": mean_reward,
                "best_reward": best_reward,
                "invalid": self.budget.n_invalid,
                "restarts": self.restarts.n,
            }
        )
        if len(self.history) > _MOST_ENTRIES:
            del self.history[-2::-2]

    def ask(self) -> Population:
        """Return the k programs with which a round begins, line 3.

        The best programs of the last round are most of them. The others are random programs and samples of
        p_theta(f|D).
        """
        n = self.config.batch_size
        survivors = self.generation.best(int(self.config.survivors * n)).programs
        new = self.proposals.new(n - len(survivors), self.should_stop)
        self._n_new = sum(map(len, new)) if len(survivors) else 0
        return Population.concatenate([*new, survivors])

    def tell(self, sampled: Population) -> None:
        """Do the further steps of a round: evaluate, evolve, and train the decoder if it is refined.

        Every program that is evaluated may enter the archive, line 8.
        """
        self.n_prepared = self.n_steps_before
        nmse = self.evaluate(sampled, self._n_new)  # line 6
        evolved = Scored(sampled, nmse)
        if not self.should_stop():
            options = self.proposals.grammar, self.state, self.should_stop
            evolved = Scored(*self.engine.evolve(sampled, nmse, self.evaluate, *options))  # lines 4 and 6
            repaired = self.scheduler.repaired(evolved.best(self.config.n_joined).programs, self.should_stop)
            if len(repaired):
                self.evaluate(repaired)
        self.generation = self.evolved = evolved
        if self.conditioned is not None:
            train = Scored(sampled, nmse).concatenated_with(evolved.best(self.config.n_joined))  # line 5
            self.queue = self.queue.concatenated_with(train).best(self.config.queue_size)
            if self.proposals.are_refined and len(self.queue.programs):
                self.conditioned.refine(self.queue.programs, *train, self.should_stop)  # line 7
        if self.restarts.is_due(min(self.queue.lowest, evolved.lowest)):
            if self.conditioned is not None:
                self.conditioned.restart()
            self.queue = self.generation = self._nothing
        self.record(nmse)

    def running(self) -> AbstractContextManager[None]:
        """Return the context in which the search advances."""
        return nullcontext()

    def advance(self) -> None:
        """Run one round and the next stage of exact search."""
        self.tell(self.ask())
        self.solve_further()

    @property
    def n_steps_before(self) -> int:
        """Number of steps before the rounds."""
        return len(self.scheduler.finders) + 2

    def prepare(self, after_step: Callable[[], None]) -> None:
        """Run the undone steps before the rounds; call `after_step` after each that evaluates programs."""
        finders = (partial(self.find, finder) for finder in self.scheduler.finders)
        steps: list[Callable[[], None]] = [self._evaluate_first, *finders, self.solve_further]
        for step in steps[self.n_prepared :]:
            before = self.n_evaluations
            step()
            self.n_prepared += 1
            if self.n_evaluations > before:
                after_step()

    def _evaluate_first(self) -> None:
        """Evaluate the law that exact search found and a few programs of the generator."""
        nmse = np.zeros(0)
        if self.scheduler.exact is not None:
            nmse = self.evaluate(self.scheduler.exact.law)
        if self.conditioned is not None and not self.should_stop():
            programs = self.proposals.sampled(min(_N_FIRST, self.config.batch_size), self.should_stop)
            nmse = self.evaluate(programs)
            self.queue = Scored(programs, nmse).best(self.config.queue_size)
        if len(nmse):
            self.record(nmse)

    def find(self, finder: Finder) -> None:
        """Call a finder, if there is time, and evaluate the programs that it finds."""
        before = self.n_evaluations
        found = self.scheduler.before_rounds(finder, self.best_nmse <= self.config.tolerance)
        if found is None:
            return
        nmse = self._take_whole(found.programs) if found.are_complete else self._take_scaled(found.programs)
        if self.n_evaluations > before:
            self.record(nmse)

    def _take_whole(self, programs: Population) -> np.ndarray:
        """Enter whole formulas and count them; return the lowest NMSE of the search, shape (1,)."""
        programs = programs[: self.budget.n_left]
        # `enter` computes their NMSE; to compute it here would compile another kernel.
        are_finite = np.isfinite(programs.predict(self.data.columns.T)).all(axis=1)
        self.budget.count(np.where(are_finite, 0.0, np.inf))
        self.enter(programs)
        return np.array([self.best_nmse])

    def _take_scaled(self, programs: Population) -> np.ndarray:
        """Return the NMSE of programs with a scale and an offset, both of which are fitted."""
        programs = programs.of_width(*self.widths)
        # Other constraints of the grammar are not checked, since evolution does not begin with these programs
        # and the check would compile another kernel.
        is_able = (programs.lengths >= self.grammar.min_length) & self.evaluation.valid.scaled(programs)
        programs = programs[np.flatnonzero(is_able)]
        return self.evaluate(programs, len(programs))

    def solve_further(self) -> None:
        """Run the next stage of exact search, if there is one and time for it, and evaluate its programs."""
        found = self.scheduler.next_stage(self.should_stop)
        if len(found):
            self.record(self.evaluate(found))

    def at_the_end(self, data: DataSet, deadline: Deadline) -> Iterator[Population]:
        """Yield the programs that finders find at the end, in the coordinates of the search.

        The rows of `data` may be more than those of the search.
        """
        problem = self.scheduler.problem._replace(data=data)
        longer = Longer(self.archive, self.evolved, self.long.programs)
        is_exact = self.archive.best_nmse() <= self.archive.tolerance
        return self.scheduler.at_the_end(problem, longer, is_exact, deadline)

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        exact, conditioned = self.scheduler.exact, self.conditioned
        return {
            "tolerance": self.archive.tolerance,
            "history": [dict(entry) for entry in self.history],
            "budget": self.budget.state_dict(),
            "restarts": self.restarts.state_dict(),
            "archive": self.archive.state_dict(),
            **{name: getattr(self, name).state_dict() for name in _SETS},
            "random_state": self.state.copy(),
            "solving": None if exact is None else exact.state_dict(),
            "prepared": self.n_prepared,
            # Without refinement the decoder is the pre-trained one, ten times as large as all else.
            "refinement": conditioned.state_dict() if conditioned and self.proposals.has_refinement else None,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from the saved state of a search of the same data with the same settings."""
        self.history = [dict(entry) for entry in saved["history"]]
        for part in ("budget", "restarts", "archive"):
            getattr(self, part).load_state_dict(saved[part])
        for name in _SETS:
            setattr(self, name, Scored.from_state_dict(self.library, saved[name]))
        self.state[:] = saved["random_state"]
        if self.scheduler.exact is not None:
            self.scheduler.exact.load_state_dict(saved["solving"])
        self.n_prepared = saved["prepared"]
        if self.conditioned is not None and saved["refinement"] is not None:
            self.conditioned.load_state_dict(saved["refinement"])


def run(search: Search, callback: Callable[[Search], None] | None = None) -> str:
    """Advance a search until there is a reason to stop, and return that reason.

    `callback` is called after each step before the rounds that evaluates programs, and after each round.
    """
    if search.stop_reason() is None:
        search.prepare(lambda: None if callback is None else callback(search))
    with search.running():
        while (reason := search.stop_reason()) is None:  # line 2
            search.advance()
            if callback is not None:
                callback(search)
    return reason


def _search_in_table(search: Search, data: DataSet, symmetries: bool) -> Population:
    """Return the front of a search in another table, which spends the budget of `search`."""
    constraints, generator, engine, seed = search.arguments
    free = replace(constraints, forbidden_columns=(), required=(), units=None, min_length=1)
    library = search.library.with_variables(len(data.columns))
    # A column there is another quantity than the one of its name here.
    own = tuple(pair for pair in library.complexities if pair[0] in library.operators)
    library = replace(library, complexities=own)
    config = replace(search.config, symmetries=symmetries, gain=_GAIN_OF_FEWER_COLUMNS)
    inner = Search(data, library, free, config, generator, engine, seed, search.budget)
    run(inner)
    widths = inner.long.programs.tokens.shape[1], inner.long.programs.constants.shape[1]
    return Population.concatenate([inner.archive.population().of_width(*widths), inner.long.programs])
