"""The genetic programming component: some generations of evolution from a given population.

There are two engines with one method, `evolve`: `CompiledEvolution`, the default, and `DeapEvolution`, which
runs the same algorithm on DEAP's toolbox, for users' own genetic operators and as the reference of the tests.

References
----------
Mundhenk et al., NeurIPS 2021; Holt, Qian, van der Schaar, ICLR 2023, appendix "NGPQT Optimization Method".
"""

from __future__ import annotations

from collections.abc import Callable

from dgsr.search.evolution.compiled import CompiledEvolution, random_population
from dgsr.search.evolution.engine import Engine, EvolutionConfig
from dgsr.search.evolution.forests import ForestEvolution, Forests
from dgsr.search.evolution.with_deap import DeapEvolution, primitive_set

__all__ = [
    "CompiledEvolution",
    "DeapEvolution",
    "Engine",
    "EvolutionConfig",
    "ForestEvolution",
    "Forests",
    "get_engine",
    "primitive_set",
    "random_population",
]

_ENGINES: dict[str, Callable[..., Engine]] = {"compiled": CompiledEvolution, "deap": DeapEvolution}


def get_engine(engine: str | Engine, config: EvolutionConfig | None = None) -> Engine:
    """Return the engine with a name, or `engine` itself, which has its own config; ValueError for others."""
    if isinstance(engine, str) and engine in _ENGINES:
        return _ENGINES[engine](config)
    if not isinstance(engine, str) and callable(getattr(engine, "evolve", None)):
        return engine
    raise ValueError(
        f"engine={engine!r} is unknown; choose from {', '.join(_ENGINES)}, or give an object with a method "
        "evolve(population, nmse, evaluate, grammar, state, should_stop)."
    )
