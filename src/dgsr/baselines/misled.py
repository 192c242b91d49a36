"""The regressor with the encoding of another data set: what is left of a generator that does not read."""

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


def misled(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return the generator, its weights shared, with an encoder that is shown an equation of the prior.

    Parameters
    ----------
    generator : Generator
    n_variables : int
        Number of columns of the data it is to be asked about.
    seed : int
        Seed of the equation it is shown in their place.
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


class MisledRegressor(DGSRRegressor):
    """`DGSRRegressor` whose encoder sees another data set; evaluation and refinement see the right one."""

    def _resolve_generator(self, constraints: Constraints, seed: int) -> Generator | None:
        generator = super()._resolve_generator(constraints, seed)
        return None if generator is None else misled(generator, self.library_.n_variables, seed)
