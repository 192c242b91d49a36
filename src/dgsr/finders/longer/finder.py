"""The finder of formulas longer than the programs of the rounds, for data that no short formula fits."""

from __future__ import annotations

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Grammar
from dgsr.finders.finder import Deadline, Found, Problem
from dgsr.finders.longer.extension import extended
from dgsr.finders.longer.sums import STEPS, sums_of_terms
from dgsr.pareto import ParetoArchive

# Best programs of the last round whose parts are terms of sums.
_N_ADDED_UP = 300
# Most longer formulas that are returned. Finishing one takes a tenth of a second.
_N_LONGER = 4
# Most tokens of a longer formula, in units of the largest length of programs.
_LONGER = 4


def too_long(
    programs: Population,
    archive: ParetoArchive,
    data: DataSet,
    grammar: Grammar,
    others: Scored | None = None,
) -> Scored:
    """Return the best programs with more tokens or constants than the archive stores, fitted to the data.

    They compete with `others`, which this function returned before. The arrays have the same width for any
    number and length of programs.
    """
    length, n_constants = archive.tokens.shape[1], archive.constants.shape[1]
    most = _LONGER * grammar.max_length
    has_room = (programs.lengths <= length) & (programs.is_constant.sum(axis=1) <= n_constants)
    able = programs[~has_room].of_width(most, most)
    fitted = Scored(able, np.zeros(0))
    if len(able):
        nmse = fit_constants(able, data, scaled=False, n_iterations=STEPS).nmse
        fitted = Scored(able, archive.without_long_exact_fits(able, nmse))
    if others is not None:
        fitted = Scored.concatenate([fitted, others])
    first: dict[bytes, int] = {}
    for i in by_total_bits(fitted, archive, data).tolist():
        if np.isfinite(fitted.nmse[i]):
            first.setdefault(fitted.programs.tokens[i].tobytes(), i)
    order = np.array(list(first.values())[:_N_LONGER], dtype=np.int64)
    return Scored(fitted.programs[order], fitted.nmse[order])


class Longer:
    """Finder of sums of parts of found programs, of extensions of the best formulas, and of long programs.

    The latter have more tokens or constants than the archive of the search stores.
    """

    def __init__(self, archive: ParetoArchive, evolved: Scored, long: Population) -> None:
        self._archive, self._evolved, self._long = archive, evolved, long

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Find at most four formulas, which fit better than all shorter ones, those of the archive included.

        There are none if the archive has an exact program. The problem may have more rows than the search.
        After the deadline no formula is extended.
        """
        archive, data = self._archive, problem.data
        found = archive.population()
        if archive.best_nmse() <= archive.tolerance:
            return Found(found[:0], are_complete=True)

        def shortest(programs: Population, n: int) -> Population:
            return programs[by_total_bits(Scored(programs, programs.nmse(data)), archive, data)[:n]]

        most = _LONGER * problem.grammar.max_length
        sums = sums_of_terms([found, self._evolved.best(_N_ADDED_UP).programs], problem, most)
        # Both kinds are extended, since a sum may have the shortest description but no useful extension.
        starts = Population.concatenate([shortest(programs, 1) for programs in (found, sums)])
        long = self._long[np.arange(len(self._long))]  # a copy, whose constants are fitted to these data
        fit_constants(long, data, scaled=False, n_iterations=STEPS)
        further = starts[:0] if deadline() else extended(starts, problem, most, deadline)
        longer = Population.concatenate([sums, further, long])
        longer = longer[problem.valid.whole(longer)]
        both = Population.concatenate([found, longer])
        is_shorter = archive.places(both) < archive.places(longer)[:, None]  # (n_longer, n_both)
        nmse = both.nmse(data)
        best = np.where(is_shorter, nmse, np.inf).min(axis=1, initial=np.inf)
        # Few formulas are returned, since finishing a long one takes a tenth of a second.
        return Found(shortest(longer[nmse[len(found) :] < best], _N_LONGER), are_complete=True)


def by_total_bits(scored: Scored, archive: ParetoArchive, data: DataSet) -> np.ndarray:
    """Return the numbers of programs in ascending order of the bits of formula and residuals."""
    bits = data.bits_of_residuals(scored.nmse) + archive.places(scored.programs)
    return np.argsort(bits, kind="stable")
