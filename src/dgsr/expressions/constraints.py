"""Which token may stand where, as one table.

The sampler, the prior and the genetic operators all read this table through
`dgsr.kernels.grammar`, so they can't disagree about what a well-formed equation is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dgsr.expressions.library import Library

_INVERSES = (("exp", "log"), ("log", "exp"))
_TRIGONOMETRIC = ("sin", "cos")


class Grammar(NamedTuple):
    """Constraints and token facts as arrays, for the compiled kernels."""

    arity: np.ndarray  # (n_tokens,) int64
    is_variable: np.ndarray  # (n_tokens,) bool
    is_constant: np.ndarray  # (n_tokens,) bool
    is_trigonometric: np.ndarray  # (n_tokens,) bool
    forbidden_child: np.ndarray  # (n_tokens, n_tokens) bool: [parent, child]
    min_length: int
    max_length: int
    max_constants: int
    length_loc: float
    length_scale: float  # 0 switches the soft length prior off


@dataclass(frozen=True)
class Constraints:
    """Limits on the equations that are sampled, bred or drawn from the prior.

    Parameters
    ----------
    min_length, max_length : int
        Number of tokens, both inclusive.
    max_constants : int
        Most ``const`` tokens in one equation.
    length_loc, length_scale : float
        Soft length prior: where it is centred, and its width in tokens; a width of 0 means none.

    Notes
    -----
    Always in force besides these: at least one variable; the children of an operator are not all
    constants; no exp under log nor log under exp; no trigonometric function anywhere under another.

    Raises
    ------
    ValueError
        If the lengths are not ``1 <= min_length < max_length``, or a limit is negative.

    References
    ----------
    Petersen et al., ICLR 2021, appendix A; Landajuela et al., 2021 (soft length prior).
    """

    min_length: int = 1
    max_length: int = 30
    max_constants: int = 3
    length_loc: float = 10.0
    length_scale: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.min_length < self.max_length:
            raise ValueError(
                f"min_length={self.min_length} and max_length={self.max_length} "
                "must satisfy 1 <= min_length < max_length."
            )
        if self.max_constants < 0 or self.length_scale < 0:
            raise ValueError(
                f"max_constants={self.max_constants} and length_scale={self.length_scale} "
                "must not be negative."
            )

    def grammar(self, library: Library, n_variables: int | None = None) -> Grammar:
        """Return the table for `library`, its variables after `n_variables` not to be used.

        Parameters
        ----------
        library : Library
        n_variables : int, optional
            Variables present in the data; all of the library's by default.
        """
        names = [token.name for token in library.tokens]
        used = library.n_variables if n_variables is None else n_variables
        if not 1 <= used <= library.n_variables:
            raise ValueError(f"n_variables={used} must be between 1 and {library.n_variables}.")
        forbidden = np.zeros((len(names), len(names)), dtype=np.bool_)
        for parent, child in _INVERSES:
            if parent in library.index and child in library.index:
                forbidden[library.index[parent], library.index[child]] = True
        return Grammar(
            arity=library.table.arity,
            is_variable=np.array(
                [library.first_variable <= i < library.first_variable + used for i in range(len(names))]
            ),
            is_constant=np.array([name == "const" for name in names]),
            is_trigonometric=np.array([name in _TRIGONOMETRIC for name in names]),
            forbidden_child=forbidden,
            min_length=self.min_length,
            max_length=self.max_length,
            max_constants=self.max_constants,
            length_loc=self.length_loc,
            length_scale=self.length_scale,
        )
