"""Genetic programming alone, the baseline "GP" of the paper: DEAP from a random population.

References
----------
Holt, Qian, van der Schaar, ICLR 2023, appendix "Benchmark Algorithms"; Petersen et al., ICLR 2021;
Fortin et al., "DEAP: evolutionary algorithms made easy", JMLR 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dgsr.evolution import Engine, EvolutionConfig, get_engine, random_population
from dgsr.expressions.constraints import Constraints, Grammar
from dgsr.expressions.library import Library
from dgsr.kernels.random import new_state
from dgsr.population import DataSet, Population


class GPResult(NamedTuple):
    """The best program genetic programming found."""

    population: Population  # of one program
    nmse: float
    n_evaluations: int


def length_only(library: Library, max_length: int = 30, max_constants: int = 3) -> Grammar:
    """Return the constraints of the baseline: length and number of constants, nothing about nesting."""
    grammar = Constraints(max_length=max_length, max_constants=max_constants).grammar(library)
    return grammar._replace(
        forbidden_child=np.zeros_like(grammar.forbidden_child),
        is_trigonometric=np.zeros_like(grammar.is_trigonometric),
    )


def genetic_programming(
    data: DataSet,
    library: Library,
    *,
    max_evaluations: int = 2_000_000,
    n_programs: int = 1000,
    min_height: int = 0,
    max_height: int = 4,
    config: EvolutionConfig | None = None,
    grammar: Grammar | None = None,
    evaluate: Callable[[Population], np.ndarray] | None = None,
    tolerance: float = 1e-12,
    random_state: int = 0,
    engine: str | Engine = "deap",
) -> GPResult:
    """Run genetic programming until the budget is spent or a program fits exactly.

    Parameters
    ----------
    data : DataSet
    library : Library
    max_evaluations : int
        Equations evaluated, those of the first population included; never exceeded.
    n_programs : int
        Size of the population.
    min_height, max_height : int
        The first population's trees are full, of a height uniform between the two.
    config : EvolutionConfig, optional
        Its `generations` do not count here: the budget does.
    grammar : Grammar, optional
        `length_only` by default, as in the paper.
    evaluate : callable, optional
        Returns the NMSE of a population; may write fitted values into its constants. By default
        `Population.nmse` on `data`, constants as they are.
    tolerance : float
        Stop at an NMSE below.
    random_state : int
    engine : str or Engine
        See `dgsr.evolution.get_engine`; an object keeps its own config.

    Returns
    -------
    GPResult
    """
    grammar = length_only(library) if grammar is None else grammar
    state = new_state(random_state)
    score = (lambda population: population.nmse(data)) if evaluate is None else evaluate
    population = random_population(
        n_programs, library, grammar, state, min_height, max_height, full_share=1.0
    )
    done, best, best_nmse = 0, population[:1], np.inf

    def counted(population: Population) -> np.ndarray:
        nonlocal done, best, best_nmse
        affordable = population[: max_evaluations - done]
        nmse = np.full(len(population), np.inf)
        nmse[: len(affordable)] = score(affordable)
        population.constants[: len(affordable)] = affordable.constants
        done += len(affordable)
        winner = int(np.argmin(np.where(np.isnan(nmse), np.inf, nmse)))
        if nmse[winner] < best_nmse:
            best, best_nmse = population[winner : winner + 1], float(nmse[winner])
        return nmse

    def spent() -> bool:
        return done >= max_evaluations or best_nmse < tolerance

    nmse = counted(population)
    # More generations than the budget can pay for: `spent` ends the evolution.
    config = replace(
        EvolutionConfig(parsimony=0.0) if config is None else config, generations=max_evaluations
    )
    if not spent():
        get_engine(engine, config).evolve(population, nmse, counted, grammar, state, spent)
    return GPResult(best, best_nmse, done)
