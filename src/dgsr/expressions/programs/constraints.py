"""The constraints on equations: one table of the tokens allowed at each position.

The sampler, the prior and the genetic operators all read this table through `dgsr.kernels.grammar`, so that
they agree on which equations are valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.nesting import DEFAULT_LIMITS, Limits, Nesting
from dgsr.expressions.programs.shape import ShapeConstraints
from dgsr.expressions.programs.units import Units

if TYPE_CHECKING:  # it loads numba, which reading and writing formulas do not need
    from dgsr.expressions.programs.form import Form

# Pairs of an operator and a forbidden child, which it would invert or make idle.
_FORBIDDEN_PAIRS = (
    ("exp", "log"), ("log", "exp"), ("sqrt", "square"), ("square", "sqrt"), ("neg", "neg"), ("inv", "inv"),
    ("sin", "arcsin"), ("arcsin", "sin"), ("cos", "arccos"), ("arccos", "cos"), ("abs", "abs"),
    ("square", "neg"), ("square", "abs"), ("abs", "neg"), ("abs", "square"),
)  # fmt: skip
# Root operators and the position of a child that must not be a constant, which would be the scale or offset
# of the other child.
_SCALED_AWAY = {"add": [0, 1], "sub": [0, 1], "mul": [0, 1], "div": [1]}


class Grammar(NamedTuple):
    """Constraints and token facts as arrays, for the compiled kernels."""

    arity: np.ndarray  # (n_tokens,) int64
    # (n_tokens + 1, n_tokens) float64: relative frequency in random subtrees of tokens below a parent; all
    # are positive. The last row is for roots.
    weight: np.ndarray
    is_variable: np.ndarray  # (n_tokens,) bool
    is_constant: np.ndarray  # (n_tokens,) bool
    forbidden_child: np.ndarray  # (n_tokens, n_tokens) bool: [parent, child]
    opens: np.ndarray  # (n_tokens,) int64; for these three see `dgsr.expressions.programs.nesting.Nesting`
    advances: np.ndarray  # (n_tokens,) int64
    closed: np.ndarray  # (n_tokens,) int64
    scaled_away: np.ndarray  # (n_tokens, 2) bool: [root, position] of children that must not be constants
    linear_scaling: bool  # whether constants are fitted, and scale and offset are fitted around a program
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
        Centre and width of the soft length prior, in tokens; a width of 0 means none.
    linear_scaling : bool
        Whether scale and offset of an equation are fitted around it, so that it may not have a ``const`` as
        term or factor of its root. It has no effect in a library without constants.
    forbidden_columns : tuple of int
        Indices, from 0, of columns that no equation may have.
    required : tuple of str
        Names of tokens that every valid equation has; candidates of a search may lack them.
    nested : tuple of (str, str, int or None)
        Outer operator, inner operator, and most inner ones on any path down the tree below the outer one;
        None means no limit. By default no sine or cosine occurs below another.
    units : Units, optional
        Units by which a search penalises candidates; `satisfy_user_rules` does not use them.
    shape : ShapeConstraints, optional
        Bounds, monotonicity and known points in the coordinates of the programs; `satisfy_user_rules` does
        not use them.
    form : Form, optional
        The form that every formula has; a search finds its functions and constants.

    Notes
    -----
    Some rules always hold: an equation has at least one variable; the children of an operator are not all
    constants; no operator is directly below its inverse (log below exp, square below sqrt, sin below arcsin
    and the reverse, neg below neg, inv below inv) or below one that makes it idle (neg and abs below square;
    neg, abs and square below abs).

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
    linear_scaling: bool = True
    forbidden_columns: tuple[int, ...] = ()
    required: tuple[str, ...] = ()
    nested: tuple[tuple[str, str, int | None], ...] = ()
    units: Units | None = None
    shape: ShapeConstraints | None = None
    form: Form | None = None

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

    def satisfy_user_rules(self, tokens: np.ndarray, lengths: np.ndarray, library: Library) -> np.ndarray:
        """Return a mask of the valid programs, shape (n_programs,), bool.

        Valid programs have all required tokens, no forbidden column, and respect `nested`. `tokens` has the
        shape (n_programs, max_length), `lengths` (n_programs,).
        """
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        kept = np.ones(len(tokens), dtype=np.bool_)
        for name in self.required:
            kept &= ((tokens == library.index[name]) & inside).any(axis=1)
        for column in self.forbidden_columns:
            kept &= ~((tokens == library.first_variable + column) & inside).any(axis=1)
        if self.nested:
            nesting = Nesting.of(self.limits, library)
            for i in np.flatnonzero(kept):
                kept[i] = nesting.holds(tokens[i, : lengths[i]].tolist(), library)
        return kept

    @property
    def limits(self) -> Limits:
        """The limits in `nested` by outer and inner operator."""
        return {(outer, inner): most for outer, inner, most in self.nested}

    def grammar(self, library: Library, n_variables: int | None = None) -> Grammar:
        """Return the table for `library`, in which only the first `n_variables` variables may be used."""
        n_tokens, index = len(library), library.index
        used = library.n_variables if n_variables is None else n_variables
        if not 1 <= used <= library.n_variables:
            raise ValueError(f"n_variables={used} must be between 1 and {library.n_variables}.")
        usable = [i for i in range(used) if i not in self.forbidden_columns]
        forbidden = np.zeros((n_tokens, n_tokens), dtype=np.bool_)
        for parent, child in _FORBIDDEN_PAIRS:
            if {parent, child} <= index.keys():
                forbidden[index[parent], index[child]] = True
        linear_scaling = self.linear_scaling and library.has_constants
        scaled_away = np.zeros((n_tokens, 2), dtype=np.bool_)
        for root, places in _SCALED_AWAY.items():
            if linear_scaling and root in index:
                scaled_away[index[root], places] = True
        return Grammar(
            arity=library.table.arity,
            weight=np.tile([token.weight for token in library.tokens], (n_tokens + 1, 1)),
            is_variable=np.isin(np.arange(n_tokens) - library.first_variable, usable),
            is_constant=np.array([token.name == "const" for token in library.tokens]),
            forbidden_child=forbidden,
            **Nesting.of({**DEFAULT_LIMITS, **self.limits}, library)._asdict(),
            scaled_away=scaled_away,
            linear_scaling=linear_scaling,
            min_length=self.min_length,
            max_length=self.max_length,
            max_constants=self.max_constants,
            length_loc=self.length_loc,
            length_scale=self.length_scale,
        )
