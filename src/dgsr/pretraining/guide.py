"""The loss of the guide."""

from __future__ import annotations

import torch
from torch import Tensor

from dgsr.data.population import Population
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.kernels.pair_counts import pair_counts


def guide_nats(generator: Generator, encoding: Encoding, programs: Population, n_variables: int) -> Tensor:
    """Return minus the log-likelihood of the parent-child pairs of programs under the guide, shape (D,).

    `encoding` is that of D data sets of `n_variables` columns, and `programs` has one for each.
    """
    guide, library = generator.guide, generator.library
    if guide is None:
        raise ValueError("The generator has no guide; only those with encoder='descriptions' have one.")
    grammar = generator.grammar(n_variables)
    counts = pair_counts(programs.tokens, programs.lengths, grammar, len(library.operators))
    known = torch.from_numpy(counts[:, :, : library.first_variable + n_variables]).to(generator.device)
    return -(known.float() * guide(encoding.latents)).sum((1, 2))
