"""What formulas do between the rows, and which of them the front leaves off."""

import numpy as np
import pytest

from dgsr import DGSRRegressor
from dgsr.data.dataset import DataSet
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.soundness import weak_points
from dgsr.pareto import ParetoFront

LIBRARY = get_library("physics", 2)
ROWS = np.random.default_rng(0).uniform(1.0, 3.0, (30, 2))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x1 + cos(200*x2)", "turns faster"),
        ("x2*sin(x1**9)", "turns faster"),
        ("1/(x1 - 2)", "is 0 between rows"),
        ("x1/(x1*x2 - 3)", "is 0 between rows"),
        ("(x1 - 2)**(-3)", "is 0 between rows"),
    ],
)
def test_what_the_rows_cannot_show_is_named(text, word):
    found = weak_points(Expression.from_text(text, LIBRARY), ROWS.T)
    assert found
    assert word in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "x1",
        "sin(x1)",
        "x1*cos(10*x2)",
        "1/(x1 + x2)",
        "exp(x1)/x2**3",
        "2.5",
        "x1 + 101325",
        "log(x1)/(1 + x2)",
        "log(1 + 0.001*x1)",
        "log(1)*x1",
    ],
)
def test_laws_have_no_weak_points(text):
    assert weak_points(Expression.from_text(text, LIBRARY), ROWS.T) == []


def test_a_pole_just_beside_the_rows_is_a_weak_point_and_one_at_zero_is_not():
    x = np.array([[1.0, 2.0, 4.0, 5.0], [0.1, 0.2, 0.3, 0.2]])
    assert "beside one" in weak_points(Expression.from_text("1/(x1 - 0.96)", LIBRARY), x)[0]
    assert "beside one" in weak_points(Expression.from_text("1/(5.1 - x1)", LIBRARY), x)[0]
    for text in ("1/x2", "1/(x1 - 0.9)", "1/(6 - x1)"):
        assert not weak_points(Expression.from_text(text, LIBRARY), x)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_column_that_begins_at_zero_keeps_its_sign(sign):
    x = sign * np.linspace(0.0, 10.0, 30)[None]
    law = Expression.from_text(f"12*x1/(0.3 + {sign}*x1)", get_library("physics", 1))
    assert weak_points(law, x) == []


def test_a_formula_that_is_undefined_between_rows_is_weak():
    x = np.array([[1.0, 2.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0]])
    expression = Expression.from_text("sqrt((x1 - 3)**2 - 0.5)", LIBRARY)
    assert weak_points(expression, x) == ["the formula is undefined between rows"]


def test_more_rows_show_faster_turns():
    expression = Expression.from_text("sin(50*x1)", LIBRARY)
    few, many = (np.linspace(0.0, 2.0, n) * np.ones((2, 1)) for n in (20, 200))
    assert weak_points(expression, few)
    assert not weak_points(expression, many)


def front(texts, y, tolerance=1e-20):
    expressions = [Expression.from_text(text, LIBRARY) for text in texts]
    return ParetoFront.from_expressions(expressions, DataSet.from_arrays(ROWS, y), tolerance=tolerance)


def test_a_formula_that_reads_noise_is_left_off_and_a_law_with_a_pole_is_not():
    rng = np.random.default_rng(1)
    y = 2.0 * ROWS[:, 0] + 0.1 * rng.normal(size=30)
    texts = ["2*x1", "2*x1 + 0.05*cos(2000*x2)"]
    y_turning = y + 0.05 * np.cos(2000 * ROWS[:, 1])  # as if the noise had the cosine's shape
    found = front(texts, y_turning)
    assert [str(candidate.expression) for candidate in found] == ["2*x1"]
    assert found.n_left_off == 1
    assert found[:1].n_left_off == 1

    law = 1.0 / (ROWS[:, 0] - 2.0)
    noisy = law + 0.01 * law.std() * rng.normal(size=30)
    found = front(["x1", "1/(x1 - 2)"], noisy)
    assert str(found[-1].expression) == "1/(x1 - 2)"
    found = front(["x1", "1/(x1 - 2)"], law)
    assert found[-1].loss <= 1e-20


def test_a_fit_of_noise_has_no_aliased_sine():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 100.0, (15, 1))
    y = np.log(1.0 + X[:, 0]) + 0.1 * rng.normal(size=15)
    model = DGSRRegressor(generator=None, max_evaluations=30_000, random_state=0).fit(X, y)
    for candidate in model.pareto_front_:
        assert not weak_points(candidate.expression, X.T)
