"""Rows that lie far from what fits all others: how they are told, and that a law is found without them."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from dgsr import DGSRRegressor, get_library
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.data.table import Table
from dgsr.expressions import Expression
from dgsr.fitting.losses import WITHOUT_OUTLIERS, passes_without_outliers
from dgsr.fitting.outlier_watch import with_outliers
from dgsr.fitting.outliers import InlierModel, Mixture, outlying_rows, residual_bits_with_outliers
from dgsr.pareto import ParetoArchive
from searches import flat_regressor

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
    mixture = Mixture.of(residuals, data)
    assert mixture.bits(residuals, data) == pytest.approx(best.fun, abs=1e-3)
    assert mixture.deviation == pytest.approx(np.exp(best.x[0]), rel=1e-3)
    odds = mixture.share * norm.pdf(residuals, scale=mixture.deviation)
    odds /= (1.0 - mixture.share) * norm.pdf(residuals, scale=np.sqrt(mixture.wide))
    np.testing.assert_allclose(mixture.of_narrow(residuals), odds / (1.0 + odds), atol=1e-12)


def test_equal_rows_count_as_often_as_they_were_measured():
    rng = np.random.default_rng(3)
    X, y, residuals = rng.normal(size=(40, 1)), rng.normal(size=40), rng.normal(size=40)
    residuals[:3] += [30.0, -50.0, 40.0]
    counts = rng.integers(1, 4, 40)
    joined = DataSet.from_arrays(X, y, counts, counts)
    rows = np.arange(40).repeat(counts)
    apart = DataSet.from_arrays(X[rows], y[rows])
    found = [Mixture.of(*each) for each in ((residuals, joined), (residuals[rows], apart))]
    np.testing.assert_allclose(found[0], found[1])
    assert found[0].bits(residuals, joined) == pytest.approx(found[1].bits(residuals[rows], apart))
    formula, y = Expression.from_text("2*x1", get_library("physics", 1)), 2.0 * X[:, 0] + 0.01 * y
    y[5] += 3.0
    assert outlying_rows(formula, Table(X, y, counts)).tolist() == [5]
    assert outlying_rows(formula, Table(X[rows], y[rows])).tolist() == np.flatnonzero(rows == 5).tolist()


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_few_rows_far_from_a_formula_are_outliers(noise):
    X, y = table(noise=noise)
    rows = [7, 50, 90]
    y[rows] += [60.0, -45.0, 50.0]
    formula = Expression.from_text("3*x1**2 + 2*x2", LIBRARY)
    found = with_outliers(*archive_of("x1", "3*x1**2 + 2*x2", X=X, y=y))
    assert found is not None
    assert found[0].text == formula.text
    data = DataSet.from_arrays(X, y)
    assert outlying_rows(formula, Table(X, y)).tolist() == rows
    precision = InlierModel(formula, data).precision(data)
    assert precision[rows].max() < 1e-6
    assert np.delete(precision, rows).min() > 0.5
    clean = residual_bits_with_outliers(data, formula(X))
    assert clean < residual_bits_with_outliers(data, formula(X) + 0.2 * X[:, 0])
    assert residual_bits_with_outliers(data, np.full(len(y), np.nan)) == np.inf


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
    assert outlying_rows(bent, Table(X, y)).tolist() == [7]
    assert with_outliers(*archive_of("x1", bent.text, X=X, y=y)) is not None


def test_columns_over_decades_and_ends_of_domains_have_no_poles():
    rng = np.random.default_rng(0)
    X = np.column_stack([10.0 ** rng.uniform(-3, 2.5, 150), rng.uniform(1, 2, 150)])
    law = Expression.from_text("x2*x1/(0.05 + x1)", LIBRARY)
    y = law(X) + 0.01 * rng.normal(size=150)
    assert outlying_rows(law, Table(X, y)).tolist() == []
    X[0, 0], y[0] = 0.0, 0.0
    X[3, 0] *= 1_000.0  # a typing error in a column
    y[20] += 30.0
    assert outlying_rows(law, Table(X, y)).tolist() in ([20], [3, 20])
    root = Expression.from_text("2 + 3*sqrt(x1*x2)", LIBRARY)
    X = np.column_stack([each.ravel() for each in np.meshgrid(np.linspace(0, 5, 14), np.linspace(0, 5, 14))])
    y = root(X) + 0.01 * rng.normal(size=len(X))
    assert outlying_rows(root, Table(X, y)).tolist() == []
    assert with_outliers(*archive_of("x1", root.text, X=X, y=y)) is None


def test_rows_that_took_no_part_are_no_outliers():
    X, y = table()
    y[7] += 60.0
    weights = np.ones(len(y))
    weights[11], X[11, 0], y[11] = 0.0, 1e6, -500.0
    law = Expression.from_text("3*x1**2 + 2*x2", LIBRARY)
    assert outlying_rows(law, Table(X, y, weights)).tolist() == [7]


def test_an_outlier_among_equal_inputs_is_seen():
    n_seen = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.permutation(np.arange(100) % 5 + 1.0), np.zeros(100)])
        y = 2.0 * X[:, 0] + 1.0 + 0.1 * rng.normal(size=100)
        y[13] += 8.0
        order = np.lexsort((y, X[:, 0]))  # as rows of a fit are
        n_seen += with_outliers(*archive_of("1 + 2*x1", X=X[order], y=y[order])) is not None
    assert n_seen >= 18


def test_events_are_no_outliers_of_a_target_that_is_else_constant():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1.0, 2.0, (200, 2)), np.zeros(200)
    y[rng.choice(200, 10, replace=False)] = 1.0
    archive, data = archive_of("0*x1", "x1", X=X, y=y)
    assert with_outliers(archive, data) is None
    assert outlying_rows(Expression.from_text("0*x1", LIBRARY), Table(X, y)).tolist() == []


def test_rows_held_out_are_judged_by_the_distributions_of_all_rows():
    law = Expression.from_text("3.1*x1**2.3 + 2.2*x2 + 0.7*sin(1.3*x1)", LIBRARY)
    few = 0
    for seed in range(10):
        X = np.random.default_rng(seed).uniform(0.5, 5.0, (107, 2))
        y = law(X) + 0.1 * np.random.default_rng(seed).normal(size=107)
        usual = InlierModel(law, DataSet.from_arrays(X[:100], y[:100]))
        few += (usual.precision(DataSet.from_arrays(X[100:], y[100:]), fitted=False) < 0.5).sum()
    assert few == 0


def test_an_outlier_may_be_huge():
    X, y = table()
    y[7] = 1e130
    law = Expression.from_text("3*x1**2 + 2*x2", LIBRARY)
    assert outlying_rows(law, Table(X, y)).tolist() == [7]
    data = DataSet.from_arrays(X, y)
    assert residual_bits_with_outliers(data, law(X)) < residual_bits_with_outliers(data, 0.0 * y)
    assert residual_bits_with_outliers(data, law(X) * 1e160) == np.inf


def test_the_searches_without_outliers_share_what_is_left():
    steps = passes_without_outliers(0.4)
    assert [step.until for step in steps] == [pytest.approx(0.64), pytest.approx(0.79), 1.0]
    assert [step.goes_on for step in steps] == [False, True, True]


# --- fits ---------------------------------------------------------------------------------------


def small(**parameters):
    usual = {"generator": None, "max_evaluations": 4_400, "batch_size": 200, "max_length": 10}
    usual |= {"random_state": 0}
    return flat_regressor(**usual | parameters)


def spoilt(noise=0.02):
    X, y = table(noise=noise)
    y[[3, 30, 57, 88]] += [90.0, -70.0, 60.0, 120.0]
    return X, y


def with_warnings(X, y):
    """A fit, and what it warns of but for a linear model."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = small().fit(X, y)
    messages = [str(each.message) for each in caught]
    return model, [said for said in messages if not said.startswith("A linear model of all columns")]


