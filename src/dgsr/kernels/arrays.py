"""Copies between rows of arrays.

numba's own assignment of one array to another checks overlap and broadcasting and makes a message for when it
fails; compiling that takes two to five seconds in every kernel that has one.
"""

from __future__ import annotations

from dgsr.kernels.compilation import compiled


@compiled(_nrt=False)
def copy_to(out, values):
    """out[: len(values)] = values, from the first to the last."""
    for j in range(len(values)):
        out[j] = values[j]
