"""Copies, extremes and zeros of rows of arrays.

numba's assignment of one array to another takes two to five seconds to compile in every kernel that has one,
and its minimum and maximum half a second each.
"""

from __future__ import annotations

import math

from dgsr.kernels.compilation import allocation_free


@allocation_free
def copy_to(out, values):
    """Write ``out[: len(values)] = values`` for one-dimensional arrays, from the first entry to the last."""
    for j in range(len(values)):
        out[j] = values[j]


@allocation_free
def are_zero(values):
    """Return whether all entries of a one-dimensional array are 0."""
    for j in range(len(values)):
        if values[j] != 0:
            return False
    return True


@allocation_free
def extremes(values):
    """Return the smallest and the largest value, or NaN twice if a value is NaN."""
    least, largest = values[0], values[0]
    for j in range(len(values)):
        if math.isnan(values[j]):
            return math.nan, math.nan
        least, largest = min(least, values[j]), max(largest, values[j])
    return least, largest
