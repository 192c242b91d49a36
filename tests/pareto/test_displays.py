"""Displays of a fit with matplotlib."""

from __future__ import annotations

import pickle
import re
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError
from sklearn.metrics import PredictionErrorDisplay

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.pareto import Candidate
from dgsr.pareto.display import log_losses
from dgsr.reporting.charts import front_chart
from dgsr.reporting.displays import ParetoFrontDisplay, SearchHistoryDisplay

pytestmark = pytest.mark.search

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
    return pd.DataFrame(X, columns=["$a", "b$"]), X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])


@pytest.fixture(scope="module")
def fitted(data):
    return DGSRRegressor(generator=None, max_evaluations=1000, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def constant():
    with pytest.warns(UserWarning, match="in every row"):
        return DGSRRegressor().fit([[1.0], [2.0]], [3.0, 3.0])


@pytest.mark.parametrize(("left_out", "error"), [(np.nan, 0.2), (np.inf, 0.2), (0.1, 0.2), (0.5, 0.5)])
def test_the_error_of_a_candidate_is_that_on_rows_left_out_where_it_is_known(left_out, error):
    law = Expression.from_text("x1", get_library("koza", 1))
    assert Candidate(1, 0.2, law, SimpleNamespace(leave_one_out=left_out)).error == error


@pytest.mark.filterwarnings("ignore:So few rows")
def test_a_front_of_two_rows_which_leave_no_errors_is_drawn():
    front = DGSRRegressor(generator=None, max_evaluations=500).fit([[1.0], [2.0]], [3.0, 5.0]).pareto_front_
    assert np.isfinite(front.plot().line_.get_ydata()).all()
    assert "inf" not in re.sub("<title>.*?</title>", "", front_chart(front, 0))


def test_the_line_goes_through_lengths_and_errors_and_the_chosen_one_is_marked(fitted):
    display = ParetoFrontDisplay.from_estimator(fitted)
    front = fitted.pareto_front_
    np.testing.assert_array_equal(display.line_.get_xdata(), [c.description_length for c in front])
    errors = np.fmax([c.loss for c in front], [c.leave_one_out for c in front])
    np.testing.assert_allclose(display.line_.get_ydata(), errors)
    chosen = front[front.index_of(fitted.expression_)]
    assert chosen.expression == fitted.expression_
    assert display.chosen_.get_xdata() == [chosen.description_length]
    assert display.chosen_.get_ydata() == [chosen.error]
    assert display.ax_.get_yscale() == "log"


def test_nothing_of_a_plot_lies_outside_its_figure():
    # The ticks between powers of ten have wide labels.
    display = ParetoFrontDisplay([10, 20, 30], [0.99, 0.6, 0.2], ["1", "2", "3"]).plot()
    figure = display.figure_
    figure.draw_without_rendering()
    inside = figure.bbox.get_points()
    for text in (display.ax_.yaxis.label, display.ax_.xaxis.label, *display.labels_):
        box = text.get_window_extent().get_points()
        assert ((inside[0] <= box) & (box <= inside[1])).all(), text


def test_displays_draw_on_the_axes_they_are_given(fitted):
    figure, axes = pyplot.subplots(1, 2)
    front = ParetoFrontDisplay.from_estimator(fitted, ax=axes[0])
    history = SearchHistoryDisplay.from_estimator(fitted, ax=axes[1])
    assert front.ax_ is axes[0]
    assert history.ax_ is axes[1]
    assert front.figure_ is history.figure_ is figure
    assert pyplot.get_fignums() == [figure.number]


def test_labels_overlap_neither_each_other_nor_the_points(fitted):
    display = ParetoFrontDisplay.from_estimator(fitted)
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.labels_]
    assert 2 <= len(boxes) <= 5
    for i, box in enumerate(boxes):
        assert box.count_overlaps(boxes[:i]) == 0
        points = display.ax_.transData.transform(display.line_.get_xydata())
        assert box.count_contains(points) == 0


def test_a_column_named_with_dollars_is_not_taken_for_mathematics():
    display = ParetoFrontDisplay([1, 3], [0.5, 0.1], ["$a", "$a*b$"], chosen=1).plot()
    assert "$a*b$" in [label.get_text() for label in display.labels_]
    display.figure_.canvas.draw()  # mathtext would stop here


def test_a_character_that_the_font_lacks_is_warned_of_once():
    formulas = [f"{i}*\u8d28\u91cf" for i in range(6)]
    with pytest.warns(UserWarning, match="missing from font") as warned:
        display = ParetoFrontDisplay(range(6), np.exp(-np.arange(6.0)), formulas, chosen=1).plot()
    assert len(display.labels_) > 1
    assert sorted(str(one.message)[:11] for one in warned) == ["Glyph 36136", "Glyph 37327"]


def test_a_long_formula_is_shortened_in_its_label():
    formula = " + ".join(f"sin({i}*x)" for i in range(30))
    display = ParetoFrontDisplay([100], [0.1], [formula], chosen=0).plot()
    assert [label.get_text()[-1] for label in display.labels_] == ["…"]
    assert len(display.labels_[0].get_text()) < 50


def test_a_loss_of_zero_is_drawn_below_the_others_at_a_tick_that_says_0():
    display = ParetoFrontDisplay([1, 3, 5], [0.5, 1e-3, 0.0], ["1", "x", "2*x"], chosen=2).plot()
    display.figure_.canvas.draw()
    lowest = display.line_.get_ydata()[-1]
    assert lowest == pytest.approx(1e-4)
    low, high = display.ax_.get_ylim()
    assert low < lowest < high
    ticks = {
        label.get_text(): at for label, at in zip(display.ax_.get_yticklabels(), display.ax_.get_yticks())
    }
    assert ticks["0"] == lowest
    assert min(at for text, at in ticks.items() if text != "0") > lowest


