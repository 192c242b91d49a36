"""The beginning of a fit: afresh, after the last fit of the same estimator, or from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from dgsr.expressions.formulas.coordinates import Coordinates
from dgsr.expressions.programs.library import Library
from dgsr.fitting.checkpoint import Checkpoint

#: Message of a fit that cannot go on from the last one.
OTHER_DATA = (
    "warm_start=True goes on with the columns of X and y and the library of the last fit, and these are "
    "others, or lie elsewhere; set warm_start=False, or fit a clone."
)


class LastFit(NamedTuple):
    """What a fit with ``warm_start=True`` leaves for the next one."""

    n_fits: int  # number of fits of the series so far; the seed depends on it
    held_out_seed: int  # the seed by which the first fit of the series held out rows
    library: Library
    coordinates: Coordinates
    search: dict[str, Any]  # the state by `Search.state_dict`


#: The last fit, from which the next one goes on, or the last fits of several targets; None if there is none.
Last = LastFit | list[LastFit | None] | None


class Beginning(NamedTuple):
    """Seeds, state and file with which a fit begins."""

    n_fits: int  # fits of the series before this one
    random_state: int  # as given, or drawn at random; with it the fit can be repeated
    seed: int
    held_out_seed: int  # the same for all fits of a series, so that none chooses by rows of another's fit
    coordinates: Coordinates | None  # of the last fit
    search: dict[str, Any] | None  # the state from which the search goes on
    checkpoint: Checkpoint | None

    @classmethod
    def of(cls, parameters: Mapping[str, Any], library: Library, last: Last) -> Beginning:
        """Return the beginning of a fit with some settings, which goes on from the last one if there is one.

        Raises ValueError if the fit cannot go on from the last one, for instance from a list of fits of
        several targets, or the file is no checkpoint, and OSError if the checkpoint cannot be written.
        """
        path: str | Path | None = parameters["checkpoint"]
        random_state = parameters["random_state"]
        if parameters["warm_start"] and path is not None:
            raise ValueError(
                "checkpoint and warm_start=True are both given; set one, since a fit goes on either from a "
                "file or from the last fit."
            )
        if isinstance(last, list) or (last is not None and last.library != library):
            raise ValueError(OTHER_DATA)
        n_fits, coordinates, search = (
            (0, None, None) if last is None else (last.n_fits, last.coordinates, last.search)
        )
        checkpoint = None if path is None else Checkpoint(path)
        if random_state is None and checkpoint is not None:
            random_state = checkpoint.random_state
        if not isinstance(random_state, Integral):
            random_state = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        seeds = check_random_state(int(random_state)).randint(np.iinfo(np.int32).max, size=n_fits + 1)
        held_out_seed = int(seeds[0]) if last is None else last.held_out_seed
        return cls(n_fits, int(random_state), int(seeds[-1]), held_out_seed, coordinates, search, checkpoint)
