"""The estimator: what a fit leaves behind, however it ends, and what it refuses."""

from __future__ import annotations

import io
import math
import pickle
import random
import re
import subprocess
import sys
import time
import warnings
from fractions import Fraction
from functools import cache

import joblib
import numpy as np
import pandas as pd
import pytest
import sympy
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from dgsr import DGSRRegressor
from dgsr.data.population import Population
from dgsr.estimator.parameters import CONFIG
from dgsr.expressions import Expression, Library, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.kernels.random import new_state
from dgsr.pareto import SELECTIONS
from dgsr.reporting.progress import begin_phase
from dgsr.search import Search
from dgsr.search.evolution import CompiledEvolution, random_population
from searches import flat_regressor, tiny_generator

pytestmark = pytest.mark.search

SLOW = pytest.mark.slow


def data(n_features=2, n_samples=40, seed=0):
    """Inputs, and a target that no short formula fits."""
    X = np.random.default_rng(seed).uniform(0.5, 2.0, (n_samples, n_features))
    return X, X[:, 0] * np.exp(-X[:, -1]) + 0.05 * np.sin(7.0 * X[:, 0])


def small(**parameters):
    """A regressor without the network, of a budget spent in a blink."""
    return flat_regressor(**{"generator": None, "max_evaluations": 2000, "random_state": 0, **parameters})


def quick(**parameters):
    """A regressor of a tenth of that time, for what does not hang on which formulas are found."""
    return small(**{"max_evaluations": 300, "max_length": 12, "look_up": False, **parameters})


def plain(**parameters):
    """A quick regressor without constants: formulas with some take a tenth of a second to finish."""
    return quick(**{"library": "koza", "max_evaluations": 500, **parameters})


def exact_fit(X, y, **parameters):
    """The first exact one of five fits: rounding decides which way a search goes, and which seed finds it."""
    fits = (small(**parameters, random_state=seed).fit(X, y) for seed in range(5))
    return next(model for model in fits if model.stop_reason_ == "exact fit")


def found(model):
    """What two equal fits have in common."""
    front = [(c.complexity, c.loss, c.expression.text) for c in model.pareto_front_]
    rewards = [entry["mean_reward"] for entry in model.history_]
    return front, str(model.expression_), model.n_evaluations_, rewards


# --- the formula is what predicts -----------------------------------------------------------------


def assert_predicts_as_sympy_says(expression, X):
    """Compare `expression` with its sympy form in numpy, to the rounding that its steepness brings."""
    symbols = [sympy.Symbol(name) for name in expression.feature_names]
    predicted = expression(X)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Complex, as sympy may write log(x**2) as a sum of logarithms of negative numbers.
        said = sympy.lambdify(symbols, expression.sympy, "numpy")(*X.T.astype(complex)) + np.zeros(len(X))
        steepness = np.abs(expression(X * (1.0 + 1e-9)) - predicted)
    at = np.isfinite(predicted) & np.isfinite(steepness)
    assert np.all(np.abs(said - predicted)[at] <= 1e-8 * (1.0 + np.abs(predicted[at])) + steepness[at])


@pytest.mark.parametrize("library", ["auto", "koza", "koza-const", "synth"])
def test_predict_equals_the_sympy_expression(library):
    limits = Constraints(max_length=15)
    tokens = get_library("physics" if library == "auto" else library, 2)
    targets = random_population(3, tokens, limits.grammar(tokens), new_state(1))
    X = np.random.default_rng(1).uniform(0.5, 2.0, (30, 2))
    budget = 300 if tokens.has_constants else 3000
    for i in range(len(targets)):
        y = targets[i](X)
        if not np.isfinite(y).all() or np.ptp(y) == 0.0:
            continue
        settings = {"max_evaluations": budget, "max_length": 20, "look_up": False}
        model = small(library=library, **settings).fit(X, y + 0.01 * X[:, 0])
        assert model.library_ == tokens
        np.testing.assert_array_equal(model.predict(X), model.expression_(X))
        assert model.sympy_expr_ == model.expression_.sympy
        for candidate in model.pareto_front_:
            assert_predicts_as_sympy_says(candidate.expression, X)


def test_the_losses_of_the_front_are_those_of_its_formulas():
    X, y = data()
    model = quick(max_evaluations=2000).fit(X, y)
    assert len(model.pareto_front_) > 2
    for candidate in model.pareto_front_:
        nmse = np.mean((y - candidate.expression(X)) ** 2) / y.var()
        assert candidate.loss == pytest.approx(nmse, rel=1e-12)
        assert candidate.complexity == candidate.expression.complexity
    assert model.expression_ in [candidate.expression for candidate in model.pareto_front_]


def test_an_exact_fit_ends_the_search_with_the_simplest_exact_form():
    X, _ = data()
    model = small(max_evaluations=10**6).fit(X, X[:, 0] * X[:, 1] + X[:, 0])
    assert model.stop_reason_ == "exact fit"
    assert model.n_evaluations_ < 10**6
    exact = [c for c in model.pareto_front_ if c.loss <= model.pareto_front_.tolerance]
    assert model.expression_ == exact[0].expression
    assert sympy.expand(model.sympy_expr_ - sympy.sympify("x1*x2 + x1")) == 0


def test_a_library_of_another_width_is_fitted_to_the_columns():
    X, y = data(n_features=3)
    model = small(library=get_library("koza", 1), look_up=False).fit(X, y)
    assert model.library_ == get_library("koza", 3)
    assert found(model) == found(small(library="koza", look_up=False).fit(X, y))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_selection_is_that_of_the_front(selection):
    X, y = data()
    model = quick(selection=selection, max_evaluations=2000).fit(X, y)
    front = model.pareto_front_
    assert (front.held_out is not None) == (selection == "holdout")
    assert front.tolerance == CONFIG["tolerance"][0]
    assert model.expression_ == front[front.select(selection)].expression


def test_selection_by_accuracy_takes_the_lowest_loss():
    X, y = data()
    model = plain(selection="accuracy").fit(X, y)
    assert model.expression_ == model.pareto_front_[-1].expression


