"""Copies and extremes of rows of arrays.

numba's own assignment of one array to another checks overlap and broadcasting and makes a message for when it
fails; compiling that takes two to five seconds in every kernel that has one. Its minimum and maximum read
arrays of any number of dimensions, and take half a second each.
"""

from __future__ import annotations

import math

from dgsr.kernels.compilation import compiled


@compiled(_nrt=False)
def copy_to(out, values):
    """out[: len(values)] = values, from the first to the last."""
    for j in range(len(values)):
        out[j] = values[j]


@compiled(_nrt=False)
def extremes(values):
    """Return the least and the largest of some values; two NaN if one of them is."""
    least, largest = values[0], values[0]
    for j in range(len(values)):
        if math.isnan(values[j]):
            return math.nan, math.nan
        least, largest = min(least, values[j]), max(largest, values[j])
    return least, largest
