"""Programs as the arrays that kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Programs(NamedTuple):
    """Programs of one library."""

    tokens: np.ndarray  # (n_programs, max_length) int64: token ids in prefix order, zero after the end
    lengths: np.ndarray  # (n_programs,) int64
    constants: np.ndarray  # (n_programs, max_constants) float64: values of the ``const`` tokens, in order
