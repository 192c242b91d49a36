"""Rows that lie far from what fits all others: how they are told, and that a law is found without them."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from dgsr import DGSRRegressor, get_library
from dgsr.expressions import Expression
from dgsr.pareto import ParetoArchive
from dgsr.passes.losses import WITHOUT_OUTLIERS, passes_without_outliers
from dgsr.passes.outliers import (
    _Mixture,
    are_outliers,
    description_with_outliers,
    precision_of_usual,
    with_outliers,
)
from dgsr.population import DataSet, Population

LIBRARY = get_library("physics", 2)
LEFT_OUT = "loss='auto' left out"


def table(n=120, noise=0.02, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 5.0, (n, 2))
    y = 3.0 * X[:, 0] ** 2 + 2.0 * X[:, 1]
    return X, y + noise * y.std() * rng.normal(size=n)


def archive_of(*texts, X, y):
    expressions = [Expression.from_text(text, LIBRARY) for text in texts]
    width = max(len(expression.tokens) for expression in expressions)
    archive = ParetoArchive(LIBRARY, max(width, 30), 12)
    programs = Population.empty(len(texts), LIBRARY, width, 12)
    for i, expression in enumerate(expressions):
        n, k = len(expression.tokens), len(expression.constants)
        programs.tokens[i, :n], programs.lengths[i] = expression.tokens, n
        programs.constants[i, :k] = expression.constants
    data = DataSet.from_arrays(X, y)
    archive.update(programs, programs.nmse(data))
    return archive, data


def test_the_mixture_is_the_most_probable_one():
    rng = np.random.default_rng(0)
    residuals = np.where(rng.random(400) < 0.1, rng.normal(0.0, 9.0, 400), rng.normal(0.0, 0.4, 400))
    data = DataSet.from_arrays(np.zeros((400, 1)), rng.normal(size=400))

    def bits(logarithms):
        narrow, wide, odds = np.exp(logarithms)
        share = odds / (1.0 + odds)
        density = share * norm.pdf(residuals, scale=narrow) + (1.0 - share) * norm.pdf(residuals, scale=wide)
        return -np.log2(density).sum()

    best = minimize(bits, np.log([0.5, 8.0, 9.0]), method="Nelder-Mead", options={"xatol": 1e-8})
    mixture = _Mixture.of(residuals, data)
    assert mixture.bits == pytest.approx(best.fun, abs=1e-3)
    assert mixture.deviation == pytest.approx(np.exp(best.x[0]), rel=1e-3)
    whole = -norm.logpdf(residuals, scale=np.sqrt(np.mean(residuals**2))).sum() / np.log(2.0)
    assert mixture.bits_of_one == pytest.approx(whole)
    far = np.abs(residuals) > 6.0 * mixture.deviation
    np.testing.assert_array_equal(mixture.are_far(residuals), far)


def test_equal_rows_count_as_often_as_they_were_measured():
    rng = np.random.default_rng(3)
    X, y, residuals = rng.normal(size=(40, 1)), rng.normal(size=40), rng.standard_t(2, 40)
    counts = rng.integers(1, 4, 40)
    joined = _Mixture.of(residuals, DataSet.from_arrays(X, y, counts, counts))
    rows = np.arange(40).repeat(counts)
    apart = _Mixture.of(residuals[rows], DataSet.from_arrays(X[rows], y[rows]))
    assert joined.bits == pytest.approx(apart.bits)
    np.testing.assert_allclose(joined.of_narrow[rows], apart.of_narrow)


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_few_rows_far_from_a_formula_are_outliers(noise):
    X, y = table(noise=noise)
    rows = [7, 50, 90]
    y[rows] += [60.0, -45.0, 50.0]
    formula = Expression.from_text("3*x1**2 + 2*x2", LIBRARY)
    found = with_outliers(*archive_of("x1", "3*x1**2 + 2*x2", X=X, y=y))
    assert found is not None
    assert found.text == formula.text
    data = DataSet.from_arrays(X, y)
    np.testing.assert_array_equal(np.flatnonzero(are_outliers(formula, data)), rows)
    precision = precision_of_usual(formula, data)
    assert precision[rows].max() < 1e-6
    assert np.delete(precision, rows).min() > 0.5
    clean = description_with_outliers(data, formula(X))
    assert clean < description_with_outliers(data, formula(X) + 0.2 * X[:, 0])
    assert description_with_outliers(data, np.full(len(y), np.nan)) == np.inf


def test_noise_has_no_outliers():
    for seed in range(20):
        X, y = table(seed=seed)
        assert with_outliers(*archive_of("x1", "3*x1**2 + 2*x2", X=X, y=y)) is None


def test_rows_of_a_law_that_was_not_found_are_no_outliers():
    X, _ = table()
    steep = X[:, 1] + np.exp(3.0 * X[:, 0]) / 1e3  # the formula lacks the last term, large where x1 is
    assert with_outliers(*archive_of("x2", X=X, y=steep)) is None
    pole = X[:, 1] + 0.2 / (X[:, 0] - 2.0 * X[:, 1] + 5.0) ** 2  # large along a line
    assert with_outliers(*archive_of("x2", X=X, y=pole)) is None


def test_too_few_rows_have_no_outliers():
    X, y = table(n=15)
    y[3] += 100.0
    assert with_outliers(*archive_of("3*x1**2 + 2*x2", X=X, y=y)) is None


def test_a_pole_at_a_row_does_not_hide_it():
    X, y = table()
    y[7] += 60.0
    at, size = float(X[7, 0]) + 1e-7, 60.0 * -1e-7
    bent = Expression.from_text(f"3*x1**2 + 2*x2 + {size!r}/(x1 - {at!r})", LIBRARY)
    assert abs(bent(X)[7] - y[7]) < 2.0
    assert np.flatnonzero(are_outliers(bent, DataSet.from_arrays(X, y))).tolist() == [7]
    assert with_outliers(*archive_of("x1", bent.text, X=X, y=y)) is not None


def test_the_searches_without_outliers_share_what_is_left():
    steps = passes_without_outliers(0.4)
    assert [step.until for step in steps] == [pytest.approx(0.64), pytest.approx(0.79), 1.0]
    assert [step.goes_on for step in steps] == [False, True, True]


# --- fits ---------------------------------------------------------------------------------------


def small(**parameters):
    usual = {"generator": None, "max_evaluations": 30_000, "random_state": 0}
    return DGSRRegressor(**usual | parameters)


@pytest.mark.search
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_law_is_found_behind_outliers_by_default(noise):
    X, y = table(noise=noise)
    rows = [3, 30, 57, 88]
    y[rows] += [90.0, -70.0, 60.0, 120.0]
    with pytest.warns(UserWarning, match=rf"{LEFT_OUT} 4 of 120 rows \(counted from 0: 3, 30, 57, 88\)"):
        model = small().fit(X, y)
    assert model.loss_ == WITHOUT_OUTLIERS
    assert model.outliers_.tolist() == rows
    clean = 3.0 * X[:, 0] ** 2 + 2.0 * X[:, 1]
    assert np.mean((model.predict(X) - clean) ** 2) < 1e-3 * noise**2 * clean.var() + 1e-20 * clean.var()
    if noise == 0.0:
        assert model.stop_reason_ == "exact fit"


@pytest.mark.search
def test_without_outliers_auto_is_the_square():
    X, y = table()
    auto, squared = (small(loss=loss, max_evaluations=10_000).fit(X, y) for loss in ("auto", "squared"))
    assert auto.loss_ == "squared"
    assert len(auto.outliers_) == 0
    fronts = [[(each.expression.text, each.loss) for each in fit.pareto_front_] for fit in (auto, squared)]
    assert fronts[0] == fronts[1]
    spent = [[entry["evaluations"] for entry in fit.history_] for fit in (auto, squared)]
    assert spent[0] == spent[1]


@pytest.mark.search
def test_squares_fit_outliers_where_they_are_asked_for():
    X, y = table()
    y[[3, 30, 57, 88]] += [90.0, -70.0, 60.0, 120.0]
    model = small(loss="squared", max_evaluations=5_000).fit(X, y)
    assert model.loss_ == "squared"
    assert len(model.outliers_) == 0


@pytest.mark.search
@pytest.mark.filterwarnings(f"ignore:{LEFT_OUT}")
@pytest.mark.filterwarnings("ignore:The chosen formula has constants that single rows determine")
def test_a_fit_without_outliers_goes_on_from_its_checkpoint(tmp_path):
    X, y = table()
    y[[3, 30, 57, 88]] += [90.0, -70.0, 60.0, 120.0]
    whole = small().fit(X, y)
    for number, share in enumerate((0.2, 0.6, 0.9)):
        path = tmp_path / f"{number}.checkpoint"
        small(checkpoint=path, callback=lambda progress, share=share: progress.share >= share).fit(X, y)
        resumed = small(checkpoint=path).fit(X, y)
        assert resumed.loss_ == WITHOUT_OUTLIERS
        assert resumed.expression_.text == whole.expression_.text
        assert resumed.outliers_.tolist() == whole.outliers_.tolist()


@pytest.mark.search
@pytest.mark.filterwarnings(f"ignore:{LEFT_OUT}")
def test_several_outputs_have_outliers_of_their_own_and_files_and_reports_say_so(tmp_path):
    import dgsr

    X, y = table()
    spoilt = y.copy()
    spoilt[[3, 30]] += [90.0, -70.0]
    model = small(max_evaluations=60_000).fit(X, np.column_stack([y, spoilt]))
    assert [rows.tolist() for rows in model.outliers_] == [[], [3, 30]]
    own = model.estimators_[1]
    own.save(tmp_path / "own.dgsr")
    loaded = dgsr.load(tmp_path / "own.dgsr")
    assert loaded.loss_ == WITHOUT_OUTLIERS
    for fit, said in ((own, "left out 2 outliers,"), (loaded, "left out outliers,")):
        fit.report(tmp_path / "report.html", X, spoilt)
        assert said in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.search
def test_the_command_line_names_outliers(tmp_path):
    from typer.testing import CliRunner

    from dgsr.cli import app

    X, y = table()
    y[[3, 30]] += [90.0, -70.0]
    path = tmp_path / "table.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    options = ["--target", "y", "--generator", "none", "--max-evaluations", "30000", "--random-state", "0"]
    result = CliRunner().invoke(app, ["fit", str(path), *options, "--json", "--quiet"])
    assert json.loads(result.stdout)["outliers"] == [3, 30]
    assert "(counted from 0: 3, 30)" in " ".join(result.stderr.split())
