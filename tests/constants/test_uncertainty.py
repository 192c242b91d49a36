"""What the data know of a formula, against scipy, linear algebra and brute force."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import curve_fit
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import dgsr
from dgsr import DGSRRegressor
from dgsr.constants.fitting import fit_constants
from dgsr.constants.uncertainty import linear_leave_one_out, robust_uncertainty_of, uncertainty_of
from dgsr.data import prepare
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.table import Table
from dgsr.expressions import Expression, get_library
from dgsr.fitting.losses import precisions
from dgsr.pareto import Candidate
from searches import flat_regressor

LIBRARY = get_library("physics", 2)
seeds = st.integers(0, 2**32 - 1)


def fitted(text, data):
    """Return the formula with its constants fitted to the data."""
    population = Population.from_expressions([Expression.from_text(text, LIBRARY)])
    fit_constants(population, data, scaled=False, n_iterations=200, precision=1e-14)
    return population[0]


def fitted_plane(seed, n):
    """Return normal inputs and targets, and the linear formula fitted to them."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    data = DataSet.from_arrays(X, y)
    return rng, data, np.column_stack([X, np.ones(n)]), fitted("1.1*x1 + 1.2*x2 + 1.3", data)


def noisy(seed, n=30):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (n, 2))
    return X, 2.5 * np.exp(-0.7 * X[:, 0]) + 1.3 * X[:, 1] + rng.normal(0.0, 0.1, n)


def of_peak(x, height=2.0, width=0.25, middle=100_000.3):
    z = x - middle
    peak = np.exp(-(z**2) / width)
    return [peak, height * peak * z**2 / width**2, height * peak * 2.0 * z / width]


def of_wave(x, size=2.0, frequency=300.5, phase=0.7):
    angle = frequency * x + phase
    return [np.sin(angle), size * x * np.cos(angle), size * np.cos(angle)]


@pytest.mark.parametrize(
    ("text", "slopes", "start", "stop"),
    [
        ("2*exp(-(x1 - 100000.3)**2/0.25)", of_peak, 99_900.0, 100_100.0),
        ("2*sin(300.5*x1 + 0.7)", of_wave, 0.0, 1e3),
        ("2*exp(-0.3*x1)", lambda x: [np.exp(-0.3 * x), 2.0 * x * np.exp(-0.3 * x)], 0.0, 9.0),
    ],
)
def test_errors_of_constants_follow_from_exact_slopes_however_far_a_constant_is_from_0(
    text, slopes, start, stop
):
    formula = Expression.from_text(text, get_library("physics", 1))
    x = np.linspace(start, stop, 4001)
    noise = 0.1 * np.random.default_rng(0).normal(size=len(x))
    jacobian = np.array(slopes(x)).T
    covariance = np.linalg.inv(jacobian.T @ jacobian) * (noise @ noise) / (len(x) - jacobian.shape[1])
    found = uncertainty_of(formula, DataSet.from_arrays(x[:, None], formula(x[:, None]) + noise))
    expected = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(np.sort(found.standard_errors), np.sort(expected), rtol=0.01)


@settings(max_examples=10)
@given(seeds)
@example(27_488)  # two of the constants have next to no covariance
def test_covariance_and_errors_are_those_of_curve_fit(seed):
    X, y = noisy(seed)
    expression = fitted("2.2*exp(-0.9*x1) + 1.1*x2", DataSet.from_arrays(X, y))
    found = uncertainty_of(expression, DataSet.from_arrays(X, y))
    values, covariance = curve_fit(
        lambda x, a, b, c: a * np.exp(b * x[0]) + c * x[1], X.T, y, (2.5, -0.7, 1.3)
    )
    at = [int(np.argmin(np.abs(np.abs(values) - abs(c)))) for c in expression.constants]
    np.testing.assert_allclose(np.abs(expression.constants), np.abs(values[at]), rtol=1e-4)
    errors = np.sqrt(np.diag(covariance))[at]
    np.testing.assert_allclose(found.standard_errors, errors, rtol=1e-2)
    # Correlations, since one that is nearly 0 has few digits.
    correlations = [
        np.abs(c) / np.outer(errors, errors) for c in (found.covariance, covariance[np.ix_(at, at)])
    ]
    np.testing.assert_allclose(*correlations, atol=2e-2)


