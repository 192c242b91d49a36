"""Behaviour of a formula between the rows that it was fitted to, where no row can contradict it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dgsr.expressions.formulas.coordinates import origins_of
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.shape import evenly
from dgsr.expressions.trees import syntax
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.simple_numbers import QUARTER_TURN
from dgsr.expressions.trees.trees import Tree, is_number, leaves, nodes, variables_of

# Most rows on which a formula is examined, and about the most midpoints between neighbouring rows.
_MOST_ROWS = 1_000
# Distance from a row, as a share of a column's range, up to which a pole counts.
_BESIDE = 0.05
# Functions whose arguments have no unit.
_OF_PURE_NUMBERS = frozenset(("exp", "log", "sin", "cos", "tanh", "arcsin", "arccos"))


def weak_points(expression: Expression, columns: np.ndarray) -> list[str]:
    """Return descriptions of what a formula does between the rows and the rows cannot show.

    There is one for each sine, cosine or tangent whose argument passes a period in fewer than four rows, and
    one for each denominator that has a zero there: its sign changes among the rows, or within a twentieth of
    a column's range from a row. One more is that the formula is undefined halfway between two rows that are
    neighbours in a column. `columns` has the shape (n_features, n_rows).
    """
    tree, some = expression.tree, evenly(columns, _MOST_ROWS)
    used = sorted(variables_of(tree))
    if not used:
        return []
    numbers = [expression.feature_names.index(name) for name in used]
    some, origins = some[numbers], origins_of(expression, columns)[numbers, None]
    at_rows = _values_at(expression, used, some)
    near_rows = _values_at(expression, used, _near(some - origins) + origins)
    between_rows = _values_at(expression, used, _midpoints(some))
    turn = QUARTER_TURN * max(columns.shape[1] - 1, 1)
    with np.errstate(all="ignore"):
        found = [what for node in nodes(tree) for what in _weak_parts(node, at_rows, near_rows, turn)]
        if not np.isfinite(between_rows(tree)).all():
            found.append("the formula is undefined between rows")
    return list(dict.fromkeys(found))


def _values_at(
    expression: Expression, names: Sequence[str], points: np.ndarray
) -> Callable[[Tree], np.ndarray]:
    """Return a function that computes the values of a part of the formula at points (n_names, n_points)."""
    variables, functions = dict(zip(names, points)), expression.library.functions
    return lambda part: np.asarray(evaluate(part, variables, functions=functions), dtype=np.float64)


def unseen_waves(expression: Expression, columns: np.ndarray) -> int:
    """Return how many sines and cosines span less than half a period over the rows (n_features, n_rows).

    The rows do not show that such a curve is a wave; other functions describe it as well.
    """
    at_rows = _values_at(expression, expression.feature_names, evenly(columns, _MOST_ROWS))
    with np.errstate(all="ignore"):
        angles = [node[1] for node in nodes(expression.tree) if node[0] in ("sin", "cos")]
        return sum(bool(np.ptp(at_rows(angle)) < np.pi) for angle in angles)


def pure_columns(expression: Expression) -> int:
    """Return how many functions of dimensionless arguments a formula applies to a column without a number.

    exp(x1) claims that the column has no unit, or its natural unit; exp(0.3*x1) does not, and x1**2 has a
    meaning in every unit.
    """
    arguments = [{*leaves(node[1])} for node in nodes(expression.tree) if node[0] in _OF_PURE_NUMBERS]
    return sum(len(found) == 1 and all(isinstance(leaf, str) for leaf in found) for found in arguments)


def _weak_parts(
    node: Tree, at_rows: Callable[[Tree], np.ndarray], near_rows: Callable[[Tree], np.ndarray], turn: float
) -> Iterator[str]:
    """Yield the weak points of a node; an argument that spans more than `turn` is of a weak wave."""
    name = node[0]
    if name in ("sin", "cos", "tan"):
        if np.ptp(at_rows(node[1])) > turn:
            yield f"{syntax.to_text(node)} turns faster than the rows can show"
    elif name == "div" or (name == "pow" and is_number(node[2]) and node[2] < 0):
        for factor in _factors(node[2] if name == "div" else node[1]):
            denominator = near_rows(factor)
            if np.any(denominator < 0.0) and np.any(denominator > 0.0):
                yield f"{syntax.to_text(factor)} is 0 between rows or beside one, and divides"


def _factors(tree: Tree) -> Iterator[Tree]:
    """Yield the factors whose zeros are the zeros of a denominator, without their powers and signs."""
    if isinstance(tree, tuple) and tree[0] in ("mul", "square", "cube", "sqrt", "abs", "neg"):
        for child in tree[1:]:
            yield from _factors(child)
    elif isinstance(tree, tuple) and tree[0] == "pow" and is_number(tree[2]):
        yield from _factors(tree[1])
    else:
        yield tree


def _near(columns: np.ndarray) -> np.ndarray:
    """Return the rows, and rows with one column moved by a twentieth of its range, (n_features, n_points).

    A column of one sign keeps it: from its value nearest to 0 it moves by at most a twentieth of the way to
    0.
    """
    found = [columns]
    some = columns[:, :: max(columns.size // (10 * _MOST_ROWS), 1)]  # fewer rows where columns are many
    for i, column in enumerate(columns):
        low, high = column.min(), column.max()
        step = _BESIDE * (high - low)
        least = max(low - step, (1.0 - _BESIDE) * low) if low >= 0.0 else low - step
        most = min(high + step, (1.0 - _BESIDE) * high) if high <= 0.0 else high + step
        for moved in (some[i] - step, some[i] + step):
            points = some.copy()
            points[i] = np.clip(moved, least, most)
            found.append(points)
    return np.concatenate(found, axis=1)


def _midpoints(columns: np.ndarray) -> np.ndarray:
    """Return the midpoints of rows that are neighbours in some column, shape (n_features, n_points)."""
    found = []
    for column in columns[: max(_MOST_ROWS // columns.shape[1], 1)]:
        ordered = columns[:, np.argsort(column, kind="stable")]
        found.append(0.5 * ordered[:, :-1] + 0.5 * ordered[:, 1:])
    return np.concatenate(found, axis=1)
