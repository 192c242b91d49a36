"""Exact search in the course of a search: before the rounds, and stage by stage between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgsr.exact_search import ExactSolver
from dgsr.exact_search.limits import LOOKS_AT_ONCE
from dgsr.population import Population
from dgsr.search.budget import LOOKS_PER_EVALUATION, Budget

# Seconds that must be left when a stage of the solver in the large bank begins, because to fill the bank may
# take that long.
_SOLVING_SECONDS = 5.0
# Share of what is left of the budget that exact search may take at a time: the rest is for the rounds.
_SHARE = 0.5


class Solving:
    """A solver, and the stage that comes next.

    Parameters
    ----------
    solver : ExactSolver
    budget : Budget
        The budget of the search, which the candidates of the solver are charged to.

    Attributes
    ----------
    law : Population
        What the solver found at its first stage: one program or none.
    """

    def __init__(self, solver: ExactSolver, budget: Budget) -> None:
        self.solver, self._budget = solver, budget
        most = budget.n_looks + self._looks_left
        self.law = solver.solve(0)
        # It takes milliseconds, which may be longer than all evaluations of a small budget.
        budget.n_uncharged += max(budget.n_looks - most, 0)
        # The stage and the step to the one after it, by which islands share the stages.
        self._stage, self._step = 1, 1

    @property
    def _looks_left(self) -> int:
        """Candidates that may be examined now."""
        return int(_SHARE * self._budget.n_left * LOOKS_PER_EVALUATION)

    def further(self, should_stop: Callable[[], bool]) -> Population:
        """Return what the solver finds at its next stage, in a million subprograms, if the budget has room.

        Half of the seconds and of the evaluations that are left are kept for the rounds.
        """
        budget = self._budget
        in_time = budget.seconds + _SOLVING_SECONDS < budget.max_time
        if self._stage >= self.solver.n_stages or not in_time or self._looks_left < LOOKS_AT_ONCE:
            return self.law[:0]
        last_second = budget.seconds + _SHARE * (budget.max_time - budget.seconds)
        most = budget.n_looks + self._looks_left
        found = self.solver.solve(
            self._stage,
            lambda: budget.seconds > last_second or budget.n_looks >= most or should_stop(),
        )
        self._stage += self._step
        return found

    def repaired(self, near_misses: Population, should_stop: Callable[[], bool]) -> Population:
        """Return near misses that the solver made exact."""
        return self.solver.repair(near_misses, should_stop, self._looks_left)

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs."""
        return {"stage": self._stage, "step": self._step}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where another search was saved."""
        self._stage, self._step = saved["stage"], saved["step"]
        self.solver.go_on(self._stage)
