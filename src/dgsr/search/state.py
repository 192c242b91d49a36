"""The state of a search: its budget, archive, populations and history, and how it is saved and restored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.finders.finder import Problem
from dgsr.finders.longer.finder import too_long
from dgsr.finders.scheduler import Scheduler
from dgsr.kernels.random import new_state
from dgsr.pareto import ParetoArchive
from dgsr.search.config import SearchConfig
from dgsr.search.evolution import Engine, ForestEvolution, Forests, get_engine
from dgsr.search.forms import evaluation_of
from dgsr.search.proposals import Proposals
from dgsr.search.restarts import Restarts

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Most entries of the history. Beyond it every second entry is removed, to limit memory and the size of files.
_MOST_ENTRIES = 20_000
# The sets of programs in the state of a search, by the names of their attributes.
_SETS = ("queue", "generation", "evolved", "long")


class SearchState(ABC):
    """What a search knows and has found; the parameters are those of `Search`."""

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
        self.widths = self.evaluation.widths
        self._nothing = Scored(Population.empty(0, library, *self.widths), np.zeros(0))
        self.queue = self.generation = self._nothing
        self.evolved = self._nothing  # the programs of the last round, also after a restart
        # The formulas that are too long for the archive.
        self.long = too_long(self.evolved.programs, self.archive, data, self.grammar)
        self.history: list[dict[str, float]] = []
        # The NMSE of the archive in the history: its lowest one, on the rows of the search or on others.
        self.nmse_shown: Callable[[ParetoArchive], float] = ParetoArchive.best_nmse
        self.restarts = Restarts(config.patience, self.evaluation.gain)
        problem = Problem(data, library, self.grammar, self.evaluation.valid, config.tolerance)
        search_in = self._search_in_table if config.symmetries and not len(data.groups) else None
        look_up = config.look_up and constraints.form is None  # finders know no form
        self.scheduler = Scheduler(problem, self.budget, look_up, search_in)
        self.engine, self.state = get_engine(engine, config.evolution), new_state(seed)
        self.forests: Forests | None = None
        if constraints.form is not None:
            self.forests = Forests(constraints.form, library, self.grammar, self.widths)
            self.engine = ForestEvolution(config.evolution, self.forests)
        parts = self.grammar, self.evaluation, self.restarts, self.state, self.forests
        self.proposals = Proposals(generator, *parts, seed)  # line 1 of the paper's algorithm
        self.conditioned = self.proposals.conditioned
        self.n_prepared = 0  # number of completed steps of those before the rounds
        self._n_new = 0  # new programs, fitted from a second start; 0 in a round without survivors

    @abstractmethod
    def _search_in_table(self, data: DataSet, symmetries: bool) -> Population:
        """Return the front of a search in another table, which spends the budget of this one."""

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
        if self.evaluation.fits_constants and not len(self.data.groups):
            self.long = too_long(programs, self.archive, self.data, self.grammar, self.long)

    def record(self, nmse: np.ndarray) -> None:
        """Add an entry to the history, by the NMSE of new programs, of which there is at least one."""
        rewards = rewards_of(nmse)
        n_refinements = self.conditioned.n_steps if self.conditioned else 0
        self.add_to_history(float(rewards.mean()), float(rewards.max()), n_refinements)

    def add_to_history(self, mean_reward: float, best_reward: float, n_refinements: int) -> None:
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
                "refinements": n_refinements,
            }
        )
        if len(self.history) > _MOST_ENTRIES:
            del self.history[-2::-2]

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
            # Without refinement the decoder is the pre-trained one.
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
