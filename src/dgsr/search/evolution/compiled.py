"""The compiled engine of genetic programming, and random first populations."""

from __future__ import annotations

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.kernels.evolve import vary
from dgsr.kernels.growth import fill_with_random_programs
from dgsr.search.evolution.engine import Evaluate, EvolutionConfig, ShouldStop, evolved


class CompiledEvolution:
    """Genetic programming in compiled code (`dgsr.kernels.evolve`)."""

    def __init__(self, config: EvolutionConfig | None = None):
        self.config = EvolutionConfig() if config is None else config

    def evolve(
        self,
        population: Population,
        nmse: np.ndarray,
        evaluate: Evaluate,
        grammar: Grammar,
        state: np.ndarray,
        should_stop: ShouldStop,
    ) -> tuple[Population, np.ndarray]:
        """See `Engine.evolve`."""
        config = self.config

        def bred(parents: Population, of_parents: np.ndarray) -> tuple[Population, np.ndarray, np.ndarray]:
            offspring = vary(
                parents.arrays,
                config.fitness(parents, of_parents),
                grammar,
                float(config.crossover),
                float(config.mutation),
                config.tournament,
                config.mutate_max_depth,
                state,
            )
            children = Population(parents.library, *offspring.programs)
            return children, of_parents[offspring.parents], offspring.changed

        return evolved(config, population, nmse, evaluate, should_stop, bred)


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
