"""The protocol of finders, which are the ways to find formulas other than the rounds of a search.

A finder is a function of a problem and a deadline that returns programs. It does not use the search that
calls it: `Scheduler` checks whether there is time for it and counts the candidates that it examined, and the
search evaluates its programs. A finder that needs a search of its own, or programs of the calling search,
receives these in its constructor.

Every program belongs to the problem's library, contains only columns that the grammar allows, is one complete
tree and has finite constants. A finder returns the same programs whenever it is called with the same problem,
and calls the deadline only a few more times after it has passed. ``tests/finders/test_finders.py`` checks
this of every finder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.finders.validity import Validity

#: A function that returns whether the time is over. The finder then returns what it has found so far.
Deadline = Callable[[], bool]


class Problem(NamedTuple):
    """A table whose law is searched for, and the rules that its formulas must obey.

    Parameters
    ----------
    data : DataSet
        The rows, in the units of the search.
    library : Library
    grammar : Grammar
        The columns that may be used, and the largest length of programs.
    valid : Validity
        The test whether programs satisfy the constraints and the rules of units.
    tolerance : float
        Largest NMSE of an exact fit.
    """

    data: DataSet
    library: Library
    grammar: Grammar
    valid: Validity
    tolerance: float = 1e-20

    @classmethod
    def of(cls, data: DataSet, library: Library, constraints: Constraints | None = None) -> Problem:
        """Return the problem of a table, under no constraints by default."""
        constraints = Constraints() if constraints is None else constraints
        grammar = constraints.grammar(library, library.n_variables)
        return cls(data, library, grammar, Validity(constraints, library))


class Found(NamedTuple):
    """The result of a finder.

    Parameters
    ----------
    programs : Population
    are_whole : bool
        Whether these are complete formulas with fitted constants. Otherwise each still needs a scale and an
        offset, and its constants are the starting point of their fit.
    n_examined : int
        Number of candidates that were examined besides the programs. A fit of constants counts as
        `CANDIDATES_PER_EVALUATION` candidates, which take about as long as the evaluation of one program.
    """

    programs: Population
    are_whole: bool
    n_examined: int = 0


#: The type of a finder.
Finder = Callable[[Problem, Deadline], Found]


def never() -> bool:
    """Return False; this is the deadline of a finder whose time is unlimited."""
    return False
