"""Settings of a training."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

OBJECTIVES = ("cross-entropy", "vpg", "risk-seeking")
_COUNTS = ("steps", "n_datasets", "n_groups", "n_programs", "min_samples", "max_samples", "usual_columns")


@dataclass(frozen=True)
class PretrainingConfig:
    """Settings of a training.

    Parameters
    ----------
    objective : {"cross-entropy", "vpg", "risk-seeking"}
        ``"cross-entropy"`` maximises the likelihood of the true program, and with a guide
        (`dgsr.generator.guide`) also that of its parent-child pairs; ``"vpg"`` (vanilla policy gradient, as
        in the paper) and ``"risk-seeking"`` maximise the reward of sampled programs and do not train the
        guide.
    steps : int
        Number of mini-batches.
    n_datasets : int
        Number of data sets in a mini-batch, t of the paper.
    n_groups : int
        Number of equal parts of a mini-batch, each with its own numbers of rows and variables.
    blind_share : float
        Fraction of the groups for which ``"cross-entropy"`` hides the data from the decoder, so that the
        generator learns the prior, too.
    n_programs : int
        Number of programs that the policy gradients sample for each data set, k of the paper.
    min_samples, max_samples : int
        Limits of the number of rows of a data set, which is log-uniform and the same for a group.
    usual_columns : int
        Number of columns up to which a table of n columns is n times as frequent as a table of one column;
        beyond it, the frequency falls with the fourth power of n.
    learning_rate : float
        Largest step size of the Adam optimiser; it rises over `warmup` steps, then falls as a cosine to a
        hundredth.
    warmup : int
        Number of steps over which the learning rate rises.
    weight_decay : float
        Weight decay of the optimiser (AdamW).
    gradient_clip : float
        Largest norm of the gradient.
    baseline_alpha : float
        Weight of the newest reward in the moving average that is the baseline of ``"vpg"``.
    epsilon : float
        Fraction of the programs on which ``"risk-seeking"`` trains.
    entropy_weight, entropy_decay : float
        Weight and decay of the hierarchical entropy term of the policy gradients.

    Raises
    ------
    ValueError
        If `objective` is unknown, a count is no whole number above 0, `n_datasets` is not a multiple of
        `n_groups`, `max_samples` is below `min_samples`, a share is not from 0 to 1, `warmup` or
        `learning_rate` is negative, or `gradient_clip` or `epsilon` is not above 0.
    """

    objective: str = "cross-entropy"
    steps: int = 32_000
    n_datasets: int = 128
    n_groups: int = 4
    blind_share: float = 0.03
    n_programs: int = 500
    min_samples: int = 8
    max_samples: int = 200
    usual_columns: int = 5
    learning_rate: float = 1.5e-3
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
        for name in (*_COUNTS, "warmup"):
            value, least = getattr(self, name), int(name in _COUNTS)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")
        if not self.learning_rate >= 0.0:
            raise ValueError(f"learning_rate={self.learning_rate} must be at least 0.")
        for name in ("gradient_clip", "epsilon"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"{name}={getattr(self, name)} must be above 0.")
        if self.n_datasets % self.n_groups:
            raise ValueError(
                f"n_datasets={self.n_datasets} must be a multiple of n_groups={self.n_groups}; change "
                "either, for instance to n_groups=1."
            )
        for name in ("blind_share", "baseline_alpha", "epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name}={getattr(self, name)} is a share: give a number from 0 to 1.")
        if self.max_samples < self.min_samples:
            raise ValueError(
                f"max_samples={self.max_samples} must be at least min_samples={self.min_samples}."
            )


#: Presets: ``"paper"`` has the settings of the paper, appendix "Dataset Generation and Training", ``"base"``
#: is for a processor, and ``"large"`` has those of the shipped ``koza-d12``, which was trained on a GPU.
PRETRAINING_CONFIGS = {
    "paper": PretrainingConfig(
        objective="vpg",
        steps=2_000,
        n_datasets=5,
        n_groups=1,
        n_programs=500,
        min_samples=20,
        max_samples=20,
        learning_rate=1e-3,
        warmup=1,
        weight_decay=0.0,
    ),
    "base": PretrainingConfig(),
    "large": PretrainingConfig(steps=7_500, n_datasets=4_096, learning_rate=2e-3, warmup=300),
}
