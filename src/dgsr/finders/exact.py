"""Exact search in the course of a search: before the rounds, and stage by stage between them."""

from __future__ import annotations

from typing import Any

from dgsr.data.population import Population
from dgsr.exact_search import ExactSolver
from dgsr.exact_search.limits import LOOKS_AT_ONCE
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION, Budget
from dgsr.finders.finder import Deadline, Found, Problem

# Seconds that must be left when a stage of the solver in the large bank begins, because to fill the bank may
# take that long.
_SOLVING_SECONDS = 5.0
# Share of what is left of the budget that exact search may take at a time: the rest is for the rounds.
_SHARE = 0.5


class ExactStages:
    """Finds the whole law, at the next stage of exact search with every call, and makes near misses exact.

    Parameters
    ----------
    problem : Problem
        Its library has no constants.
    budget : Budget
        The budget of the search, which says how many candidates a stage may examine.

    Attributes
    ----------
    law : Population
        What the solver found at its first stage: one program or none.
    """

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._budget, self._n_examined = budget, 0
        table = problem.library, problem.data, problem.grammar
        self.solver = ExactSolver(*table, count_looks=self._count)
        most = self._most
        self.law = self.solver.solve(0)
        # It takes milliseconds, which may be longer than all evaluations of a small budget.
        budget.count_candidates(self._n_examined, most)
        # The stage and the step to the one after it, by which islands share the stages.
        self._stage, self._step = 1, 1

    def _count(self, n: int) -> None:
        self._n_examined += n

    @property
    def _most(self) -> int:
        """Candidates that may be examined now."""
        return int(_SHARE * self._budget.n_left * CANDIDATES_PER_EVALUATION)

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Find the law at the next stage, in a million subprograms, if the budget has room.

        Half of the seconds and of the evaluations that are left are kept for the rounds.
        """
        budget, before = self._budget, self._n_examined
        in_time = budget.seconds + _SOLVING_SECONDS < budget.max_time
        if self._stage >= self.solver.n_stages or not in_time or self._most < LOOKS_AT_ONCE:
            return Found(self.law[:0], are_whole=True)
        last_second = budget.seconds + _SHARE * (budget.max_time - budget.seconds)
        most = before + self._most
        found = self.solver.solve(
            self._stage,
            lambda: budget.seconds > last_second or self._n_examined >= most or deadline(),
        )
        self._stage += self._step
        return Found(found, True, self._n_examined - before)

    def repaired(self, near_misses: Population, problem: Problem, deadline: Deadline) -> Found:
        """Find programs that are near misses but for one subtree, as `partial` a finder like any other."""
        before = self._n_examined
        found = self.solver.repair(near_misses, deadline, self._most)
        return Found(found, True, self._n_examined - before)

    def state_dict(self) -> dict[str, Any]:
        """Return all that `load_state_dict` needs."""
        return {"stage": self._stage, "step": self._step}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on where another search was saved."""
        self._stage, self._step = saved["stage"], saved["step"]
        self.solver.go_on(self._stage)