@settings(max_examples=10)
@given(seeds)
def test_rows_left_out_of_a_linear_formula_are_predicted_by_the_others(seed):
    _, data, design, expression = fitted_plane(seed, 12)
    found, y = uncertainty_of(expression, data), data.y
    errors = []
    for i in range(12):
        others = np.arange(12) != i
        factors = np.linalg.lstsq(design[others], y[others], rcond=None)[0]
        errors.append(y[i] - design[i] @ factors)
    assert found.leave_one_out == pytest.approx(np.mean(np.square(errors)) / y.var(), rel=1e-6)


@settings(max_examples=10)
@given(seeds)
def test_predictions_have_the_standard_deviation_of_linear_regression(seed):
    rng, data, design, expression = fitted_plane(seed, 15)
    new = rng.normal(size=(5, 2))
    at = np.column_stack([new, np.ones(5)])
    residuals = data.y - design @ np.linalg.lstsq(design, data.y, rcond=None)[0]
    noise = residuals @ residuals / (15 - 3)
    expected = np.sqrt(noise * (1.0 + np.einsum("ri,ij,rj->r", at, np.linalg.inv(design.T @ design), at)))
    np.testing.assert_allclose(uncertainty_of(expression, data).of_predictions(expression, new), expected)


def test_a_weight_of_two_is_two_equal_measurements_to_the_constants():
    X, y = noisy(3)
    weights = np.where(np.arange(30) < 12, 1.0, 2.0)
    repeated = DataSet.from_arrays(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(y, weights.astype(int))
    )
    weighted = DataSet.from_arrays(X, y, weights)
    one = uncertainty_of(fitted("1.1*x1 + 1.3*x2", repeated), repeated)
    # The effective number of rows (Kish) is that of the weights, and a row of a fit counts as given.
    other = uncertainty_of(fitted("1.1*x1 + 1.3*x2", weighted), weighted, repeated.n_effective)
    np.testing.assert_allclose(one.standard_errors, other.standard_errors, rtol=0.02)


def test_equal_measurements_are_left_out_one_by_one():
    x = np.repeat([1.0, 2.0, 3.0], 100)
    y = np.concatenate([np.arange(100) < n for n in (75, 50, 25)]).astype(float)
    data = prepare(Table(x[:, None], y), with_scales=False, with_origins=False, max_rows=None, seed=0).data
    expression = Expression.from_text("1.1 - 0.3*x1", get_library("physics", 1))
    population = Population.from_expressions([expression])
    fit_constants(population, data, scaled=False, n_iterations=200, precision=1e-14)
    predicted = cross_val_predict(LinearRegression(), x[:, None], y, cv=LeaveOneOut())
    found = uncertainty_of(population[0], data).leave_one_out
    assert found == pytest.approx(np.mean((y - predicted) ** 2) / y.var(), rel=1e-6)
    assert linear_leave_one_out(data) == pytest.approx(found, rel=1e-6)


def test_outliers_have_no_part_in_the_noise_of_equal_measurements():
    x = np.repeat([0.0, 1.0], 200)
    wild = np.tile(np.r_[np.zeros(180), np.ones(10), -np.ones(10)], 2)
    expression = Expression.from_text("0.0001 + 0.9999*x1", get_library("physics", 1))
    for jitter in (0.0, 1e-9):
        y = x + wild + jitter * np.random.default_rng(0).normal(size=400)
        data = prepare(
            Table(x[:, None], y), with_scales=False, with_origins=False, max_rows=None, seed=0
        ).data
        assert robust_uncertainty_of(expression, data, data, "huber").noise < 2e-4


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("{}/(1 + {}*exp({}*x1))", (8.0, 100.0, -1.2)),  # logistic
        ("{}/(1 + exp({}*(x1 - {})))", (3.0, 2.0, 5.0)),  # Fermi
        ("{}/(1 + (x1/{})**{})", (7.0, 4.0, 2.5)),  # Hill
    ],
)
def test_the_1_that_is_written_in_a_curve_is_no_constant_of_its_fit(text, start):
    def curve(x, *constants):
        return Expression.from_text(text.format(*map(float, constants)), LIBRARY)(np.column_stack([x, x]))

    x = np.linspace(0.3, 10.0, 40)
    y = curve(x, *start) + np.random.default_rng(0).normal(0.0, 0.05, 40)
    found, covariance = curve_fit(curve, x, y, start)
    expression = Expression.from_text(text.format(*found.tolist()), LIBRARY)
    known = uncertainty_of(expression, DataSet.from_arrays(np.column_stack([x, x]), y))
    is_one = known.standard_errors == 0.0
    assert expression.constants[is_one].tolist() == [1.0]
    np.testing.assert_allclose(known.standard_errors[~is_one], np.sqrt(np.diag(covariance)), rtol=0.01)
    assert "1.0 ±" not in Candidate(5, 0.1, expression, known).constants_text()