def test_losses_that_are_all_zero_can_be_drawn():
    values, floor = log_losses([0.0, 0.0])
    assert (values == floor).all()
    assert floor > 0
    assert log_losses([0.5, 0.1]).floor is None
    assert log_losses([1e-300, 0.0]).values.min() > 0


def test_a_constant_target_has_a_front_of_one_point_and_no_search(constant):
    front = ParetoFrontDisplay.from_estimator(constant)
    front.figure_.canvas.draw()
    assert [label.get_text() for label in front.labels_] == ["3"]
    history = SearchHistoryDisplay.from_estimator(constant)
    history.figure_.canvas.draw()
    assert len(history.line_.get_xdata()) == 0
    assert [text.get_text() for text in history.ax_.texts] == ["no search"]


@pytest.mark.parametrize("x", ["seconds", "evaluations"])
def test_the_history_shows_the_lowest_loss_after_every_round(fitted, x):
    display = SearchHistoryDisplay.from_estimator(fitted, x=x)
    np.testing.assert_allclose(display.line_.get_xdata(), [entry[x] for entry in fitted.history_])
    np.testing.assert_allclose(display.line_.get_ydata(), [entry["best_nmse"] for entry in fitted.history_])
    assert display.ax_.get_xlabel() == x
    assert display.ax_.get_yscale() == "log"


def test_rounds_before_the_first_formula_are_left_out_of_the_history():
    display = SearchHistoryDisplay([np.inf, 0.5, 0.0], [1.0, 2.0, 3.0]).plot()
    np.testing.assert_array_equal(display.line_.get_xdata(), [2.0, 3.0])
    assert display.line_.get_ydata() == pytest.approx([0.5, 0.05])


def test_a_history_by_anything_else_is_refused(fitted):
    with pytest.raises(ValueError, match="'seconds' or 'evaluations'"):
        SearchHistoryDisplay.from_estimator(fitted, x="rounds")


@pytest.mark.parametrize("display", [ParetoFrontDisplay, SearchHistoryDisplay])
def test_an_estimator_that_is_not_fitted_is_refused(display):
    with pytest.raises(NotFittedError):
        display.from_estimator(DGSRRegressor())


@pytest.mark.parametrize("display", [ParetoFrontDisplay, SearchHistoryDisplay])
def test_without_matplotlib_the_error_says_what_to_install(fitted, monkeypatch, display):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install dgsr\[plot\]"):
        display.from_estimator(fitted)


def test_a_formula_that_is_not_on_the_front_is_refused(fitted, constant):
    with pytest.raises(ValueError, match="not on the front"):
        fitted.pareto_front_.index_of(constant.expression_)


def test_scikit_learns_display_of_prediction_errors_takes_the_estimator(fitted, data):
    display = PredictionErrorDisplay.from_estimator(fitted, *data)
    np.testing.assert_array_equal(display.y_pred, fitted.predict(data[0]))
    display.figure_.canvas.draw()


# --- by the name that people try ------------------------------------------------------------------


def test_a_front_is_plotted_with_the_choice_of_a_rule_or_without_any(fitted):
    front = fitted.pareto_front_
    plain = front.plot()
    np.testing.assert_allclose(plain.line_.get_ydata(), [c.error for c in front])
    assert plain.chosen_ is plain.ax_.get_legend() is None
    assert len(plain.labels_) >= 2
    _, ax = pyplot.subplots()
    marked = front.plot("accuracy", ax=ax)
    assert marked.ax_ is ax
    assert marked.chosen_.get_ydata() == [front[-1].error]
    with pytest.raises(ValueError, match="selection='best' is unknown"):
        front.plot("best")


def test_a_fit_is_plotted_on_its_own_rows_or_on_others(fitted, data):
    X, y = data
    own, given = fitted.plot(), fitted.plot(X, y.tolist())
    for display in (own, given):
        np.testing.assert_array_equal(display.y_true, y)
        np.testing.assert_array_equal(display.y_pred, fitted.predict(X))
        assert display.ax_.get_ylabel() == "Actual values"
    _, ax = pyplot.subplots()
    assert fitted.plot(X[:5], y[:5], ax=ax).ax_ is ax


def test_rows_where_the_formula_is_undefined_are_not_plotted():
    X = np.linspace(1.0, 4.0, 30)[:, None]
    model = DGSRRegressor("koza", None, max_evaluations=2_000, random_state=0).fit(X, np.log(X[:, 0]))
    assert str(model.expression_) == "log(x1)"
    assert model.plot([[-1.0], [2.0]], [0.0, 0.7]).y_true.tolist() == [0.7]
    with pytest.raises(ValueError, match="undefined in every row of X"):
        model.plot([[-1.0], [-2.0]], [0.0, 0.7])


def test_a_plot_of_tables_of_different_lengths_says_so(fitted, data):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fitted.plot(data[0], data[1][:-1])


def test_a_plot_without_rows_says_what_is_missing(fitted, data):
    with pytest.raises(ValueError, match="Only one of X and y"):
        fitted.plot(data[0])
    with pytest.raises(ValueError, match="no rows; give X and y"):
        pickle.loads(pickle.dumps(fitted)).plot()
    with pytest.raises(NotFittedError):
        DGSRRegressor().plot()


@pytest.mark.parametrize(
    "what", [lambda model: model, lambda model: model.pareto_front_], ids=["fit", "front"]
)
def test_a_plot_without_matplotlib_says_what_to_install(fitted, monkeypatch, what):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install dgsr\[plot\]"):
        what(fitted).plot()
