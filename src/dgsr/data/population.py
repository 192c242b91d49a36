"""Many programs as a structure of arrays, with their values and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.kernels.evaluate import predictions, squared_errors
from dgsr.kernels.programs import Programs


def rewards_of(nmse: np.ndarray) -> np.ndarray:
    """Return the rewards 1/(1 + NMSE) of programs (paper, section 3.1), which are 0 for invalid ones."""
    return 1.0 / (1.0 + nmse)


@dataclass(frozen=True, eq=False)
class Population:
    """Programs of one library."""

    library: Library
    tokens: np.ndarray  # (n_programs, max_length) int64: token ids in prefix order, zero after the end
    lengths: np.ndarray  # (n_programs,) int64
    # (n_programs, max_constants) float64: values of the ``const`` tokens in the order of the program
    constants: np.ndarray

    @property
    def arrays(self) -> Programs:
        """The programs as the arrays that kernels take."""
        return Programs(self.tokens, self.lengths, self.constants)

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int | np.integer) -> Expression: ...
    @overload
    def __getitem__(self, index: slice | np.ndarray) -> Population: ...
    def __getitem__(self, index):
        if isinstance(index, (int, np.integer)):
            return Expression(self.library, self.tokens[index, : self.lengths[index]], self.constants[index])
        return Population(self.library, self.tokens[index], self.lengths[index], self.constants[index])

    @classmethod
    def empty(cls, n_programs: int, library: Library, max_length: int, max_constants: int) -> Population:
        """Return arrays for `n_programs` programs without tokens; constants are 1."""
        tokens, constants = np.zeros((n_programs, max_length), np.int64), np.ones((n_programs, max_constants))
        return cls(library, tokens, np.zeros(n_programs, np.int64), constants)

    @classmethod
    def of_one(cls, library: Library, tokens: np.ndarray, constants: np.ndarray) -> Population:
        """Return one program, of shape (length,), with each row of `constants`, (n_programs, n_constants)."""
        n, tokens = len(constants), np.asarray(tokens, dtype=np.int64)
        return cls(library, np.tile(tokens, (n, 1)), np.full(n, len(tokens), dtype=np.int64), constants)

    @classmethod
    def concatenate(cls, populations: Sequence[Population]) -> Population:
        """Join populations of one library, in arrays as wide as the widest."""
        widths = [(p.tokens.shape[1], p.constants.shape[1]) for p in populations]
        widest = max(w for w, _ in widths), max(n for _, n in widths)
        parts = [p if own == widest else p.of_width(*widest) for p, own in zip(populations, widths)]
        arrays = [np.concatenate(own) for own in zip(*(p.arrays for p in parts))]
        return cls(populations[0].library, *arrays)

    def of_width(self, width: int, n_constants: int) -> Population:
        """Return the programs that fit into arrays of these widths, in such arrays."""
        kept = self[(self.lengths <= width) & (self.is_constant.sum(axis=1) <= n_constants)]
        found = Population.empty(len(kept), kept.library, width, n_constants)
        found.lengths[:] = kept.lengths
        found.tokens[:, : kept.tokens.shape[1]] = kept.tokens[:, :width]
        found.constants[:, : kept.constants.shape[1]] = kept.constants[:, :n_constants]
        return found

    @property
    def is_constant(self) -> np.ndarray:
        """Mask of the ``const`` tokens of the programs, shape (n_programs, max_length)."""
        inside = np.arange(self.tokens.shape[1]) < self.lengths[:, None]
        return inside & (self.tokens == self.library.index.get("const", -1))

    @classmethod
    def from_expressions(cls, expressions: Sequence[Expression]) -> Population:
        """Return the programs of one or more expressions of one library, in arrays as wide as needed."""
        tokens = np.zeros((len(expressions), max(e.length for e in expressions)), dtype=np.int64)
        constants = np.ones((len(expressions), max(len(e.constants) for e in expressions)))
        for i, expression in enumerate(expressions):
            tokens[i, : expression.length] = expression.tokens
            constants[i, : len(expression.constants)] = expression.constants
        lengths = np.array([e.length for e in expressions], dtype=np.int64)
        return cls(expressions[0].library, tokens, lengths, constants)

    def nmse(self, X: np.ndarray | DataSet, y: np.ndarray | None = None) -> np.ndarray:
        """Return the normalised mean squared error of every program, `inf` where a prediction is not finite.

        It is the mean squared residual over the variance of `y`, which must vary, of shape (n_programs,). `X`
        is a DataSet, or of shape (n_samples, n_features) with `y` of shape (n_samples,).

        Reference: Holt, Qian, van der Schaar, ICLR 2023, equation 1 (there divided by the standard
        deviation).
        """
        if isinstance(X, DataSet):
            data = X
        elif y is None:
            raise ValueError("y is missing; give X and y, or one DataSet.")
        else:
            data = DataSet.from_arrays(X, y)
        errors = squared_errors(self.arrays, self.library.table, data)
        with np.errstate(over="ignore"):  # an NMSE beyond a float is inf
            return errors / (len(data.y) * data.variance)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the values of every program on `X` (n_samples, n_features): (n_programs, n_samples)."""
        columns = np.ascontiguousarray(np.asarray(X, dtype=np.float64).T)
        return predictions(self.arrays, self.library.table, columns)