def test_what_the_data_do_not_determine_has_an_infinite_error():
    X, y = noisy(4)
    data = DataSet.from_arrays(X, y)
    names = ("add", "mul", "const", "mul", "const", "x1", "mul", "const", "x2")
    expression = Expression(LIBRARY, [LIBRARY.index[name] for name in names], [1.1, 1.7, 1.3])
    errors = uncertainty_of(expression, data).standard_errors
    np.testing.assert_array_equal(np.isinf(errors), [True, True, False])
    two = DataSet.from_arrays(X[:2], y[:2])
    expression = Expression.from_text("2.2*exp(-0.9*x1) + 1.1*x2", LIBRARY)
    assert np.isinf(uncertainty_of(expression, two).leave_one_out)
    assert np.isinf(uncertainty_of(expression, two).noise)


def test_a_row_at_a_pole_cannot_be_predicted_from_the_others():
    x = np.linspace(1.0, 2.0, 40)
    x[3] = 1.1 - 1e-12
    expression = Expression.from_text("2.5e-11/(1.1 - x1)", LIBRARY)
    y = np.where(np.arange(40) == 3, expression(x[3:4, None])[0], 0.0)
    assert np.isinf(uncertainty_of(expression, DataSet.from_arrays(x[:, None], y)).leave_one_out)


def test_a_formula_without_constants_has_the_noise_alone():
    X, y = noisy(5)
    data = DataSet.from_arrays(X, y)
    expression = Expression.from_text("x1 + x2", LIBRARY)
    found = uncertainty_of(expression, data)
    noise = np.sqrt(np.mean((X.sum(axis=1) - y) ** 2))
    assert found.noise == pytest.approx(noise)
    assert found.leave_one_out == pytest.approx(noise**2 / y.var())
    np.testing.assert_allclose(found.of_predictions(expression, X[:3]), noise)


@pytest.fixture(scope="module")
def regressor():
    X, y = noisy(6, 60)
    return DGSRRegressor(generator=None, max_evaluations=2_000, max_length=15, random_state=0).fit(X, y)


def test_predict_returns_standard_deviations_of_any_candidate(regressor):
    X, y = noisy(6, 60)
    values, deviations = regressor.predict(X, return_std=True)
    np.testing.assert_array_equal(values, regressor.predict(X))
    assert 0.2 < np.mean(np.abs(y - values) < deviations) < 0.95
    for i, candidate in enumerate(regressor.pareto_front_):
        deviations = regressor.predict(X, i, return_std=True)[1]
        assert (deviations >= candidate.uncertainty.noise).all()


def test_noise_in_proportion_is_in_proportion_to_the_prediction():
    rng = np.random.default_rng(0)
    X = np.exp(rng.uniform(0.0, 9.0, (400, 1)))
    y = 2.0 * X[:, 0] * (1.0 + 0.05 * rng.normal(size=400))
    expression = Expression.from_text("2*x1", get_library("physics", 1))
    data = DataSet.from_arrays(X, y).with_precision(1.0 / y**2)
    found = uncertainty_of(expression, data, relative=True)
    deviations = found.of_predictions(expression, np.array([[1.0], [100.0], [8000.0]]), relative=True)
    np.testing.assert_allclose(deviations, [0.1, 10.0, 800.0], rtol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["absolute", "huber"])
