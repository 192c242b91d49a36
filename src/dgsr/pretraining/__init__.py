"""Pre-training: generators learn from equations of a prior to generate equations that fit a data set."""

from dgsr.pretraining.config import OBJECTIVES, PRETRAINING_CONFIGS, PretrainingConfig
from dgsr.pretraining.run import Progress, pretrain
from dgsr.pretraining.trainer import Trainer

__all__ = ["OBJECTIVES", "PRETRAINING_CONFIGS", "PretrainingConfig", "Progress", "Trainer", "pretrain"]
