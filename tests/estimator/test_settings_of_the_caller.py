"""What a program has told numpy and the warnings filter to do changes no fit, and no fit changes it."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import dgsr
from dgsr.expressions import Expression
from searches import X, Y, flat_regressor

RNG = np.random.default_rng(0)
SPOILT = np.where(np.arange(len(Y)) % 13 == 5, 30.0, X[:, 0] ** 2 + 0.01 * RNG.normal(size=len(Y)))
FAST = {"generator": None, "look_up": False}
TABLES = {
    "noise": (X, Y + 0.05 * RNG.normal(size=len(Y)), {"generator": None}),
    "outliers": (X, SPOILT, FAST),
    "over decades": (X, 10.0 ** (4.0 * Y), FAST),
    "no constants": (X, Y, {"library": "koza", "generator": None}),
    "huge and tiny": (X * [1e200, 1e-200], Y * 1e-100, FAST),
    "a loss": (X, Y, {"loss": "log(target/prediction)**2"} | FAST),
    "held out": (X, Y, {"selection": "holdout"} | FAST),
}


@contextmanager
def strict():
    """Every doubt of numpy is an error, and its numbers are printed with two digits, as in version 1.13."""
    before, printed = np.seterr(all="raise"), np.get_printoptions()
    np.set_printoptions(precision=2, suppress=True, threshold=2, legacy="1.13")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # what a fit has to say of itself
            yield
        assert set(np.geterr().values()) == {"raise"}
    finally:
        np.seterr(**before)
        np.set_printoptions(**printed)


def used(table, path):
    """What a fit leaves to look at, once it has been used in every way that computes something."""
    X, y, settings = table
    settings = {"max_evaluations": 500, "batch_size": 50, "random_state": 0, "max_length": 12} | settings
    model = flat_regressor(**settings).fit(X, y)
    front, formula = model.pareto_front_, model.expression_
    model.save(path)
    model.report(path.with_suffix(".html"))
    shown = [
        repr(front),
        front.to_html(),
        front.to_frame().to_string(),
        front.candidate_of(formula).constants_text(),
    ]
    shown += [
        formula.text,
        formula.latex,
        formula.mathml,
        formula.to_python(),
        formula.to_c(),
        str(formula.sympy),
    ]
    values = [model.predict(2.0 * X, index=rule) for rule in ("mdl", "bic", "score", "accuracy")]
    values += [*model.predict(X, return_std=True), dgsr.load(path).predict(X), formula(X)]
    return shown, np.array(values)


@pytest.mark.parametrize("name", TABLES)
def test_settings_of_numpy_and_warnings_as_errors_change_nothing(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        usual = used(TABLES[name], tmp_path / "usual")
    with strict():
        found = used(TABLES[name], tmp_path / "strict")
    assert found[0] == usual[0]
    np.testing.assert_array_equal(found[1], usual[1])


def test_a_formula_overflows_in_silence():
    formula = Expression.from_text("exp(x1)/x1", dgsr.get_library("physics", 1))
    with strict():
        np.testing.assert_array_equal(formula(np.array([[1e6], [0.0]])), [np.inf, np.inf])


def test_a_warning_that_is_an_error_ends_no_search(monkeypatch, tmp_path):
    def full(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr("dgsr.fitting.checkpoint.write_atomically", full)
    settings = {"max_evaluations": 500, "batch_size": 50, "random_state": 0, "max_length": 12} | FAST
    usual = flat_regressor(**settings).fit(X, Y)
    model = flat_regressor(checkpoint=tmp_path / "checkpoint", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="checkpoint is an old one: the disk is full"):
            model.fit(X, Y)
    assert model.expression_ == usual.expression_
    assert model.n_evaluations_ == usual.n_evaluations_
