"""What tests of finished formulas share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import get_library
from dgsr.expressions.programs.translation import to_program
from dgsr.expressions.trees.syntax import parse
from dgsr.expressions.trees.trees import map_leaves
from dgsr.finishing import finish

LIBRARY = get_library("koza-const", 2)


def population_of(texts, library=LIBRARY):
    """Programs of texts, as they stand: every decimal is a constant of its own."""
    trees = [map_leaves(parse(text), lambda v: float(v) if isinstance(v, Fraction) else v) for text in texts]
    programs = [to_program(tree, library) for tree in trees]
    lengths = np.array([len(tokens) for tokens, _ in programs])
    tokens = np.zeros((len(programs), lengths.max()), dtype=np.int64)
    constants = np.ones((len(programs), max(len(values) for _, values in programs)))
    for i, (program, values) in enumerate(programs):
        tokens[i, : len(program)] = program
        constants[i, : len(values)] = values
    return Population(library, tokens, lengths, constants)


def finished_by_hand(text, X, library=None, noise=0.0, **options):
    """Finish the program that `text` is, on its own values and noise."""
    library = get_library("physics", X.shape[1]) if library is None else library
    programs = population_of([text], library)
    y = programs.predict(X)[0]
    y = y + noise * y.std() * np.random.default_rng(1).standard_normal(len(y))
    data = DataSet.from_arrays(X, y)
    (expression,) = finish(programs, np.ones(X.shape[1]), data, 1e-16, **options)
    return expression
