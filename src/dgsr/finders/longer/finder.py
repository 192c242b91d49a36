"""Longer formulas than the rounds can write, for data that no short formula fits."""

from __future__ import annotations

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.expressions.programs.constraints import Grammar
from dgsr.finders.finder import Deadline, Found, Problem
from dgsr.finders.longer.extension import extended
from dgsr.finders.longer.sums import sums_of_terms
from dgsr.pareto import ParetoArchive

# Programs of the last round, the best ones, whose parts are added up; longer formulas that are kept; and the
# most tokens of these, in lengths of the longest program; steps of the fit of their constants.
_N_ADDED_UP, _N_LONGER, _LONGER, _STEPS = 300, 4, 4, 30


def too_long(
    programs: Population,
    archive: ParetoArchive,
    data: DataSet,
    grammar: Grammar,
    others: Scored | None = None,
) -> Scored:
    """Return the best programs that the archive has no room for, with their constants fitted.

    Their arrays have the same widths for all programs.

    Parameters
    ----------
    programs : Population
    archive : ParetoArchive
    data : DataSet
    grammar : Grammar
    others : Scored, optional
        Programs that this function returned before, which the new ones are compared with.
    """
    length, n_constants = archive.tokens.shape[1], archive.constants.shape[1]
    most = _LONGER * grammar.max_length
    has_room = (programs.lengths <= length) & (programs.is_constant.sum(axis=1) <= n_constants)
    able = programs[np.flatnonzero(~has_room)].of_width(most, most)
    fitted = Scored(able, np.zeros(0))
    if len(able):
        nmse = fit_constants(able, data, scaled=False, n_iterations=_STEPS).nmse
        fitted = Scored(able, archive.without_long_exact_fits(able, nmse))
    if others is not None:
        fitted = fitted.and_also(others)
    first: dict[bytes, int] = {}
    for i in by_description(fitted, archive, data).tolist():
        if np.isfinite(fitted.nmse[i]):
            first.setdefault(fitted.programs.tokens[i].tobytes(), i)
    order = np.array(list(first.values())[:_N_LONGER], dtype=np.int64)
    return Scored(fitted.programs[order], fitted.nmse[order])


class Longer:
    """Finds sums of parts of what a search found, its best formulas extended by terms, and its long programs.

    Parameters
    ----------
    archive : ParetoArchive
        The archive of a search with constants.
    evolved : Scored
        The programs of the last round.
    long : Population
        Programs that the archive has no room for.
    """

    def __init__(self, archive: ParetoArchive, evolved: Scored, long: Population) -> None:
        self._archive, self._evolved, self._long = archive, evolved, long

    def __call__(self, problem: Problem, deadline: Deadline) -> Found:
        """Find at most four formulas, with the shortest descriptions of formula and residuals.

        They fit better than all shorter ones and programs of the archive; there are none if the archive has
        an exact program. The rows may be more than those of the search. After the deadline no formula is
        extended.
        """
        archive, data = self._archive, problem.data
        found = archive.population()
        if archive.best_nmse() <= archive.tolerance:
            return Found(found[:0], are_whole=True)

        def shortest(programs: Population, n: int) -> Population:
            return programs[by_description(Scored(programs, programs.nmse(data)), archive, data)[:n]]

        most = _LONGER * problem.grammar.max_length
        sums = sums_of_terms([found, self._evolved.best(_N_ADDED_UP).programs], problem, most)
        # A sum may have the shortest description and nothing to be added, so both kinds are extended.
        starts = Population.concatenate([shortest(programs, 1) for programs in (found, sums)])
        long = self._long[np.arange(len(self._long))]  # a copy, whose constants are fitted to these data
        fit_constants(long, data, scaled=False, n_iterations=_STEPS)
        longer = Population.concatenate([sums, long])
        if not deadline():
            further = extended(starts, problem, most, deadline)
            longer = Population.concatenate([sums, further, long])
        longer = longer[np.flatnonzero(problem.valid.whole(longer))]
        both = Population.concatenate([found, longer])
        is_shorter = archive.places(both) < archive.places(longer)[:, None]  # (n_longer, n_both)
        nmse = both.nmse(data)
        best = np.where(is_shorter, nmse, np.inf).min(axis=1, initial=np.inf)
        # Finishing a long formula takes a tenth of a second, so the best few are kept.
        return Found(shortest(longer[np.flatnonzero(nmse[len(found) :] < best)], _N_LONGER), are_whole=True)


def by_description(scored: Scored, archive: ParetoArchive, data: DataSet) -> np.ndarray:
    """Return the order of programs by the bits of formula and residuals, the fewest first."""
    bits = data.bits_of_residuals(scored.nmse) + archive.places(scored.programs)
    return np.argsort(bits, kind="stable")
