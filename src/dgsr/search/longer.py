"""Longer formulas than the rounds can write, for data that no short formula fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.expressions.constraints import Grammar
from dgsr.pareto import ParetoArchive
from dgsr.population import DataSet, Population
from dgsr.search.extension import extended
from dgsr.search.scored import Scored
from dgsr.search.sums import sums_of_terms
from dgsr.search.terms import Judge

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


def longer_formulas(
    archive: ParetoArchive,
    evolved: Scored,
    long: Population,
    data: DataSet,
    grammar: Grammar,
    may_be_kept: Judge,
    may_be_term: Judge,
    is_over: Callable[[], bool] = lambda: False,
) -> Population:
    """Return sums of parts of what was found, the best formulas extended by terms, and the long programs.

    Parameters
    ----------
    archive : ParetoArchive
        The archive of a search with constants.
    evolved : Scored
        The programs of the last round.
    long : Population
        Programs that the archive has no room for.
    data : DataSet
        The rows to fit, which may be more than those of the search, in the same units.
    grammar : Grammar
    may_be_kept : callable
        A function that tells which programs may be kept.
    may_be_term : callable
        A function that tells which programs may be terms of them.
    is_over : callable
        A function that is asked whether to leave out the extension.

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
        return programs[by_description(Scored(programs, programs.nmse(data)), archive, data)[:n]]

    most = _LONGER * grammar.max_length
    sums = sums_of_terms([found, evolved.best(_N_ADDED_UP).programs], data, grammar, most, may_be_term)
    # A sum may have the shortest description and nothing to be added, so both kinds are extended.
    starts = Population.concatenate([shortest(programs, 1) for programs in (found, sums)])
    long = long[np.arange(len(long))]  # a copy, whose constants are fitted to these data
    fit_constants(long, data, scaled=False, n_iterations=_STEPS)
    longer = Population.concatenate([sums, long])
    if not is_over():
        further = extended(starts, data, grammar, most, may_be_term, is_over)
        longer = Population.concatenate([sums, further, long])
    longer = longer[np.flatnonzero(may_be_kept(longer))]
    both = Population.concatenate([found, longer])
    is_shorter = archive.places(both) < archive.places(longer)[:, None]  # (n_longer, n_both)
    nmse = both.nmse(data)
    best = np.where(is_shorter, nmse, np.inf).min(axis=1, initial=np.inf)
    # Finishing a long formula takes a tenth of a second, so the best few are kept.
    return shortest(longer[np.flatnonzero(nmse[len(found) :] < best)], _N_LONGER)


def by_description(scored: Scored, archive: ParetoArchive, data: DataSet) -> np.ndarray:
    """Return the order of programs by the bits of formula and residuals, the fewest first."""
    bits = data.bits_of_residuals(scored.nmse) + archive.places(scored.programs)
    return np.argsort(bits, kind="stable")
