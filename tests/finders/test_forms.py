"""Fits of the common forms: each is found on data of its own, as well as by scipy from the true numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import curve_fit

from dgsr import DGSRRegressor, get_library
from dgsr.constants.uncertainty import uncertainty_of
from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.common_forms import COMMON_FORMS
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.syntax import parse
from dgsr.finders.finder import never
from dgsr.finders.forms import _BEGINNINGS, CommonForms, curve_formulas, fitted_curves
from dgsr.search import Search, SearchConfig
from searches import problem_for

# Numbers of each form that make sense for x between 0.5 and 12.
NUMBERS = {
    "x": (), "1/x": (), "x**2": (), "1/x**2": (), "x**3": (), "sqrt(x)": (), "a*x + x**2": (-7.0,),
    "x**a": (0.73,), "(a + x)**b": (2.3, -1.4), "exp(a*x)": (-0.31,), "exp(a*x**b)": (-0.2, 1.4),
    "exp(a/x)": (-3.7,), "x**a*exp(b/x)": (-1.3, -4.1), "exp(a/(b + x))": (-9.0, 2.6), "1/(a + x)": (1.9,),
    "x/(a + x)": (2.7,), "1/(a + x**2)": (4.0,), "x**2/(a + x**2)": (9.0,), "1/(a + x**b)": (60.0, 2.6),
    "x**b/(a + x**b)": (60.0, 2.6), "x/(a + x**b)": (1.8, 0.8), "x/(a + b*x + x**2)": (6.0, 1.5),
    "1/(a + exp(b*x))": (0.03, -0.8), "1/(a + exp(b/x))": (-0.9, 2.8), "tanh(a*x + b)": (0.6, -3.0),
    "tanh(a*x)": (0.22,),
    "exp(a*exp(b*x))": (-5.0, -0.5), "(a - exp(b*x))**c": (1.0, -0.3, 2.2), "(a - exp(b*x))**3": (1.0, -0.3),
    "x*exp(a*x)": (-0.4,), "x**a*exp(b*x)": (1.6, -0.7), "log(x)": (), "log(a + x)": (0.8,),
    "log(a + exp(b*x))": (30.0, 0.7),
    "exp(a*x**2)": (-0.04,), "exp(a*x**2 + b*x)": (-0.1, 0.9), "exp(a*(b + x)**2)": (-0.4, -5.0),
    "exp(a*(b + log(x))**2)": (-1.8, -1.2), "1/(a + (b + x)**2)": (1.2, -6.0), "sin(a*x)": (1.7,),
    "sin(a*x + b)": (2.9, 0.8), "exp(a*x)*sin(b*x)": (-0.2, 2.2), "exp(a*x)*sin(b*x + c)": (-0.2, 3.1, 1.1),
    "exp(a*x) + b*exp(c*x)": (-1.6, 0.5, -0.15), "exp(a*x) + b*x": (-0.9, 0.08),
    "a*x + abs(b + x)": (-1.6, -5.0), "(a + exp(b*x))**2": (-0.2, -0.5),
    "sqrt(1 + a*x**2)": (-0.0065,), "1/sqrt(1 + a*x**2)": (-0.0067,),
}  # fmt: skip
TEXTS = [form.text for form in COMMON_FORMS]
X = np.linspace(0.5, 12.0, 60)


def values_of(text, numbers, x):
    return evaluate(parse(text), {"x": x, **dict(zip("abc", numbers))}) + np.zeros(len(x))


def fits(columns, y, library="physics", **constraints):
    data = DataSet.from_arrays(columns, y)
    library = get_library(library, columns.shape[1])
    problem = problem_for(data, library, Constraints(**constraints))
    return problem, fitted_curves(problem)


def nmse_of(curves, text):
    """Return how well the fits of a form do; None where no fit begins with it."""
    library = curves.programs.library
    form = next(form for form in COMMON_FORMS if form.text == text)
    tokens, _ = form.program(library, library.first_variable)
    own = [tuple(curves.programs[i].tokens.tolist()) == tokens for i in range(len(curves.programs))]
    return curves.fit.nmse[own].min() if any(own) else None


@pytest.mark.search
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("log(2.1 + 0.7*exp(0.9*x))", "log(2.1 + 0.7*exp(0.9*x1))"),
        ("0.5 + 6.1/(1 + 142.6*exp(-1.6*x))", None),  # and no quotient with a pole of a hyperbolic tangent
        ("4.1*exp(-0.4*x) + 2.7*exp(-2.3*x)", "4.1*exp(-0.4*x1) + 2.7*exp(-2.3*x1)"),
        ("1.5 + 0.5*x - 0.5*abs(x - 3)", "1.5 + 0.5*(x1 - abs(x1 - 3))"),  # the smaller one of x and 3
    ],
)
def test_a_nest_of_few_constants_is_found_from_ten_rows_one_of_them_far_away(text, written, far):
    x = np.append(np.linspace(0.3, 6.0, 10), [60.0] * far)
    y = evaluate(parse(text), {"x": x})
    model = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(x[:, None], y)
    assert model.stop_reason_ == "exact fit"
    assert written in (None, str(model.expression_))
    assert "tanh" not in str(model.expression_)


def test_every_form_has_numbers_here_and_all_fits_are_of_forms():
    assert set(NUMBERS) == set(TEXTS)
    assert set(_BEGINNINGS) <= set(TEXTS)


@pytest.mark.parametrize("text", TEXTS)
def test_a_form_is_found_exactly_on_data_of_its_own(text):
    """With the offset, forms that no fit begins with are others."""
    y = 2.3 * values_of(text, NUMBERS[text], X) + 0.7
    _, curves = fits(X[:, None], y)
    own = nmse_of(curves, text)
    assert (own is None) == (text not in _BEGINNINGS)
    assert (curves.fit.nmse.min() if own is None else own) < 1e-10


@pytest.mark.parametrize("text", sorted(set(_BEGINNINGS) - {"log(x)"}))
def test_with_noise_no_fit_is_worse_than_that_of_scipy_from_the_true_numbers(text):
    y = 2.3 * values_of(text, NUMBERS[text], X) + 0.7
    y = y + 0.03 * y.std() * np.random.default_rng(1).normal(size=len(y))
    _, curves = fits(X[:, None], y)

    def model(x, scale, offset, *numbers):
        return scale * values_of(text, numbers, x) + offset

    with np.errstate(all="ignore"):
        numbers, _ = curve_fit(model, X, y, p0=[2.3, 0.7, *NUMBERS[text]], maxfev=20_000)
        reference = np.mean((model(X, *numbers) - y) ** 2) / y.var()
    assert nmse_of(curves, text) <= 1.001 * reference


def test_scaled_formulas_need_no_more_than_their_scale_and_offset():
    problem, curves = fits(X[:, None], 5.0 * X / (2.7 + X))
    formulas = curve_formulas(curves, problem)
    assert formulas.nmse(problem.data).min() < 1e-12
    best = formulas[
        int(np.argmin(formulas.is_constant.sum(axis=1) + 1e9 * (formulas.nmse(problem.data) > 1e-12)))
    ]
    assert len(best.constants) == 2
    assert best(X[:, None]) == pytest.approx(5.0 * X / (2.7 + X))


def test_few_rows_take_few_numbers():
    x = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    problem, curves = fits(x[:, None], x / (1.3 + x) + np.array([0.01, -0.01, 0.02, 0.0, -0.01]))
    formulas = curve_formulas(curves, problem)
    assert len(formulas)
    assert formulas.is_constant.sum(axis=1).max() <= 2


def test_a_peak_on_a_single_row_is_no_formula():
    x = np.linspace(0.0, 10.0, 40)
    y = np.random.default_rng(5).normal(size=40)
    y[17] += 6.0
    problem, curves = fits(x[:, None], y)
    formulas = curve_formulas(curves, problem)
    assert all(uncertainty_of(formulas[i], problem.data).leave_one_out < 1.0 for i in range(len(formulas)))
    # The form that fits best is such a peak.
    assert curves.fit.nmse.min() < 0.8 * formulas.nmse(problem.data).min(initial=1.0)


def test_forbidden_columns_and_constant_ones_are_left_out():
    columns = np.column_stack([X, np.full(len(X), 3.0), X**2])
    _, curves = fits(columns, np.exp(-0.3 * X), forbidden_columns=(0,))
    first = curves.programs.library.first_variable
    used = set(curves.programs.tokens[curves.programs.tokens >= first].tolist()) - {
        curves.programs.library.index["const"]
    }
    assert used == {first + 2}
    _, none = fits(columns[:, 1:2], np.exp(-0.3 * X))
    assert len(none.programs) == 0


def test_a_small_library_has_the_forms_that_it_can_write():
    library = Library("few", ("add", "mul", "div"), True, 1)
    data = DataSet.from_arrays(X[:, None], 1.0 / (2.0 + X))
    curves = fitted_curves(problem_for(data, library))
    assert nmse_of(curves, "1/(a + x)") < 1e-12
    # Whole powers are products; an exponential, a logarithm and free exponents cannot be written.
    assert {form.text for form in COMMON_FORMS if form.program(library, library.first_variable)}.isdisjoint(
        {"exp(a*x)", "log(x)", "x**a", "sin(a*x)"}
    )
    assert 1 < len(curves.programs) < len(_BEGINNINGS)


def test_negative_columns_have_fits_too():
    x = np.linspace(-6.0, 6.0, 50)
    _, curves = fits(x[:, None], 3.0 / (1.0 + np.exp(-1.3 * (x - 0.7))))
    assert curves.fit.nmse.min() < 1e-10


@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_columns_whose_squares_are_no_floats_have_fits_without_a_warning(scale):
    x = np.linspace(1.0, 2.0, 20)
    _, curves = fits(scale * x[:, None], np.sqrt(x))
    assert curves.fit.nmse.min() < 1e-10


def test_no_form_is_looked_at_once_time_is_over():
    problem, curves = fits(X[:, None], 2.0 * np.exp(-0.7 * X) + 0.3)
    asked = iter([False, False, True])
    formulas = curve_formulas(curves, problem, lambda: next(asked))
    assert 0 < len(formulas) <= 2


@pytest.mark.parametrize("periods", [0.3, 1.0, 4.0, 11.0, 19.0])
def test_sines_of_few_and_of_many_periods_are_found(periods):
    x = np.linspace(2000.0, 2010.0, 120)
    _, curves = fits(x[:, None], 3.0 + np.sin(2.0 * np.pi * periods * (x - 2003.3) / 10.0))
    assert curves.fit.nmse.min() < 1e-8


def test_common_forms_are_asked_for_and_judged_by_units_and_demands():
    y = 5.0 * X / (2.7 + X) + 0.01 * np.sin(50 * X)
    data, library = DataSet.from_arrays(X[:, None], y), get_library("physics", 1)
    search = Search(data, library, Constraints(), SearchConfig(), None)
    search.find(CommonForms())
    assert 0 < search.n_evaluations <= len(_BEGINNINGS)
    assert any(isinstance(finder, CommonForms) for finder in search.scheduler.finders)
    with_forms, _ = search.at_the_end(data, never)
    without = Search(data, library, Constraints(), SearchConfig(look_up=False), None)
    assert without.scheduler.finders == ()
    lines, _ = without.at_the_end(data, never)
    assert 0 < len(lines) < len(with_forms)
    required = Search(data, library, Constraints(required=("arcsin",)), SearchConfig(), None)
    required.find(CommonForms())
    assert np.isinf(required.archive.best_nmse())


TABLES = {
    "Michaelis-Menten": (
        np.array([0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50]),
        lambda x: 12.3 * x / (6.7 + x),
        0.02,
    ),
    "two exponentials": (
        np.linspace(0, 12, 25),
        lambda x: 3 * np.exp(-1.7 * x) + 1.2 * np.exp(-0.21 * x),
        0.01,
    ),
    "sine with a phase": (
        np.arange(1.0, 366, 9),
        lambda x: 12.1 + 4.3 * np.sin(2 * np.pi * (x - 80) / 365),
        0.05,
    ),
    "Gompertz": (np.linspace(0, 30, 25), lambda x: 12 * np.exp(-5 * np.exp(-0.25 * x)), 0.02),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_with_noise_has_the_form_that_people_know(name):
    x, law, noise = TABLES[name]
    y = law(x)
    y = y + noise * y.std() * np.random.default_rng(3).normal(size=len(x))
    fitted = DGSRRegressor(max_evaluations=20_000, random_state=0).fit(x[:, None], y)
    assert any(name in form for form, _ in fitted.expression_.common_forms), fitted.expression_.text
