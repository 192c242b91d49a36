"""Which finder is asked when, and where the candidates that they examine are counted.

Before the rounds of a search with constants, two kinds of laws are compared exhaustively: those of two simple
terms, and those of one term with a number inside. Then common forms are fitted to single columns and
quotients of polynomials to all columns together, and the law is searched among the fewer columns that
symmetries leave. Without constants exact search has a stage before the rounds and one after each. At the end
of a search lines, longer formulas and the common forms are fitted to all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dgsr.data.population import Population
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION, Budget
from dgsr.finders.exact import ExactStages
from dgsr.finders.fewer_columns.finder import FewerColumns
from dgsr.finders.fewer_columns.parts import SearchIn
from dgsr.finders.finder import Deadline, Finder, Found, Problem
from dgsr.finders.forms import CommonForms
from dgsr.finders.linear.one_number import one_number
from dgsr.finders.linear.quotients import quotients_of_polynomials
from dgsr.finders.linear.two_terms import two_terms
from dgsr.finders.lines import linear_models
from dgsr.finders.longer.finder import Longer
from dgsr.finders.terms import columns_of

# Largest share of the remaining evaluations that the candidates of one finder are charged, so that five
# finders leave nine tenths of a small budget to what is evaluated: the rounds, and searches among fewer
# columns.
_SHARE = 0.02


class Scheduler:
    """Asks finders while there is time, and counts what they examine.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    look_up : bool
        Whether finders are asked. Lines and longer formulas are always fitted at the end.
    search_in : callable or None
        Searches in a table of fewer columns; None where no symmetries are looked for.

    Attributes
    ----------
    finders : tuple of callables
        Those that are asked before the rounds, in this order.
    exact : ExactStages or None
        Exact search, in libraries without constants.
    """

    def __init__(self, problem: Problem, budget: Budget, look_up: bool, search_in: SearchIn | None) -> None:
        self.problem, self._budget = problem, budget
        self._has_constants, self._forms = problem.library.has_constants, CommonForms()
        self._nothing = Population.empty(0, problem.library, problem.grammar.max_length, 0)
        self._look_up = look_up and self._has_constants
        self.finders: tuple[Finder, ...] = ()
        if self._look_up:
            self.finders = two_terms, one_number, self._forms, quotients_of_polynomials
            if search_in is not None:
                self.finders += (FewerColumns(search_in, budget),)
        self.exact = ExactStages(problem, budget) if look_up and not self._has_constants else None

    def before_rounds(self, finder: Finder, is_exact: bool) -> Found | None:
        """Return what a finder finds, None if there is no time for it, or nothing left to find.

        After an exact fit the laws of two terms alone are compared, since that fit may be a long formula.
        """
        if self._budget.is_spent or (is_exact and finder is not two_terms):
            return None
        return self._counted(finder, self.problem, lambda: self._budget.is_spent, _SHARE)

    def next_stage(self, deadline: Deadline) -> Population:
        """Return what exact search finds at its next stage, if there is one and time for it."""
        if self.exact is None or deadline():
            return self._nothing
        return self._counted(self.exact, self.problem, deadline).programs

    def repaired(self, near_misses: Population, deadline: Deadline) -> Population:
        """Return near misses that exact search made exact, if there is such a search and time for it."""
        if self.exact is None or deadline():
            return self._nothing
        return self._counted(partial(self.exact.repaired, near_misses), self.problem, deadline).programs

    def at_the_end(
        self, problem: Problem, longer: Longer, is_exact: bool, deadline: Deadline
    ) -> Iterator[Population]:
        """Yield the formulas that are found at the end of a search with constants.

        After an exact fit the common forms are fitted to a single column alone: that fit may be one of them
        in disguise. What is examined here is not counted, since a fit that is resumed does it again.

        Parameters
        ----------
        problem : Problem
            Its rows may be more than those of the search.
        longer : Longer
        is_exact : bool
            Whether the search has an exact fit.
        deadline : callable
        """
        finders: list[Finder] = [linear_models, longer] if self._has_constants else []
        if self._look_up and not (is_exact and len(columns_of(problem.grammar)) > 1):
            finders.append(self._forms.whole)
        for finder in finders:
            if not deadline():
                yield finder(problem, deadline).programs

    def _counted(self, finder: Finder, problem: Problem, deadline: Deadline, share: float = 1.0) -> Found:
        """Return what a finder finds, and charge a share of what is left of the budget at the most."""
        most = int(share * self._budget.n_left * CANDIDATES_PER_EVALUATION)
        found = finder(problem, deadline)
        self._budget.count_candidates(found.n_examined, most)
        return found
