"""Tables of fewer columns, which are products of powers of old columns and of their sums and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dgsr.expressions.rewriting.algebra import divided, powered, simplified
from dgsr.expressions.trees.syntax import to_text
from dgsr.expressions.trees.trees import Tree, rename
from dgsr.finders.terms import over_columns

#: Name of the target in trees. Columns have the names x1 and so on, so that none has this name.
TARGET = "y"
#: A product of powers, as expressions with their exponents.
Monomial = Mapping[Tree, Fraction]


@dataclass(frozen=True, repr=False)
class Symmetry:
    """What rows show about the target of a table; it is printed as a sentence.

    Parameters
    ----------
    kind : {"combinations", "sum", "product"}
        Whether the target is one function of combinations of columns, or a sum or product of functions.
    target : str
        The target, divided by its factors: ``"y/(G*m1*m2)"``.
    groups : tuple of tuple of str
        The combinations of columns that each of the functions has as its arguments.
    """

    kind: str
    target: str
    groups: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        if self.kind == "combinations":
            return f"{self.target} depends on {listed(self.groups[0])} alone"
        functions = [f"a function of {listed(group)}" for group in self.groups]
        return f"{self.target} is " + (", times " if self.kind == "product" else ", plus ").join(functions)


@dataclass(frozen=True, eq=False)
class Reduction:
    """A table of fewer columns, and the translation of its formulas to the old columns."""

    columns: tuple[Monomial, ...]  # products of powers of old columns and of their sums and differences
    factor: Monomial  # divisor of the old target
    X: np.ndarray  # (n_rows, n_columns), the new columns
    y: np.ndarray  # (n_rows,), the new target
    is_exact: bool = False  # whether the smooth function through the rows has a negligible noise

    def symmetry(self, names: Mapping[str, str]) -> Symmetry:
        """Return what the table shows, with names for `TARGET` and the old columns."""
        whole = product({TARGET: Fraction(1), **{atom: -power for atom, power in self.factor.items()}})
        trees = [whole, *map(product, self.columns)]
        texts = [to_text(rename(tree, names)) for tree in trees]
        return Symmetry("combinations", texts[0], (tuple(texts[1:]),))

    def lifted(self, tree: Tree) -> Tree:
        """Return a formula of the old columns from a tree of the new columns x1 and so on."""
        inner = over_columns(tree, [product(column) for column in self.columns])
        return ("mul", product(self.factor), inner) if self.factor else inner


def whole_table(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Reduction:
    """Return an unchanged table, whose columns have the given names in trees."""
    return Reduction(tuple({name: Fraction(1)} for name in names), {}, X, y)


def listed(names: Sequence[str]) -> str:
    """Return names as a list within a sentence, such as "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def without(reduction: Reduction, i: int) -> Reduction:
    """Return a table without a column."""
    columns = reduction.columns[:i] + reduction.columns[i + 1 :]
    return replace(reduction, columns=columns, X=np.delete(reduction.X, i, axis=1))


def with_sum(reduction: Reduction, i: int, j: int, sign: int) -> Reduction:
    """Return a table with the sum of two columns, or their difference, in place of both."""
    X, columns = reduction.X.copy(), list(reduction.columns)
    X[:, i] += sign * X[:, j]
    whole = "add" if sign > 0 else "sub"
    columns[i] = {(whole, product(columns[i]), product(columns[j])): Fraction(1)}
    return without(replace(reduction, columns=tuple(columns), X=X), j)


def scaled(
    reduction: Reduction, columns: tuple[int, ...], pivot: int, powers: tuple[Fraction, ...], factor: Fraction
) -> Reduction:
    """Return a table with columns and target divided by powers of one column, which is removed."""
    X, terms, at = reduction.X.copy(), list(reduction.columns), columns[pivot]
    divisor = reduction.X[:, at]
    for i, power in zip(columns, powers):
        if i != at:
            X[:, i] *= divisor ** float(-power)
            terms[i] = _times(terms[i], terms[at], -power)
    whole, y = _times(reduction.factor, terms[at], factor), reduction.y * divisor ** float(-factor)
    return without(Reduction(tuple(terms), whole, X, y), at)


def _times(monomial: Monomial, other: Monomial, power: Fraction) -> Monomial:
    """Return a product of powers times a power of another one."""
    powers = {atom: monomial.get(atom, 0) + power * other.get(atom, 0) for atom in {**monomial, **other}}
    return {atom: Fraction(power) for atom, power in powers.items() if power != 0}


def product(monomial: Monomial) -> Tree:
    """Return the tree of a product of powers."""
    above, below = list[Tree](), list[Tree]()
    for atom, power in monomial.items():
        (above if power > 0 else below).append(powered(atom, simplified(abs(power))))
    return divided(above or [1], below)
