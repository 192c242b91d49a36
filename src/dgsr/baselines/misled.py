"""The wrong-data control: the regressor with a generator that is given the encoding of another data set."""

from __future__ import annotations

import copy

import numpy as np

from dgsr.expressions.constraints import Constraints
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior
from dgsr.regressor import DGSRRegressor


def misled(generator: Generator, n_variables: int, seed: int) -> Generator:
    """Return the generator, with shared weights, that always encodes the data of an equation of the prior.

    Parameters
    ----------
    generator : Generator
    n_variables : int
        Number of columns of the data of the search.
    seed : int
        Seed of the equation of the prior.
    """
    library = generator.library.with_variables(n_variables)
    prior = Prior.default_for(library, n_variables)
    drawn = prior.draw(1, 30, n_variables, library, generator.constraints, new_state(seed))

    def encode_dataset(X: np.ndarray, y: np.ndarray, seed: int = 0) -> Encoding:
        return generator.encode_dataset(drawn.X[0], drawn.y[0], seed)

    twin = copy.copy(generator)
    twin.encode_dataset = encode_dataset  # type: ignore[method-assign]
    return twin


class MisledRegressor(DGSRRegressor):
    """`DGSRRegressor` whose encoder gets another data set; evaluation and refinement get the right one."""

    def _resolve_generator(self, constraints: Constraints, seed: int) -> Generator | None:
        generator = super()._resolve_generator(constraints, seed)
        return None if generator is None else misled(generator, self.library_.n_variables, seed)
