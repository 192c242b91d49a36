"""What a finder is: a way to find formulas other than by the rounds of a search.

A finder is called with a problem and a deadline, and returns programs. It knows no search: `Scheduler` asks
whether there is time for it and counts what it examined, and the search evaluates its programs. A finder that
needs a search of its own, or programs of the search that asks, is given these when it is made.

Its programs are of the problem's library, have the columns that the grammar allows alone, are one whole tree
each, and have finite constants. The same problem has the same answer, and once the deadline is over it is
asked a few times at the most. ``tests/finders/test_finders.py`` holds every finder to this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.finders.validity import Validity

#: A function that says whether the time is over. What a finder returns then is what it has found so far.
Deadline = Callable[[], bool]


class Problem(NamedTuple):
    """A table whose law is looked for, and which formulas may be found.

    Parameters
    ----------
    data : DataSet
        The rows, in the units of the search.
    library : Library
    grammar : Grammar
        Says which columns may be used, and how long programs are.
    valid : Validity
        Says which programs meet the constraints and the rules of units.
    tolerance : float
        NMSE that counts as exact.
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
    """What a finder returns.

    Parameters
    ----------
    programs : Population
    are_whole : bool
        Whether these are formulas whose constants are fitted. Otherwise a scale and an offset belong to each,
        and its constants are where their fit begins.
    n_examined : int
        Candidates that were examined beside the programs. A fit of constants counts as
        `CANDIDATES_PER_EVALUATION` candidates; so many take about as long as the evaluation of one program.
    """

    programs: Population
    are_whole: bool
    n_examined: int = 0


#: What finds formulas.
Finder = Callable[[Problem, Deadline], Found]


def never() -> bool:
    """Return False: the deadline of a finder that has all the time it wants."""
    return False
