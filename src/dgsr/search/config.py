"""Hyperparameters of the search."""

from __future__ import annotations

from dataclasses import dataclass, field

from dgsr.search.evolution import EvolutionConfig

OBJECTIVES = ("pqt", "risk-seeking", "vpg")


@dataclass(frozen=True)
class SearchConfig:
    """Hyperparameters of the search (paper, appendix "Dataset Generation and Training").

    Parameters
    ----------
    max_evaluations, max_time : int, float or None
        Most equations to evaluate on the data set, and most seconds to search.
    tolerance : float
        NMSE of an exact fit, at which the search stops.
    batch_size : int
        Programs that a round begins with: k of the paper.
    objective : {"pqt", "risk-seeking", "vpg"}
        Objective by which the decoder is refined: priority queue training, risk-seeking or vanilla policy
        gradient.
    refine : bool or "auto"
        Whether the decoder is refined. ``"auto"`` refines it unless a guide drives evolution.
    queue_size : int
        Number of the best programs so far that ``pqt`` trains on: q of the paper.
    epsilon : float
        Share of the programs of a round, the best ones, that ``risk-seeking`` trains on.
    learning_rate : float
        Step size of the Adam optimiser.
    entropy_weight, entropy_decay : float
        Weight of the hierarchical entropy term, and its decay from token to token.
    patience : int
        Rounds without a better program after which the search restarts, with the pre-trained weights of the
        decoder and without queue and population; 0 means never. With three fewer laws were found.
    gain : float
        Share by which a round must lower the NMSE to count as better, in libraries with constants.
    n_joined : int
        Number of the best programs of genetic programming that join the sampled ones.
    fit_share : float
        Share of the programs with constants whose constants are fitted: those with the lowest NMSE before.
    fit_iterations : int
        Steps of a fit, which starts from the constants of the program.
    survivors : float
        Share of the first programs of a round that are the best ones of the last round. Their fitted
        constants cannot be sampled, and a long law takes more generations than a round has.
    look_up : bool
        Whether finders (`dgsr.finders`) are called.
    symmetries : bool
        Whether, with `look_up` and in libraries with constants, the law is searched among the fewer columns
        to which symmetries reduce the table.
    random_share : float or None
        Share of the new programs of a round that are random; the others are sampled. Random programs reach
        laws of low probability under the generator. None means the share of `dgsr.search.evaluation`.
    """

    max_evaluations: int = 2_000_000
    max_time: float | None = None
    tolerance: float = 1e-20
    batch_size: int = 500
    objective: str = "pqt"
    refine: bool | str = "auto"
    queue_size: int = 10
    epsilon: float = 0.02
    learning_rate: float = 1e-3
    entropy_weight: float = 0.003
    entropy_decay: float = 1.0
    patience: int = 1
    n_joined: int = 50
    fit_share: float = 0.3
    fit_iterations: int = 5
    gain: float = 0.1
    survivors: float = 0.9
    random_share: float | None = None
    look_up: bool = True
    symmetries: bool = True
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
