"""The report of a fit: what the file says, and what a browser makes of it."""

# ruff: noqa: RUF001 - minus signs, dashes and multiplication signs are what is meant

from __future__ import annotations

import ast
import copy
import itertools
import json
import os
import platform
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline

import dgsr
from dgsr import DGSRRegressor, find_symmetries
from dgsr.cli.results import print_result, result_of
from dgsr.cli.tabular import read_table
from dgsr.constants.uncertainty import Uncertainty
from dgsr.expressions import Expression, get_library
from dgsr.pareto import Candidate, ParetoFront
from dgsr.reporting import write_report
from dgsr.reporting.facts import sampled_rows, snippet
from dgsr.reporting.numbers import number, share_explained
from dgsr.reporting.standard_errors import with_standard_errors

ABSORPTION = Path(__file__).parents[2] / "examples" / "data" / "absorption.csv"
SLOW = pytest.mark.slow
ODD_NAMES = ["<b>&\"'", "</script><script>alert(1)</script>"]
BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Fit:
    """An estimator and the data to show it on."""

    def __init__(self, estimator, X, y):
        self.estimator, self.X, self.y = estimator, X, y

    def write(self, path, **options):
        return write_report(self.estimator, path, self.X, self.y, **options)

    def page(self, tmp_path, **options):
        return self.write(tmp_path / "page.html", **options).read_text(encoding="utf-8")


def with_front(fit, texts, losses, X=None, y=None):
    """Return the fit with another front; its last formula predicts."""
    estimator = copy.copy(fit.estimator)
    names = list(estimator.feature_names_in_)
    library = get_library("physics", len(names))
    expressions = [
        Expression.from_text(text, library, [f"x{i + 1}" for i in range(len(names))]) for text in texts
    ]
    named = [expression.with_feature_names(names) for expression in expressions]
    estimator.pareto_front_ = ParetoFront(
        [Candidate(i + 1, loss, e) for i, (loss, e) in enumerate(zip(losses, named))],
        chosen=len(named) - 1,
    )
    return Fit(estimator, fit.X if X is None else X, fit.y if y is None else y)


@pytest.fixture(scope="module")
def absorption():
    table = read_table(ABSORPTION, "absorption")
    X = pd.DataFrame(table.X, columns=list(table.feature_names))
    return Fit(DGSRRegressor(max_evaluations=2_000, random_state=0).fit(X, table.y), X, table.y)


@pytest.fixture(scope="module")
def odd():
    X = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 2.0, (30, 2)), columns=ODD_NAMES)
    y = X[ODD_NAMES[0]].to_numpy() + np.sin(3 * X[ODD_NAMES[1]].to_numpy())
    return Fit(DGSRRegressor(generator=None, max_evaluations=1000, random_state=0).fit(X, y), X, y)


@pytest.fixture(scope="module")
def constant():
    X, y = np.arange(6.0)[:, None], np.full(6, 3.5)
    with pytest.warns(UserWarning, match="in every row"):
        return Fit(DGSRRegressor().fit(X, y), X, y)


@pytest.fixture(scope="module")
def thirty(absorption):
    texts = ["x1"] + [" + ".join(["x1"] + [f"sin({j}*x1)" for j in range(1, i)]) for i in range(2, 31)]
    return with_front(absorption, texts, [0.8**i for i in range(29)] + [0.0])


class Elements(HTMLParser):
    """All elements of a page, with their attributes, and the text inside those with an id."""

    def __init__(self, page):
        super().__init__()
        self.elements, self._open, self.texts = [], [], {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "wbr", "path", "circle", "link", "br"):
            self._open.append((tag, dict(attributes).get("id")))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        for _, name in self._open:
            if name:
                self.texts[name] = self.texts.get(name, "") + data


def embedded(page):
    return json.loads(Elements(page).texts["data"], parse_constant=pytest.fail)


# --- the file -------------------------------------------------------------------------------------


@pytest.mark.search
def test_the_chosen_formula_and_the_whole_front_are_in_the_html_itself(absorption, tmp_path):
    page = absorption.page(tmp_path, target="absorption")
    before_scripts = page[: page.index("<script")]
    texts = Elements(before_scripts).texts
    assert texts["text"] == absorption.estimator.expression_.text
    assert "<math" in before_scripts
    for candidate in absorption.estimator.pareto_front_:
        assert candidate.expression.text in texts["candidates"]
        assert number(candidate.loss, keep_zeros=True) in texts["candidates"]


def test_the_file_refers_to_nothing_outside_itself(absorption, tmp_path):
    page = absorption.page(tmp_path)
    for _, attributes in Elements(page).elements:
        assert not {"src", "href", "srcset", "action", "data", "style", "onclick"} & attributes.keys()
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", page)
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_every_id_is_given_once(absorption, tmp_path):
    ids = [
        attributes["id"]
        for _, attributes in Elements(absorption.page(tmp_path)).elements
        if "id" in attributes
    ]
    assert len(ids) == len(set(ids))


def test_the_same_fit_writes_the_same_bytes(absorption, tmp_path):
    assert absorption.page(tmp_path) == absorption.page(tmp_path)


def test_a_page_that_cannot_be_written_leaves_the_old_one(absorption, tmp_path, monkeypatch):
    before = absorption.page(tmp_path)

    def fail(descriptor):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        absorption.write(tmp_path / "page.html", title="Another page")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == before


def test_half_a_pair_of_surrogates_in_a_name_is_shown_by_its_number(absorption, tmp_path):
    names = ["a\udc80b"]
    named = absorption.estimator.with_feature_names(names)
    page = Fit(named, absorption.X.set_axis(names, axis=1), absorption.y).page(tmp_path, target="c\ud800")
    assert "a\\udc80b" in page
    assert "c\\ud800" in page
    assert embedded(page)["target"] == "c\ud800"


