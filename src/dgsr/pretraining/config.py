"""How a generator is trained."""

from __future__ import annotations

from dataclasses import dataclass

OBJECTIVES = ("cross-entropy", "vpg", "risk-seeking")


@dataclass(frozen=True)
class PretrainingConfig:
    """How a generator is trained.

    Parameters
    ----------
    objective : {"cross-entropy", "vpg", "risk-seeking"}
        Likelihood of the true program, or the end-to-end reward of sampled programs by vanilla
        (the paper's) or risk-seeking policy gradient.
    steps : int
        Mini-batches.
    n_datasets : int
        Data sets in a mini-batch: t of the paper.
    n_groups : int
        Equal parts of the mini-batch, each with its own number of rows and of variables.
    blind_share : float
        Share of the groups in which ``cross-entropy`` shows none of the data, so that the generator knows
        the prior as well.
    looked_up_share : float
        Share that is trained on of the equations a generator with remainders looks up whole.
    n_programs : int
        Programs sampled for each by the policy gradients: k of the paper.
    min_samples, max_samples : int
        Rows of a data set; log-uniform, the same for a group.
    learning_rate : float
        Of Adam; rises over `warmup` steps, then falls with a cosine to a hundredth.
    warmup : int
    weight_decay, gradient_clip : float
    baseline_alpha : float
        Weight of the newest reward in the moving average that is the baseline of ``vpg``.
    epsilon : float
        Share of the programs ``risk-seeking`` trains on.
    entropy_weight, entropy_decay : float
        Of the hierarchical entropy term of the policy gradients.

    Raises
    ------
    ValueError
        If `objective` is unknown, a count is below 1, `n_datasets` is not a multiple of `n_groups`,
        `max_samples` is below `min_samples`, or a share is not from 0 to 1.
    """

    objective: str = "cross-entropy"
    steps: int = 20_000
    n_datasets: int = 64
    n_groups: int = 2
    blind_share: float = 0.03
    looked_up_share: float = 0.1
    n_programs: int = 500
    min_samples: int = 8
    max_samples: int = 60
    learning_rate: float = 1e-3
    warmup: int = 200
    weight_decay: float = 0.01
    gradient_clip: float = 1.0
    baseline_alpha: float = 0.5
    epsilon: float = 0.02
    entropy_weight: float = 0.003
    entropy_decay: float = 1.0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective={self.objective!r} is unknown; choose from {', '.join(OBJECTIVES)}.")
        for name in ("steps", "n_datasets", "n_groups", "n_programs", "min_samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1.")
        if self.n_datasets % self.n_groups:
            raise ValueError(f"n_datasets={self.n_datasets} must be a multiple of n_groups={self.n_groups}.")
        for name in ("blind_share", "looked_up_share"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name}={getattr(self, name)} is a share: give a number from 0 to 1.")
        if self.max_samples < self.min_samples:
            raise ValueError(
                f"max_samples={self.max_samples} must be at least min_samples={self.min_samples}."
            )


#: The settings of the paper, appendix "Dataset Generation and Training", and those we ship with.
PRETRAINING_CONFIGS = {
    "paper": PretrainingConfig(
        objective="vpg",
        steps=2_000,
        n_datasets=5,
        n_groups=1,
        n_programs=500,
        min_samples=20,
        max_samples=20,
        warmup=1,
        weight_decay=0.0,
    ),
    "base": PretrainingConfig(),
}
