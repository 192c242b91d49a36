"""The beginning of a search with given programs, or with those of another search."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgsr.data.population import Population
from dgsr.data.scored import Scored
from dgsr.kernels.grammar import are_valid
from dgsr.pareto import ParetoArchive
from dgsr.search.search import Search


def begin_with_programs(search: Search, programs: Population, is_allowed: np.ndarray) -> None:
    """Let a search begin with given programs, which compete with the random ones of the first round.

    Programs that do not meet the constraints, by `is_allowed` of shape (n_programs,), do not breed.
    """
    programs = programs.of_width(*search.widths)
    nmse = search.evaluate(programs, len(programs))
    known = Scored(programs[is_allowed], nmse[is_allowed])
    search.generation = Scored.concatenate([known, search.generation]).best(search.config.batch_size)
    search.record(nmse)


def begin_with_search(search: Search, saved: dict[str, Any]) -> None:
    """Let a search begin with the programs and the decoder of another one of the same library.

    The data and settings of the saved search may differ. Its programs are evaluated again, without those that
    are now forbidden, and a decoder of another size is not taken over.
    """
    archive = ParetoArchive.from_state_dict(search.library, saved["archive"], saved["tolerance"])
    search.enter(archive.population())
    search.enter(Scored.from_state_dict(search.library, saved["long"]).programs)
    sets = [Scored.from_state_dict(search.library, saved[name]) for name in ("queue", "generation")]
    programs = Scored.concatenate(sets).programs.of_width(*search.widths)
    is_allowed = search.evaluation.valid.tried(search.evaluation.whole(programs))
    programs = programs[np.flatnonzero(is_allowed)]
    # Evolution breeds from programs that meet all of the grammar, which another fit may have had looser. The
    # forests of a form are those of a pass before, of the same grammar.
    if search.forests is None:
        programs = programs[are_valid(programs.tokens, programs.lengths, search.grammar)]
    if len(programs) and search.scheduler.exact is not None:  # the programs may be those of other data
        search.evaluate(search.scheduler.exact.law)
    evaluated = Scored(programs, search.evaluate(programs))
    search.queue = evaluated.best(search.config.queue_size)
    search.generation = evaluated.best(search.config.batch_size)
    search.restarts.best = search.queue.lowest
    if search.conditioned and search.proposals.has_refinement and saved["refinement"] is not None:
        search.conditioned.load_weights(saved["refinement"]["decoder"])
    if len(programs):
        search.n_prepared = search.n_steps_before
        search.record(evaluated.nmse)
