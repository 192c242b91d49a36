"""Exact search within a search: two stages before the rounds, and one after each of them."""

from __future__ import annotations

from typing import Any

from dgsr.data.population import Population
from dgsr.exact_search import ExactSolver
from dgsr.exact_search.limits import CANDIDATES_AT_ONCE
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION, Budget
from dgsr.finders.finder import Deadline, Found, Problem

# Seconds that must remain when a stage in the large bank begins, since filling the bank may take that long.
_SOLVING_SECONDS = 5.0
# Largest share of the remaining budget that one stage or repair may use. The remainder is for the rounds.
_SHARE = 0.5


class ExactStages:
    """Finder that runs the next stage of exact search at every call, and repairs near misses.

    The library has no constants. `law` is the result of the first stage: one program or none.
    """

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._budget = budget
        self.solver = ExactSolver(problem.library, problem.data, problem.grammar)
        self.law = self.solver.solve(0)
        # The first stage takes milliseconds, which may be longer than all evaluations of a small budget.
        budget.count_candidates(self.solver.n_examined, self._most)
        # The number of the next stage, and the step to the following one, by which islands divide the stages.
        self._stage, self._step = 1, 1

    @property
    def _most(self) -> int:
        """Most candidates that one stage or repair may examine now."""
        return int(_SHARE * self._budget.n_left * CANDIDATES_PER_EVALUATION)

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Run the next stage of the solver, in a bank of a million subprograms, if the budget suffices."""
        budget, before = self._budget, self.solver.n_examined
        in_time = budget.seconds + _SOLVING_SECONDS < budget.max_time
        if self._stage >= self.solver.n_stages or not in_time or self._most < CANDIDATES_AT_ONCE:
            return Found(self.law[:0], are_complete=True)
        last_second = budget.seconds + _SHARE * (budget.max_time - budget.seconds)
        most = before + self._most
        found = self.solver.solve(
            self._stage, lambda: budget.seconds > last_second or self.solver.n_examined >= most or deadline()
        )
        self._stage += self._step
        return Found(found, True, self.solver.n_examined - before)

    def repaired(self, near_misses: Population, problem: Problem, deadline: Deadline) -> Found:
        """Replace one subtree of near misses; with its first argument bound, this method is a finder."""
        before = self.solver.n_examined
        found = self.solver.repair(near_misses, deadline, self._most)
        return Found(found, True, self.solver.n_examined - before)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that `load_state_dict` restores."""
        return {"stage": self._stage, "step": self._step}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue from the saved state of another search."""
        self._stage, self._step = saved["stage"], saved["step"]
        self.solver.go_on(self._stage)