@pytest.mark.parametrize("noise", ["normal", "laplace", "outliers"])
def test_errors_of_fits_that_forgive_outliers_are_the_spread_of_repeated_fits(loss, noise):
    rng, n = np.random.default_rng(0), 50
    tokens = [LIBRARY.index[name] for name in ("add", "const", "mul", "const", "x1")]
    slopes, found = [], []
    for _ in range(150):
        X = rng.uniform(0.5, 2.0, (n, 2))
        wild = (rng.random(n) < 0.1) * rng.normal(0.0, 10.0, n) if noise == "outliers" else 0.0
        errors = rng.laplace(size=n) if noise == "laplace" else rng.normal(size=n) + wild
        y, design = 1.0 + 2.0 * X[:, 0] + 0.3 * errors, np.column_stack([np.ones(n), X[:, 0]])
        data = DataSet.from_arrays(X, y)
        constants = np.linalg.lstsq(design, y, rcond=None)[0]
        for _ in range(40):
            root = np.sqrt(precisions(loss, data, design @ constants))
            constants = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        expression = Expression(LIBRARY, tokens, constants)
        weighted = data.with_precision(precisions(loss, data, design @ constants))
        slopes.append(constants[1])
        found.append(robust_uncertainty_of(expression, data, weighted, loss))
    error = np.sqrt(np.mean([each.standard_errors[1] ** 2 for each in found]))
    assert 0.85 < error / np.std(slopes) < 1.45  # a density at 0 is estimated with some bias
    assert np.mean([each.noise for each in found]) == pytest.approx(0.3, rel=0.2)


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_a_constant_that_a_form_has_twice_counts_once_among_the_fitted_ones(loss):
    rng = np.random.default_rng(2)
    X = rng.uniform(0.5, 2.0, (3, 2))
    data = DataSet.from_arrays(X, 2.0 * X.sum(axis=1) + 0.1 * rng.normal(size=3))
    twice = Expression.from_text("2.5*x1 + 2.5*x2", LIBRARY)
    once = Expression.from_text("2.5*(x1 + x2)", LIBRARY)
    found = robust_uncertainty_of(twice, data, data, loss, groups=[np.array([0, 1])])
    expected = robust_uncertainty_of(once, data, data, loss)
    assert found.noise == pytest.approx(expected.noise)
    assert found.standard_errors == pytest.approx(np.repeat(expected.standard_errors, 2))


def test_a_fit_that_forgives_outliers_tells_the_noise_of_the_other_rows():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 3.0, (80, 1))
    y = 2.5 * X[:, 0] + 0.1 * rng.normal(size=80)
    y[::10] += 20.0
    one = DGSRRegressor(generator=None, loss="absolute", max_evaluations=3_000, random_state=0).fit(X, y)
    formula = one.pareto_front_.candidate_of(one.expression_)
    assert formula.uncertainty.noise == pytest.approx(0.1, rel=0.4)
    slope = np.argmax(np.abs(formula.expression.constants))
    # Of normal noise the median costs a quarter more than the mean.
    assert formula.standard_errors[slope] == pytest.approx(0.1 / np.sqrt(np.sum(X**2)), rel=0.6)


def test_a_prediction_without_a_value_has_no_deviation():
    X, y = noisy(5)
    data = DataSet.from_arrays(X, y)
    expression = Expression.from_text("2*log(x1)", LIBRARY)
    found = uncertainty_of(expression, data).of_predictions(expression, np.array([[-1.0, 1.0], [1.0, 1.0]]))
    assert np.isnan(found[0])
    assert np.isfinite(found[1])
    few = uncertainty_of(expression, DataSet.from_arrays(X[:1], y[:1]))
    assert np.isinf(few.of_predictions(expression, X[:3])).all()


def test_uncertainties_are_saved_with_a_fit(regressor, tmp_path):
    regressor.save(tmp_path / "fit.dgsr")
    loaded, X = dgsr.load(tmp_path / "fit.dgsr"), noisy(7)[0]
    for mine, saved in zip(regressor.pareto_front_, loaded.pareto_front_, strict=True):
        np.testing.assert_array_equal(mine.standard_errors, saved.standard_errors)
        assert mine.leave_one_out == saved.leave_one_out
    np.testing.assert_array_equal(
        regressor.predict(X, return_std=True)[1], loaded.predict(X, return_std=True)[1]
    )


def test_a_fit_without_uncertainties_says_that_it_cannot_return_them(regressor):
    X = noisy(7)[0]
    old = regressor.with_feature_names(["x1", "x2"])
    bare = [candidate._replace(uncertainty=None) for candidate in old.pareto_front_]
    old.pareto_front_ = type(old.pareto_front_)(bare).with_chosen(0)
    with pytest.raises(ValueError, match=r"max_time was over .* fit again, with more time"):
        old.predict(X, return_std=True)
    assert np.isnan(bare[-1].leave_one_out)
    assert bare[-1].constants_text() == ""


