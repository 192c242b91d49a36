"""The SRBench submission in examples/srbench, run as SRBench runs it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import pickle
import re
import signal
import sys
import time
import tomllib
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sympy
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sympy.parsing.sympy_parser import parse_expr

from dgsr.cli.tabular import read_table
from dgsr.expressions import Expression, get_library
from dgsr.pareto import Candidate, ParetoFront
from dgsr.problems import load_problem

pytestmark = pytest.mark.search

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "srbench"


class TimeOutException(Exception):
    """What SRBench's alarm raises in the middle of a fit."""


@pytest.fixture(scope="module")
def submission():
    """The module as SRBench imports it: under a name of its own, from a file."""
    name = "methods_dgsr_regressor"
    spec = importlib.util.spec_from_file_location(name, FOLDER / "regressor.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickle looks its class up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[name]


def law():
    """A law of Feynman's lectures, 3 columns whose names mean something in sympy."""
    problem = load_problem("feynman_III_17_37")
    sample = problem.sample(0)
    return pd.DataFrame(sample.X_train, columns=list(problem.variable_names)), sample.y_train


def measurements():
    table = read_table(ROOT / "examples" / "data" / "airfoil_self_noise.csv", "sound_pressure")
    return pd.DataFrame(table.X, columns=list(table.feature_names)), table.y


@pytest.fixture(scope="module")
def measured(submission):
    """An estimator that is fitted to the measurements, and these."""
    X, y = measurements()
    return quick(submission, max_evaluations=200, max_length=10).fit(X, y), X, y


def noise(n_samples=60):
    """A target that no formula fits: its search never ends by itself."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.uniform(0.5, 2.0, (n_samples, 2)), columns=["a", "b"]), rng.normal(size=n_samples)


def quick(submission, **parameters):
    """SRBench's estimator with a budget spent in a blink, no network, and a formula of some length."""
    defaults = {"generator": None, "max_evaluations": 500, "max_time": None, "selection": "accuracy"}
    defaults |= {"look_up": False, "max_length": 15}
    return clone(submission.est).set_params(**{**defaults, **parameters})


def with_formula(submission, text, names):
    """An estimator whose formula is `text`, fitted to its values on data of columns `names`."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 2.0, (30, len(names))), columns=names)
    variables = [f"v{i}" for i in range(len(names))]
    est = quick(submission, max_evaluations=20, max_length=5).fit(
        X, X.to_numpy() @ np.arange(1.0, len(names) + 1)
    )
    expression = Expression.from_text(text, get_library("physics", len(names)), variables)
    est.pareto_front_ = ParetoFront([Candidate(1, 0.0, expression.with_feature_names(names))], chosen=0)
    return est, X


def values_of(text, X, names=None):
    """Evaluate a formula's text as SRBench reads it: every column a symbol of its name."""
    names = list(X.columns) if names is None else names
    symbols = {name: sympy.Symbol(name) for name in names}
    expression = parse_expr(text, local_dict=dict(symbols))
    assert expression.free_symbols <= set(symbols.values())
    arguments = sympy.symbols(f"arg:{len(names)}")
    renamed = expression.subs(dict(zip(symbols.values(), arguments)), simultaneous=True)
    values = sympy.lambdify(arguments, renamed, "numpy")(*X.to_numpy(dtype=float).T)
    return np.broadcast_to(values, len(X))


# The protocol ------------------------------------------------------------------------------------


def test_the_module_has_what_srbench_asks_for_and_no_option_it_refuses(submission):
    kinds = {
        "test_params": dict,
        "max_train_samples": int,
        "scale_x": bool,
        "scale_y": bool,
        "pre_train": types.FunctionType,
        "use_dataframe": bool,
    }
    assert all(isinstance(value, kinds[name]) for name, value in submission.eval_kwargs.items())
    assert callable(submission.model)
    assert set(submission.eval_kwargs["test_params"]) <= set(submission.est.get_params())
    assert {"max_time", "random_state"} <= set(vars(submission.est))


@pytest.mark.parametrize(
    ("data", "least"), [(law, 0.9), pytest.param(measurements, 0.2, marks=pytest.mark.slow)]
)
def test_a_run_in_test_mode_gives_predictions_and_a_formula_that_equals_them(submission, data, least):
    X, y = data()
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.75, random_state=42)
    est = clone(submission.est)
    est.random_state = 42
    est.set_params(**submission.eval_kwargs["test_params"])
    est.max_time = 360  # written as an attribute, over whatever the parameters say
    est.fit(X_train, y_train)
    text = submission.model(est, X_train)
    prediction = est.predict(X_test)
    assert prediction.shape == y_test.shape
    assert np.isfinite(prediction).all()
    assert r2_score(y_test, prediction) > least
    with np.errstate(invalid="ignore"):  # a formula may be undefined in a row that no fit has seen
        values = values_of(text, X_test)
    # Such rows get the mean of the target.
    np.testing.assert_allclose(np.where(np.isfinite(values), values, est.mean_), prediction, rtol=1e-6)
    json.dumps({"params": est.get_params(), "symbolic_model": text, "size": submission.complexity(est)})


