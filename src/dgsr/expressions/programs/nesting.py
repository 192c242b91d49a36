"""How often an operator may stand anywhere under another, as bits that a node hands down to its children.

The bits of a node tell which operators stand above it. An outer operator sets a bit, and an inner one that
may stand under it k times moves on along k more bits: the lowest bit says that the outer operator is above,
the next one that one inner operator is between it and the node, and so on. The inner operator is refused
where the last of its bits is set. So a limit is kept by three operations on whole numbers, whatever it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library

#: Most inner operators on one path below an outer one; None stands for any number.
Limits = Mapping[tuple[str, str], int | None]

#: The limits that hold where a person gives no other: no sine or cosine under another.
USUAL_LIMITS: Limits = {(outer, inner): 0 for outer in ("sin", "cos") for inner in ("sin", "cos")}

#: Largest limit other than none.
MOST_NESTED = 9
# Bits of a number that is not negative.
_N_BITS = 63


class Nesting(NamedTuple):
    """The limits as bits, one entry for each token; see the head of this file."""

    opens: np.ndarray  # (n_tokens,) int64: bits that a token sets for what is below it
    advances: np.ndarray  # (n_tokens,) int64: bits that move to the next one below a token
    closed: np.ndarray  # (n_tokens,) int64: bits of which none may be set above a token

    @classmethod
    def of(cls, limits: Limits, library: Library) -> Nesting:
        """Return the bits of some limits; operators that the library lacks change nothing.

        Raises
        ------
        ValueError
            If the limits need more than 63 bits.
        """
        bits = cls(*(np.zeros(len(library), dtype=np.int64) for _ in range(3)))
        held = {
            pair: most for pair, most in limits.items() if most is not None and set(pair) <= {*library.index}
        }
        n_bits = len({outer for (outer, _), most in held.items() if most == 0})
        n_bits += sum(most + 1 for most in held.values() if most > 0)
        if n_bits > _N_BITS:
            raise ValueError(
                f"nested has limits that need {n_bits} bits, and there are {_N_BITS}: one for each outer "
                "operator, and for every limit above 0 one more than it says; give fewer or smaller limits."
            )
        free = 0
        shared: dict[str, int] = {}  # the bits of outer operators under which others may not stand at all
        for (outer, inner), most in held.items():
            if most == 0 and outer in shared:
                first = shared[outer]
            else:
                first, free = free, free + most + 1
                if most == 0:
                    shared[outer] = first
            bits.opens[library.index[outer]] |= 1 << first
            bits.advances[library.index[inner]] |= ((1 << most) - 1) << first
            bits.closed[library.index[inner]] |= 1 << (first + most)
        return bits

    def holds(self, tokens: Sequence[int], library: Library) -> bool:
        """Return whether a program, its tokens in prefix order, keeps the limits."""
        waiting = [0]  # the bits above each node that is still to come, the next one last
        for token in tokens:
            above = waiting.pop()
            if above & int(self.closed[token]):
                return False
            below = above | (above & int(self.advances[token])) << 1 | int(self.opens[token])
            waiting += [below] * library.tokens[token].arity
        return True
