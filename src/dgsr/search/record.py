"""What a search has found and spent so far."""

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

# Most entries of the history, of which every second one is then left out: files hold it, as does memory.
_MOST_ENTRIES = 20_000


class SearchRecord:
    """The archive, the formulas that it has no room for, the budget and the history of a search.

    Parameters
    ----------
    data : DataSet
    library : Library
    grammar : Grammar
    constraints : Constraints
    config : SearchConfig
    budget : Budget
    """

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
        #: The programs of the last round, which a restart leaves as they are.
        self.evolved = Scored.none(library, *self.widths)
        self.long = too_long(self.evolved.programs, self.archive, data, grammar)
        self.history: list[dict[str, float]] = []
        self.restarts = Restarts(config.patience, self.evaluation.gain)
        #: What the history says of the archive: its lowest NMSE, on the rows of the search or on others.
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
        """Return why the search should end now, or None while it should go on."""
        if self.best_nmse <= self.config.tolerance:
            return "exact fit"
        return self.budget.spent()

    def should_stop(self) -> bool:
        """Return whether a round should end before its last generation."""
        reason = self.stop_reason()
        return reason is not None and not (reason == "exact fit" and self.evaluation.fits_constants)

    def evaluate(self, population: Population, n_new: int = 0) -> np.ndarray:
        """Return the NMSE of every program, and count and archive the programs; see `Evaluation`."""
        return self.evaluation(population, n_new)

    def enter(self, programs: Population) -> None:
        """Enter whole formulas into the archive, with their constants fitted.

        In libraries with constants the best of those that it has no room for are kept, for the end.
        """
        is_long_enough = programs.lengths >= self.grammar.min_length
        programs = programs[np.flatnonzero(self.evaluation.valid.whole(programs) & is_long_enough)]
        self.evaluation.enter(
            programs.of_width(self.archive.tokens.shape[1], self.archive.constants.shape[1])
        )
        if self.evaluation.fits_constants:
            self.long = too_long(programs, self.archive, self.data, self.grammar, self.long)

    def record(self, nmse: np.ndarray) -> None:
        """Add an entry to the history; `nmse` is that of new programs, at least one."""
        rewards = rewards_of(nmse)
        self.add_to_history(float(rewards.mean()), float(rewards.max()))

    def add_to_history(self, mean_reward: float, best_reward: float) -> None:
        """Add an entry to the history, of the mean and best reward of new programs."""
        shown = self.nmse_shown(self.archive)
        if self.long.lowest <= self.config.tolerance:  # an exact fit that the archive has no room for
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
        """Go on where a search of the same data with the same settings was saved."""
        self.history = [dict(entry) for entry in saved["history"]]
        self.budget.load_state_dict(saved["budget"])
        self.restarts.load_state_dict(saved["restarts"])
        self.archive.load_state_dict(saved["archive"])
        self.long = Scored.from_state_dict(self.library, saved["long"])
        self.evolved = Scored.from_state_dict(self.library, saved["evolved"])