def test_the_formula_of_a_law_is_the_law(submission):
    X, y = law()
    est = clone(submission.est).set_params(**submission.eval_kwargs["test_params"])
    # Rounding decides which way a search goes: one of five finds it.
    seeds = (seed for seed in range(5) if est.set_params(random_state=seed).fit(X, y).score(X, y) == 1.0)
    assert next(seeds, None) is not None
    symbols = {name: sympy.Symbol(name) for name in X}
    found = parse_expr(submission.model(est, X), local_dict=dict(symbols))
    truth = symbols["beta"] * (1 + symbols["alpha"] * sympy.cos(symbols["theta"]))
    assert sympy.simplify(found - truth) == 0


def test_refitting_the_same_object_leaves_nothing_of_the_first_data(submission):
    X, y = law()
    settings = {"max_evaluations": 200, "max_length": 10}
    est = quick(submission, **settings).fit(X[:100], y[:100])
    other, target = noise()
    fresh = quick(submission, **settings).fit(other, target)
    est.fit(other, target)
    assert submission.model(est, other) == submission.model(fresh, other)
    assert est.mean_ == fresh.mean_ == target.mean()


def test_the_random_state_srbench_writes_decides_the_result(submission):
    X, y = noise()
    fronts = []
    for seed in (1, 1, 2):
        est = quick(submission, max_evaluations=200, max_length=10)
        est.random_state = seed
        fronts.append([submission.model(member) for member in submission.get_population(est.fit(X, y))])
    assert fronts[0] == fronts[1]
    assert fronts[0] != fronts[2]


def test_tuning_with_grid_search_gives_an_estimator_that_model_understands(submission):
    X, y = noise()
    est = quick(submission, max_evaluations=200, max_length=10)
    search = GridSearchCV(est, [{"selection": ["bic"]}, {}], cv=2)
    tuned = search.fit(X, y).best_estimator_
    np.testing.assert_allclose(values_of(submission.model(tuned, X), X), tuned.predict(X), rtol=1e-6)


def test_a_pickled_estimator_predicts_and_writes_the_same(submission, measured):
    est, X, _ = measured
    again = pickle.loads(pickle.dumps(est))
    assert again.get_params() == est.get_params()
    assert submission.model(again, X) == submission.model(est, X)
    np.testing.assert_array_equal(again.predict(X), est.predict(X))


def test_rows_the_formula_has_no_value_for_get_the_mean_of_the_target(submission):
    X = pd.DataFrame({"a": np.linspace(1.0, 3.0, 40)})
    est = quick(submission, max_evaluations=20_000).fit(X, np.log(X["a"]))
    beyond = pd.DataFrame({"a": [2.0, -1.0]})
    assert np.isnan(est.expression_(beyond.to_numpy())).tolist() == [False, True]
    np.testing.assert_allclose(est.predict(beyond), [np.log(2.0), np.log(X["a"]).mean()])


