"""Peers give formulas that equal their predictions, within their limits, and say which package is missing."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from dgsr.benchmarking import METHODS, run_set
from dgsr.benchmarking.fits import described
from dgsr.benchmarking.methods import PACKAGES
from dgsr.benchmarking.peers import OperonRegressor, decimals_of, gplearn_text
from dgsr.expressions import Expression, get_library

PEERS = list(PACKAGES)
PHYSICS = get_library("physics", 3)


@pytest.fixture
def peer(request):
    """The function that makes a regressor of a peer that is installed."""
    pytest.importorskip(PACKAGES[request.param])
    return METHODS[request.param]


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).uniform(1.0, 3.0, (40, 3))
    return X, X[:, 0] * np.sin(X[:, 1]) / X[:, 2]


def operand(name, arity):
    return SimpleNamespace(name=name, arity=arity)


# --- formulas, without the packages ---------------------------------------------------------------


def test_a_program_of_gplearn_is_written_with_all_digits_of_its_constants():
    div, sub, log, sqrt = operand("div", 2), operand("sub", 2), operand("log", 1), operand("sqrt", 1)
    text = gplearn_text([div, sub, 0, -0.123456789012, log, sqrt, 2])
    assert text == "((x1 - (-0.123456789012)) / log(abs(sqrt(abs(x3)))))"
    X = np.array([[2.0, 0.0, -5.0]])
    expected = 2.123456789012 / np.log(np.sqrt(5.0))
    np.testing.assert_allclose(Expression.from_text(text, PHYSICS)(X), [expected], rtol=1e-14)


@pytest.mark.parametrize("name", ["neg", "inv", "abs", "sin", "cos", "add", "mul"])
def test_every_function_of_gplearn_is_the_operator_of_its_name(name):
    length = 1 + next(token.arity for token in PHYSICS.tokens if token.name == name)
    text = gplearn_text([operand(name, length - 1), 0, 1][:length])
    expression = Expression.from_text(text, PHYSICS)
    ours = Expression(PHYSICS, [PHYSICS.index[token] for token in (name, "x1", "x2")[:length]])
    X = np.random.default_rng(0).normal(size=(20, 3))
    np.testing.assert_allclose(expression(X), ours(X), rtol=1e-14)


class Model:
    """A fitted regressor of pyoperon whose formula is a + (b*x1)**2."""

    n_features_in_ = 3

    def get_model_string(self, tree, precision, names):
        a, b = (f"{node.Value:.{precision}f}" for node in tree.Nodes)
        return f"(({a}) + ((({b}) * {names[0]}) ^ 2))"


@pytest.mark.parametrize("size", [-1e-30, 1e-6, 1.0, 1e6, -1e30])
def test_the_text_of_operon_keeps_the_digits_of_small_and_large_numbers(size):
    a, b = float(np.float32(size / 3.0)), -0.5
    regressor = OperonRegressor()
    regressor._model = Model()
    expression = regressor._expression(SimpleNamespace(Nodes=[SimpleNamespace(Value=v) for v in (a, b)]))
    np.testing.assert_allclose(expression(np.array([[0.0, 7.0, 7.0]])), [a], rtol=1e-8)
    np.testing.assert_allclose(expression(np.array([[3.0, 7.0, 7.0]])), [a + 2.25], rtol=1e-8)


def test_numbers_too_far_apart_for_all_digits_are_cut_at_the_small_one():
    assert decimals_of([1e30, 1e-30, 0.0, float("inf")]) == 18
    assert decimals_of([0.0]) == decimals_of([]) == 9


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


@pytest.mark.parametrize("peer", PEERS, indirect=True)
def test_the_expression_of_a_peer_predicts_what_the_peer_predicts(peer, table):
    X, y = table
    regressor = peer(library="physics", max_evaluations=5_000, max_length=20, random_state=0).fit(X, y)
    predicted = regressor.predict(X)
    assert np.mean((y - predicted) ** 2) < np.var(y)
    np.testing.assert_allclose(regressor.expression_(X), predicted, rtol=1e-4, atol=1e-5)
    losses = [np.mean((y - each.expression(X)) ** 2) / np.var(y) for each in regressor.pareto_front_]
    np.testing.assert_allclose([each.loss for each in regressor.pareto_front_], losses, rtol=1e-3)
    assert str(regressor.expression_) in [str(each.expression) for each in regressor.pareto_front_]


@pytest.mark.parametrize("peer", PEERS, indirect=True)
def test_a_peer_stops_at_its_evaluations_or_its_seconds(peer, table):
    few = peer(max_evaluations=3_000, random_state=0).fit(*table)
    assert few.stop_reason_ == "max_evaluations"
    assert 1_000 <= few.n_evaluations_ <= 2 * 3_000
    start = time.perf_counter()
    brief = peer(max_evaluations=10**9, random_state=0, max_time=1.5).fit(*table)
    assert time.perf_counter() - start < 30.0  # several processes may share the processor
    assert described(brief)["stop_reason"] == "max_time"