def test_what_the_user_named_is_escaped_everywhere(odd, tmp_path):
    page = odd.page(tmp_path, target=ODD_NAMES[1], title="<i>A & B</i>")
    tags = [tag for tag, _ in Elements(page).elements]
    assert tags.count("script") == 2
    assert "b" not in tags
    assert "i" not in tags
    assert Elements(page).texts["data"].count("<") == 0
    data = embedded(page)
    assert data["target"] == ODD_NAMES[1]
    assert [c["text"] for c in data["candidates"]] == [c.expression.text for c in odd.estimator.pareto_front_]
    assert any(ODD_NAMES[0] in candidate["text"] for candidate in data["candidates"])
    assert all("<b>" not in candidate["mathml"] for candidate in data["candidates"])


def test_predictions_that_are_not_finite_are_null_and_counted(absorption, tmp_path):
    X, y = np.array([[-1.0], [1.0], [4.0]]), np.array([1.0, 1.0, 2.0])
    fit = with_front(absorption, ["log(x1)", "x1 + exp(exp(exp(x1)))", "sqrt(x1)"], [0.5, 0.4, 0.1], X, y)
    fit.X = pd.DataFrame(X, columns=["concentration"])
    page = fit.page(tmp_path)
    first, second, third = embedded(page)["candidates"]
    assert first["residuals"][0] is None
    assert second["residuals"][2] is None
    assert third["residuals"] == [None, 0.0, 0.0]
    assert third["note"] == "Undefined on 1 row, which the plots leave out."
    assert third["r2"] == third["rmse"] == "–"
    assert not re.search(r"\b(NaN|Infinity|nan|inf)\b", Elements(page).texts["candidates"])


def test_a_series_without_a_name_is_called_y(absorption, tmp_path):
    absorption.estimator.report(tmp_path / "fit.html", absorption.X, absorption.y, target=None)
    assert "<title>A formula for y</title>" in (tmp_path / "fit.html").read_text(encoding="utf-8")


def test_a_target_may_be_named_by_a_number(absorption, tmp_path):
    absorption.estimator.report(tmp_path / "page.html", absorption.X, absorption.y, target=3)
    assert "<title>A formula for 3</title>" in (tmp_path / "page.html").read_text()


def test_residuals_and_metrics_are_those_of_the_candidates(absorption, tmp_path):
    data = embedded(absorption.page(tmp_path))
    assert data["rows"] == list(range(1, 15))
    for shown, candidate in zip(data["candidates"], absorption.estimator.pareto_front_, strict=True):
        predictions = candidate.expression(absorption.X)
        np.testing.assert_allclose(shown["residuals"], absorption.y - predictions, rtol=1e-4, atol=1e-12)
        assert shown["r2"] == share_explained(r2_score(absorption.y, predictions))
        assert shown["complexity"] == str(candidate.complexity)
        assert shown["bits"] == f"{candidate.description_length:.1f}"


def test_the_rows_of_a_report_have_a_weight(tmp_path):
    X = np.random.default_rng(0).normal(size=(5_000, 1))
    weights = (np.arange(5_000) % 50 == 3).astype(int)
    model = DGSRRegressor(generator=None, max_evaluations=500, random_state=0).fit(X, X[:, 0] ** 2, weights)
    model.report(tmp_path / "report.html")


def test_weights_count_in_r2(absorption, tmp_path):
    weights = np.linspace(0, 3, len(absorption.y))
    page = absorption.page(tmp_path, sample_weight=weights)
    predictions = absorption.estimator.predict(absorption.X)
    assert Elements(page).texts["r2"] == share_explained(
        r2_score(absorption.y, predictions, sample_weight=weights)
    )
    assert Elements(page).texts["r2"] != Elements(absorption.page(tmp_path)).texts["r2"]
    assert "regressor.fit(X, y, sample_weight=sample_weight)" in page


def test_the_call_that_repeats_a_fit_has_its_rules():
    rules = {"required": ["x1"], "nested": {"sin": {"sin": 0, "exp": None}}}
    source = snippet(DGSRRegressor(random_state=0, constraints=rules), weighted=False)
    (call,) = (node for node in ast.walk(ast.parse(source)) if getattr(node, "keywords", None))
    written = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert written == {"random_state": 0, "constraints": rules}


def test_the_call_that_repeats_a_fit_has_numbers_of_python_for_those_of_numpy():
    rules = {"lower": np.float64(-0.5), "at": [({"x1": np.float64(0.0)}, np.int64(2))]}
    source = snippet(DGSRRegressor(constraints=rules, random_state=np.int64(3)), weighted=False)
    (call,) = (node for node in ast.walk(ast.parse(source)) if getattr(node, "keywords", None))
    written = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert written == {"random_state": 3, "constraints": rules}


def test_weights_of_any_size_are_shares(absorption, tmp_path):
    pages = [
        absorption.page(tmp_path, sample_weight=np.full(len(absorption.y), weight))
        for weight in (1.0, 1.7e308)
    ]
    assert pages[0] == pages[1]


def test_of_many_rows_always_the_same_thousand_are_embedded(absorption, tmp_path):
    X = pd.DataFrame({"concentration": np.linspace(1, 50, 2500)})
    fit = Fit(absorption.estimator, X, absorption.estimator.predict(X) + np.tile([1.0, -1.0], 1250))
    page = fit.page(tmp_path)
    rows = embedded(page)["rows"]
    assert len(rows) == len(set(rows)) == 1000
    assert rows == sorted(rows)
    assert 1 <= rows[0] <= rows[-1] <= 2500
    assert rows == embedded(fit.page(tmp_path))["rows"]
    assert "1,000 of 2,500 rows" in page
    assert Elements(page).texts["rmse"] == "1.00"  # of all rows