def test_the_population_is_the_front_each_with_its_own_formula_and_predictions(submission, measured):
    est, X, y = measured
    population = submission.get_population(est)
    assert 1 < len(population) == len(est.pareto_front_) <= 100
    losses = [np.mean((y - member.predict(X)) ** 2) / y.var() for member in population]
    np.testing.assert_allclose(losses, [candidate.loss for candidate in est.pareto_front_], rtol=1e-6)
    assert len({submission.model(member, X) for member in population}) == len(population)
    assert submission.get_best_solution(est) is est


# Time --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def alarm():
    """Let an alarm raise SRBench's exception; give a callback that sets it, once the search is on its way."""

    def ring(signum, frame):
        raise TimeOutException

    def callback(progress):
        if progress.evaluations > 500 and not signal.getitimer(signal.ITIMER_REAL)[0]:
            signal.setitimer(signal.ITIMER_REAL, 0.1)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield callback
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="SRBench's alarm is one of Unix")
@pytest.mark.parametrize("generator", ["auto", None])
def test_the_alarm_passes_through_fit_and_leaves_the_best_formula_so_far(submission, generator):
    X, y = noise()
    est = quick(submission, generator=generator, look_up=True, max_evaluations=100).fit(X, y)  # compiles
    started = time.perf_counter()
    with alarm() as callback, pytest.raises(TimeOutException):
        est.set_params(max_evaluations=10**12, max_time=3600, callback=callback).fit(X, y)
    assert time.perf_counter() - started < 20.0
    assert est.stop_reason_ == "error"
    assert est.n_evaluations_ > 500
    assert est.max_time == 3600
    prediction = est.predict(X)
    assert np.isfinite(prediction).all()
    np.testing.assert_allclose(values_of(submission.model(est, X), X), prediction, rtol=1e-6)


@pytest.mark.slow
def test_the_whole_fit_ends_within_max_time(submission):
    X, y = noise(2000)
    est = quick(submission, max_evaluations=500).fit(X, y)  # compiles
    est.set_params(max_evaluations=10**12)
    est.max_time = 2.0
    started = time.perf_counter()
    est.fit(X, y)
    seconds = time.perf_counter() - started
    assert est.stop_reason_ == "max_time"
    assert est.max_time == 2.0
    # The search alone: finishing, half a second here, may wait for a busy machine.
    assert 1.5 < est.history_[-1]["seconds"] < 2.0
    assert seconds < 6.0


# Formulas as text --------------------------------------------------------------------------------

WORDS = ["beta", "gamma", "zeta", "S", "I", "E", "N", "Q", "O", "C", "co", "x1", "x_0"]


def test_names_sympy_gives_a_meaning_stay_as_they_are(submission):
    assert submission.readable_names(WORDS) == WORDS
    terms = "+".join(f"{i + 1.5}*v{i}" for i in range(len(WORDS)))
    est, X = with_formula(submission, f"exp(0.1*v0)*sqrt(v4)+cos(v5)+exp(1)*v1+{terms}", WORDS)
    text = submission.model(est, X)
    assert set(WORDS) <= set(re.findall(r"[^\W\d]\w*", text))
    np.testing.assert_allclose(values_of(text, X), est.predict(X), rtol=1e-12)


ODD = [
    "lambda",
    "wing length",
    "p.T",
    "2nd",
    "exp",
    "pi",
    "None",
    "a-b",
    "a_b",
    "\u00b5",
    "Float",
    "",
    "log ",
]


