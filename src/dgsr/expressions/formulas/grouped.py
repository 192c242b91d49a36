"""Formulas of which some constants have a value for each group of rows, such as each subject or material."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cached_property
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.trees import Tree

if TYPE_CHECKING:
    import pandas

    from dgsr.expressions.exports.torch_export import FormulaModule

#: Number of a constant that is not fitted, such as one that a form has.
NOT_FITTED = -2
# Names of constants with a value for each group, in the order in which they are given.
_NAMES = "abcdfghkmnpqrsuvw"


class ByGroup(NamedTuple):
    """The constants of a formula that have a value for each group."""

    column: int  # of X; it has the numbers of the groups, from 0 on, and any other number for a new group
    labels: tuple[Hashable, ...]  # of the n_groups groups
    # (n_constants,) int64: number of the constant among those by group, -1 if shared, `NOT_FITTED`, or a
    # number below it, which all places of one shared constant have
    part_of: np.ndarray
    names: tuple[str, ...]  # of the q constants by group
    values: np.ndarray  # (q, n_groups)
    bits: float  # that describe the values
    # (n_groups + 1, k, k): covariances of the constants in each group and in a new one, those by group first,
    # then the shared ones in the order of `parts`
    covariances: np.ndarray

    @classmethod
    def of_values(
        cls, column: int, labels: tuple[Hashable, ...], part_of: np.ndarray, values: np.ndarray
    ) -> ByGroup:
        """Return constants by group whose uncertainty is not known yet."""
        new = cls(column, labels, part_of, (), values, 0.0, np.empty(0))
        k = len(new.parts)
        return new._replace(covariances=np.full((len(labels) + 1, k, k), np.nan))

    @property
    def parts(self) -> list[np.ndarray]:
        """Indices of the constants that are equal, for each constant by group and each shared one."""
        numbers = [*range(len(self.values)), *np.unique(self.part_of[self.part_of < NOT_FITTED])]
        parts = [np.flatnonzero(self.part_of == number) for number in numbers]
        return parts + list(np.flatnonzero(self.part_of == -1)[:, None])

    def of_rows(self, X: np.ndarray) -> np.ndarray:
        """Return the values in rows X (n_rows, n_features), (q, n_rows), the means for new groups."""
        return np.column_stack([self.values, self.typical])[:, self.numbers_of(X)]

    def numbers_of(self, X: np.ndarray) -> np.ndarray:
        """Return the number of the group of each row, (n_rows,), which is n_groups for a new one."""
        numbers = X[:, self.column]
        is_known = (numbers >= 0.0) & (numbers < len(self.labels))
        return np.where(is_known, numbers, len(self.labels)).astype(np.int64)

    @property
    def typical(self) -> np.ndarray:
        """The means over the groups, (q,)."""
        return self.values.mean(axis=1)

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the values, (q, n_groups)."""
        own = np.arange(len(self.values))
        return np.sqrt(self.covariances[:-1, own, own]).T