def test_the_snippet_holds_what_differs_from_the_defaults_and_parses(absorption, tmp_path):
    source = Elements(absorption.page(tmp_path)).texts["snippet"]
    call = ast.parse(source).body[1].value
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
    assert arguments == {"max_evaluations": 2_000, "random_state": 0}


@pytest.mark.search
def test_the_snippet_fits_the_same_formula_again(absorption, tmp_path):
    namespace = {"X": absorption.X, "y": absorption.y}
    exec(Elements(absorption.page(tmp_path)).texts["snippet"], namespace)
    assert namespace["regressor"].expression_ == absorption.estimator.expression_


def test_a_parameter_that_cannot_be_written_down_is_named_in_a_comment(absorption, tmp_path):
    library = get_library("physics", 1)
    estimator = copy.copy(absorption.estimator).set_params(
        library=library, generator=Path("of/mine"), random_state=None, max_time=np.float64(1e-9), verbose=1
    )
    page = Fit(estimator, absorption.X, absorption.y).page(tmp_path)
    source = Elements(page).texts["snippet"]
    ast.parse(source)
    assert "library=...,  # " in source
    assert "generator='of/mine'," in source
    assert "max_time=1e-09," in source
    assert "verbose" not in source
    assert "random_state is no integer" in page


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_the_snippet_has_the_number_that_repeats_a_fit(random_state):
    X = np.random.default_rng(0).uniform(1.0, 2.0, (20, 2))
    y = X[:, 0] + np.sin(X[:, 1])
    fit = DGSRRegressor(generator=None, max_evaluations=500, random_state=random_state).fit(X, y)
    namespace = {"X": X, "y": y}
    exec(snippet(fit, weighted=False), namespace)
    assert str(namespace["regressor"].pareto_front_) == str(fit.pareto_front_)


def test_measured_values_that_differ_by_little_are_told_apart(absorption, tmp_path):
    y = 1e6 + 1e-3 * absorption.y
    page = Fit(absorption.estimator, absorption.X, y).page(tmp_path)
    np.testing.assert_allclose(np.array(embedded(page)["measured"]) - 1e6, y - 1e6, rtol=1e-6)


def test_the_rows_that_an_estimator_keeps_are_no_plane_of_a_grid():
    grid = np.array(list(itertools.product(np.linspace(1.0, 2.0, 10), repeat=4)))
    kept = grid[sampled_rows(len(grid))]
    assert [len(np.unique(column)) for column in kept.T] == [10] * 4


def test_versions_counts_and_the_reason_of_stopping_are_told(absorption, tmp_path):
    page = absorption.page(tmp_path)
    n, seconds = absorption.estimator.n_evaluations_, absorption.estimator.history_[-1]["seconds"]
    for text in (
        f"<dt>Equations evaluated</dt><dd>{n:,}, {n / seconds:,.0f} a second</dd>",
        f"dgsr {dgsr.__version__}, Python {platform.python_version()}, numpy {np.__version__}, torch ",
        f"scikit-learn {sklearn.__version__}",
        "14 rows, 1 feature",
        absorption.estimator.stop_reason_,
        "physics-d16",
        "<dt>Random state</dt><dd>0</dd>",
    ):
        assert text in page


def test_the_page_has_the_symmetries_of_rows_that_have_a_weight(odd, tmp_path):
    X = np.random.default_rng(1).uniform(0.5, 2.0, (60, 2))
    y, weights = np.exp(X[:, 0] / X[:, 1]), np.ones(60)
    y[::10], weights[::10] = 100.0 * X[::10, 0], 0.0
    X = pd.DataFrame(X, columns=ODD_NAMES)
    shown = Elements(Fit(odd.estimator, X, y).page(tmp_path, sample_weight=weights, target="<b>")).texts
    (statement,) = find_symmetries(X[weights > 0], y[weights > 0], target_name="<b>")
    assert shown["symmetries"] == str(statement)
    assert "symmetries" not in Elements(Fit(odd.estimator, X, y).page(tmp_path)).texts


def test_a_constant_target_has_a_page_without_a_search(constant, tmp_path):
    page = constant.page(tmp_path)
    texts = Elements(page).texts
    assert texts["text"] == "3.5"
    assert texts["nmse"] == "0"
    assert texts["r2"] == "1"
    assert "There was no search." in page
    assert "There is one candidate." in page
    assert "random_state is no integer" not in page
    assert "history-chart" not in page[: page.index("<script")]


def test_a_loss_of_zero_stands_on_the_axis_and_the_caption_says_how(thirty, tmp_path):
    page = thirty.page(tmp_path)
    assert "drawn at the tick 0" in page
    assert ">0</text>" in page
    assert page.count('<g class="point"') == page.count("<tr data-candidate") == 30
    assert not re.search(r'="[^"]*\b(nan|inf)\b', page)


def test_other_forms_that_fit_as_well_are_named_in_report_and_terminal(absorption, tmp_path, capsys):
    apart = with_front(absorption, ["x1", "sin(3*x1)*x1 + 5"], [0.4, 0.39])
    assert "within 3 bits" not in apart.page(tmp_path)
    tied = with_front(absorption, ["x1", "log(x1)"], [0.4, 0.39])
    result = result_of(tied.estimator, "y")
    print_result(tied.estimator, result, all_rows=False)
    assert result["rivals"] == [0]
    named = "of another form, and within 3 bits of it: formula 0, concentration"
    assert named in capsys.readouterr().out
    assert named in tied.page(tmp_path).replace("Of another", "of another")


def test_losses_of_any_size_can_be_drawn(absorption, tmp_path):
    page = with_front(absorption, ["x1", "2*x1", "3*x1"], [1e300, 1e-200, 0.0]).page(tmp_path)
    assert page.count('<g class="point"') == 3
    assert not re.search(r'="[^"]*\b(nan|inf)\b', page)


