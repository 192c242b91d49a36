"""Compile, or load, what a search runs before its clock starts."""

from __future__ import annotations

from functools import cache

import numpy as np

from dgsr.evolution import EvolutionConfig
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library
from dgsr.finishing import finish
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.kernels.wholes import DEEPEST
from dgsr.lookup import LookUp
from dgsr.population import DataSet
from dgsr.search import Search, SearchConfig, run


@cache
def compile_kernels(has_constants: bool) -> None:
    """Run a search so small that its time is that of compiling, once in a process.

    The first one after an installation takes half a minute or more, which would be most of a short
    `max_time`; later ones load what numba has kept.

    Parameters
    ----------
    has_constants : bool
        Whether the search to come fits constants.
    """
    library = Library("compiling", ("add", "mul", "div", "sin"), has_constants, 1)
    constraints = Constraints(max_length=8)
    config = SearchConfig(
        max_evaluations=200,
        batch_size=20,
        tolerance=0.0,
        evolution=EvolutionConfig(generations=2),
    )
    sizes = GeneratorConfig(
        encoder="columns", encoder_width=4, encoder_heads=1, encoder_layers=1, n_latents=1, tree_embedding=4,
        decoder_width=4, decoder_heads=1, decoder_layers=1, max_length=8, remainders=not has_constants,
        reader_width=4,
    )  # fmt: skip
    generator = Generator.untrained(library, sizes, constraints, 0)
    X = np.linspace(0.5, 2.0, 8)[:, None]
    data = DataSet.from_arrays(X, np.exp(X[:, 0]))
    search = Search(data, library, constraints, config, generator)
    if not has_constants:
        search.look_up = LookUp(library, data, search.grammar, size=256)  # not a million programs
        search.look_up.whole(DEEPEST)
    run(search)
    Expression(library, [library.index["x1"]])(X)  # what `predict` runs
    if has_constants:
        finish(search.archive.population(), np.ones(1), data, library, config.tolerance)
