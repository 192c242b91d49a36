"""A formula with constants by group predicts, prints and exports as what it is."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.grouped import ByGroup, GroupedExpression

LIBRARY = get_library("physics", 2)
VALUES = np.array([[1.0, 2.0, 6.0], [0.5, 0.25, 0.0]])
LABELS = ("A", "B", "C")


def formula(names=("x", "group")):
    plain = Expression.from_text("3*exp(-0.5*x1) + 0.25", LIBRARY)
    by_group = ByGroup.of_values(1, LABELS, np.array([0, -1, 1]), VALUES)
    order = plain.constants.tolist()
    assert order == [0.25, 3.0, -0.5] or order == [3.0, -0.5, 0.25]
    if order[0] == 0.25:
        by_group = ByGroup.of_values(1, LABELS, np.array([1, 0, -1]), VALUES)
    return GroupedExpression(LIBRARY, plain.tokens, plain.constants, by_group, names)


def test_it_predicts_each_group_by_its_constants_and_a_new_one_by_their_means():
    x = np.linspace(0.0, 2.0, 5)
    X = np.column_stack([x, [0.0, 1.0, 2.0, -1.0, np.nan]])
    scale, offset = np.append(VALUES, VALUES.mean(axis=1, keepdims=True), axis=1)[:, [0, 1, 2, 3, 3]]
    np.testing.assert_allclose(formula()(X), scale * np.exp(-0.5 * x) + offset)


def test_its_text_has_a_symbol_for_each_constant_by_group():
    text = formula().text
    assert {"a", "b"} <= set(text.replace("*", " ").split()), text
    assert "x" in text
    assert {symbol.name for symbol in formula().sympy.free_symbols} == {"a", "b", "x"}
    assert {"b", "c"} <= set(formula(("a", "group")).text.replace("*", " ").split())  # a is a column


def test_the_formula_of_a_group_is_an_ordinary_one():
    X = np.column_stack([np.linspace(0.0, 2.0, 5), np.ones(5)])
    np.testing.assert_allclose(formula().of_group("B")(X), formula()(X))
    with pytest.raises(ValueError, match="'Z' is no group of the fit; choose from 'A', 'B', 'C'"):
        formula().of_group("Z")


def test_the_formula_of_a_group_keeps_numbers_that_are_not_fitted():
    plain = Expression.from_text("3*(1 - exp(-0.5*x1))", LIBRARY)
    part_of = np.where(plain.constants == 3.0, 0, np.where(plain.constants == 1.0, -2, -1))
    assert set(part_of) == {0, -1, -2}
    found = GroupedExpression(
        LIBRARY, plain.tokens, plain.constants, ByGroup.of_values(1, LABELS, part_of, VALUES[:1])
    )
    X = np.column_stack([np.linspace(0.0, 2.0, 5), np.full(5, 2.0)])
    np.testing.assert_allclose(found.of_group("C")(X), 6.0 * (1.0 - np.exp(-0.5 * X[:, 0])))


def test_labels_may_be_tuples_except_in_python():
    labels = (("A", 1), ("A", 2), ("B", 1))
    found = formula().with_groups(formula().by_group._replace(labels=labels))
    assert found.constants_by_group().index.tolist() == [*labels]
    with pytest.raises(ValueError, match="cannot be written in Python; give texts or numbers"):
        found.to_python()


@pytest.mark.parametrize("column", ["group", 'kind\nof "plant" \\'])
def test_exported_python_predicts_as_the_formula_does(column):
    found = formula(("x", column))
    source = {}
    exec(found.to_python("law"), source)
    x, labels = np.linspace(0.0, 2.0, 4), ["C", "A", "B", "new"]
    X = np.column_stack([x, [2.0, 0.0, 1.0, -1.0]])
    np.testing.assert_allclose(source["law_by_group"](x, X[:, 1], labels), found(X))


def test_a_torch_module_is_made_of_one_group():
    with pytest.raises(ValueError, match=r"of_group\(label\)"):
        formula().to_torch()


def test_formulas_of_other_values_are_not_equal():
    other = formula().with_groups(formula().by_group._replace(values=VALUES + 1.0))
    assert formula() == formula()
    assert formula() != other
