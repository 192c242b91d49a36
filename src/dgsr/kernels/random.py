"""A random number generator for compiled code that draws the same numbers on every machine.

numba's own generator is hidden and global. The state of this one, an ndarray of 4 uint64, is an argument
called `state`, so that the result of a kernel depends only on its arguments, in any thread. Every function
here that takes it advances it.

References
----------
Blackman & Vigna, "Scrambled linear pseudorandom number generators", 2021 (xoshiro256++);
Steele, Lea & Flood, OOPSLA 2014 (splitmix64, used for seeding).
"""

from __future__ import annotations

import math

import numpy as np

from dgsr.kernels.compilation import allocation_free, compiled


def new_state(*seeds: int) -> np.ndarray:
    """Return the state, an ndarray of 4 uint64, of a generator seeded by non-negative integers."""
    return np.random.SeedSequence(seeds).generate_state(4, np.uint64)


@compiled(forceinline=True)
def _rotate(x, k):
    """Return a uint64 with its bits rotated to the left by `k` positions."""
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@allocation_free
def next_uint64(state):
    """Return the next uint64 of xoshiro256++."""
    result = _rotate(state[0] + state[3], 23) + state[0]
    t = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= t
    state[3] = _rotate(state[3], 45)
    return result


@allocation_free
def uniform(state):
    """Return a float in [0, 1) with 53 random bits."""
    return (next_uint64(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@allocation_free
def integer(state, n):
    """Return an integer in [0, n)."""
    return np.int64(uniform(state) * n)


@allocation_free
def choice(state, weights):
    """Return an index drawn with probability proportional to `weights`, shape (n,), float64."""
    u = uniform(state) * weights.sum()
    for i in range(len(weights) - 1):
        u -= weights[i]
        if u < 0.0:
            return i
    return len(weights) - 1


@allocation_free
def log_uniform(state, low, high):
    """Return a float between `low` and `high` whose logarithm is uniform."""
    return low * math.exp(uniform(state) * math.log(high / low))


@allocation_free
def normal(state):
    """Return a standard normal float (Box & Muller, 1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state)))
    return radius * math.cos(2.0 * math.pi * uniform(state))
