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
are random (line 3). Where a guide drives evolution, the decoder is trained after some rounds only, and stays
near the pre-trained one (line 7). And finders look for laws by other means before the rounds, between them
and at the end (`dgsr.finders`).

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Pseudocode and System Description".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.finders.finder import Deadline, Finder
from dgsr.finders.longer.finder import Longer
from dgsr.search.state import SearchState

# Samples of the generator that are evaluated before the rounds. With them and the guide, evolution found 51,
# 64 and 48 of three sets of 84 equations, without 46, 58 and 39.
_N_FIRST = 50
# Most combinations of common forms that are evaluated before the rounds in the functions of a form. Laws with
# one such function took 49 equations so, and 6,000 to 9,000 when evolution drew them at random.
_N_COMMON = 500
# Share by which a round must lower the NMSE in a search among fewer columns, without which it restarts. Such
# a search finds the law soon or not at all, so it restarts earlier than others.
_GAIN_OF_FEWER_COLUMNS = 0.5


class Search(SearchState):
    """One search for the law behind one data set, round by round.

    The search itself is ``while not search.stop_reason(): search.tell(search.ask())``. Budgets, progress and
    resuming are handled by callers that loop over the two; `run` also calls finders before and between the
    rounds.

    The tokens of the library, over the features of the data, are the first tokens of the generator's library.
    The generator is not changed: a copy of its decoder is refined, unless the configuration forbids it. None
    means genetic programming alone, by ``"compiled"``, ``"deap"``, or an object with their method `evolve`,
    and random programs instead of samples. The budget may be shared with other searches; by default it is
    that of the configuration.
    """

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
        """Do the further steps of a round: evaluate, evolve, and train the decoder.

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
            train = Scored.concatenate([Scored(sampled, nmse), evolved.best(self.config.n_joined)])  # line 5
            self.queue = Scored.concatenate([self.queue, train]).best(self.config.queue_size)
            if self.proposals.are_refined and len(self.queue.programs):
                limits = self.n_evaluations, self.should_stop
                self.conditioned.refine(self.queue.programs, *train, *limits)  # line 7
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
        """Evaluate the law of exact search, some programs of the generator, or common forms within a form."""
        nmse = np.zeros(0)
        if self.forests is not None and self.forests.grammars:
            common = self.forests.common(min(_N_COMMON, self.budget.n_left // 2), self.state)
            if len(common):
                nmse = self.evaluate(common, len(common))
                self.generation = Scored(common, nmse).best(self.config.batch_size)
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
        if self.evaluation.constraints.form is not None:
            yield self.archive.population()[:0]
            return
        problem = self.scheduler.problem._replace(data=data)
        longer = Longer(self.archive, self.evolved, self.long.programs)
        is_exact = self.archive.best_nmse() <= self.archive.tolerance
        yield from self.scheduler.at_the_end(problem, longer, is_exact, deadline)

    def _search_in_table(self, data: DataSet, symmetries: bool) -> Population:
        constraints, generator, engine, seed = self.arguments
        free = replace(constraints, forbidden_columns=(), required=(), units=None, shape=None, min_length=1)
        library = self.library.with_variables(len(data.columns))
        # A column there is another quantity than the one of its name here.
        own = tuple(pair for pair in library.complexities if pair[0] in library.operators)
        library = replace(library, complexities=own)
        config = replace(self.config, symmetries=symmetries, gain=_GAIN_OF_FEWER_COLUMNS)
        inner = self._search_of(
            data=data, library=library, constraints=free, config=config, generator=generator, engine=engine,
            seed=seed, budget=self.budget,
        )  # fmt: skip
        run(inner)
        widths = inner.long.programs.tokens.shape[1], inner.long.programs.constants.shape[1]
        return Population.concatenate([inner.archive.population().of_width(*widths), inner.long.programs])

    def _search_of(self, **arguments: Any) -> Search:
        """Return a search of another table, by as many processes as this one has; see `Search`."""
        return Search(**arguments)


def run(search: Search, callback: Callable[[Search], None] = lambda search: None) -> str:
    """Advance a search until there is a reason to stop, and return that reason.

    `callback` is called after each step before the rounds that evaluates programs, and after each round.
    """
    if search.stop_reason() is None:
        search.prepare(partial(callback, search))
    with search.running():
        while (reason := search.stop_reason()) is None:  # line 2
            search.advance()
            callback(search)
    return reason