# --- the default library, with constants ----------------------------------------------------------


def test_the_default_finds_a_law_in_a_small_noisy_table():
    X = np.random.default_rng(0).uniform(0.5, 4.0, (30, 2))
    truth = 3.0 * X[:, 0] * X[:, 1]
    y = truth + 0.02 * truth.std() * np.random.default_rng(1).normal(size=30)
    model = DGSRRegressor(random_state=0, max_evaluations=2_000).fit(X, y)
    assert model.library_ == get_library("physics", 2)
    # It is on the front; whether something longer looks better yet to the rule is a matter of noise.
    (law,) = (c for c in model.pareto_front_ if re.fullmatch(r"\d(\.\d{1,2})?\*x1\*x2", str(c.expression)))
    assert law.expression.constants[0] == pytest.approx(3.0, rel=0.02)
    assert model.score(X, truth) > 0.99


@pytest.mark.parametrize(
    ("text", "constants"), [("x1*x2/3", [3.0]), ("2*pi*x1*x2", [2 * np.pi]), ("0.125*x2 + sqrt(x1)", [0.125])]
)
def test_constants_are_those_a_person_would_write(text, constants):
    X, _ = data()
    y = Expression.from_text(text, get_library("physics", 2))(X)
    model = exact_fit(X, y, max_evaluations=20_000)
    assert str(model.expression_) == text
    assert model.expression_.constants.tolist() == constants


# Laws with a constant wherever another unit of x1, x2 or y puts one.
LAWS = {
    "product": ("3*x1*x2", lambda a, b, c: [3 * c / (a * b)]),
    "quotient": ("0.7*x1/x2", lambda a, b, c: [0.7 * c * b / a]),
    "sum": ("3*x1 + 0.7*x2", lambda a, b, c: [3 * c / a, 0.7 * c / b]),
}
units = [
    pytest.param(*(factor if name == which else 1.0 for name in ("x1", "x2", "y")), id=f"{which} {factor:g}")
    for which in ("x1", "x2", "y")
    for factor in (1e-9, 1e9)
]


@cache
def fitted_to_law(law):
    X, _ = data()
    return small(max_evaluations=20_000).fit(X, Expression.from_text(law, get_library("physics", 2))(X))


@pytest.mark.parametrize(("a", "b", "c"), units)
@pytest.mark.parametrize(("law", "constants"), LAWS.values(), ids=LAWS)
def test_other_units_change_the_constants_and_not_the_form(law, constants, a, b, c):
    X, _ = data()
    y = Expression.from_text(law, get_library("physics", 2))(X)
    one = fitted_to_law(law)
    other = small(max_evaluations=20_000).fit(X * [a, b], y * c)
    assert str(one.expression_) == law
    np.testing.assert_array_equal(other.expression_.tokens, one.expression_.tokens)
    np.testing.assert_allclose(other.expression_.constants, constants(a, b, c), rtol=1e-9)
    np.testing.assert_allclose(other.predict(X * [a, b]), c * y, rtol=1e-9)


@pytest.mark.parametrize(("a", "b", "c"), units)
def test_a_saturation_is_found_in_any_units(a, b, c):
    """And holds outside the data too."""

    def law(X):
        return X[:, 0] * X[:, 1] / (1.0 + X[:, 1])

    X, _ = data()
    exact = exact_fit(X * [a, b], c * law(X), max_evaluations=20_000, max_length=10)
    far = np.random.default_rng(1).uniform(5.0, 50.0, (20, 2))
    np.testing.assert_allclose(exact.predict(far * [a, b]), c * law(far), rtol=1e-7)
    assert len(exact.expression_.constants) <= 3


def test_no_formula_on_positive_columns_has_an_absolute_value():
    X, _ = data()
    front = (
        small(max_evaluations=4000, random_state=1).fit(X, X[:, 0] * X[:, 1] / (1 + X[:, 1])).pareto_front_
    )
    assert not any("abs(x" in str(candidate.expression) for candidate in front)


def erf(x):
    return math.erf(x)


@pytest.mark.slow
def test_an_operator_of_the_users_own_is_found_with_constants_around_and_in_it():
    library = get_library("physics", 1).with_operator("erf", erf, sympy.erf)
    X = np.random.default_rng(0).uniform(-2.0, 2.0, (40, 1))
    y = 2.5 * np.vectorize(math.erf)(0.75 * X[:, 0]) + 4.0
    model = exact_fit(pd.DataFrame(X, columns=["t"]), y, library=library, max_evaluations=20_000)
    # The search does not know that the operator is odd.
    assert str(model.expression_) in ("4 + 2.5*erf(0.75*t)", "4 - 2.5*erf(-0.75*t)")
    assert clone(model).library == library
    t = sympy.Symbol("t")
    assert sympy.nsimplify(model.sympy_expr_) == sympy.sympify("4 + 5*erf(3*t/4)/2", {"t": t})
    np.testing.assert_allclose(model.predict(pd.DataFrame(X, columns=["t"])), y, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict(pd.DataFrame(X, columns=["t"])), model.predict(pd.DataFrame(X, columns=["t"]))
    )


# --- weights and many rows ------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"library": "koza"}, {"generator": "tiny"}])
def test_a_weight_of_two_is_two_rows_and_a_weight_of_zero_none(settings):
    X, y = data()
    weight = np.arange(len(y)) % 4
    if "generator" in settings:
        settings = {**settings, "generator": tiny_generator()}
    weighted = quick(**settings).fit(X, y, weight)
    repeated = quick(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert found(weighted) == found(repeated)
    assert found(weighted) != found(quick(**settings).fit(X, y))


def test_of_weights_that_are_no_counts_the_ratios_matter():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    assert found(quick().fit(X, y, weight)) == found(quick().fit(X, y, 64.0 * weight))


def test_rows_of_no_weight_are_left_out():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, len(y))
    weight[::3] = 0.0
    kept = weight > 0
    whole = quick().fit(X, np.where(kept, y, 1e6), weight)
    assert found(whole) == found(quick().fit(X[kept], y[kept], weight[kept]))


