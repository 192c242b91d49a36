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

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.kernels.random import new_state
from dgsr.search.conditioned import ConditionedGenerator
from dgsr.search.config import SearchConfig
from dgsr.search.evolution import Engine, get_engine
from dgsr.search.finding import FindingSearch
from dgsr.search.proposals import Proposals

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Samples of the generator that are evaluated before the rounds. With them and the guide, evolution found 51,
# 64 and 48 of three sets of 84 equations, without 46, 58 and 39.
_N_FIRST = 50
# Share by which a round must lower the NMSE in a search among fewer columns, without which it restarts. Such
# a search finds the law soon or not at all, so it restarts earlier than others.
_GAIN_OF_FEWER_COLUMNS = 0.5


class Search(FindingSearch):
    """One search for the law behind one data set, round by round.

    The search itself is ``while not search.stop_reason(): search.tell(search.ask())``. Budgets, progress and
    resuming are loops around the two calls; `run` is the one with finders before and between the rounds.

    Parameters
    ----------
    data : DataSet
        The data; y must vary.
    library : Library
        The library over the features of the data. Its tokens are the first tokens of the generator's library.
    generator : Generator or None
        It is not changed; a copy of its decoder is refined where the configuration asks for it. None means
        genetic programming alone, with random programs instead of samples.
    engine : str or Engine
        ``"compiled"``, ``"deap"``, or an object with their method `evolve`.
    budget : Budget, optional
        The budget that the search shares with others; by default that of the configuration.
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
        budget = Budget(config.max_evaluations, config.max_time) if budget is None else budget
        # The grammar is over the generator's tokens, which may be more than the library's.
        tokens_of = library if generator is None else generator.library
        grammar = constraints.grammar(tokens_of, library.n_variables)
        search_in = partial(_search_in_table, self) if config.symmetries else None
        super().__init__(search_in, data, library, grammar, constraints, config, budget)
        self.arguments = constraints, generator, engine, seed
        self.engine, self.state = get_engine(engine, config.evolution), new_state(seed)
        self.proposals = Proposals(  # line 1
            generator, data, grammar, self.evaluation, config, self.restarts, self.state, seed
        )
        self.n_prepared = 0  # number of completed steps of those before the rounds
        self._n_new = 0  # programs that get a second start; none in a round without survivors
        self._nothing = Scored.none(library, *self.widths)
        self.queue = self.generation = self._nothing

    @property
    def conditioned(self) -> ConditionedGenerator | None:
        """The generator with its encoding of the data."""
        return self.proposals.conditioned

    @property
    def generator(self) -> Generator | None:
        """The generator, whose decoder may be refined."""
        return None if self.conditioned is None else self.conditioned.generator

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
            self.repair(evolved.best(self.config.n_joined).programs)
        self.generation = self.evolved = evolved
        if self.conditioned is not None:
            train = Scored(sampled, nmse).and_also(evolved.best(self.config.n_joined))  # line 5
            self.queue = self.queue.and_also(train).best(self.config.queue_size)
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

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        exact, conditioned = self.scheduler.exact, self.conditioned
        return super().state_dict() | {
            "random_state": self.state.copy(),
            "solving": None if exact is None else exact.state_dict(),
            "prepared": self.n_prepared,
            "queue": self.queue.state_dict(),
            "generation": self.generation.state_dict(),
            # Without refinement the decoder is the pre-trained one, which takes ten times the space of all
            # else.
            "refinement": conditioned.state_dict() if conditioned and self.proposals.has_refinement else None,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from the saved state of a search of the same data with the same settings."""
        super().load_state_dict(saved)
        self.state[:] = saved["random_state"]
        if self.scheduler.exact is not None:
            self.scheduler.exact.load_state_dict(saved["solving"])
        self.n_prepared = saved["prepared"]
        self.queue = Scored.from_state_dict(self.library, saved["queue"])
        self.generation = Scored.from_state_dict(self.library, saved["generation"])
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