def test_names_that_cannot_stand_in_a_formula_get_ones_that_can(submission):
    readable = submission.readable_names(ODD)
    assert len(set(readable)) == len(ODD)
    assert readable[:4] == ["lambda_", "wing_length", "p_T", "x_2nd"]
    assert readable[ODD.index("a_b")] == "a_b" != readable[ODD.index("a-b")]
    assert readable == submission.readable_names(readable)
    terms = "+".join(f"{i + 1.5}*v{i}" for i in range(len(ODD)))
    est, X = with_formula(submission, f"exp(v4)+log(v5)*pi+tanh(v0)/v1+{terms}", ODD)
    np.testing.assert_allclose(
        values_of(submission.model(est, X), X, readable), est.predict(X), rtol=1e-12, atol=1e-12
    )


def test_without_data_the_columns_of_the_fit_name_the_variables(submission):
    X, _ = noise()
    y = X["a"] / X["b"]
    est = quick(submission).fit(X, y)
    unnamed = quick(submission).fit(X.to_numpy(), y)
    assert submission.model(est) == submission.model(est, X) == submission.model(unnamed, X) == "a / b"
    assert submission.model(unnamed) == "x1 / x2"


@pytest.mark.parametrize(
    "text",
    [
        "1e-05*v0+1e-310*v1+1.5e+20",
        "0.1234567890123456*v0-0.30000000000000004",
        "(-2.5e-07)*v0**3/(v1-1e10)",
        "v0**1.7+sqrt(v1)+1/sqrt(v0)+v0**(1/3)",
        "arcsin(0.3*v0)+arccos(v1/3)+tanh(v0)+abs(v0-1)+abs(exp(v0))",
        "v0/3+2*pi*v1+exp(1)*v0",
        "sin(12345.678901234567*v0)",
        "2.5",
    ],
)
def test_numbers_and_functions_are_read_back_to_the_last_digits(submission, text):
    est, X = with_formula(submission, text, ["v0", "v1"])
    written = submission.model(est, X)
    np.testing.assert_allclose(values_of(written, X), est.predict(X), rtol=1e-13)
    assert "arc" not in written


def test_what_srbench_replaces_in_the_text_does_not_stand_there(submission):
    # Its assessment takes p/ and | for operators of other methods, and ^ for a power.
    est, X = with_formula(submission, "v0/v1+abs(v0-v1)+v0**2/3", ["p", "q"])
    assert not re.search(r"p/|\||\^|\[|\]", submission.model(est, X))


def test_a_formulas_complexity_is_the_number_of_its_nodes(submission):
    est, X = with_formula(submission, "3.5*v0+cos(v1)", ["a", "b"])
    assert submission.complexity(est) == 6  # the sum, 3.5*a, 3.5, a, cos(b), b
    expression = parse_expr(submission.model(est, X))
    assert submission.complexity(expression) == 6


# The folder --------------------------------------------------------------------------------------


def test_the_metadata_has_the_fields_srbench_asks_for():
    fields = re.findall(r"^(\w+):", (FOLDER / "metadata.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(fields) == ["authors", "description", "email", "name", "url"]


def requirements(path):
    """Names and versions in a list of requirements: yml, txt or toml."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [re.match(r"\s*(?:- )?([A-Za-z][\w-]*)((?:[<>=]=?[\w.]+)?)$", line) for line in lines]
    return {match[1]: match[2] for match in found if match}


def test_the_environment_and_the_requirements_are_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = dict(re.fullmatch(r"([\w-]+)(.*)", line).groups() for line in project["dependencies"])
    conda = requirements(FOLDER / "environment.yml")
    pip = requirements(FOLDER / "requirements.txt")
    constraints = requirements(ROOT / "constraints.txt")
    conda["torch"] = conda.pop("pytorch-cpu")
    assert set(needed) <= set(conda) | set(pip)
    assert not set(conda) & set(pip)
    assert all(conda[name] == version for name, version in needed.items() if name in conda)
    assert all(constraints[name] == version for name, version in pip.items())


def test_the_installation_stops_at_the_first_error_and_names_the_projects_version():
    from dgsr import __version__

    script = (FOLDER / "install.sh").read_text(encoding="utf-8")
    assert re.search(r"^set -e$", script, re.MULTILINE)
    assert f"@v{__version__}}}" in script