class GroupedExpression(Expression):
    """A formula with constants by group.

    Its tokens and constants are those of the formula for a new group, with the means over the groups. Text,
    sympy and exports have a symbol for each constant by group, and the formula is evaluated on columns that
    include the numbers of the groups.
    """

    def __init__(
        self,
        library: Library,
        tokens: np.ndarray | Sequence[int],
        constants: np.ndarray | Sequence[float],
        by_group: ByGroup,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        own = by_group.part_of >= 0
        constants = np.array(constants, dtype=np.float64)
        constants[own] = by_group.typical[by_group.part_of[own]]
        super().__init__(library, tokens, constants, feature_names)
        names = by_group.names
        if len(names) != len(by_group.values) or not {*names}.isdisjoint(self.feature_names):
            names = self.free_names(len(by_group.values))
        self.by_group = by_group._replace(names=names)

    def free_names(self, n: int, others: Collection[str] = ()) -> tuple[str, ...]:
        """Return `n` names of constants that are neither columns nor operators nor among `others`."""
        taken = {*self.feature_names, *self.library.functions, *others}
        free = (name for name in chain(_NAMES, (f"c{i}" for i in count())) if name not in taken)
        return tuple(islice(free, n))

    @property
    def typical(self) -> Expression:
        """The formula for a new group."""
        return Expression(self.library, self.tokens, self.constants, self.feature_names)

    @property
    def rounded(self) -> Expression:
        """The formula for a new group with two digits of the means; `ByGroup.bits` stand for the others."""
        constants = [
            float(f"{value:.2g}") if part >= 0 else value
            for value, part in zip(self.constants.tolist(), self.by_group.part_of)
        ]
        return Expression(self.library, self.tokens, constants, self.feature_names)

    @cached_property
    def symbolic(self) -> Expression:
        """The formula as one of the features and of the constants by group."""
        library, tokens, constants = with_columns_for_constants(
            self.library, self.tokens, self.constants, self.by_group.part_of
        )
        return Expression(library, tokens, constants, [*self.feature_names, *self.by_group.names])

    def of_group(self, label: Hashable) -> Expression:
        """Return the formula of one group; ValueError if there is no such group."""
        labels = self.by_group.labels
        if label not in labels:
            raise ValueError(
                f"{label!r} is no group of the fit; choose from {', '.join(map(repr, labels[:8]))}."
            )
        own, part_of = self.by_group.values[:, labels.index(label)], self.by_group.part_of
        constants = self.constants.copy()
        constants[part_of >= 0] = own[part_of[part_of >= 0]]
        return Expression(self.library, self.tokens, constants, self.feature_names)

    def constants_by_group(self) -> pandas.DataFrame:
        """Return the constants by group as a table with a row for each group, and their standard errors."""
        import pandas

        values, errors = self.by_group.values, self.by_group.standard_errors
        columns = dict[str, Any]()
        for name, own, error in zip(self.by_group.names, values, errors):
            columns |= {name: own, f"{name}_error": error}
        name = self.feature_names[self.by_group.column]
        index = pandas.Index(self.by_group.labels, name=name, tupleize_cols=False)
        return pandas.DataFrame(columns, index=index)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = np.asarray(X, dtype=np.float64)
        return self.symbolic(np.column_stack([X, self.by_group.of_rows(X).T]))

    def with_feature_names(self, feature_names: Sequence[str] | None) -> Expression:
        return GroupedExpression(self.library, self.tokens, self.constants, self.by_group, feature_names)

    def with_constants(self, constants: np.ndarray | Sequence[float]) -> Expression:
        return GroupedExpression(self.library, self.tokens, constants, self.by_group, self.feature_names)

    def with_groups(self, by_group: ByGroup) -> GroupedExpression:
        """Return the same formula with other constants by group."""
        return GroupedExpression(self.library, self.tokens, self.constants, by_group, self.feature_names)

    @cached_property
    def tree(self) -> Tree:
        return self.symbolic.tree

    def to_python(self, name: str = "formula") -> str:
        """Return the source text of a Python module that needs only numpy, with a table of the constants.

        Its function takes an array for each feature and for each constant by group. Another one, whose name
        ends in ``_by_group``, takes labels of groups in place of these constants; new ones have their means.
        Raises ValueError for labels that are neither texts nor numbers.
        """
        by_group, names = self.by_group, ", ".join(self.by_group.names)
        if others := [label for label in by_group.labels if not isinstance(label, str | int | float)]:
            raise ValueError(f"The label {others[0]!r} cannot be written in Python; give texts or numbers.")
        constants = dict(zip(by_group.labels, map(tuple, by_group.values.T.tolist())))
        arguments = [f"x{i + 1}" for i in range(self.library.n_variables)]
        inputs = ", ".join(arguments)
        lines = [
            f"# {names} by {self.feature_names[by_group.column]!r}",
            f"CONSTANTS = {constants!r}",
            f"MEANS = {tuple(by_group.typical.tolist())!r}",
            "",
            "",
            f"def {name}_by_group({inputs}, groups):",
            f'    """Return the values of {name} for features in its order, and the labels of the groups."""',
            "    constants = np.array([CONSTANTS.get(group, MEANS) for group in groups]).T",
            f"    return {name}({inputs}, *constants)",
        ]
        return f"{self.symbolic.to_python(name)}\n\n" + "\n".join(lines) + "\n"

    def to_jax(self, name: str = "formula") -> str:
        """Return the source of a function of jax arrays, one for each feature and constant by group."""
        return self.symbolic.to_jax(name)

    def to_c(self, name: str = "formula") -> str:
        """Return the source of a C function of one double for each feature and constant by group."""
        return self.symbolic.to_c(name)

    def to_torch(self) -> FormulaModule:
        """Raise ValueError: a torch module is made from the formula of one group."""
        raise ValueError(
            "The formula has constants by group; export that of one: of_group(label).to_torch()."
        )

    def numpy_function(self) -> Callable[..., np.ndarray]:
        """Return a function of one array for each feature and constant by group that needs only numpy."""
        return self.symbolic.numpy_function()

    def _key(self) -> tuple:
        return (*super()._key(), self.by_group.part_of.tobytes(), self.by_group.values.tobytes())


def with_columns_for_constants(
    library: Library, tokens: np.ndarray, constants: np.ndarray, part_of: np.ndarray
) -> tuple[Library, np.ndarray, np.ndarray]:
    """Return a program with further columns in place of some constants: library, tokens and other constants.

    `part_of`, (n_constants,), has the number of the column of each constant, and -1 where it stays.
    """
    first, n = library.first_variable, library.n_variables
    tokens = np.array(tokens, dtype=np.int64)
    places = np.flatnonzero(tokens == library.index["const"])
    tokens[places[part_of >= 0]] = first + n + part_of[part_of >= 0]
    wider = library.with_variables(n + int(part_of.max(initial=-1)) + 1)
    return wider, tokens, np.asarray(constants, dtype=np.float64)[: len(part_of)][part_of < 0]
