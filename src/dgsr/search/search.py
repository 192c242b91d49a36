"""Algorithm 2 of the paper: sample, evolve, train the decoder on the best programs if asked, and repeat.

=== ========================================================== =============================
1   load the pre-trained generator, which defines p_theta(f|D) `Search`
2   while evaluations are below the budget                     `run`
3   F_generator: sample k programs from p_theta(f|D)           `Search.ask`
4   F_GP: the result of GP(F_generator)                        `Search.tell`
5   F_train: the union of F_generator and the best of F_GP     `Search.tell`
6   compute the rewards of F_train                             `Search.evaluate`
7   train the decoder's parameters phi                         `ConditionedGenerator.refine`
8   keep the best program seen                                 `Search.archive`
=== ========================================================== =============================

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

from dgsr.evolution import Engine, get_engine, random_population
from dgsr.exact_search import ExactSolver
from dgsr.expressions.constraints import Constraints, Grammar
from dgsr.expressions.library import Library
from dgsr.kernels.random import new_state
from dgsr.pareto import ParetoArchive
from dgsr.population import DataSet, Population, rewards_of
from dgsr.search.budget import Budget
from dgsr.search.conditioned import ConditionedGenerator
from dgsr.search.config import SearchConfig
from dgsr.search.curves import Curves
from dgsr.search.evaluation import evaluation_of
from dgsr.search.guidance import Guidance
from dgsr.search.longer import longer_formulas, too_long
from dgsr.search.looking_up import LOOKS
from dgsr.search.restarts import Restarts
from dgsr.search.scored import Scored
from dgsr.search.solving import Solving

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Steps before the first round, and programs of the generator that the first of them evaluates.
_N_STEPS_BEFORE, _GLANCE = len(LOOKS) + 2, 50
# Most entries of the history, of which every second one is then left out: files hold it, as does memory.
_MOST_ENTRIES = 20_000
# Share by which a round must lower the NMSE of a search among fewer columns, which finds the law soon or not
# at all and so begins again earlier.
_GAIN_OF_REDUCED = 0.5
# Random programs that are drawn for each that is tried, where units tell which are consistent.
_DRAWN_FOR_ONE = 5


class Search:
    """One search for the law behind one data set, round by round.

    The search itself is ``while not search.stop_reason(): search.tell(search.ask())``. Budgets, progress and
    resuming are loops around the two calls; `run` is the one with exact search before and between the rounds.

    Parameters
    ----------
    data : DataSet
        The data; y must vary.
    library : Library
        The library over the features of the data. Its tokens are the first tokens of the generator's library.
    constraints : Constraints
    config : SearchConfig
    generator : Generator or None
        Its encoder is left as it is; its decoder is copied, and refined where the configuration asks for it.
        None stands for genetic programming alone: random programs take the places of the samples.
    engine : str or Engine
        ``"compiled"``, ``"deap"``, or an object with their method `evolve`.
    seed : int
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
        self.config, self.library, self.data = config, library, data
        self._arguments = constraints, generator, engine, seed
        # The grammar is over the generator's tokens, which may be more than the library's.
        tokens_of = library if generator is None else generator.library
        self.grammar = constraints.grammar(tokens_of, library.n_variables)
        self.engine = get_engine(engine, config.evolution)
        self.state = new_state(seed)
        self.history: list[dict[str, float]] = []
        #: What the history says of the archive: its lowest NMSE, on the rows of the search or on others.
        self.nmse_shown: Callable[[ParetoArchive], float] = ParetoArchive.best_nmse
        self.budget = Budget(config.max_evaluations, config.max_time) if budget is None else budget
        self.evaluation = evaluation_of(data, library, constraints, config, self.budget)
        self.solving: Solving | None = None
        if self.evaluation.is_solved:
            solver = ExactSolver(library, data, self.grammar, count_looks=self.budget.count_looks)
            self.solving = Solving(solver, self.budget)
        self._n_new = 0  # number of newcomers among the programs of this round
        self._n_prepared = 0  # number of steps before the rounds that are done
        self.curves: Curves | None = None  # fitted to the rows of the search, once that is done
        self.conditioned, probabilities = None, None
        if generator is not None:  # line 1
            self.conditioned = ConditionedGenerator(generator, data, library, self.grammar, config, seed)
            probabilities = generator.guide_probabilities(self.conditioned.encoding)
        self.guidance = Guidance(self.grammar, library, probabilities)
        self.restarts = Restarts(config.patience, self.evaluation.gain)
        self._nothing = Scored.none(library, constraints.max_length, self.evaluation.n_constants)
        self.queue = self.generation = self._nothing
        self.long = too_long(self._nothing.programs, self.archive, self.data, self.grammar)
        self.evolved = self._nothing  # the programs of the last round, which a restart leaves as they are

    @property
    def generator(self) -> Generator | None:
        """The generator, whose decoder may be refined."""
        return None if self.conditioned is None else self.conditioned.generator

    @property
    def archive(self) -> ParetoArchive:
        """The best programs of every length in bits."""
        return self.evaluation.archive

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
        """Return why the search should end now, or None while it should go on."""
        if self.best_nmse <= self.config.tolerance:
            return "exact fit"
        return self.budget.spent()

    def _should_stop(self) -> bool:
        """Return whether a round should end before its last generation."""
        reason = self.stop_reason()
        return reason is not None and not (reason == "exact fit" and self.evaluation.fits_constants)

    @property
    def _guided(self) -> Grammar:
        """The grammar that programs are grown and mutated by in this round."""
        return self.guidance.grammar(self.restarts.n)

    def evaluate(self, population: Population, n_new: int = 0) -> np.ndarray:
        """Return the NMSE of every program, and count and archive the programs; see `Evaluation`."""
        return self.evaluation(population, n_new)

    # The rounds --------------------------------------------------------------------------------------

    def ask(self) -> Population:
        """Return the programs that a round begins with: k samples of p_theta(f|D), line 3.

        Random programs take the places of some samples, and the best programs of the last round those of
        most.
        """
        n = self.config.batch_size
        survivors = self.generation.best(int(self.config.survivors * n)).programs
        n_fresh = n - len(survivors)
        n_random = int(self._random_share * n_fresh)
        new = []
        if self.conditioned is not None and n_random < n_fresh:
            new.append(self._sample(self.conditioned, n_fresh - n_random))
        new.append(self._random(n_random))
        self._n_new = sum(map(len, new)) if len(survivors) else 0
        return Population.concatenate([*new, survivors])

    def _random(self, n: int) -> Population:
        """Return random programs; with units they are those of many that break the fewest rules."""
        if self.evaluation.constraints.units is None:
            return random_population(n, self.library, self._guided, self.state)
        many = random_population(_DRAWN_FOR_ONE * n, self.library, self._guided, self.state)
        return many[np.argsort(self.evaluation.violations(many), kind="stable")[:n]]

    @property
    def _random_share(self) -> float:
        """Share of the new programs of a round that are random, and not sampled."""
        if self.conditioned is None:
            return 1.0
        share = self.config.random_share
        return self.evaluation.random_shares[self.restarts.n > 0] if share is None else share

    @property
    def _refines(self) -> bool:
        """Whether the decoder is trained on what the search finds.

        Where a guide drives evolution it is not by default: that took time and found no more
        (docs/decisions.md).
        """
        if self.config.refine == "auto":
            return not (self.guidance.has_guide and self.config.evolution.generations)
        return bool(self.config.refine)

    def _sample(self, conditioned: ConditionedGenerator, n: int) -> Population:
        return conditioned.sample(n, self.evaluation.n_constants, self.state, self._should_stop)

    def tell(self, sampled: Population) -> None:
        """Do the rest of a round: evaluate, evolve, and train the decoder if it is refined.

        Whatever is evaluated may enter the archive, line 8.
        """
        self._n_prepared = _N_STEPS_BEFORE
        nmse = self.evaluate(sampled, self._n_new)  # line 6
        evolved = Scored(sampled, nmse)
        if not self._should_stop():
            options = self._guided, self.state, self._should_stop
            evolved = Scored(*self.engine.evolve(sampled, nmse, self.evaluate, *options))  # lines 4 and 6
            self._repair(evolved)
        self.generation = self.evolved = evolved
        if self.conditioned is not None:
            train = Scored(sampled, nmse).and_also(evolved.best(self.config.n_joined))  # line 5
            self.queue = self.queue.and_also(train).best(self.config.queue_size)
            if self._refines and self._random_share < 1.0 and len(self.queue.programs):
                self.conditioned.refine(self.queue.programs, *train, self._should_stop)  # line 7
        if self.restarts.is_due(min(self.queue.lowest, evolved.lowest)):
            if self.conditioned is not None:
                self.conditioned.restart()
            self.queue = self.generation = self._nothing
        self.record(nmse)

    def running(self) -> AbstractContextManager[None]:
        """Return the context in which the search advances."""
        return nullcontext()

    def advance(self) -> None:
        """Do a round, and the next stage of exact search."""
        self.tell(self.ask())
        self.solve_further()

    def record(self, nmse: np.ndarray) -> None:
        """Add an entry to the history; `nmse` is that of the sampled programs, at least one."""
        rewards = rewards_of(nmse)
        self._add_to_history(float(rewards.mean()), float(rewards.max()))

    def _add_to_history(self, mean_reward: float, best_reward: float) -> None:
        self.history.append(
            {
                "evaluations": self.n_evaluations,
                "seconds": self.seconds,
                "best_nmse": self._nmse_of_history(),
                "mean_reward": mean_reward,
                "best_reward": best_reward,
                "invalid": self.budget.n_invalid,
                "restarts": self.restarts.n,
            }
        )
        if len(self.history) > _MOST_ENTRIES:
            del self.history[-2::-2]

    def _nmse_of_history(self) -> float:
        """Return what `nmse_shown` says, or the NMSE of the exact fit that the archive has no room for."""
        shown = self.nmse_shown(self.archive)
        return min(shown, self.long.lowest) if self.long.lowest <= self.config.tolerance else shown

    # Before and between the rounds -------------------------------------------------------------------

    def prepare(self, after_step: Callable[[], None]) -> None:
        """Do what comes before the rounds, and is not done yet; call `after_step` after what evaluates."""
        steps: list[Callable[[], None]] = [self.glance, *(partial(look, self) for look in LOOKS)]
        steps.append(self.solve_further)
        for step in steps[self._n_prepared :]:
            before = self.n_evaluations
            step()
            self._n_prepared += 1
            if self.n_evaluations > before:
                after_step()

    def glance(self) -> None:
        """Evaluate the law that the solver found and a few programs of the generator, which often suffice."""
        nmse = np.zeros(0)
        if self.solving is not None:
            nmse = self.evaluate(self.solving.law)
        if self.conditioned is not None and not self._should_stop():
            programs = self._sample(self.conditioned, min(_GLANCE, self.config.batch_size))
            nmse = self.evaluate(programs)
            self.queue = Scored(programs, nmse).best(self.config.queue_size)
        if len(nmse):
            self.record(nmse)

    def of_other_columns(self, data: DataSet, symmetries: bool = False) -> Population:
        """Return the front of a search among other columns, which spends the budget of this one."""
        constraints, generator, engine, seed = self._arguments
        free = replace(constraints, forbidden_columns=(), required=(), units=None, min_length=1)
        library = self.library.with_variables(len(data.columns))
        config = replace(self.config, symmetries=symmetries, gain=_GAIN_OF_REDUCED)
        search = Search(data, library, free, config, generator, engine, seed, self.budget)
        run(search)
        widths = search.long.programs.tokens.shape[1], search.long.programs.constants.shape[1]
        return Population.concatenate([search.archive.population().of_width(*widths), search.long.programs])

    def enter(self, programs: Population) -> None:
        """Enter whole formulas into the archive, with their constants fitted.

        In libraries with constants the best of those that it has no room for are kept, for `longer`.
        """
        is_long_enough = programs.lengths >= self.grammar.min_length
        programs = programs[np.flatnonzero(self.evaluation.may_be_kept(programs) & is_long_enough)]
        self.evaluation.enter(
            programs.of_width(self.archive.tokens.shape[1], self.archive.constants.shape[1])
        )
        if self.evaluation.fits_constants:
            self.long = too_long(programs, self.archive, self.data, self.grammar, self.long)

    def solve_further(self) -> None:
        """Solve for the law at the solver's next stage, if there is time."""
        if self.solving is not None and not self._should_stop():
            found = self.solving.further(self._should_stop)
            if len(found):
                self.record(self.evaluate(found))

    def _repair(self, evolved: Scored) -> None:
        """Let the solver make near misses exact, and evaluate the programs that it returns."""
        if self.solving is not None and not self._should_stop():
            near_misses = evolved.best(self.config.n_joined).programs
            self.evaluate(self.solving.repaired(near_misses, self._should_stop))

    def longer(self, data: DataSet, is_over: Callable[[], bool] = lambda: False) -> Population:
        """Return longer formulas than the rounds can write; see `longer_formulas`."""
        judges = self.evaluation.may_be_kept, self.evaluation.may_be_term
        return longer_formulas(
            self.archive, self.evolved, self.long.programs, data, self.grammar, *judges, is_over
        )

    # Going on with a search --------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        return {
            "random_state": self.state.copy(),
            "tolerance": self.archive.tolerance,
            "solving": None if self.solving is None else self.solving.state_dict(),
            "prepared": self._n_prepared,
            "history": [dict(entry) for entry in self.history],
            "budget": self.budget.state_dict(),
            "restarts": self.restarts.state_dict(),
            "archive": self.archive.state_dict(),
            "queue": self.queue.state_dict(),
            "generation": self.generation.state_dict(),
            "evolved": self.evolved.state_dict(),
            "long": self.long.state_dict(),
            # Without refinement the decoder is the pre-trained one, ten times as large as all the rest.
            "refinement": self.conditioned.state_dict() if self.conditioned and self._refines else None,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where a search of the same data with the same settings was saved."""
        self.state[:] = saved["random_state"]
        self._n_prepared = saved["prepared"]
        if self.solving is not None:
            self.solving.load_state_dict(saved["solving"])
        self.history = [dict(entry) for entry in saved["history"]]
        self.budget.load_state_dict(saved["budget"])
        self.restarts.load_state_dict(saved["restarts"])
        self.archive.load_state_dict(saved["archive"])
        self.queue = Scored.from_state_dict(self.library, saved["queue"])
        self.generation = Scored.from_state_dict(self.library, saved["generation"])
        self.evolved = Scored.from_state_dict(self.library, saved["evolved"])
        self.long = Scored.from_state_dict(self.library, saved["long"])
        if self.conditioned is not None and saved["refinement"] is not None:
            self.conditioned.load_state_dict(saved["refinement"])

    def begin_with_programs(self, programs: Population, is_allowed: np.ndarray) -> None:
        """Begin with programs of someone else, which compete with the random ones of the first round.

        Parameters
        ----------
        programs : Population
        is_allowed : ndarray of shape (n_programs,), bool
            Whether they meet the constraints. The others are evaluated, too, but not bred from.
        """
        width, n_constants = self._nothing.programs.tokens.shape[1], self.evaluation.n_constants
        programs = programs.of_width(width, n_constants)
        nmse = self.evaluate(programs, len(programs))
        known = Scored(programs[is_allowed], nmse[is_allowed]).and_also(self.generation)
        self.generation = known.best(self.config.batch_size)
        self.record(nmse)

    def begin_with(self, saved: dict[str, Any]) -> None:
        """Begin with the programs and the decoder of another search of the same library.

        Parameters
        ----------
        saved : dict
            The `state_dict` of a search whose data and settings may have been others: its programs are
            evaluated again, those that are forbidden now are left out, those that are too long are kept where
            constants are fitted, and a decoder of another size is not taken over.
        """
        archive = ParetoArchive.from_state_dict(self.library, saved["archive"], saved["tolerance"])
        self.enter(archive.population())
        self.enter(Scored.from_state_dict(self.library, saved["long"]).programs)
        queue, generation = (Scored.from_state_dict(self.library, saved[k]) for k in ("queue", "generation"))
        widths = self._nothing.programs.tokens.shape[1], self.evaluation.n_constants
        programs = queue.and_also(generation).programs
        programs = programs[np.flatnonzero(self.evaluation.may_be_tried(programs))].of_width(*widths)
        if len(programs) and self.solving is not None:  # the programs may be those of other data
            self.evaluate(self.solving.law)
        evaluated = Scored(programs, self.evaluate(programs))
        self.queue = evaluated.best(self.config.queue_size)
        self.generation = evaluated.best(self.config.batch_size)
        self.restarts.best = self.queue.lowest
        if self.conditioned is not None and self._refines and saved["refinement"] is not None:
            self.conditioned.load_weights(saved["refinement"]["decoder"])
        if len(programs):
            self._n_prepared = _N_STEPS_BEFORE
            self.record(evaluated.nmse)


def run(search: Search, callback: Callable[[Search], None] | None = None) -> str:
    """Advance until there is a reason to stop, and return it; call `callback` after each round."""
    if search.stop_reason() is None:
        search.prepare(lambda: None if callback is None else callback(search))
    with search.running():
        while (reason := search.stop_reason()) is None:  # line 2
            search.advance()
            if callback is not None:
                callback(search)
    return reason
