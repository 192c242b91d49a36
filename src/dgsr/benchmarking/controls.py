"""Controls of the generator, which show how much a search finds if a part of the network does not work.

=================  ============================================================================
``misled``         the encoder reads another data set
``blind``          nothing computed from the data reaches the network: the encoder's vectors
                   are means over the data sets of other equations
``features``       the samples are replaced by the functions of one and of two columns that
                   fit the data best, and the guide by the pairs of tokens in them
``guide-alone``    the samples are replaced by random programs
``samples-alone``  there is no guide
=================  ============================================================================

Evaluation and refinement use the right data in all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.estimator.regressor import DGSRRegressor
from dgsr.expressions.formulas.description_length import prior_weights
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.generator.sampling import Samples
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.pair_counts import pair_counts
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import DrawnDataSets, Prior
from dgsr.search.evolution import random_population


def _others(generator: Generator, n_variables: int, n: int, seed: int) -> DrawnDataSets:
    """Return the data sets of `n` equations of the prior, of 30 rows and with columns in random order."""
    library = generator.library.with_variables(n_variables)
    # Equations as long as for more columns rarely satisfy the constraints.
    prior = Prior.default_for(library, min(n_variables, 5))
    arguments = n, 30, n_variables, library, generator.constraints, new_state(seed)
    return prior.draw(*arguments, in_any_order=True)


def _with(generator: Generator, **methods: Callable[..., Any]) -> Generator:
    """Return a copy of a generator with some of its methods replaced."""
    twin = copy.copy(generator)
    vars(twin).update(methods)
    return twin


def misled(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy of a generator that always reads the same other data set, drawn by `seed`."""
    other = _others(generator, n_variables, 1, seed)
    return _with(
        generator,
        encode_dataset=lambda X, y, seed=0: generator.encode_dataset(other.X[0], other.y[0], seed),
    )


def blind(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy whose encoder returns its mean over the data sets of 32 other equations."""
    others = _others(generator, n_variables, 32, seed)
    encodings = [generator.encode_dataset(X, y).latents[0] for X, y in zip(others.X, others.y, strict=True)]
    mean = Encoding(torch.stack(encodings).mean(0, keepdim=True))
    return _with(generator, encode_dataset=lambda X, y, seed=0: mean)


def features(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy that samples the 25 simple functions which fit best, without learned weights."""
    grammar = generator.grammar(n_variables)
    candidates = _simple_programs(generator.library, n_variables, grammar)
    best: list[Population] = []

    def encode_dataset(X: np.ndarray, y: np.ndarray, seed: int = 0) -> Encoding:
        fit = fit_constants(candidates, DataSet.from_arrays(X, y), n_iterations=0)
        best[:] = [candidates[np.argsort(fit.nmse, kind="stable")[:25]]]
        return generator.encode_dataset(X, y, seed)

    def guide_probabilities(encoding: Encoding) -> np.ndarray:
        tokens, lengths, _ = best[0].arrays
        counts = pair_counts(tokens, lengths, grammar, len(generator.library.operators)).sum(axis=0)
        return (counts + 0.1) / (counts + 0.1).sum(axis=1, keepdims=True)

    def sample_encoded(encoding: Encoding, n: int, grammar: Grammar, state: np.ndarray) -> Samples:
        rows = np.arange(n) % len(best[0])
        return Samples(best[0].tokens[rows], best[0].lengths[rows], np.zeros(n))

    return _with(
        generator,
        encode_dataset=encode_dataset,
        guide_probabilities=guide_probabilities,
        sample_encoded=sample_encoded,
    )


def guide_alone(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy whose samples are random programs, drawn by the weights of the prior."""

    def sample_encoded(encoding: Encoding, n: int, grammar: Grammar, state: np.ndarray) -> Samples:
        library = generator.library
        drawn = random_population(n, library, grammar._replace(weight=prior_weights(grammar, library)), state)
        return Samples(drawn.tokens, drawn.lengths, np.zeros(n))

    return _with(generator, sample_encoded=sample_encoded)


def samples_alone(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy without a guide."""
    return _with(generator, guide_probabilities=lambda encoding: None)


def _simple_programs(library: Library, n_variables: int, grammar: Grammar) -> Population:
    """Return all valid programs x, f(x), g(x, z), f(g(x, z)) and g(x, f(z))."""
    columns = range(library.first_variable, library.first_variable + n_variables)
    unary, binary = (
        [i for i, token in enumerate(library.tokens) if token.arity == arity] for arity in (1, 2)
    )
    programs = [[x] for x in columns] + [[f, x] for f in unary for x in columns]
    for g, x, z in product(binary, columns, columns):
        programs.append([g, x, z])
        programs += [program for f in unary for program in ([f, g, x, z], [g, x, f, z])]
    tokens = np.zeros((len(programs), grammar.max_length), dtype=np.int64)
    lengths = np.array([len(program) for program in programs], dtype=np.int64)
    for row, program in zip(tokens, programs, strict=True):
        row[: len(program)] = program
    kept = are_valid(tokens, lengths, grammar)
    n_constants = grammar.max_constants if library.has_constants else 0
    return Population(library, tokens[kept], lengths[kept], np.ones((int(kept.sum()), n_constants)))


#: The controls by name.
CONTROLS: dict[str, Callable[[Generator, int, int], Generator]] = {
    "misled": misled,
    "blind": blind,
    "features": features,
    "guide-alone": guide_alone,
    "samples-alone": samples_alone,
}


class ControlRegressor(DGSRRegressor):
    """`DGSRRegressor` whose generator is replaced by the control with the name `_control`."""

    _control: str

    def _as_used(self, generator: Generator, seed: int) -> Generator:
        return CONTROLS[self._control](generator, self.library_.n_variables, seed)


def control_regressor(control: str, **parameters) -> ControlRegressor:
    """Return an unfitted regressor with a control of `CONTROLS`."""
    regressor = ControlRegressor(**parameters)
    regressor._control = control
    return regressor
