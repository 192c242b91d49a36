"""The compiled engine of genetic programming, and random first populations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.kernels.evolve import Offspring, vary
from dgsr.kernels.growth import fill_with_random_programs
from dgsr.search.evolution.engine import Bred, Evolution


class CompiledEvolution(Evolution):
    """Genetic programming in compiled code (`dgsr.kernels.evolve`)."""

    def breeder(
        self, population: Population, grammar: Grammar, state: np.ndarray
    ) -> Callable[[Population, np.ndarray], Bred]:
        return partial(self._bred, grammar=grammar, state=state)

    def _bred(self, parents: Population, nmse: np.ndarray, grammar: Grammar, state: np.ndarray) -> Bred:
        offspring = self._offspring(parents, self.config.fitness(parents, nmse), grammar, state)
        children = Population(parents.library, *offspring.programs)
        return children, nmse[offspring.parents], offspring.changed

    def _offspring(
        self, parents: Population, fitness: np.ndarray, grammar: Grammar, state: np.ndarray
    ) -> Offspring:
        config = self.config
        probabilities = float(config.crossover), float(config.mutation)
        sizes = config.tournament, config.mutate_max_depth
        return vary(parents.arrays, fitness, grammar, *probabilities, *sizes, state)


def random_population(
    n_programs: int,
    library: Library,
    grammar: Grammar,
    state: np.ndarray,
    min_height: int = 2,
    max_height: int = 4,
    full_share: float = 0.5,
) -> Population:
    """Return a random first population that meets the constraints, by default ramped half and half.

    The parameters are those of `dgsr.kernels.growth.fill_with_random_programs`.

    Raises ValueError if the constraints leave no program.
    """
    n_constants = grammar.max_constants if library.has_constants else 0
    population = Population.empty(n_programs, library, grammar.max_length, n_constants)
    if not fill_with_random_programs(population.arrays, grammar, min_height, max_height, full_share, state):
        raise ValueError(
            "The constraints leave no program; relax min_length, max_length, forbidden and nested."
        )
    return population