def test_columns_whose_spread_is_beyond_a_float_can_be_drawn(absorption, tmp_path):
    rows = absorption.X * 0.0 + np.where(np.arange(14) % 2, 1.7e308, -1.7e308)[:, None]
    absorption.estimator.report(tmp_path / "page.html", rows, absorption.y)
    assert "1.7e+308" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_data_must_go_with_the_fit(absorption, tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        write_report(absorption.estimator, path, absorption.X, absorption.y[:3])
    with pytest.raises(ValueError, match=r"weight above 0|non-zero"):
        write_report(absorption.estimator, path, absorption.X, absorption.y, sample_weight=np.zeros(14))
    with pytest.raises(NotFittedError):
        write_report(DGSRRegressor(), path, absorption.X, absorption.y)
    with pytest.raises(TypeError, match="last step of a pipeline"):
        write_report(make_pipeline(absorption.estimator), path, absorption.X, absorption.y)
    assert not path.exists()


# --- the rows and what is said about them ---------------------------------------------------------


@pytest.fixture(scope="module")
def three_columns():
    """A fit of two of three columns, in whose rows one target is spoilt."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(0.5, 3.0, (60, 3)), columns=["a", "b", "noise"])
    y = 2.0 * X["a"].to_numpy() ** 2 + X["b"].to_numpy() + np.random.default_rng(1).normal(0.0, 0.05, 60)
    y[5] = 90.0
    with pytest.warns(UserWarning, match="left out 1 of 60 rows"):
        return Fit(DGSRRegressor(generator=None, max_evaluations=3_000, random_state=0).fit(X, y), X, y)


def test_the_curve_and_its_band_are_the_predictions_of_the_estimator(absorption, tmp_path):
    data = embedded(absorption.page(tmp_path))
    (column,), chosen = data["columns"], data["candidates"][data["chosen"]]
    ((values, deviations),) = chosen["curves"]
    grid = pd.DataFrame({"concentration": column["grid"]})
    expected, band = absorption.estimator.predict(grid, return_std=True)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(deviations, band, rtol=1e-2)
    assert [*grid.iloc[0], *grid.iloc[-1]] == [*absorption.X.min(), *absorption.X.max()]
    assert column["values"] == absorption.X["concentration"].tolist()


def test_of_several_columns_each_has_a_curve_with_the_others_at_their_medians(three_columns, tmp_path):
    data = embedded(three_columns.page(tmp_path))
    chosen = data["candidates"][data["chosen"]]
    curves = dict(zip([column["name"] for column in data["columns"]], chosen["curves"], strict=True))
    assert curves["noise"] is None
    rows = pd.DataFrame([three_columns.X.median()] * len(curves["a"][0])).reset_index(drop=True)
    rows["a"] = data["columns"][0]["grid"]
    np.testing.assert_allclose(curves["a"][0], three_columns.estimator.predict(rows), rtol=1e-3)
    middle = three_columns.estimator.predict(three_columns.X.median().to_frame().T)
    assert chosen["level"] == pytest.approx(middle[0], rel=1e-3)


def test_of_many_columns_those_in_no_formula_are_left_off(tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(0).uniform(1.0, 2.0, (20, 30)), columns=[f"c{i}" for i in range(30)]
    )
    estimator = DGSRRegressor(generator=None, max_evaluations=300, random_state=0).fit(X, 3.0 * X["c29"])
    names = [
        column["name"] for column in embedded(Fit(estimator, X, 3.0 * X["c29"]).page(tmp_path))["columns"]
    ]
    assert len(names) == 24
    assert "c29" in names


def test_outliers_are_marked_and_do_not_count(three_columns, tmp_path):
    three_columns.estimator.report(tmp_path / "own.html")
    page = (tmp_path / "own.html").read_text(encoding="utf-8")
    data, texts = embedded(page), Elements(page).texts
    assert [i for i, kind in enumerate(data["kinds"]) if kind == 2] == [5]
    assert "left out 1 outlier (row 6, counted from 1). R² is that of the other rows." in texts["notes"]
    predicted, others = three_columns.estimator.predict(three_columns.X), np.arange(60) != 5
    assert texts["r2"] == share_explained(r2_score(three_columns.y[others], predicted[others]))
    given = Elements(three_columns.page(tmp_path)).texts
    assert "R² counts them if they are among the rows" in given["notes"]
    assert given["r2"] == share_explained(r2_score(three_columns.y, predicted))
    with pytest.raises(ValueError, match=r"outliers=\[60\] must be indices of rows of X, from 0 to 59"):
        three_columns.page(tmp_path, outliers=[60])


def test_rows_held_out_are_shown_and_scored_beside_the_others(absorption, tmp_path):
    X, y = absorption.X.iloc[:5] * 1.1, absorption.y[:5] + 0.1
    page = absorption.page(
        tmp_path, test=(X, y), notes=["Line <7> is left out."], command="dgsr fit 'a b.csv'"
    )
    data, texts = embedded(page), Elements(page).texts
    assert data["rows"] == [*range(1, 15), *range(1, 6)]
    assert data["kinds"] == [0] * 14 + [1] * 5
    assert data["measured"][14:] == pytest.approx(y.tolist())
    assert texts["test_r2"] == share_explained(r2_score(y, absorption.estimator.predict(X)))
    assert texts["r2"] == Elements(absorption.page(tmp_path)).texts["r2"]
    assert texts["notes"] == "Line <7> is left out."
    assert texts["command"] == "dgsr fit 'a b.csv'"
    assert "<dt>Rows held out</dt><dd>5</dd>" in page
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        absorption.page(tmp_path, test=(X, y[:3]))


def test_a_fit_that_held_rows_out_itself_shows_the_losses_on_them(absorption, tmp_path):
    fit = Fit(copy.copy(absorption.estimator), absorption.X, absorption.y)
    front = fit.estimator.pareto_front_
    losses = np.linspace(0.5, 0.25, len(front))
    fit.estimator.pareto_front_ = ParetoFront(
        list(front), front.n_samples, held_out=losses, chosen=front.chosen
    )
    page = fit.page(tmp_path)
    assert [one["held_out"] for one in embedded(page)["candidates"]] == [
        number(loss, keep_zeros=True) for loss in losses
    ]
    assert "held out a quarter of its rows" in Elements(page).texts["notes"]


def test_each_standard_error_stands_beneath_its_constant():
    expression = Expression.from_text("2.5*exp(-0.4*x1) + 3.0*x1 + 0.000012", get_library("physics", 1))
    errors = expression.constants * 0.01
    known = Uncertainty(1.0, np.diag(errors**2), np.abs(errors), 0.5)
    mathml, left = with_standard_errors(Candidate(9, 0.1, expression, known))
    shown = ElementTree.fromstring(mathml.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))
    beneath = {each[0].text: each[1].text for each in shown.iter("munder")}
    assert beneath == {"2.5": "± 0.025", "0.4": "± 0.004", "3": "± 0.03", "1.2": "± 1.2×10⁻⁷"}
    assert left == []


def test_an_error_without_a_place_in_the_formula_is_named_below_it():
    # Each of the two constants is a root or a power of the number that is typeset.
    expression = Expression.from_text("x1**0.5*2.0", get_library("physics", 1))
    known = Uncertainty(1.0, np.zeros((2, 2)), np.array([0.1, np.inf])[: len(expression.constants)], 0.5)
    candidate = Candidate(9, 0.1, expression, known)
    mathml, left = with_standard_errors(candidate)
    assert mathml.count("<munder>") + len(left) == len(expression.constants)
    assert all(f"{expression.constants[i]!r} ± " in candidate.constants_text(left) for i in left)


def test_a_common_form_is_named_once_and_apart_from_warnings(absorption, tmp_path):
    texts = ["3.5*x1/(2.5 + x1)", "3.5*x1/(2.5 + x1) + exp(1.5*x1/(7.5 + x1))"]
    (one, two) = embedded(with_front(absorption, texts, [0.5, 0.1]).page(tmp_path))["candidates"]
    assert one["form"].startswith("Known form: ")
    assert two["form"].count("Michaelis") == 1
    assert one["note"] == two["note"] == ""


# --- formulas and numbers -------------------------------------------------------------------------


def typeset(text, names=("x1",)):
    """Return the formula as an element tree of MathML."""
    expression = Expression.from_text(text, get_library("physics", len(names)))
    mathml = expression.with_feature_names(names).mathml
    return ElementTree.fromstring(mathml.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))


@pytest.mark.parametrize("name", [*ODD_NAMES, "alpha_x^2", "sound pressure", "chord_length", "日本", "a;b"])
def test_names_survive_in_mathml_as_they_are(name):
    assert name in [element.text for element in typeset("2*sin(x1)", [name]).iter("mi")]


def test_a_letter_with_digits_becomes_an_index_in_mathml():
    (index,) = typeset("x1").iter("msub")
    assert [part.text for part in index] == ["x", "1"]


def test_constants_are_shortened_to_five_digits_in_mathml():
    numbers = [element.text for element in typeset("3.14159265*x1 + 0.00000123456789").iter("mn")]
    assert "3.1416" in numbers
    assert "1.2346" in numbers
    assert "10" in numbers


def test_a_power_of_a_number_written_with_a_power_of_ten_has_brackets_in_mathml():
    signs = "".join(typeset("0.0000001234**x1").itertext())
    assert "(1.234×10−7)" in signs.replace(" ", "")


def test_names_of_several_letters_are_multiplied_with_a_dot_in_mathml():
    dot = "·"
    assert dot in "".join(typeset("x1*x2", ["mass", "speed"]).itertext())
    assert dot not in "".join(typeset("x1*x2", ["m", "v"]).itertext())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0070329, "0.00703"),
        (1.2e-9, "1.2×10⁻⁹"),
        (1e-20, "10⁻²⁰"),
        (-3.4e8, "−3.4×10⁸"),
        (0.0, "0"),
        (1234.4, "1234"),
        (9.9999, "10"),
        (float("inf"), "–"),
        (None, "–"),
    ],
)
def test_numbers_are_written_with_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("r2", "text"),
    [
        (0.93, "0.9300"),
        (1 - 3e-9, "1 − 3×10⁻⁹"),
        (1.0, "1"),
        (-0.5, "−0.5000"),
        (-2e7, "−2×10⁷"),
        (None, "–"),
    ],
)
def test_an_almost_exact_fit_does_not_read_as_an_exact_one(r2, text):
    assert share_explained(r2) == text


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """A headless chromium; where there is none, it is an error if DGSR_BROWSER=required."""
    try:
        from playwright import sync_api
    except ImportError:
        sync_api = None
    program = shutil.which("chromium")
    if sync_api is None or program is None:
        message = "this test needs chromium and the package playwright"
        (pytest.fail if os.environ.get("DGSR_BROWSER") == "required" else pytest.skip)(message)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=BROWSER_OPTIONS)
        yield browser
        browser.close()


class Visit:
    """A page, with all it asked for and complained about."""

    def __init__(self, browser, path, width=1280, **options):
        self.address = path.as_uri()
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.goto(self.address)

    def text(self, selector):
        return self.page.locator(selector).text_content()

    def points(self, chart):
        return self.page.locator(f"{chart} .value").evaluate_all(
            "circles => circles.map(circle => [circle.getAttribute('cx'), circle.getAttribute('cy')])"
        )

    def state(self):
        """All that belongs to the candidate selected."""
        names = ("#formula", "#text", "#complexity", "#bits", "#nmse", "#r2", "#rmse")
        return [
            *(self.text(name) for name in names),
            self.points("#predicted-chart"),
            self.points("#residual-chart"),
        ]


@pytest.fixture
def visit(browser):
    visits = []

    def visit(path, **options):
        visits.append(Visit(browser, path, **options))
        return visits[-1]

    yield visit
    for each in visits:
        each.context.close()
        assert each.complaints == []
        assert each.requests == [each.address]


@pytest.fixture(scope="module")
def absorption_page(absorption, tmp_path_factory):
    return absorption.write(tmp_path_factory.mktemp("report") / "absorption.html", target="absorption")


def assert_shows(visit, fit, index):
    """Check that all of the page is about one candidate."""
    candidate = fit.estimator.pareto_front_[index]
    assert visit.text("#text") == candidate.expression.text
    assert visit.text("#complexity") == str(candidate.complexity)
    assert visit.text("#nmse") == number(candidate.loss, keep_zeros=True)
    assert visit.text("#r2") == share_explained(r2_score(fit.y, candidate.expression(fit.X)))
    assert visit.page.locator("#formula math").count() == 1
    assert visit.page.locator("tr.selected").get_attribute("data-candidate") == str(index)
    assert visit.page.locator(".point.selected").get_attribute("data-candidate") == str(index)
    assert visit.page.locator("input:checked").get_attribute("value") == str(index)
    assert visit.page.locator(".point[aria-checked=true]").get_attribute("data-candidate") == str(index)


def test_the_page_opens_with_the_chosen_formula_and_all_its_plots(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    front = absorption.estimator.pareto_front_
    assert_shows(seen, absorption, [c.expression for c in front].index(absorption.estimator.expression_))
    assert len(seen.points("#predicted-chart")) == len(seen.points("#residual-chart")) == 14
    assert seen.page.locator("#history-chart .line").count() == 1
    assert not seen.page.locator("#back").is_visible()


def others_of(fit):
    """Numbers of the simplest and of the longest candidate that is not the chosen one."""
    front = fit.estimator.pareto_front_
    others = [i for i, candidate in enumerate(front) if candidate.expression != fit.estimator.expression_]
    return others[0], others[-1]


def test_a_click_on_a_row_or_a_point_shows_that_candidate(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    before = seen.state()
    first, last = others_of(absorption)
    seen.page.locator("#unfold").click()
    seen.page.locator(f"tr[data-candidate='{first}']").click()
    assert_shows(seen, absorption, first)
    between = seen.state()
    seen.page.locator(f".point[data-candidate='{last}'] .dot").click()
    assert_shows(seen, absorption, last)
    after = seen.state()
    for one, two, three in zip(before, between, after, strict=True):
        assert one != two
        assert two != three
    assert absorption.estimator.pareto_front_[last].expression.text in seen.text("#announcement")
    seen.page.locator("#back").click()
    assert seen.state() == before


def test_points_stand_where_predictions_and_residuals_are(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    last = others_of(absorption)[1]
    seen.page.locator(f"tr[data-candidate='{last}']").click()
    predictions = absorption.estimator.pareto_front_[last].expression(absorption.X)
    predicted = np.array(seen.points("#predicted-chart"), dtype=float)
    residual = np.array(seen.points("#residual-chart"), dtype=float)
    for places, values in [
        (predicted[:, 0], absorption.y),
        (-predicted[:, 1], predictions),
        (residual[:, 0], predictions),
        (-residual[:, 1], absorption.y - predictions),
    ]:
        assert np.corrcoef(places, values)[0, 1] > 0.9999
        assert np.ptp(places) > 100


def test_the_keyboard_selects_in_the_plot_and_in_the_table(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    last = len(absorption.estimator.pareto_front_) - 1
    seen.page.locator("#unfold").click()
    seen.page.locator(".point.selected").focus()
    seen.page.keyboard.press("End")
    assert_shows(seen, absorption, last)
    seen.page.keyboard.press("ArrowLeft")
    assert_shows(seen, absorption, last - 1)
    assert seen.page.evaluate("document.activeElement.dataset.candidate") == str(last - 1)
    seen.page.keyboard.press("Home")
    assert_shows(seen, absorption, 0)
    seen.page.locator("input:checked").focus()
    seen.page.keyboard.press("ArrowDown")
    assert_shows(seen, absorption, 1)


def test_the_plot_is_one_stop_of_the_tab_key(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    assert seen.page.locator(".point[tabindex='0']").count() == 1
    n_points = seen.page.locator("svg [role=radiogroup] [role=radio][aria-label]").count()
    assert n_points == len(absorption.estimator.pareto_front_)


def test_buttons_copy_the_candidate_shown_as_text_latex_and_python(visit, absorption, absorption_page):
    seen = visit(absorption_page, permissions=["clipboard-read", "clipboard-write"])
    last = others_of(absorption)[1]
    seen.page.locator(f"tr[data-candidate='{last}']").click()
    expression = absorption.estimator.pareto_front_[last].expression
    for form, text in {
        "text": expression.text,
        "latex": expression.latex,
        "python": expression.to_python(),
    }.items():
        seen.page.locator(f"[data-copy={form}]").click()
        seen.page.locator(f"[data-copy={form}]", has_text="Copied").wait_for()
        assert seen.page.evaluate("navigator.clipboard.readText()") == text
    assert not seen.page.locator("#source").is_visible()


def test_without_a_clipboard_the_text_to_copy_is_selected(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    seen.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    seen.page.locator("[data-copy=latex]").click()
    seen.page.locator("[data-copy=latex]", has_text="Selected").wait_for()
    selected = seen.page.evaluate("getSelection().toString()")
    assert selected == absorption.estimator.expression_.latex


def test_without_javascript_formula_front_search_and_settings_can_be_read(visit, absorption, absorption_page):
    seen = visit(absorption_page, java_script_enabled=False)
    # Locators run scripts of their own and work all the same.
    for name in ("#formula math", "#text", "#front-chart", "#candidates", "#history-chart", "#snippet"):
        assert seen.page.locator(name).is_visible()
    assert seen.page.locator("#text").inner_text() == absorption.estimator.expression_.text
    assert not seen.page.locator(".copies").is_visible()
    assert not seen.page.locator("input").first.is_visible()
    assert seen.page.locator("noscript p").is_visible()


CONTRASTS = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = numbers(colour).slice(0, 3).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = {};
  for (const name of ["h1", ".lead", "h2", "#standing", "#formula math", "#text", ".copies button",
      ".error", ".notes", "dt", "dd", "th", "tr.selected code",
      "tr:not(.selected) code", ".badge", ".plot .tick", ".plot .name",
      "figcaption", "pre"]) {
    const element = document.querySelector(name);
    if (name === ".error" && element === null) continue; // the front has no errors
    const style = getComputedStyle(element);
    const colour = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const [a, b] = [luminance(colour), luminance(behind(element))].sort((one, other) => other - one);
    found[name] = (a + 0.05) / (b + 0.05);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark(visit, absorption_page, scheme):
    seen = visit(absorption_page, color_scheme=scheme)
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background))) < 150) == (scheme == "dark")
    contrasts = seen.page.evaluate(CONTRASTS)
    assert {name: contrast for name, contrast in contrasts.items() if contrast < 4.5} == {}


def test_on_paper_the_page_is_light_and_the_whole_table_is_there(visit, thirty, tmp_path):
    seen = visit(thirty.write(tmp_path / "thirty.html"), color_scheme="dark")
    seen.page.emulate_media(media="print", color_scheme="dark")
    contrasts = seen.page.evaluate(CONTRASTS)
    assert {name: contrast for name, contrast in contrasts.items() if contrast < 4.5} == {}
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert seen.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert seen.page.evaluate(
        "(table => table.scrollHeight === table.clientHeight)(document.getElementById('table'))"
    )
    assert not seen.page.locator(".copies").is_visible()


@pytest.mark.parametrize("width", [320, pytest.param(390, marks=SLOW), pytest.param(820, marks=SLOW), 1600])
def test_the_page_is_never_wider_than_the_window(visit, thirty, tmp_path, width):
    seen = visit(thirty.write(tmp_path / "thirty.html", target="absorption"), width=width)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [pytest.param(390, marks=SLOW), 1280])
def test_a_formula_wider_than_its_card_scrolls_to_its_end_also_by_the_keyboard(
    visit, thirty, absorption_page, tmp_path, width
):
    seen = visit(thirty.write(tmp_path / "thirty.html", target="absorption"), width=width)
    box, last = seen.page.locator("#formula"), seen.page.locator("#formula math > mrow > :last-child")
    assert box.evaluate("box => box.scrollWidth > box.clientWidth && box.scrollLeft === 0")
    assert box.evaluate("box => parseFloat(getComputedStyle(box).fontSize)") >= 16
    box.focus()
    seen.page.keyboard.press("ArrowRight")
    for _ in range(50):  # scrolling is smooth
        if moved := box.evaluate("box => box.scrollLeft") > 0:
            break
        seen.page.wait_for_timeout(20)
    assert moved
    box.evaluate("box => box.scrollTo({left: box.scrollWidth, behavior: 'instant'})")
    inside, end = box.bounding_box(), last.bounding_box()
    assert end["x"] + end["width"] <= inside["x"] + inside["width"] + 1
    short = visit(absorption_page, width=1280)
    assert short.page.locator("#formula").get_attribute("tabindex") is None


def test_thirty_candidates_can_each_be_selected_and_the_table_follows(visit, thirty, tmp_path):
    seen = visit(thirty.write(tmp_path / "thirty.html"))
    for index in (0, 13, 29):
        seen.page.locator(f".point[data-candidate='{index}'] .dot").click()
        assert_shows(seen, thirty, index)
        row, table = (
            seen.page.locator(name).bounding_box() for name in (f"tr[data-candidate='{index}']", "#table")
        )
        assert table["y"] <= row["y"]
        assert row["y"] + min(row["height"], 300) <= table["y"] + table["height"]


def test_of_a_long_front_the_chosen_row_is_in_view_and_the_tail_is_folded(visit, thirty, tmp_path):
    fit = Fit(copy.copy(thirty.estimator), thirty.X, thirty.y)
    fit.estimator.choose(12)
    seen = visit(fit.write(tmp_path / "long.html"))
    rows = seen.page.locator("#candidates tr")

    def in_view():
        return [i for i in range(30) if rows.nth(i).is_visible()]

    assert in_view() == list(range(7, 15))
    seen.page.locator(".point[data-candidate='29'] .dot").click()
    assert in_view() == [*range(7, 15), 29]
    seen.page.locator("#unfold", has_text="Show all 30 candidates").click()
    assert in_view() == list(range(30))
    seen.page.locator("#unfold", has_text="Show fewer").click()
    assert in_view() == [*range(7, 15), 29]


def test_one_column_is_drawn_as_a_curve_with_its_band_through_the_rows(visit, absorption, absorption_page):
    seen = visit(absorption_page)
    assert seen.page.locator("#panels svg.plot").count() == 1
    assert seen.page.locator("#panels .curve").count() == seen.page.locator("#panels .band").count() == 1
    points = np.array(seen.points("#panels"), dtype=float)
    assert np.corrcoef(points[:, 0], absorption.X["concentration"])[0, 1] > 0.9999
    assert np.corrcoef(-points[:, 1], absorption.y)[0, 1] > 0.9999
    curve = seen.page.locator("#panels .curve").get_attribute("d")
    x, y = np.array(re.findall(r"[\d.]+", curve), dtype=float).reshape(-1, 2).T
    residuals = absorption.y - absorption.estimator.predict(absorption.X)
    drawn = np.interp(points[:, 0], x, y) - points[:, 1]
    assert np.corrcoef(drawn, residuals)[0, 1] > 0.99


def test_the_column_that_changes_the_formula_most_comes_first(visit, three_columns, tmp_path):
    three_columns.estimator.report(tmp_path / "own.html")
    seen = visit(tmp_path / "own.html")
    headings = seen.page.locator("#panels h3").all_text_contents()
    assert [heading.split()[0] for heading in headings] == ["a", "b"]
    assert seen.text("#more summary") == "More columns (1, not in the formula)"
    assert not seen.page.locator("#more h3").is_visible()
    seen.page.locator("#more summary").click()
    assert seen.page.locator("#more h3").inner_text() == "noise is not in the formula"
    assert seen.page.locator("#panels .outlier").count() == 2
    first = three_columns.estimator.pareto_front_[0].expression
    seen.page.locator(".point[data-candidate='0'] .dot").click()
    assert len(first.feature_names) == seen.page.locator("#rows figure").count()


def test_rows_that_were_not_fitted_stand_at_the_edge_of_the_axes(visit, absorption, tmp_path):
    plain = visit(absorption.write(tmp_path / "plain.html"))
    beyond = absorption.X.iloc[:1], np.array([1e6])
    seen = visit(absorption.write(tmp_path / "beyond.html", test=beyond))
    fitted, (held_out,) = seen.points("#panels")[:-1], seen.points("#panels")[-1:]
    assert len(fitted) == 14
    assert np.ptp(np.array(fitted, dtype=float)[:, 1]) > 0.5 * np.ptp(
        np.array(plain.points("#panels"), dtype=float)[:, 1]
    )
    assert float(held_out[1]) < 40
    assert "stand at the edge" in seen.text("#panels-note")


def test_ticks_far_from_zero_are_told_apart(visit, absorption, tmp_path):
    X = pd.DataFrame({"concentration": 1.7e9 + np.arange(20.0)})
    fit = with_front(absorption, ["x1 - 1700000000"], [0.1], X, np.arange(20.0))
    ticks = visit(fit.write(tmp_path / "far.html")).page.locator("#panels .tick").all_text_contents()
    assert "1700000010" in ticks
    assert len(ticks) == len(set(ticks))


def test_a_pole_breaks_the_curve(visit, absorption, tmp_path):
    X = pd.DataFrame({"concentration": np.linspace(-2.0, 3.0, 40)})
    fit = with_front(absorption, ["1/x1"], [0.1], X, 1.0 / X["concentration"].to_numpy())
    assert visit(fit.write(tmp_path / "pole.html")).page.locator("#panels .curve").count() == 2


def test_a_constant_target_makes_a_page_that_works(visit, constant, tmp_path):
    seen = visit(constant.write(tmp_path / "constant.html"))
    assert seen.text("#text") == "3.5"
    assert len(seen.points("#residual-chart")) == 6
    assert "NaN" not in seen.page.content().split("<script")[0]


def test_odd_names_are_shown_as_they_are(visit, odd, tmp_path):
    seen = visit(
        odd.write(tmp_path / "odd.html", target="<img src=x onerror=alert(1)>", title="</title>&amp;")
    )
    last = len(odd.estimator.pareto_front_) - 1
    seen.page.locator(f".point[data-candidate='{last}'] .dot").click()
    assert seen.text("#text") == odd.estimator.pareto_front_[last].expression.text
    assert "<img src=x onerror=alert(1)>" in seen.text("#formula")
    assert ODD_NAMES[0] in seen.text("#formula")
    assert seen.page.title() == seen.text("h1") == "</title>&amp;"
    assert seen.page.locator("img").count() == 0


def test_rows_without_a_finite_prediction_are_left_out_of_the_plots(visit, absorption, tmp_path):
    X = pd.DataFrame({"concentration": [-1.0, 1.0, 4.0]})
    fit = with_front(absorption, ["log(x1)", "sqrt(x1)"], [0.5, 0.1], X, np.array([1.0, 1.0, 2.0]))
    seen = visit(fit.write(tmp_path / "undefined.html"))
    assert len(seen.points("#predicted-chart")) == 2
    assert seen.page.locator("#note").is_visible()


def test_a_report_of_the_fits_own_rows_needs_no_data(absorption, tmp_path):
    estimator, X, y = absorption.estimator, absorption.X, absorption.y
    estimator.report(tmp_path / "own.html")
    estimator.report(tmp_path / "given.html", X, y)
    assert (tmp_path / "own.html").read_bytes() == (tmp_path / "given.html").read_bytes()
    with pytest.raises(ValueError, match="Only one of X and y"):
        estimator.report(tmp_path / "none.html", X)
    estimator.save(tmp_path / "fit.dgsr")
    loaded = dgsr.load(tmp_path / "fit.dgsr")
    with pytest.raises(ValueError, match="give X and y"):
        loaded.report(tmp_path / "none.html")
    loaded.report(tmp_path / "again.html", X, y)


def test_rows_from_all_over_large_data_are_kept_for_a_report():
    X = np.linspace(1.0, 2.0, 5_000)[:, None]
    model = DGSRRegressor("koza", None, max_evaluations=200, random_state=0)
    rows, _, weights, _ = model.fit(X, X[:, 0], sample_weight=X[:, 0])._rows
    assert len(rows) == 1_000
    assert rows[-1] > 1.99
    np.testing.assert_array_equal(weights, rows[:, 0])
