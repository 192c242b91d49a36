"""The loss of the guide, and its figures on held-out equations."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dgsr.generator.generator import Generator
from dgsr.generator.guide.descriptions import describe
from dgsr.kernels.pair_counts import pair_counts
from dgsr.pretraining.prior import DrawnDataSets

# Data sets whose descriptions are computed at once: more of them leave the processor's cache.
_AT_ONCE = 32


def guide_nats(generator: Generator, drawn: DrawnDataSets, n_variables: int, shift: int = 0) -> Tensor:
    """Return minus the log-likelihood of the parent-child pairs of each program under the guide.

    Parameters
    ----------
    generator : Generator
        It has a guide.
    drawn : DrawnDataSets
    n_variables : int
        Columns that the guide is shown.
    shift : int
        Each program is judged by the data of the one so many places after it; 0 stands for its own.

    Returns
    -------
    Tensor of shape (D,)
    """
    X, y = np.roll(drawn.X[:, :, :n_variables], -shift, axis=0), np.roll(drawn.y, -shift, axis=0)
    programs, library = drawn.programs, generator.library
    arguments = generator.grammar(n_variables), len(library.operators)
    counts = pair_counts(programs.tokens, programs.lengths, *arguments)
    counts = torch.from_numpy(counts[:, :, : library.first_variable + n_variables]).to(generator.device)
    guide = generator.guide
    if guide is None:
        raise ValueError("The generator has no guide; add one with generator.with_guide.")
    nats = []
    for start in range(0, len(y), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        of_tables = (
            torch.from_numpy(X[part]).to(generator.device),
            torch.from_numpy(y[part]).to(generator.device),
        )
        log_probs = guide(describe(*of_tables))
        nats.append(-(counts[part].float() * log_probs).sum((1, 2)))
    return torch.cat(nats)


@torch.inference_mode()
def measure_guide(generator: Generator, drawn: DrawnDataSets, n_variables: int) -> dict[str, float]:
    """Return the mean nats of the parent-child pairs of held-out equations.

    Returns
    -------
    dict
        ``guide_nats_right`` for the equation's own data, ``guide_nats_wrong`` for those of the next equation.
    """
    return {
        f"guide_nats_{name}": float(guide_nats(generator, drawn, n_variables, shift).mean())
        for name, shift in (("right", 0), ("wrong", 1))
    }
