"""The wrong-data control: a regressor whose encoder reads another data set.

What it finds owes nothing to the generator's reading of the data.
"""

from __future__ import annotations

import copy

import numpy as np

from dgsr.expressions.constraints import Constraints
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.population import Population
from dgsr.pretraining.prior import Prior
from dgsr.regressor import DGSRRegressor


def with_wrong_data(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return a copy of a generator, with the same weights, whose encoder always reads one data set.

    Parameters
    ----------
    generator : Generator
    n_variables : int
        Number of columns of the data of the search.
    seed : int
        Seed of the equation of the prior, and of its data set, which the encoder reads in their place.
    """
    library = generator.library.with_variables(n_variables)
    prior = Prior.default_for(library, n_variables)
    drawn = prior.draw(1, 30, n_variables, library, generator.constraints, new_state(seed))

    def encode_dataset(
        X: np.ndarray, y: np.ndarray, seed: int = 0, found: Population | None = None
    ) -> Encoding:
        return generator.encode_dataset(drawn.X[0], drawn.y[0], seed)

    twin = copy.copy(generator)
    twin.encode_dataset = encode_dataset  # type: ignore[method-assign]
    return twin


class WrongDataRegressor(DGSRRegressor):
    """`DGSRRegressor` whose encoder reads another data set; evaluation and refinement use the right one."""

    def _resolve_generator(self, constraints: Constraints, seed: int) -> Generator | None:
        generator = super()._resolve_generator(constraints, seed)
        if generator is None:
            return None
        return with_wrong_data(generator, self.library_.n_variables, seed)
