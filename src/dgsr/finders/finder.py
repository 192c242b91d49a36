"""The protocol of finders, which are the ways to find formulas other than the rounds of a search.

A finder is a function of a problem and a deadline that returns programs, such as `dgsr.finders.lines`; it
returns none if the library lacks an operator that it needs. `Scheduler` calls it before the rounds, between
them or at the end, where programs must be complete formulas. It counts the candidates that the finder
examined, and the search evaluates its programs. Every program belongs to the problem's
library, contains only columns that the grammar allows, is one complete tree and has finite constants. A
finder returns the same programs whenever it is called with the same problem, and calls the deadline only a
few more times after it has passed. ``tests/finders/test_finders.py`` checks this of every finder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.finders.validity import Validity

#: A function that returns whether the time is over. The finder then returns what it has found so far.
Deadline = Callable[[], bool]


class Problem(NamedTuple):
    """A table whose law is searched for, and the rules that its formulas must obey."""

    data: DataSet  # in the coordinates of the search
    library: Library
    grammar: Grammar  # the columns that may be used, and the largest length of programs
    valid: Validity  # the test of the constraints and the rules of units
    tolerance: float  # largest NMSE of an exact fit


class Found(NamedTuple):
    """The result of a finder.

    Complete programs are formulas with fitted constants. Others still need a scale and an offset, and their
    constants are the starting point of a fit.
    """

    programs: Population
    are_complete: bool
    n_examined: int = 0  # candidates besides the programs; see `CANDIDATES_PER_EVALUATION`


#: The type of a finder.
Finder = Callable[[Problem, Deadline], Found]


def never() -> bool:
    """Return False; this is the deadline of a finder whose time is unlimited."""
    return False
