"""Hyperparameters of the search."""

from __future__ import annotations

from dataclasses import dataclass, field

from dgsr.evolution import EvolutionConfig

OBJECTIVES = ("pqt", "risk-seeking", "vpg")


@dataclass(frozen=True)
class SearchConfig:
    """Hyperparameters of the search (paper, appendix "Dataset Generation and Training").

    Parameters
    ----------
    max_evaluations : int
        Equations to evaluate on the data set at most.
    max_time : float or None
        Seconds to search at most.
    tolerance : float
        NMSE of an exact fit, at which the search stops.
    batch_size : int
        Programs sampled in a round: k of the paper.
    objective : {"pqt", "risk-seeking", "vpg"}
        What the decoder is refined on.
    refine : bool
        Whether the decoder is refined at all.
    queue_size : int
        Best programs ever seen that ``pqt`` trains on: q of the paper.
    epsilon : float
        Share of the batch ``risk-seeking`` trains on.
    learning_rate : float
        Step size of the Adam optimiser.
    entropy_weight, entropy_decay : float
        Weight of the hierarchical entropy term, and its decay from token to token.
    patience : int or None
        Rounds without a better program after which the search begins again: the decoder with its
        pre-trained weights, queue and population empty, the Pareto front kept. 0 is never; None is
        3, or 1 in libraries with constants, whose rounds go on where the last one ended.
    gain : float
        Share by which a round must lower the NMSE to count as better, in libraries with constants.
    n_joined : int
        Best programs of the genetic programming that join the sampled ones.
    fit_share : float
        Share of the programs with constants, the best as they stand, whose constants are fitted.
    fit_iterations : int
        Steps of a fit, from the constants a program has.
    survivors : float
        Share of a round's first generation that are the best of the last round's, in libraries with
        constants: fitted constants are not sampled anew.
    look_up : bool
        Whether the law is looked up, and what makes near misses exact, in libraries without fitted
        constants.
    random_share : float or None
        Share of the others that are random programs: they find what the generator thinks unlikely, and take
        no time. The rest are sampled. None is 0.5 in libraries with constants, else 0.8.
    evolution : EvolutionConfig
        Settings of the genetic programming component.
    """

    max_evaluations: int = 2_000_000
    max_time: float | None = None
    tolerance: float = 1e-20
    batch_size: int = 500
    objective: str = "pqt"
    refine: bool = True
    queue_size: int = 10
    epsilon: float = 0.02
    learning_rate: float = 1e-3
    entropy_weight: float = 0.003
    entropy_decay: float = 1.0
    patience: int | None = None
    n_joined: int = 50
    fit_share: float = 0.3
    fit_iterations: int = 5
    gain: float = 0.1
    survivors: float = 0.9
    random_share: float | None = None
    look_up: bool = True
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