def test_weights_say_which_law_is_found():
    X, _ = data()
    first = np.arange(len(X)) < 20
    y = np.where(first, 3.0 * X[:, 0], 0.5 * X[:, 1])
    for weight, law in ((first, "3*x1"), (~first, "0.5*x2")):
        assert str(small().fit(X, y, weight).expression_) == law
    front = small(selection="bic").fit(X, y, np.where(first, 1e6, 1.0)).pareto_front_
    assert "3*x1" in [str(candidate.expression) for candidate in front]


def test_the_losses_of_the_front_are_weighted():
    X, y = data()
    weight = np.random.default_rng(0).uniform(0.0, 3.0, len(y))
    model = quick(max_evaluations=2000).fit(X, y, weight)
    mean = np.average(y, weights=weight)
    variance = np.average((y - mean) ** 2, weights=weight)
    for candidate in model.pareto_front_:
        nmse = np.average((y - candidate.expression(X)) ** 2, weights=weight) / variance
        assert candidate.loss == pytest.approx(nmse, rel=1e-9)


BAD_WEIGHTS = {
    "all zero": (np.zeros(40), "is 0 in every row; give some row a weight above 0|at least one non-zero"),
    "negative": (np.linspace(-1, 1, 40), "[Nn]egative values"),
    "too few": (np.ones(39), r"sample_weight.shape == \(39,\), expected \(40,\)"),
    "nan for all": (np.nan, r"sample_weight has no value \(NaN\)"),
    "nan": (np.full(40, np.nan), r"sample_weight has no value \(NaN\) in 40 of 40 rows"),
}


@pytest.mark.parametrize(("weight", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_unusable_weights_are_refused(weight, message):
    model = small()
    with pytest.raises(ValueError, match=message):
        model.fit(*data(), weight)
    with pytest.raises(NotFittedError):
        model.predict(data()[0])


def test_a_target_that_is_constant_where_the_weight_is_not_zero_is_constant():
    X, y = data()
    y[:20] = 2.5
    with pytest.warns(UserWarning, match=r"y is 2\.5 in every row"):
        model = small().fit(X, y, np.arange(40) < 20)
    np.testing.assert_array_equal(model.predict(X), 2.5)


@pytest.mark.parametrize(
    ("max_rows", "n_searched"),
    [(25, 25), (None, 60), pytest.param(60, 60, marks=SLOW), pytest.param(61, 60, marks=SLOW)],
)
def test_the_search_reads_no_more_rows_than_asked_and_the_front_all(monkeypatch, max_rows, n_searched):
    searched = []

    class Spied(Search):
        def __init__(self, data, **options):
            searched.append(data)
            super().__init__(data, **options)

    monkeypatch.setattr("dgsr.fitting.plan.Search", Spied)
    X, y = data(n_samples=60)
    models = [plain(max_rows=max_rows, random_state=seed, loss="squared").fit(X, y) for seed in (0, 0, 1)]
    assert [d.columns.shape[1] for d in searched] == [n_searched] * 3
    assert found(models[0]) == found(models[1])
    assert np.array_equal(searched[0].y, searched[1].y)
    assert np.array_equal(searched[0].y, searched[2].y) == (n_searched == 60)
    for candidate in models[0].pareto_front_:
        nmse = np.mean((y - candidate.expression(X)) ** 2) / y.var()
        assert candidate.loss == pytest.approx(nmse, rel=1e-9)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("width", "height"), ("x 1", "lambda"), ("E", "I"), ("x2", "x1")])
def test_the_formula_bears_the_names_of_the_columns(names):
    X, _ = data()
    frame = pd.DataFrame(X, columns=list(names))
    model = small(max_evaluations=10**5).fit(frame, X[:, 0] / X[:, 1])
    assert str(model.expression_) == "/".join(f"`{name}`" if " " in name else name for name in names)
    a, b = map(sympy.Symbol, names)
    assert model.sympy_expr_ == a / b
    np.testing.assert_allclose(model.predict(frame), X[:, 0] / X[:, 1])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[[names[1], names[0]]])


def test_two_columns_of_one_name_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match=r"several columns named 'a'|unique column names"):
        small().fit(pd.DataFrame(X, columns=["a", "a"]), y)


# --- in scikit-learn's company --------------------------------------------------------------------


def test_it_works_in_a_pipeline():
    X, _ = data()
    scaled = MinMaxScaler((1, 2)).fit_transform(X)
    pipeline = make_pipeline(MinMaxScaler((1, 2)), small(max_evaluations=10**5)).fit(X, scaled.prod(axis=1))
    np.testing.assert_allclose(pipeline.predict(X), scaled.prod(axis=1))


@pytest.mark.slow
def test_a_grid_search_over_budgets_finds_the_same_on_two_processes():
    X, y = data(n_samples=60)
    grid = {"max_evaluations": [20, 1000]}
    one, two = (GridSearchCV(small(), grid, cv=2, n_jobs=n, error_score="raise").fit(X, y) for n in (1, 2))
    assert one.best_params_ == two.best_params_
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert found(one.best_estimator_) == found(two.best_estimator_)


def test_a_clone_has_the_parameters_and_not_the_fit():
    X, y = data()
    model = plain(batch_size=50, max_length=17).fit(X, y)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(X)


def _through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copy", [lambda m: pickle.loads(pickle.dumps(m)), _through_joblib])
def test_a_fitted_regressor_survives_pickling(copy):
    X, y = data()
    model = quick(generator=tiny_generator()).fit(X, y)
    twin = copy(model)
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert found(twin) == found(model)
    assert found(twin.fit(X, y)) == found(model)


# --- the same seed, the same result; nothing else is touched --------------------------------------


