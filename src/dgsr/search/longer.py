"""Longer formulas than the rounds can write, for data that no short formula fits."""

from __future__ import annotations

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.pareto import ParetoArchive
from dgsr.population import DataSet, Population
from dgsr.search.extension import extended
from dgsr.search.scored import Scored
from dgsr.search.sums import sums_of_terms
from dgsr.search.terms import Judge

# Programs of the last round, the best ones, whose parts are added up; longer formulas that are kept; and the
# most tokens of these, in lengths of the longest program.
_N_ADDED_UP, _N_LONGER, _LONGER = 300, 4, 4


def longer_formulas(
    archive: ParetoArchive,
    evolved: Scored,
    data: DataSet,
    grammar: Grammar,
    may_be_kept: Judge,
    may_be_term: Judge,
) -> Population:
    """Return sums of parts of what was found, and the best formulas extended by terms.

    Parameters
    ----------
    archive : ParetoArchive
        The archive of a search with constants.
    evolved : Scored
        The programs of the last round.
    data : DataSet
        The rows to fit, which may be more than those of the search, in the same units.
    grammar : Grammar
    may_be_kept : callable
        A function that tells which programs may be kept.
    may_be_term : callable
        A function that tells which programs may be terms of them.

    Returns
    -------
    Population
        At most four, with the shortest descriptions of formula and residuals, that fit better than all
        shorter ones and programs of the archive; none if the archive has an exact program.
    """
    found = archive.population()
    if archive.best_nmse() <= archive.tolerance:
        return found[:0]

    def shortest(programs: Population, n: int) -> Population:
        with np.errstate(all="ignore"):
            bits = 0.5 * data.n_effective * np.log2(programs.nmse(data)) + archive.places(programs)
        return programs[np.argsort(bits, kind="stable")[:n]]

    most = _LONGER * grammar.max_length
    sums = sums_of_terms([found, evolved.best(_N_ADDED_UP).programs], data, grammar, most, may_be_term)
    # A sum may have the shortest description and nothing to be added, so both kinds are extended.
    starts = Population.concatenate([shortest(programs, 1) for programs in (found, sums)])
    longer = Population.concatenate([sums, extended(starts, data, grammar, most, may_be_term)])
    longer = longer[np.flatnonzero(may_be_kept(longer))]
    both = Population.concatenate([found, longer])
    is_shorter = archive.places(both) < archive.places(longer)[:, None]  # (n_longer, n_both)
    nmse = both.nmse(data)
    best = np.where(is_shorter, nmse, np.inf).min(axis=1, initial=np.inf)
    # Finishing a long formula takes a tenth of a second, so the best few are kept.
    return shortest(longer[np.flatnonzero(nmse[len(found) :] < best)], _N_LONGER)
