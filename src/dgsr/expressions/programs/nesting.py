"""Limits on how often an operator may occur below another, as bits that a node passes to its children.

A limit of k has k + 1 bits: the outer operator sets the first, and each inner operator below it moves the
mark to the next, so that bit j says that j inner operators are between the outer operator and the node. The
inner operator is forbidden where the last bit is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library

#: Most inner operators on one path below an outer one; None means no limit.
Limits = Mapping[tuple[str, str], int | None]

#: Default limits: no sine or cosine below another.
DEFAULT_LIMITS: Limits = dict.fromkeys(product(("sin", "cos"), ("sin", "cos")), 0)

#: Largest finite limit.
MOST_NESTED = 9
# Bits of a non-negative integer of the kernels.
_N_BITS = np.iinfo(np.int64).bits - 1


class Nesting(NamedTuple):
    """The limits as bits, with one entry for each token; see the docstring of this module."""

    opens: np.ndarray  # (n_tokens,) int64: bits that a token sets for the nodes below it
    advances: np.ndarray  # (n_tokens,) int64: bits that a token moves to the next place
    closed: np.ndarray  # (n_tokens,) int64: bits with any of which the token is forbidden

    @classmethod
    def of(cls, limits: Limits, library: Library) -> Nesting:
        """Return the bits of limits; operators that the library lacks are ignored.

        Raises
        ------
        ValueError
            If the limits need more than 63 bits.
        """
        known = {*library.index}
        held = {pair: most for pair, most in limits.items() if most is not None and set(pair) <= known}
        first: dict[tuple[str, ...], int] = {}
        n_bits = 0
        for pair, most in held.items():
            key = pair if most > 0 else pair[:1]  # the limits of 0 of an outer operator share one bit
            if key not in first:
                first[key], n_bits = n_bits, n_bits + most + 1
        if n_bits > _N_BITS:
            raise ValueError(
                f"nested has limits that need {n_bits} bits, and there are {_N_BITS}: one for each outer "
                "operator, and for every limit above 0 one more than it says; give fewer or smaller limits."
            )
        bits = cls(*(np.zeros(len(library), dtype=np.int64) for _ in range(3)))
        for pair, most in held.items():
            outer, inner = (library.index[name] for name in pair)
            at = first[pair if most > 0 else pair[:1]]
            bits.opens[outer] |= 1 << at
            bits.advances[inner] |= ((1 << most) - 1) << at
            bits.closed[inner] |= 1 << (at + most)
        return bits

    def holds(self, tokens: Sequence[int], library: Library) -> bool:
        """Return whether a program, given by its tokens in prefix order, respects the limits."""
        waiting = [0]  # the bits of the nodes that follow, the next one last
        for token in tokens:
            above = waiting.pop()
            if above & int(self.closed[token]):
                return False
            below = above | (above & int(self.advances[token])) << 1 | int(self.opens[token])
            waiting += [below] * library.tokens[token].arity
        return True