@pytest.mark.parametrize(
    ("generator", "gp"),
    [
        pytest.param(None, "deap", marks=SLOW),
        ("tiny", "compiled"),
        pytest.param(None, "compiled", marks=SLOW),
        pytest.param("tiny", "deap", marks=SLOW),
    ],
)
def test_the_same_random_state_gives_the_same_result_whatever_the_threads(generator, gp):
    X, y = data()
    given = tiny_generator() if generator else None
    settings = {"generator": given, "gp": gp, "gp_generations": 2}
    first = quick(**settings).fit(X, y)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert found(quick(**settings).fit(X, y)) == found(first)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert found(quick(**{**settings, "random_state": 1}).fit(X, y)) != found(first)


def test_a_random_state_instance_is_drawn_from_once():
    X, y = data()
    used, other = np.random.RandomState(3), np.random.RandomState(3)
    plain(random_state=used).fit(X, y)
    other.randint(2)
    assert used.randint(2**30) == other.randint(2**30)


@pytest.mark.parametrize("gp", ["compiled", "deap"])
def test_a_fit_leaves_global_state_alone(gp):
    def state():
        kind, keys, *rest = np.random.get_state()  # noqa: NPY002
        numpy_state = kind, keys.tobytes(), *rest
        return {
            "random": random.getstate(),
            "numpy": numpy_state,
            "torch": torch.get_rng_state().numpy().tobytes(),
            "threads": torch.get_num_threads(),
            "gradients": torch.is_grad_enabled(),
            "dtype": torch.get_default_dtype(),
            "errors": np.geterr(),
            "filters": list(warnings.filters),
        }

    X, y = data()
    before = state()
    small(
        generator="untrained",
        gp=gp,
        gp_generations=2,
        max_length=12,
        max_evaluations=500,
        look_up=gp == "compiled",
    ).fit(X, y)
    assert state() == before


@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_a_fit_refines_its_decoder_where_the_caller_has_no_gradients(without_gradients):
    X, y = data()
    settings = {"generator": "untrained", "max_length": 12, "max_evaluations": 500, "look_up": False}
    expected = found(small(**settings).fit(X, y))
    with without_gradients():
        assert found(small(**settings).fit(X, y)) == expected
        assert not torch.is_grad_enabled()


# --- the generator --------------------------------------------------------------------------------


def test_without_evolution_every_program_is_sampled_and_refinement_does_not_begin_again(monkeypatch):
    drawn = []

    def counted(n, *arguments):
        drawn.append(n)
        return random_population(n, *arguments)

    monkeypatch.setattr("dgsr.search.proposals.random_population", counted)
    settings = {"library": "koza", "max_length": 12, "batch_size": 50, "look_up": False}
    random = np.random.default_rng(0)
    X, y = random.uniform(1.0, 2.0, (20, 2)), random.normal(size=20)
    restarts = []
    for gp_generations in (0, 1):
        drawn.clear()
        model = small(
            generator=tiny_generator("koza"), gp_generations=gp_generations, max_evaluations=2_500, **settings
        ).fit(X, y)
        assert (sum(drawn) > 0) == (gp_generations > 0)
        restarts.append(model.history_[-1]["restarts"])
    assert restarts[0] == 0 < restarts[1]


@pytest.mark.parametrize("objective", ["pqt", "risk-seeking", "vpg"])
def test_a_given_generator_is_not_changed(objective):
    X, y = data()
    generator = tiny_generator()
    before = {name: tensor.clone() for name, tensor in generator.state_dict().items()}
    modes = [module.training for module in generator.modules()]
    model = quick(generator=generator, objective=objective, batch_size=50, gp_generations=2)
    model.fit(X, y)
    assert len(model.history_) > 2
    assert model.generator_ == "given"
    after = generator.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert [module.training for module in generator.modules()] == modes
    assert all(p.grad is None and p.requires_grad for p in generator.parameters())


@pytest.mark.parametrize(("refine", "is_refined"), [("auto", True), (False, False)])
def test_a_fit_refines_the_shipped_decoder_unless_refine_is_false(refine, is_refined, monkeypatch):
    monkeypatch.setattr("dgsr.search.evaluation.Fitted.refined_every", 500)
    settings = {"generator": "auto", "max_evaluations": 2_000, "batch_size": 100, "gp_generations": 2}
    model = quick(library="physics", refine=refine, **settings).fit(*data())
    assert (model.history_[-1]["refinements"] > 0) == is_refined


def test_a_generator_of_more_variables_serves_fewer_columns():
    X, y = data(n_features=1)
    model = quick(generator=tiny_generator(n_variables=3)).fit(X, y)
    assert model.library_.n_variables == 1
    assert {symbol.name for symbol in model.sympy_expr_.free_symbols} <= {"x1"}


@pytest.mark.parametrize(("library", "name"), [("auto", "physics-d16"), ("koza-const", "physics-d16")])
def test_more_columns_than_any_generator_was_trained_with_are_read_one_by_one(library, name):
    X, y = data(n_features=40)
    model = quick(library=library, generator="auto", max_evaluations=200, batch_size=100).fit(X, y)
    assert model.generator_ == name
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("operators", "missing"), [(("add", "sin"), "mul"), (("mul", "sin"), "add"), (("exp",), "add and mul")]
)
def test_a_library_that_cannot_write_scale_and_offset_is_refused(operators, missing):
    with pytest.raises(ValueError, match=f"library='own' has constants but not {missing}, which write"):
        small(library=Library("own", operators, True, 2)).fit(*data())
    without = small(library=Library("own", operators, False, 2)).fit(*data())
    assert np.isfinite(without.predict(data()[0])).all()


# --- budgets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "gp", "look_up"),
    [
        (50, "compiled", False),
        (777, "compiled", True),
        (777, "deap", False),
        (1000, "compiled", False),
        pytest.param(50, "deap", True, marks=SLOW),
        pytest.param(1000, "deap", True, marks=SLOW),
    ],
)
def test_the_budget_is_spent_and_not_exceeded(budget, gp, look_up):
    X, y = data()
    model = small(max_evaluations=budget, batch_size=100, gp=gp, look_up=look_up).fit(X, y)
    # Of a small budget what finders examine takes a tenth at the most.
    assert (0.9 * budget if look_up else budget) <= model.n_evaluations_ <= budget
    assert model.stop_reason_ == "max_evaluations"


