"""Hyperparameters of the search."""

from __future__ import annotations

from dataclasses import dataclass, field

from dgsr.search.evolution import EvolutionConfig

OBJECTIVES = ("pqt", "risk-seeking", "vpg")


@dataclass(frozen=True)
class SearchConfig:
    """Hyperparameters of the search (paper, appendix "Dataset Generation and Training")."""

    max_evaluations: int = 2_000_000
    max_time: float | None = None  # seconds
    tolerance: float = 1e-20  # NMSE of an exact fit, at which the search stops
    batch_size: int = 500  # programs that a round begins with: k of the paper
    # Objective of refinement: priority queue training, or risk-seeking or vanilla policy gradient.
    objective: str = "pqt"
    # Whether the decoder is refined; "auto": in a trust region where a guide drives evolution.
    refine: bool | str = "auto"
    # Divergence in that region from the pre-trained decoder, in nats per program. Laws that a search had
    # missed became a little more likely so, and less likely with 1 nat (docs/decisions.md).
    divergence: float = 0.2
    queue_size: int = 10  # number of the best programs so far that "pqt" trains on: q of the paper
    epsilon: float = 0.02  # share of the programs of a round, the best ones, that "risk-seeking" trains on
    learning_rate: float = 1e-3  # step size of the Adam optimiser
    entropy_weight: float = 0.003  # weight of the hierarchical entropy term
    entropy_decay: float = 1.0  # its decay from token to token
    # Rounds without a better program after which the search restarts, with the pre-trained weights of the
    # decoder and without queue and population; 0 means never. With three fewer laws were found.
    patience: int = 1
    n_joined: int = 50  # number of the best programs of genetic programming that join the sampled ones
    # Share of the programs with constants whose constants are fitted: those with the lowest NMSE before.
    fit_share: float = 0.3
    fit_iterations: int = 5  # steps of such a fit, which starts from the constants of the program
    gain: float = 0.1  # share by which a round must lower the NMSE to be better, in libraries with constants
    # Share of the first programs of a round that are the best ones of the last round. Their fitted constants
    # cannot be sampled, and a long law takes more generations than a round has.
    survivors: float = 0.9
    # Share of the new programs of a round that are random; the others are sampled. Random programs reach laws
    # of low probability under the generator. None means the share of `dgsr.search.evaluation`.
    random_share: float | None = None
    look_up: bool = True  # whether finders (`dgsr.finders`) are called
    # Whether, with `look_up` and constants, a law is sought among the fewer columns that symmetries leave.
    symmetries: bool = True
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)