@pytest.fixture(scope="module")
def of_noise():
    return with_warnings(*spoilt())


@pytest.fixture(scope="module")
def whole(of_noise):
    return of_noise[0]


@pytest.mark.search
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_law_is_found_behind_outliers_by_default(noise, of_noise):
    X, y = spoilt(noise)
    rows = [3, 30, 57, 88]
    model, (said,) = of_noise if noise else with_warnings(X, y)
    assert said.startswith(f"{LEFT_OUT} 4 of 120 rows (counted from 0: 3, 30, 57, 88)")
    assert model.loss_ == WITHOUT_OUTLIERS
    assert model.outliers_.tolist() == rows
    clean = 3.0 * X[:, 0] ** 2 + 2.0 * X[:, 1]
    assert np.mean((model.predict(X) - clean) ** 2) < 1e-3 * noise**2 * clean.var() + 1e-20 * clean.var()
    if noise == 0.0:
        assert model.stop_reason_ == "exact fit"


@pytest.mark.slow
@pytest.mark.search
def test_without_outliers_auto_is_the_square():
    X, y = table()
    y += 10.0 * np.ptp(y)  # else errors might grow with the target
    auto, squared = (small(loss=loss).fit(X, y) for loss in ("auto", "squared"))
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
    model = small(loss="squared", max_evaluations=500, look_up=False).fit(X, y)
    assert model.loss_ == "squared"
    assert len(model.outliers_) == 0


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.filterwarnings(f"ignore:{LEFT_OUT}")
@pytest.mark.filterwarnings("ignore:The chosen formula has constants that single rows determine")
@pytest.mark.parametrize("share", [0.2, 0.3, 0.6, 0.9])
def test_a_fit_without_outliers_goes_on_from_its_checkpoint(tmp_path, whole, share):
    X, y = spoilt()
    path = tmp_path / "checkpoint"
    small(checkpoint=path, callback=lambda progress: progress.share >= share).fit(X, y)
    resumed = small(checkpoint=path).fit(X, y)
    assert resumed.loss_ == WITHOUT_OUTLIERS
    assert resumed.expression_.text == whole.expression_.text
    assert resumed.outliers_.tolist() == whole.outliers_.tolist()
    spent = [[entry["evaluations"] for entry in fit.history_] for fit in (resumed, whole)]
    assert spent[0] == spent[1]


