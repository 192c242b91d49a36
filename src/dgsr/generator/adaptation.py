"""Adaptation of a generator to another library, or to longer programs, than those of its training."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from dgsr.expressions.programs.library import Library
from dgsr.generator.decoder import Decoder
from dgsr.generator.generator import Generator
from dgsr.generator.guide.network import Guide


def can_adapt(encoder: str, theirs: Library, library: Library) -> bool:
    """Return whether a generator with this encoder, trained on programs of `theirs`, can be `adapted`."""
    if encoder == "descriptions":
        return not set(theirs.operators).isdisjoint(library.operators)
    return theirs.operators == library.operators and theirs.has_constants == library.has_constants


def adapted(generator: Generator, library: Library, max_length: int, for_training: bool = False) -> Generator:
    """Return a generator for a library and a length that shares weights with the given one where possible.

    It samples no tokens that the given one does not know, and positions beyond those of the training are
    treated as the last one. If it is `for_training`, it may sample unknown tokens, and columns beyond those
    of the training have their own positions. `can_adapt` must be True for the library. Raises ValueError if
    the encoder is ``"rows"`` and has too few variables.
    """
    theirs = generator.library
    n_more = max(0, max_length - generator.config.max_length)
    knows_all = theirs.operators == library.operators and theirs.has_constants == library.has_constants
    if knows_all:
        generator = generator.with_variables(library.n_variables)
        if not (n_more or for_training):
            return generator
    twin = generator.refinable_copy()
    decoder = twin.decoder
    twin.config = twin.config.with_max_length(twin.config.max_length + n_more)
    if not for_training:
        twin.constraints = replace(twin.constraints, max_length=twin.config.max_length)
    for positions in (decoder.positions, decoder.tree_positions):
        _lengthen(positions, n_more)
    if for_training and decoder.has_columns:
        _lengthen(decoder.order, library.n_variables - decoder.order.num_embeddings)
    if knows_all:
        return twin
    twin.library = library.with_variables(max(library.n_variables, theirs.n_variables))
    known = [theirs.index.get(token.name, -1) for token in library.tokens[: library.first_variable]]
    unknown_logit = 0.0 if for_training else -1e4  # so that they are never sampled
    _select_tokens(decoder, known, unknown_logit)
    decoder.n_tokens = len(twin.library)
    if generator.guide is not None:
        twin.guide = _with_tokens(generator.guide, known, len(library.operators), unknown_logit)
        if not for_training:
            twin.guide.unknown_parents = [row for row in range(len(library.operators)) if known[row] < 0]
    return twin


def _lengthen(embedding: nn.Embedding, n_more: int) -> None:
    """Append `n_more` copies of the last row of an embedding to it."""
    rows = embedding.weight.detach()
    embedding.weight = nn.Parameter(torch.cat([rows, rows[-1:].expand(max(0, n_more), -1)]))
    embedding.num_embeddings = len(embedding.weight)


def _rows(tensor: Tensor, known: Sequence[int], otherwise: float = 0.0) -> Tensor:
    """Return the rows `known` of a tensor, with rows of the value `otherwise` for each -1."""
    at = torch.tensor(known, device=tensor.device)
    found = tensor.detach()[at.clamp_min(0)]
    return torch.where((at < 0).view(-1, *[1] * (tensor.ndim - 1)), otherwise, found)


def _select_tokens(decoder: Decoder, known: list[int], unknown_logit: float) -> None:
    """Replace the tokens of a decoder by its tokens `known`, in which -1 is an unknown token."""
    start = decoder.tokens.num_embeddings - 1
    for embedding in (decoder.tokens, decoder.parents, decoder.siblings):
        embedding.weight = nn.Parameter(_rows(embedding.weight, [*known, start]))
        embedding.num_embeddings = len(known) + 1
    decoder.out.weight = nn.Parameter(_rows(decoder.out.weight, known))
    decoder.out.bias = nn.Parameter(_rows(decoder.out.bias, known, unknown_logit))
    decoder.out.out_features = len(known)


def _with_tokens(guide: Guide, known: list[int], n_operators: int, unknown_logit: float) -> Guide:
    """Return a guide for the tokens `known`, operators first, in which -1 is an unknown token."""
    parents = [*known[:n_operators], guide.n_parents - 1]  # the last parent is the root
    twin = copy.deepcopy(guide)
    twin.n_parents, twin.n_fixed = len(parents), len(known)
    last = guide.of_column[-1]
    for name, otherwise in (("weight", 0.0), ("bias", unknown_logit)):
        of_tokens = getattr(guide.of_tokens, name).unflatten(0, (guide.n_parents, guide.n_fixed))
        of_parents = _rows(of_tokens, parents).transpose(0, 1)
        chosen = _rows(of_parents, known, otherwise).transpose(0, 1).flatten(0, 1)
        setattr(twin.of_tokens, name, nn.Parameter(chosen))
        for layer, given in ((twin.of_variables, guide.of_variables), (twin.of_column[-1], last)):
            setattr(layer, name, nn.Parameter(_rows(getattr(given, name), parents)))
    return twin