@pytest.mark.parametrize("library", [pytest.param("koza", marks=SLOW), "koza-const"])
def test_max_time_is_read_at_fit_and_honoured(library):
    X, y = data(n_samples=500)
    settings = {
        "generator": tiny_generator(library),
        "library": library,
        "max_length": 12,
        "look_up": library == "koza",
    }
    model = small(max_evaluations=10**9, **settings)
    small(max_evaluations=1000 if library == "koza" else 20, **settings).fit(X, y)  # compiles
    model.max_time = 0.25
    started = time.monotonic()
    model.fit(X, y)
    assert 0.25 <= time.monotonic() - started < 2.25
    assert model.stop_reason_ == "max_time"


@pytest.mark.parametrize(
    "place", ["dgsr.fitting.plan.compile_kernels", "dgsr.expressions.programs.units.Units.compile_kernel"]
)
def test_compiling_is_not_counted_as_searching(place, monkeypatch):
    now = [0.0]

    def compiles(*arguments):
        now[0] += 1e6

    monkeypatch.setattr("dgsr.finders.budget.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(place, compiles)
    X, y = data()
    model = plain(max_time=1.0, tolerance=0.0, units={"x1": "m"}).fit(X, y)
    assert model.stop_reason_ == "max_evaluations"
    assert model.history_[-1]["seconds"] == 0.0


def test_compiling_is_told_where_progress_is_shown(monkeypatch, capsys):
    def compile_kernels(has_constants):
        begin_phase("compiling for this processor")
        time.sleep(0.25)

    monkeypatch.setattr("dgsr.fitting.plan.compile_kernels", compile_kernels)
    monkeypatch.setattr("dgsr.reporting.progress._LOG", 0.0)
    X, y = data()
    plain(max_evaluations=50, verbose=1).fit(X, y)
    assert capsys.readouterr().out.startswith("compiling for this processor\n")
    plain(max_evaluations=50).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("library", ["physics", "koza"])
def test_kernels_are_compiled_before_a_search_starts_its_clock(library):
    """In a process of its own, however long compiling takes: the search itself compiles and loads nothing."""
    script = """
import sys, time
import numpy as np
from numba.core.dispatcher import Dispatcher
from dgsr import DGSRRegressor
from dgsr.search.compiling import compile_kernels

def compiled():
    modules = [module for name, module in sys.modules.items() if name.startswith("dgsr.")]
    functions = {f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}
    return {(f.py_func.__module__, f.py_func.__qualname__, len(f.overloads)) for f in functions}

clock, now = time.perf_counter, [0.0]
def slow():
    now[0] += 10.0
    return now[0]
time.perf_counter = slow
compile_kernels(sys.argv[1] == "physics")
time.perf_counter = clock
before = compiled()
X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 2))
y = X[:, 0] * np.exp(X[:, 1]) + 0.01 * np.sin(9.0 * X[:, 0] ** 2)
model = DGSRRegressor(sys.argv[1], max_evaluations=6000, config={"tolerance": 0.0}, random_state=0)
model.fit(X, y).predict(X)
print(sorted(compiled() - before))
"""
    command = [sys.executable, "-c", script, library]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_of_a_long_history_every_second_entry_is_left_out(monkeypatch):
    monkeypatch.setattr("dgsr.search.state._MOST_ENTRIES", 10)
    settings = {
        "batch_size": 10,
        "gp_generations": 0,
        "generator": None,
        "random_state": 0,
        "loss": "squared",
    }
    X = np.random.default_rng(0).uniform(size=(30, 2))
    y = np.random.default_rng(1).uniform(size=30)
    model = flat_regressor("koza", max_evaluations=400, look_up=False, **settings).fit(X, y)
    evaluations = [entry["evaluations"] for entry in model.history_]
    assert len(evaluations) <= 10
    assert evaluations == sorted(evaluations)
    assert evaluations[-1] == model.n_evaluations_


def test_history_goes_up_and_down_as_it_should():
    X, y = data()
    history = plain(batch_size=20, gp_generations=2, loss="squared").fit(X, y).history_
    assert len(history) > 2
    for name, direction in {"evaluations": 1, "seconds": 1, "best_nmse": -1, "invalid": 1}.items():
        assert (direction * np.diff([entry[name] for entry in history]) >= 0).all(), name
    assert all(0.0 <= entry["mean_reward"] <= entry["best_reward"] <= 1.0 for entry in history)


def test_a_second_fit_forgets_the_first():
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = plain().fit(frame, y)
    wide, other = data(n_features=3, seed=1)
    fresh = plain().fit(wide, other)
    assert found(model.fit(wide, other)) == found(fresh)
    assert len(model.history_) == len(fresh.history_)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


def test_a_budget_may_be_a_float():
    X, y = data()
    assert found(plain(max_evaluations=5e2).fit(X, y)) == found(plain().fit(X, y))


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3), 5])
def test_the_random_state_that_was_drawn_repeats_the_fit(random_state):
    X, y = data()
    model = plain(random_state=random_state).fit(X, y)
    assert isinstance(model.random_state_, int)
    assert found(plain(random_state=model.random_state_).fit(X, y)) == found(model)
    if random_state == 5:
        assert model.random_state_ == 5


def test_a_failed_fit_leaves_nothing_of_the_one_before():
    X, y = data()
    model = plain().fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 3), np.nan), np.arange(5.0))
    with pytest.raises(NotFittedError):
        model.predict(X)


# --- progress and interruptions -------------------------------------------------------------------


def test_the_callback_is_told_of_every_round():
    X, y = data()
    told = []
    model = plain(batch_size=20, gp_generations=2, loss="squared", callback=told.append).fit(X, y)
    assert [progress.evaluations for progress in told] == [entry["evaluations"] for entry in model.history_]
    for progress in told:
        nmse = np.mean((y - progress.best_expression(X)) ** 2) / y.var()
        assert nmse == pytest.approx(progress.best_nmse, rel=1e-6)


