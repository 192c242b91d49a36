"""A search that begins where an earlier one ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from dgsr.population import Population
from dgsr.search.scored import Scored
from dgsr.search.search import Search


def what_is_left(search: Search) -> dict[str, Any]:
    """What another search can `begin_with`: programs, and the decoder's weights."""
    return {
        "library": search.library,
        "archive": search.archive.population(),
        "programs": search.queue.and_also(search.generation).programs,
        "decoder": None if search.refinement is None else search.refinement.weights(),
    }


def begin_with(search: Search, left: dict[str, Any]) -> None:
    """Begin where an earlier search, of the same library, ended; its data may have been others."""
    archive = _of_width(left["archive"], search.archive.tokens.shape[1])
    search.archive.update(archive, archive.nmse(search.data))
    programs = _of_width(left["programs"], search.queue.programs.tokens.shape[1])
    evaluated = Scored(programs, search.evaluate(programs))
    search.queue = evaluated.best(search.config.queue_size)
    search.generation = evaluated.best(search.config.batch_size)
    search.restarts.best = search.queue.lowest
    search.inherits = True
    if search.refinement is not None and left["decoder"] is not None:
        search.refinement.load_weights(left["decoder"])
    if len(evaluated.nmse):
        search.record(evaluated.nmse)


def _of_width(population: Population, width: int) -> Population:
    """The programs that fit into arrays of a width, in such."""
    kept = population[population.lengths <= width]
    tokens = np.zeros((len(kept), width), dtype=np.int64)
    common = min(width, kept.tokens.shape[1])
    tokens[:, :common] = kept.tokens[:, :common]
    return Population(kept.library, tokens, kept.lengths, kept.constants)
