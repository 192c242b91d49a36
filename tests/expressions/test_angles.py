"""Roots for the cosines of arcsines: the same values, written by finishing, and no longer than these."""

from __future__ import annotations

import numpy as np
import pytest

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.expressions import Constraints
from dgsr.expressions.formulas.description_length import description_length, structure_bits
from dgsr.expressions.rewriting.angles import with_angles, with_roots
from dgsr.expressions.trees.syntax import parse, to_text
from finished import finished_by_hand

ROOTS = [
    ("x1/cos(asin(x2/x3))", "x1/sqrt(1 - (x2/x3)**2)"),
    ("cos(asin(cos(asin(x1))))", "sqrt(1 - sqrt(1 - x1**2)**2)"),
    ("1 + sin(acos(x1 - x2))", "1 + sqrt(1 - (x1 - x2)**2)"),
    ("cos(acos(x1)) + asin(cos(x2))", "cos(acos(x1)) + asin(cos(x2))"),
]
ANGLES = [
    ("sqrt(1 - x2**2/x3**2)", "cos(asin(x2/x3))"),
    ("sqrt(1 - x1*x1*(x2/x3)**2)", "cos(asin(x1*(x2/x3)))"),
    ("sqrt(1 - 1/x3**2)", "cos(asin(1/x3))"),
    ("sqrt(1 - x1*x2)", "sqrt(1 - x1*x2)"),
    ("sqrt(2 - x1**2)", "sqrt(2 - x1**2)"),
    ("sqrt(1 + x1**2)", "sqrt(1 + x1**2)"),
]


def tree_of(text):
    return parse(text, ["x1", "x2", "x3"])


@pytest.mark.parametrize(
    ("rewrite", "text", "expected"),
    [(with_roots, *case) for case in ROOTS] + [(with_angles, *case) for case in ANGLES],
)
def test_a_function_is_written_in_the_other_way_and_has_the_same_values(rewrite, text, expected):
    rewritten = rewrite(tree_of(text))
    assert to_text(rewritten) == to_text(tree_of(expected))
    library = get_library("physics", 3)
    X = np.random.default_rng(0).uniform(-1.5, 1.5, (200, 3))
    before, after = (Expression.from_text(t, library)(X) for t in (text, to_text(rewritten)))
    np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-9)
    assert np.isfinite(before).sum() > 20


@pytest.mark.parametrize(("angles", "roots"), ROOTS[:1] + [pair[::-1] for pair in ANGLES[:3]])
def test_a_root_is_as_long_as_the_cosine_that_is_shorter(angles, roots):
    library = get_library("physics", 3)
    lengths = [description_length(Expression.from_text(text, library)) for text in (angles, roots)]
    assert lengths[0] == pytest.approx(lengths[1])


def test_roots_are_counted_as_they_are_where_the_library_has_no_arcsine():
    library = get_library("physics", 2).without(["arcsin"])
    root = Expression.from_text("sqrt(1 - (x1*x2)**2)", library)
    tokens = ["sqrt", "sub", "const", "square", "mul", "x1", "x2"]
    assert root.tokens.tolist() == [library.index[name] for name in tokens]
    in_full = structure_bits(library, root.tokens[None], np.array([7]))[0]
    assert description_length(root) == pytest.approx(in_full - 7.0)


def test_finishing_writes_the_root_unless_the_cosine_is_required():
    X = np.random.default_rng(0).uniform((1.0, 0.1, 1.0), (5.0, 0.9, 3.0), (60, 3))
    library = get_library("physics", 3)
    text = "x1/cos(asin(x2/x3))"
    assert str(finished_by_hand(text, X, library)) == "x1/sqrt(1 - x2**2/x3**2)"
    kept = finished_by_hand(text, X, library, constraints=Constraints(required=("cos",)))
    assert str(kept) == "x1/cos(asin(x2/x3))"
    assert str(finished_by_hand(text, X, library.without(["sqrt"]))) == "x1/cos(asin(x2/x3))"


@pytest.mark.search
def test_the_law_of_relativistic_mass_has_its_root():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1, 5, 60), rng.uniform(1, 2, 60), rng.uniform(3, 10, 60)])
    y = X[:, 0] / np.sqrt(1 - X[:, 1] ** 2 / X[:, 2] ** 2)
    model = DGSRRegressor(max_evaluations=5_000, random_state=0).fit(X, y)
    assert str(model.expression_) == "x1*x3/sqrt(x3**2 - x2**2)"