@pytest.mark.search
@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore:{LEFT_OUT}")
def test_several_outputs_have_outliers_of_their_own_and_files_and_reports_say_so(tmp_path):
    import dgsr

    X, y = table()
    spoilt = y.copy()
    spoilt[[3, 30]] += [90.0, -70.0]
    model = small(max_evaluations=10_000).fit(X, np.column_stack([y, spoilt]))
    assert [rows.tolist() for rows in model.outliers_] == [[], [3, 30]]
    own = model.estimators_[1]
    own.save(tmp_path / "own.dgsr")
    loaded = dgsr.load(tmp_path / "own.dgsr")
    assert loaded.loss_ == WITHOUT_OUTLIERS
    for fit, said in (
        (own, "left out 2 outliers (row 4, 31, counted from 1)."),
        (loaded, "left out outliers."),
    ):
        fit.report(tmp_path / "report.html", X, spoilt)
        assert said in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.search
def test_the_command_line_names_outliers(tmp_path):
    from typer.testing import CliRunner

    from dgsr.cli import app

    X, y = table()
    y[[3, 30]] += [90.0, -70.0]
    path = tmp_path / "table.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    options = ["--target", "y", "--generator", "none", "--max-evaluations", "20000", "--random-state", "0"]
    path.write_text(path.read_text().replace("a,b,y\n", "a,b,y\n1,,2\n"))  # a row with a missing cell
    result = CliRunner().invoke(app, ["fit", str(path), *options, "--quiet", "--test-size", "0.1"])
    assert "left out as outliers: lines 6, 33 of the table" in result.stdout
    assert f"{LEFT_OUT} 2 of 108 rows" in " ".join(result.stderr.split())


@pytest.mark.slow
@pytest.mark.search
def test_a_fit_that_a_callback_breaks_has_its_outliers():
    X, y = table()
    y[[3, 30]] += [90.0, -70.0]

    def breaks(progress):
        if progress.share >= 0.8:
            raise RuntimeError

    model = small(callback=breaks)
    with pytest.raises(RuntimeError):
        model.fit(X, y)
    assert model.outliers_.tolist() == [3, 30]
    assert model.stop_reason_ == "error"


@pytest.mark.slow
@pytest.mark.search
@pytest.mark.filterwarnings(f"ignore:{LEFT_OUT}")
def test_rows_can_be_held_out_beside_outliers():
    X, y = table()
    y[[3, 30, 57]] += [90.0, -70.0, 60.0]
    model = small(selection="holdout").fit(X, y)
    assert model.outliers_.tolist() == [3, 30, 57]
    clean = 3.0 * X[:, 0] ** 2 + 2.0 * X[:, 1]
    assert np.mean((model.predict(X) - clean) ** 2) < 1e-4 * clean.var()


@pytest.mark.slow
@pytest.mark.search
def test_outliers_are_found_where_errors_might_grow_as_well():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (100, 2))
    y = 2.5 * X[:, 0] / X[:, 1] + 0.02 * rng.normal(size=100)
    y[[17, 42, 77]] = 25.0, 0.1, 31.0  # the targets span a decade
    with pytest.warns(UserWarning, match="left out 3 of 100 rows"):
        model = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(X, y)
    assert model.outliers_.tolist() == [17, 42, 77]
    assert str(model.expression_) == "2.5*x1/x2"