@pytest.mark.search
def test_a_linear_law_is_no_reason_to_warn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = 1.37 * X[:, 0] - 2.2 * X[:, 1] + 0.5 + 0.1 * rng.normal(size=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DGSRRegressor(generator=None, max_evaluations=1_500, max_length=15, random_state=0).fit(X, y)


def test_constants_are_shown_with_their_errors():
    expression = Expression.from_text("2.5*x1", LIBRARY)
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    y = np.array([2.4, 5.1, 7.5])
    candidate = Candidate(5, 0.1, expression, uncertainty_of(expression, DataSet.from_arrays(X, y)))
    error = np.sqrt(np.sum((2.5 * X[:, 0] - y) ** 2) / 2 / np.sum(X[:, 0] ** 2))
    assert candidate.constants_text() == f"2.5 ± {error:.2g}"


@settings(max_examples=10)
@given(seeds)
def test_the_linear_model_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    X, y = 1e6 + rng.normal(size=(14, 3)), rng.normal(size=14)
    predicted = cross_val_predict(LinearRegression(), X - 1e6, y, cv=LeaveOneOut())
    found = linear_leave_one_out(DataSet.from_arrays(X, y))
    assert found == pytest.approx(np.mean((predicted - y) ** 2) / y.var(), rel=1e-6)
    assert np.isinf(linear_leave_one_out(DataSet.from_arrays(X[:7], y[:7])))


@settings(max_examples=10)
@given(seeds, st.integers(-400, 1000))
def test_the_linear_model_does_not_depend_on_the_scale_of_the_columns(seed, exponent):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(14, 3)), rng.normal(size=14)
    scaled = X * np.array([1.0, 2.0**exponent, 1e307])
    found, expected = (linear_leave_one_out(DataSet.from_arrays(Z, y)) for Z in (scaled, X))
    assert found == pytest.approx(expected, rel=1e-6)


@settings(max_examples=10)
@given(seeds, st.integers(0, 1022))
def test_what_the_data_know_of_a_constant_scales_with_its_column(seed, exponent):
    rng = np.random.default_rng(seed)
    X, noise, scale = rng.uniform(0.5, 1.0, (20, 2)), rng.normal(size=20), 2.0**exponent
    weights = rng.uniform(0.1, 5.0, 20)  # with the larger ones a slope overflows
    known, scaled = (
        uncertainty_of(
            Expression(LIBRARY, Expression.from_text("2.5*x1", LIBRARY).tokens, [2.5 / s]),
            DataSet.from_arrays(X * s, 2.5 * X[:, 0] + noise, weights),
        )
        for s in (1.0, scale)
    )
    assert scaled.noise == pytest.approx(known.noise)
    assert scaled.leave_one_out == pytest.approx(known.leave_one_out, rel=1e-3)
    if exponent < 400:  # else its square is below the smallest float
        np.testing.assert_allclose(scaled.standard_errors * scale, known.standard_errors, rtol=1e-4)


@pytest.mark.search
def test_columns_up_to_the_largest_float_are_fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (60, 2))
    y = 3 * X[:, 0] / X[:, 1] + 1
    model = DGSRRegressor(generator=None, random_state=0, max_evaluations=300)
    for Z in (X * 5e307, np.column_stack([X, rng.choice([-1e308, 1e308], 60)])):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A linear model|invalid value encountered in reduce")
            assert model.fit(Z, y).score(Z, y) > 0.5


def test_a_fit_warns_where_a_linear_model_does_as_well():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    y = X.sum(axis=1) + 0.1 * rng.normal(size=200)
    model = flat_regressor(
        generator=None, max_evaluations=100, max_length=3, gp_generations=0, look_up=False, random_state=0
    )
    with pytest.warns(UserWarning, match="A linear model of all columns"):
        model.fit(X, y)


def test_rounding_moves_predictions_of_rows_left_out_as_it_moves_those_of_others():
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(1.0, 2.0, 19), 9.0)  # the last has nearly all of the say
    y = 1.713 + 2.531 * x + 0.1 * rng.normal(size=20)
    data = DataSet.from_arrays(x[:, None], y)
    formula = Expression.from_text("1.7 + 2.5*x1", get_library("physics", 1))
    of_rounding = formula(x[:, None]) - np.polyval(np.polyfit(x, y, 1), x)
    errors = []
    for i in range(20):
        others = np.arange(20) != i
        errors.append(np.polyval(np.polyfit(x[others], y[others], 1), x[i]) + of_rounding[i] - y[i])
    expected = np.mean(np.square(errors)) / y.var()
    np.testing.assert_allclose(uncertainty_of(formula, data).leave_one_out, expected, rtol=1e-6)
