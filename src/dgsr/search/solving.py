"""Exact search in the course of a search: before the rounds, and stage by stage between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgsr.exact_search import ExactSolver
from dgsr.population import Population
from dgsr.search.budget import Budget

# Seconds that must be left when a stage of the solver in the large bank begins, because it may take that
# long.
_SOLVING_SECONDS = 5.0


class Solving:
    """A solver, and the stage that comes next.

    Parameters
    ----------
    solver : ExactSolver
    budget : Budget
        That of the search.

    Attributes
    ----------
    law : Population
        What the solver found at its first stage: one program or none.
    """

    def __init__(self, solver: ExactSolver, budget: Budget) -> None:
        self.solver, self._budget = solver, budget
        self.law = solver.solve(0)
        # The stage and the step to the one after it, by which islands share the stages.
        self._stage, self._step = 1, 1

    def further(self, should_stop: Callable[[], bool]) -> Population:
        """Return what the solver finds at its next stage, in a million subprograms, if there is time.

        Half of the time that is left is kept for the rounds.
        """
        budget = self._budget
        in_time = budget.seconds + _SOLVING_SECONDS < budget.max_time
        if self._stage >= self.solver.n_stages or not in_time:
            return self.law[:0]
        half_time = 0.5 * (budget.seconds + budget.max_time)
        found = self.solver.solve(self._stage, lambda: budget.seconds > half_time or should_stop())
        self._stage += self._step
        return found

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs."""
        return {"stage": self._stage, "step": self._step}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where another search was saved."""
        self._stage, self._step = saved["stage"], saved["step"]
        self.solver.go_on(self._stage)