def raising(error):
    def callback(progress):
        raise error

    return callback


def returns_true(progress):
    return True


@pytest.mark.parametrize("callback", [returns_true, raising(StopIteration())])
def test_a_callback_may_end_the_fit(callback):
    X, y = data()
    model = plain(max_evaluations=10**9, callback=callback).fit(X, y)
    assert model.stop_reason_ == "callback"
    assert len(model.history_) == 1
    assert np.isfinite(model.predict(X)).all()


def test_the_callback_is_told_formulas_in_the_units_of_the_columns():
    X, y = data()
    X = X * [1e9, 1e-9]
    told = []
    quick(loss="squared", callback=told.append).fit(pd.DataFrame(X, columns=["far", "near"]), y)
    assert np.mean((y - told[-1].best_expression(X)) ** 2) / y.var() == pytest.approx(told[-1].best_nmse)
    assert told[-1].best_expression.feature_names == ("far", "near")


class Interrupting(CompiledEvolution):
    """Raises in the third evaluation of a generation: in the middle of a round."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def evolve(self, population, nmse, evaluate, *rest):
        calls = 0

        def interrupted(changed):
            nonlocal calls
            calls += 1
            if calls == 3:
                raise self.error
            return evaluate(changed)

        return super().evolve(population, nmse, interrupted, *rest)


WAYS = {
    "in the callback": lambda error: {"callback": raising(error)},
    "amid evolution": lambda error: {"gp": Interrupting(error)},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("generator", [None, "tiny"])
def test_an_interrupted_fit_warns_and_keeps_the_best_so_far(way, generator):
    X, y = data()
    given = tiny_generator() if generator else None
    model = quick(generator=given, max_evaluations=10**9, **way(KeyboardInterrupt()))
    with pytest.warns(UserWarning, match="interrupted; the best formulas so far are kept") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.stop_reason_ == "interrupted"
    assert 0 < model.n_evaluations_ < 10**6
    assert np.isfinite(model.predict(X)).all()
    assert model.pareto_front_[-1].loss < 1.0


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_any_other_exception_passes_through_and_leaves_a_fitted_estimator(way):
    class Alarm(Exception):
        pass

    X, y = data()
    model = plain(max_evaluations=10**9, **way(Alarm()))
    with pytest.raises(Alarm):
        model.fit(X, y)
    assert model.stop_reason_ == "error"
    assert np.isfinite(model.predict(X)).all()
    assert model.n_evaluations_ > 0


def test_an_interruption_before_any_formula_passes_through(monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dgsr.search.proposals.random_population", interrupt)
    model = small(library="koza", look_up=False)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data())
    with pytest.raises(NotFittedError):
        model.predict(data()[0])


def test_with_constants_the_mean_of_y_is_there_from_the_beginning(monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dgsr.search.proposals.random_population", interrupt)
    X, y = data()
    with pytest.warns(UserWarning, match="interrupted"):
        model = small(look_up=False).fit(X, y)
    simplest = model.pareto_front_[0].expression
    assert simplest.length == 1
    assert abs(simplest(X)[0] - y.mean()) < 2.0 * y.std() / np.sqrt(len(y))


# --- what is refused, and what works all the same -------------------------------------------------


def changed(array, value):
    array = array.astype(object) if isinstance(value, str) else array.astype(type(value))
    array[(0,) * array.ndim] = value
    return array


BAD_DATA = {
    "nan in X": (lambda X, y: (changed(X, np.nan), y), r"X has no value \(NaN\) in 1 of"),
    "nan in y": (lambda X, y: (X, changed(y, np.nan)), r"y has no value \(NaN\) in 1 of"),
    "inf in X": (lambda X, y: (changed(X, np.inf), y), r"X has an infinite value \(inf\) in 1 of"),
    "inf in y": (lambda X, y: (X, changed(y, np.inf)), r"y has an infinite value \(inf\) in 1 of"),
    "masked X": (lambda X, y: (np.ma.masked_equal(X, X[3, 0]), y), r"X has no value \(NaN\) in 1 .*mn 0"),
    "masked y": (lambda X, y: (X, np.ma.masked_equal(y, y[3])), r"y has no value \(NaN\) in 1 of"),
    "text in X": (lambda X, y: (changed(X, "red"), y), "Column 0 of X has text, such as 'red'; leave it out"),
    "text in y": (lambda X, y: (X, changed(y, "red")), "y has text, such as 'red'; give numbers"),
    "complex X": (lambda X, y: (changed(X, 1j), y), "Complex data not supported"),
    "complex y": (lambda X, y: (X, changed(y, 1j)), "Complex data not supported"),
    "rows of several lengths": (lambda X, y: ([*X[1:].tolist(), [1.0]], y), "X has rows of several lengths"),
    "nested y": (lambda X, y: (X, [*y[1:].tolist(), [1.0, 2.0]]), "y has rows of several lengths"),
    "huge integer": (lambda X, y: (X, [10**400] * len(y)), "y has 1000.*, which is beyond a float; rescale"),
    "fraction beyond a float": (lambda X, y: (X, [Fraction(10**400, 3)] * len(y)), r"y has Fraction\(1000"),
    "set": (lambda X, y: (X, set(y)), "y is a set; give an array"),
    "generator": (lambda X, y: (iter(X), y), "X is a .*; give an array"),
    "one number": (lambda X, y: (X, 5.0), "y is a float; give an array"),
    "one row": (lambda X, y: (X[:1], y[:1]), r"1 sample\(s\) .* minimum of 2"),
    "no column": (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
    "lengths differ": (lambda X, y: (X, y[1:]), "inconsistent numbers of samples"),
    "flat X": (lambda X, y: (X[:, 0], y), "Expected 2D array"),
    "tiny y": (lambda X, y: (X, y * 1e-300), "values of y spread over .*e-301.* rescale y"),
    "huge y": (lambda X, y: (X, (y - y.mean()) * 1e300), "values of y spread over .*e[+]299.* rescale y"),
    "y beyond its spread": (lambda X, y: (X[:3], np.array([1.7e308, 0.0, -1.7e308])), "spread over inf"),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_DATA.values(), ids=BAD_DATA)
def test_unusable_data_are_refused_by_name(spoil, message):
    X, y = data()
    model = small()
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(X, y))
    with pytest.raises(NotFittedError):
        model.predict(X)


BAD_PARAMETERS = {
    "unknown library": ({"library": "kozo"}, "library='kozo' is unknown; choose from koza"),
    "unknown generator": ({"generator": "nope"}, "generator='nope' is neither a folder nor a name"),
    "generator of another library": (
        {"generator": tiny_generator("synth")},
        "The generator 'given' is for the library 'synth', the search uses 'physics'; set library='synth'",
    ),
    "too few variables": (
        {"generator": tiny_generator(n_variables=1), "max_length": 12},
        "The generator knows 1 columns and X has 2; set generator='untrained'",
    ),
    "lengths crossed": ({"min_length": 9, "max_length": 9}, "min_length=9 and max_length=9 must satisfy"),
    "objective": ({"objective": "pqqt"}, "'refine' parameter of DGSRRegressor must be .*'pqt'"),
    "selection": ({"selection": "x"}, "'selection' parameter of DGSRRegressor must be .*'accuracy'"),
    "engine": ({"gp": "x"}, "'gp' parameter of DGSRRegressor must be"),
    "no evaluations": ({"max_evaluations": 0}, "'max_evaluations' parameter of DGSRRegressor .* Got 0"),
    "endless evaluations": ({"max_evaluations": np.inf}, "'max_evaluations' .* Got inf"),
    "no time": ({"max_time": 0}, "'max_time' parameter of DGSRRegressor .* Got 0"),
    "nan time": ({"max_time": np.nan}, "'max_time' parameter of DGSRRegressor .* Got nan"),
    "tolerance": ({"tolerance": -1.0}, "'tolerance' parameter of `config` .* Got -1"),
    "random state": ({"random_state": "x"}, "'random_state' parameter of DGSRRegressor"),
    "rows": ({"max_rows": 1}, "'max_rows' parameter of `config` .* Got 1"),
    "evaluations beyond 64 bits": ({"max_evaluations": 1e300}, "'max_evaluations' .* Got 1e[+]300"),
    "evaluations as a fraction": ({"max_evaluations": Fraction(9)}, r"'max_evaluations' .* Got Fraction\(9"),
    "seconds without end": ({"max_time": 10**400}, "'max_time' .* Got 1000"),
    "tolerance beyond the mean": ({"tolerance": 2.0}, r"'tolerance' .* in the range \[0.0, 1.0\]. Got 2.0"),
    "tolerance beyond a float": ({"tolerance": 10**400}, "'tolerance' .* Got 1000"),
    "penalty": ({"unit_penalty": 1e300}, "'penalty' parameter of Units .* Got 1e[+]300"),
    "batch": ({"batch_size": 10**9}, r"'batch_size' .* in the range \[2, 100000\]. Got 1000000000"),
    "length": ({"max_length": 10**12}, r"'max_length' .* in the range \[2, 100\]. Got 1000000000000"),
    "jobs": ({"n_jobs": 10**30}, r"'n_jobs' .* in the range \[1, 1000\] or None. Got 1000"),
    "list as a name": ({"required": [["x1"]]}, r"required\[0\]=\['x1'\] is neither a column nor an operator"),
    "null character": ({"checkpoint": "a\0b"}, r"'a\\x00b' cannot be written .* name a file in a folder"),
    "name without end": ({"generator": "x" * 5_000}, "generator='xxx.* is neither a folder nor a name"),
    "callback": ({"callback": 1}, "'callback' parameter of DGSRRegressor must be a callable"),
}


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_unusable_parameters_are_refused_by_name_and_value(parameters, message, monkeypatch):
    monkeypatch.setattr("dgsr.fitting.run.FitDriver.run", lambda *arguments: pytest.fail("it was searched"))
    with pytest.raises(ValueError, match=message):
        small(**parameters).fit(*data())


def test_a_constant_target_is_warned_of_and_predicted():
    X, _ = data()
    with pytest.warns(UserWarning, match=r"y is 0\.1 in every row; the formula is that number") as caught:
        model = small().fit(X, np.full(len(X), 0.1))
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(model.predict(X), 0.1)
    assert model.sympy_expr_ == sympy.Float(0.1)
    assert (model.stop_reason_, model.n_evaluations_, len(model.pareto_front_)) == ("constant target", 0, 1)


# What is looked up takes most of the time of these fits.
LOOK_UP = pytest.mark.parametrize("look_up", [False, pytest.param(True, marks=SLOW)])


@LOOK_UP
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_inputs_of_any_scale_are_searched(scale, look_up):
    X, y = data()
    model = quick(generator=tiny_generator(), look_up=look_up).fit(X * scale, y)
    assert np.isfinite(model.predict(X * scale)).all()


@LOOK_UP
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_targets_of_extreme_scale_are_searched_whatever_numpy_does_about_overflow(scale, look_up):
    X, y = data()
    with np.errstate(all="raise"):
        model = quick(generator=tiny_generator(), look_up=look_up).fit(X, y * scale)
    assert np.isfinite([candidate.loss for candidate in model.pareto_front_]).all()


def test_constant_and_repeated_columns_and_two_rows_are_searched():
    X = np.array([[1.0, 2.0, 2.0], [1.0, 3.0, 3.0]])
    with pytest.warns(UserWarning, match="So few rows"):
        model = small().fit(X, [4.0, 9.0])
    np.testing.assert_allclose(model.predict(X), [4.0, 9.0])


def test_a_time_that_is_over_before_the_search_leaves_it_some():
    model = small(library="koza", max_time=1e-9).fit([[1.0], [2.0], [3.0]], [4.0, 9.0, 5.0])
    assert model.n_evaluations_ > 0


def test_no_finite_equation_within_the_budget_is_an_error_with_a_mend(monkeypatch):
    def undefined(n, library, grammar, state):
        expression = Expression.from_text("log(x1)", library)
        tokens = np.zeros((1, grammar.max_length), dtype=np.int64)
        tokens[0, :2] = expression.tokens
        return Population(library, tokens, np.array([2]), np.ones((1, 0)))

    monkeypatch.setattr("dgsr.search.proposals.random_population", undefined)
    model = small(
        library="koza", max_evaluations=1, callback=raising(AssertionError("there is no formula to tell of"))
    )
    with pytest.raises(ValueError, match=r"None of 1 equations had finite values .* raise max_evaluations"):
        model.fit([[-1.0], [-2.0], [-3.0]], [1.0, 2.0, 4.0])
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])


@pytest.mark.parametrize("model", [DGSRRegressor(), small()])
def test_an_unfitted_regressor_says_so(model):
    for use in (lambda: model.predict([[1.0]]), lambda: model.sympy_expr_):
        with pytest.raises(NotFittedError, match="not fitted"):
            use()


@pytest.mark.parametrize(
    ("rows", "weights"),
    [([0, 1], None), ([0, 1, 2], [1.0, 0.0, 2.0]), ([0, 1, 1], None)],
    ids=["two", "one without a weight", "one of them twice"],
)
def test_two_rows_are_too_few_to_tell_formulas_apart(rows, weights):
    X, y = data()
    with pytest.warns(UserWarning, match=r"So few rows \(2\) cannot tell formulas apart"):
        small().fit(X[rows], y[rows], weights)


# --- columns that say nothing ---------------------------------------------------------------------


def ratio_table():
    X = np.random.default_rng(0).uniform(1.0, 3.0, (40, 2))
    return X, 3.0 * X[:, 0] / X[:, 1] + 1.0


@pytest.mark.parametrize("value", [1.0, 7.0, 2021.0])
def test_constant_columns_and_copies_stay_out_of_the_formula(value):
    X, y = ratio_table()
    wide = np.column_stack([np.full(40, value), X, X[:, 0]])
    model = DGSRRegressor(max_evaluations=2_000, random_state=0).fit(wide, y)
    assert str(model.expression_) == "1 + 3*x2/x3"


def test_a_copy_is_in_the_formula_where_it_is_wanted_or_its_original_is_forbidden():
    X, y = ratio_table()
    wide = np.column_stack([X, X[:, 0]])
    for demands in ({"required": ["x3"]}, {"forbidden": ["x1"]}, {"initial_formulas": ["x3/x2"]}):
        model = flat_regressor(max_evaluations=2_000, random_state=0, **demands).fit(wide, y)
        assert str(model.expression_) == "1 + 3*x3/x2"


def test_a_constant_column_serves_as_a_number_where_there_are_no_others():
    X, _ = ratio_table()
    wide = np.column_stack([X, np.full(40, 7.3)])
    model = DGSRRegressor("koza", max_evaluations=2_000, random_state=0).fit(wide, 7.3 * X[:, 0])
    assert str(model.expression_) == "x1*x3"


def test_a_law_in_single_precision_is_found_and_ends_the_search():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2)).astype(np.float32)
    y = np.sqrt(X[:, 1]) + np.float32(2.5) * X[:, 0] ** 2
    model = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(X, y)
    assert str(model.expression_) == "sqrt(x2) + 2.5*x1**2"
    assert model.stop_reason_ == "exact fit"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=SLOW)])
def test_noise_alone_is_a_number(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(0.0, 5.0, (40, 3)), rng.normal(size=40)
    assert not DGSRRegressor(max_evaluations=3_000, random_state=0).fit(X, y).sympy_expr_.free_symbols


def test_a_batch_larger_than_the_budget_is_no_larger_than_it():
    X, y = ratio_table()
    y = y + np.random.default_rng(1).normal(size=40)
    models = [quick(generator=tiny_generator(), batch_size=n).fit(X, y) for n in (300, 9_000)]
    assert models[0].expression_ == models[1].expression_


# --- what a fit warns of --------------------------------------------------------------------------


def test_a_fit_that_is_exact_on_its_sample_alone_says_so():
    rng = np.random.default_rng(1)
    X = rng.uniform(1.0, 3.0, (5_000, 2))
    y = X[:, 0] * X[:, 1]
    y[rng.choice(5_000, 5, replace=False)] += 50.0
    with pytest.warns(UserWarning, match="fits its 200 rows exactly, but the NMSE .* on all 5000 rows is"):
        DGSRRegressor(max_evaluations=1_000, random_state=0).fit(X, y)


def test_no_formula_of_the_front_has_a_constant_for_every_row():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1.0, 3.0, (4, 2)), rng.normal(size=4)
    model = DGSRRegressor(max_evaluations=3_000, random_state=0).fit(X, y)
    assert max(len(candidate.expression.constants) for candidate in model.pareto_front_) < 4


@pytest.mark.parametrize("seed", [1, 2])
def test_a_formula_that_hangs_on_single_rows_is_warned_of(seed):
    rng = np.random.default_rng(seed)
    x, y = np.r_[rng.uniform(0.0, 5.0, 29), 40.0], np.r_[0.1 * rng.normal(size=29), 50.0]
    says = r"single rows determine: its loss is (0\.000\d+|\d\.\d+e-05), .* Give more rows"
    with pytest.warns(UserWarning, match=says):
        small(form="a*exp(b*x1)", loss="squared").fit(x[:, None], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # without a form the mean is on the front, and errs less on that row
        small(loss="squared", max_evaluations=3_000, selection="accuracy").fit(x[:, None], y)


def test_a_forbidden_column_is_no_part_of_the_linear_model_that_is_compared():
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 3.0, (60, 2))
    y = X[:, 0] + 0.05 * rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(forbidden=["x1"]).fit(X, y)
