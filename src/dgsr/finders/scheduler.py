"""The order in which finders are called, and the count of the candidates that they examine.

With constants, the finders of laws of two terms, of common forms, of quotients of polynomials and of laws of
fewer columns are called before the rounds; without constants, exact search runs two stages before the
rounds and one after each. At the end linear models, longer formulas and the common forms are fitted to the
rows on which the constants of the front are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.finders.budget import CANDIDATES_PER_EVALUATION, Budget
from dgsr.finders.exact import ExactStages
from dgsr.finders.fewer_columns.finder import FewerColumns, SearchIn
from dgsr.finders.finder import Deadline, Finder, Found, Problem
from dgsr.finders.forms import CommonForms
from dgsr.finders.linear.quotients import quotients_of_polynomials
from dgsr.finders.linear.two_terms import two_terms
from dgsr.finders.lines import linear_models
from dgsr.finders.longer.finder import Longer
from dgsr.finders.terms import columns_of

# Number of groups of rows in each of which finders look for the common law.
_MOST_GROUPS = 3
# Largest share of the remaining evaluations that one finder costs. Four leave nine tenths of a small budget.
_SHARE = 0.02


class Scheduler:
    """Calls finders while there is time, and counts the candidates that they examine.

    `finders` are called before the rounds, in this order; `exact` is the exact search of a library without
    constants, else None. If `look_up` is False, only linear models and longer formulas are fitted, at the
    end. If `search_in`, which searches in a table of fewer columns, is None, no symmetries are searched for.
    """

    def __init__(self, problem: Problem, budget: Budget, look_up: bool, search_in: SearchIn | None) -> None:
        self.problem, self._budget = problem, budget
        has_constants, self._forms = problem.library.has_constants, CommonForms()
        self._nothing = Population.empty(0, problem.library, problem.grammar.max_length, 0)
        self._look_up = look_up and has_constants
        self.finders: tuple[Finder, ...] = ()
        if self._look_up:
            self.finders = two_terms, self._forms, quotients_of_polynomials
            if search_in is not None:
                self.finders += (FewerColumns(search_in, budget),)
        if self._look_up and len(problem.data.groups):
            self.finders = (self._forms, *_in_each_group(problem.data, self.finders))
        self.exact = ExactStages(problem, budget) if look_up and not has_constants else None

    def before_rounds(self, finder: Finder, is_exact: bool) -> Found | None:
        """Return the result of a finder, None if there is no time for it or it is unnecessary.

        Once an exact fit is known, only the laws of two terms are still compared, since they may be shorter.
        """
        if self._budget.is_spent or (is_exact and finder is not two_terms):
            return None
        return self._counted(finder, lambda: self._budget.is_spent, _SHARE)

    def next_stage(self, deadline: Deadline) -> Population:
        """Return the programs of the next stage of exact search, if there is such a stage and time for it."""
        if self.exact is None or deadline():
            return self._nothing
        return self._counted(self.exact, deadline).programs

    def repaired(self, near_misses: Population, deadline: Deadline) -> Population:
        """Return near misses that exact search made exact, if it is in use and there is time for it."""
        if self.exact is None or deadline():
            return self._nothing
        return self._counted(partial(self.exact.repaired, near_misses), deadline).programs

    def at_the_end(
        self, problem: Problem, longer: Longer, is_exact: bool, deadline: Deadline
    ) -> Iterator[Population]:
        """Yield the formulas that are found at the end: linear models with common forms, then longer ones.

        After an exact fit the common forms are fitted only where the table has a single column, since the fit
        may be equal to one of them. Candidates are not counted here, since a resumed fit repeats this step.
        The library has constants. The problem may have more rows than the search. All formulas are complete.
        """
        short: list[Finder] = [linear_models]
        if self._look_up and not (is_exact and len(columns_of(problem.grammar)) > 1):
            short.append(self._forms.whole)
        found = [finder(problem, deadline).programs for finder in short if not deadline()]
        yield Population.concatenate([self._nothing, *found])
        if not deadline():
            yield longer(problem, deadline).programs

    def _counted(self, finder: Finder, deadline: Deadline, share: float = 1.0) -> Found:
        """Return the result of a finder, and charge it at most a share of the remaining budget."""
        most = int(share * self._budget.n_left * CANDIDATES_PER_EVALUATION)
        found = finder(self.problem, deadline)
        self._budget.count_candidates(found.n_examined, most)
        return found


def _in_each_group(data: DataSet, finders: Sequence[Finder]) -> Iterator[Finder]:
    """Yield the finders for each of the largest groups, in which the law has constants of its own."""

    def within(table: DataSet, finder: Finder, problem: Problem, deadline: Deadline) -> Found:
        return finder(problem._replace(data=table), deadline)

    for table in data.largest_groups(_MOST_GROUPS):
        if np.ptp(table.y) > 0.0:
            yield from (partial(within, table, finder) for finder in finders)
