"""The interface of engines of genetic programming, their settings, and the loop that they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Grammar

Evaluate = Callable[[Population], np.ndarray]
ShouldStop = Callable[[], bool]
# The children of a generation, the NMSE of their parents, and a mask of the children that differ from these.
Bred = tuple[Population, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class EvolutionConfig:
    """Hyperparameters of the genetic programming component.

    Parameters
    ----------
    generations : int
        Number of generations that are bred from the given population.
    crossover, mutation : float
        Probability that two neighbours are crossed over, and that a child is mutated.
    tournament : int
        Programs in a tournament.
    mutate_max_depth : int
        Greatest height of the subtree that the uniform mutation grows.
    parsimony : float
        Share of its NMSE by which a tournament raises the NMSE of a program for each of its tokens. Without
        it programs grow to the greatest length allowed, while laws are short.
    elites : int
        Number of best programs of a generation that replace the worst of the next one.

    Raises
    ------
    ValueError
        If a value is out of its range.

    References
    ----------
    Holt, Qian, van der Schaar, ICLR 2023, appendix "Dataset Generation and Training" (the defaults).
    """

    generations: int = 25
    crossover: float = 0.5
    mutation: float = 0.5
    tournament: int = 5
    mutate_max_depth: int = 3
    parsimony: float = 0.02
    elites: int = 0

    def __post_init__(self) -> None:
        for name, least in (("generations", 0), ("tournament", 1), ("mutate_max_depth", 0), ("elites", 0)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")
        for name in ("crossover", "mutation"):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0.0 <= float(value) <= 1.0:
                raise ValueError(f"{name}={value!r} is a probability: give a number from 0 to 1.")
        if not isinstance(self.parsimony, Real) or not 0.0 <= self.parsimony < np.inf:
            raise ValueError(f"parsimony={self.parsimony!r} must be a finite number of at least 0.")

    def fitness(self, population: Population, nmse: np.ndarray) -> np.ndarray:
        """Return NMSE (1 + parsimony length), which tournaments compare; lower is better."""
        return nmse * (1.0 + self.parsimony * population.lengths)


class Engine(Protocol):
    """The interface of an engine of genetic programming."""

    def evolve(
        self,
        population: Population,
        nmse: np.ndarray,
        evaluate: Evaluate,
        grammar: Grammar,
        state: np.ndarray,
        should_stop: ShouldStop,
    ) -> tuple[Population, np.ndarray]:
        """Return the last generation and its NMSE.

        Parameters
        ----------
        population : Population
            The first generation.
        nmse : ndarray of shape (n_programs,)
            Its NMSE; `inf` for programs without a finite value.
        evaluate : callable
            Returns the NMSE of a population. It is called once a generation, with the programs that differ
            from their parent, and may write fitted values into their `constants`.
        grammar : Grammar
            Constraints that every child meets.
        state : ndarray of 4 uint64
            State of the random generator (`dgsr.kernels.random`), the only source of randomness; advanced.
        should_stop : callable
            A function that is called after every generation and returns whether to end.
        """
        ...


class Evolution(ABC):
    """An engine that breeds one generation from another; its subclasses say how."""

    def __init__(self, config: EvolutionConfig | None = None) -> None:
        self.config = EvolutionConfig() if config is None else config

    @abstractmethod
    def breeder(
        self, population: Population, grammar: Grammar, state: np.ndarray
    ) -> Callable[[Population, np.ndarray], Bred]:
        """Return the function that breeds a generation, given with its NMSE; `population` is the first."""

    def evolve(
        self,
        population: Population,
        nmse: np.ndarray,
        evaluate: Evaluate,
        grammar: Grammar,
        state: np.ndarray,
        should_stop: ShouldStop,
    ) -> tuple[Population, np.ndarray]:
        """See `Engine.evolve`; an empty population has no children."""
        breed = self.breeder(population, grammar, state)
        for _ in range(self.config.generations if len(population) else 0):
            children, child_nmse, changed = breed(population, nmse)
            if changed.any():
                fresh = children[changed]
                child_nmse[changed] = evaluate(fresh)
                children.constants[changed] = fresh.constants  # fitted ones
            if self.config.elites > 0:
                _keep_elites(self.config.elites, population, nmse, children, child_nmse)
            population, nmse = children, child_nmse
            if should_stop():
                break
        return population, nmse


def _keep_elites(
    n_elites: int, population: Population, nmse: np.ndarray, children: Population, child_nmse: np.ndarray
) -> None:
    """Replace the worst of `children` by the best of `population`."""
    best = np.lexsort((population.lengths, nmse))[:n_elites]
    worst = np.lexsort((children.lengths, child_nmse))[len(child_nmse) - len(best) :]
    for array, values in zip(children.arrays, population.arrays):
        array[worst] = values[best]
    child_nmse[worst] = nmse[best]
