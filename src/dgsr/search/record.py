"""The results of a search so far, with its budget and history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.finders.budget import Budget
from dgsr.finders.longer.finder import too_long
from dgsr.pareto import ParetoArchive
from dgsr.search.config import SearchConfig
from dgsr.search.evaluation import evaluation_of
from dgsr.search.restarts import Restarts

# Most entries of the history. Beyond it every second entry is removed, to limit memory and the size of files.
_MOST_ENTRIES = 20_000


class SearchRecord:
    """The archive of a search, the formulas that are too long for it, the budget and the history."""

    def __init__(
        self,
        data: DataSet,
        library: Library,
        grammar: Grammar,
        constraints: Constraints,
        config: SearchConfig,
        budget: Budget,
    ) -> None:
        self.data, self.library, self.grammar = data, library, grammar
        self.config, self.budget = config, budget
        self.evaluation = evaluation_of(data, library, constraints, config, budget)
        #: Most tokens and constants of a program in the rounds.
        self.widths = constraints.max_length, self.evaluation.n_constants
        #: The programs of the last round, also after a restart.
        self.evolved = Scored.none(library, *self.widths)
        self.long = too_long(self.evolved.programs, self.archive, data, grammar)
        self.history: list[dict[str, float]] = []
        self.restarts = Restarts(config.patience, self.evaluation.gain)
        #: The NMSE of the archive in the history: its lowest one, on the rows of the search or on others.
        self.nmse_shown: Callable[[ParetoArchive], float] = ParetoArchive.best_nmse

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
        """Return the reason why the search should end now, or None if it should go on."""
        if self.best_nmse <= self.config.tolerance:
            return "exact fit"
        return self.budget.spent()

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

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs to go on exactly as this search would."""
        return {
            "tolerance": self.archive.tolerance,
            "history": [dict(entry) for entry in self.history],
            "budget": self.budget.state_dict(),
            "restarts": self.restarts.state_dict(),
            "archive": self.archive.state_dict(),
            "long": self.long.state_dict(),
            "evolved": self.evolved.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from the saved state of a search of the same data with the same settings."""
        self.history = [dict(entry) for entry in saved["history"]]
        self.budget.load_state_dict(saved["budget"])
        self.restarts.load_state_dict(saved["restarts"])
        self.archive.load_state_dict(saved["archive"])
        self.long = Scored.from_state_dict(self.library, saved["long"])
        self.evolved = Scored.from_state_dict(self.library, saved["evolved"])
