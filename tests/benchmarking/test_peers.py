"""Peers give formulas that equal their predictions, within their limits, and say which package is missing."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from dgsr.benchmarking import METHODS, run_set
from dgsr.benchmarking.fits import described
from dgsr.benchmarking.methods import PACKAGES
from dgsr.benchmarking.peers import OperonRegressor, decimals_of
from dgsr.expressions import Expression, get_library

PEERS = list(PACKAGES)
PHYSICS = get_library("physics", 3)


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).uniform(1.0, 3.0, (40, 3))
    return X, X[:, 0] * np.sin(X[:, 1]) / X[:, 2]


# --- formulas, without the packages ---------------------------------------------------------------


class Model:
    """A fitted regressor of pyoperon whose formula is a + (b*x1)**2."""

    def get_model_string(self, tree, precision, names):
        a, b = (f"{node.Value:.{precision}f}" for node in tree.Nodes)
        return f"(({a}) + ((({b}) * {names[0]}) ^ 2))"


@pytest.mark.parametrize("size", [-1e-30, 1e-6, 1.0, 1e6, -1e30])
def test_the_text_of_operon_keeps_the_digits_of_small_and_large_numbers(size):
    a, b = float(np.float32(size / 3.0)), -0.5
    regressor = OperonRegressor()
    regressor._model, regressor._columns, regressor.n_features_in_ = Model(), slice(None), 3
    expression = regressor._expression(SimpleNamespace(Nodes=[SimpleNamespace(Value=v) for v in (a, b)]))
    np.testing.assert_allclose(expression(np.array([[0.0, 7.0, 7.0]])), [a], rtol=1e-8)
    np.testing.assert_allclose(expression(np.array([[3.0, 7.0, 7.0]])), [a + 2.25], rtol=1e-8)


def test_numbers_too_far_apart_for_all_digits_are_cut_at_the_small_one():
    assert decimals_of([1e30, 1e-30, 0.0, float("inf")]) == 18
    assert decimals_of([0.0]) == decimals_of([]) == 9


class Line:
    """Stands in for the regressor of pyoperon, with the line through the data as its formula."""

    def __init__(self, max_time, **parameters):
        Line.max_time = max_time

    def fit(self, X, y):
        self.weights = np.linalg.lstsq(X, y, rcond=None)[0]
        self.model_ = SimpleNamespace(Nodes=[SimpleNamespace(Value=weight) for weight in self.weights])
        self.pareto_front_ = [{"tree": self.model_, "mean_squared_error": 0.0}]
        self.stats_ = {"residual_evaluations": 2, "jacobian_evaluations": 1}
        return self

    def predict(self, X):
        return X @ self.weights

    def get_model_string(self, tree, precision, names):
        terms = zip(tree.Nodes, names, strict=True)
        return " + ".join(f"({node.Value:.{precision}f})*{name}" for node, name in terms)


@pytest.fixture
def line(monkeypatch):
    package = SimpleNamespace(SymbolicRegressor=Line)
    monkeypatch.setattr("dgsr.benchmarking.peers.imported", {"pyoperon.sklearn": package}.get)


@pytest.mark.parametrize("matter", [[2, 6, 9], [0, 1, 3, 7, 10, 11]])
def test_a_formula_in_selected_columns_has_the_numbers_that_these_have_in_the_table(line, matter):
    X = np.random.default_rng(0).normal(size=(300, 12))
    y = X[:, matter] @ (3.0 + np.arange(len(matter)))
    regressor = METHODS["operon-selected"]().fit(X, y)
    fresh = np.random.default_rng(1).normal(size=(50, 12))
    expected = fresh[:, matter] @ (3.0 + np.arange(len(matter)))
    for expression in (regressor.expression_, regressor.pareto_front_[0].expression):
        assert expression.library == get_library("physics", 12)
        np.testing.assert_allclose(expression(fresh), expected, atol=1e-6)
    np.testing.assert_allclose(regressor.predict(fresh), expected)
    assert len(regressor._model.weights) == 6


@pytest.mark.parametrize("method", ["operon-selected", "operon"])
def test_tables_of_few_columns_are_searched_whole(line, method):
    X = np.random.default_rng(0).normal(size=(40, 2))
    regressor = METHODS[method]().fit(X, X @ [2.0, -1.0])
    np.testing.assert_allclose(regressor.expression_(X), X @ [2.0, -1.0], atol=1e-6)


@pytest.mark.parametrize(("max_time", "left"), [(10.0, 7), (1.0, 1), (None, None)])
def test_the_seconds_of_a_selection_are_taken_from_those_of_the_search(line, monkeypatch, max_time, left):
    seconds = iter([0.0, 2.5, 2.5, 9.5])  # the forest takes 2.5 seconds, the search 7
    monkeypatch.setattr("dgsr.benchmarking.peers.time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    X = np.random.default_rng(0).normal(size=(40, 8))
    regressor = METHODS["operon-selected"](max_time=max_time).fit(X, X[:, 3])
    assert Line.max_time == left
    assert regressor.stop_reason_ == ("max_evaluations" if left is None else "max_time")


# --- the packages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", PEERS)
def test_a_package_that_is_missing_is_named_before_anything_runs(method, monkeypatch):
    def refuse(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr("dgsr.benchmarking.peers.importlib.import_module", refuse)
    package = PACKAGES[method]
    with pytest.raises(ValueError, match=f"{package} cannot be imported .*pip install {package}"):
        run_set("feynman_d2", methods=["gp", method])
    with pytest.raises(ValueError, match=f"pip install {package}"):
        METHODS[method]().fit(np.ones((3, 1)), np.arange(3.0))


@pytest.mark.peers
@pytest.mark.parametrize("method", PEERS)
def test_the_expression_of_a_peer_predicts_what_the_peer_predicts(method, table):
    X, y = table
    regressor = METHODS[method](library="physics", max_evaluations=5_000, max_length=20, random_state=0).fit(
        X, y
    )
    predicted = regressor.predict(X)
    assert np.mean((y - predicted) ** 2) < np.var(y)
    np.testing.assert_allclose(regressor.expression_(X), predicted, rtol=1e-4, atol=1e-5)
    losses = [np.mean((y - each.expression(X)) ** 2) / np.var(y) for each in regressor.pareto_front_]
    np.testing.assert_allclose([each.loss for each in regressor.pareto_front_], losses, rtol=1e-3)
    assert str(regressor.expression_) in [str(each.expression) for each in regressor.pareto_front_]


@pytest.mark.peers
@pytest.mark.parametrize("method", PEERS)
def test_a_peer_stops_at_its_evaluations_or_its_seconds(method, table):
    few = METHODS[method](max_evaluations=3_000, random_state=0).fit(*table)
    assert few.stop_reason_ == "max_evaluations"
    assert 1_000 <= few.n_evaluations_ <= 2 * 3_000
    start = time.perf_counter()
    brief = METHODS[method](max_evaluations=10**9, random_state=0, max_time=1.5).fit(*table)
    assert time.perf_counter() - start < 30.0  # several processes may share the processor
    assert described(brief)["stop_reason"] == "max_time"


@pytest.mark.peers
@pytest.mark.parametrize("name", OperonRegressor.names)
def test_the_text_of_operon_names_every_operator_as_we_do(name, monkeypatch):
    length = 1 + next(token.arity for token in PHYSICS.tokens if token.name == name)
    ours = Expression(PHYSICS, [PHYSICS.index[token] for token in (name, "x1", "x2")[:length]])
    X = np.random.default_rng(0).uniform(-0.9 if name in ("abs", "tanh") else 0.1, 0.9, (40, 3))
    monkeypatch.setattr(OperonRegressor, "names", {name: OperonRegressor.names[name]})
    regressor = OperonRegressor(max_evaluations=20_000, random_state=0).fit(X, ours(X))
    np.testing.assert_allclose(regressor.expression_(X), ours(X), rtol=1e-3, atol=1e-3)
