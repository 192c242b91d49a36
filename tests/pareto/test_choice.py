"""What decides which formula is chosen: digits of the targets, rows left out, claims, and lines."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dgsr import DGSRRegressor, Expression, get_library
from dgsr.constants.uncertainty import Uncertainty
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.formulas.soundness import pure_columns, unseen_waves
from dgsr.finders.lines import linear_models
from dgsr.pareto import Candidate, ParetoArchive, ParetoFront
from dgsr.pareto.choosing import total_bits
from dgsr.pareto.judging import length_on
from searches import problem_for

LIBRARY = get_library("physics", 1)
# Great half axes and periods of the planets from Mercury on, in those of the earth.
AXES = np.array([0.3871, 0.7233, 1.0, 1.5237, 5.2034, 9.5371, 19.1913, 30.069])
YEARS = np.array([0.2408, 0.6152, 1.0, 1.8809, 11.862, 29.457, 84.011, 164.79])


# --- digits of the targets ------------------------------------------------------------------------


@pytest.mark.search
@pytest.mark.parametrize("n", [4, 5, 6, 8])
def test_the_law_of_the_planets_is_chosen_and_no_interpolation_is_exact(n):
    model = DGSRRegressor(random_state=0, max_evaluations=20_000).fit(AXES[:n, None], YEARS[:n])
    assert str(model.expression_) in ("x1*sqrt(x1)", "x1**1.5")
    assert model.stop_reason_ == "max_evaluations"


@pytest.mark.search
def test_eight_zeros_and_ones_have_no_exact_fit():
    y = np.array([0.0, 1, 1, 0, 1, 0, 0, 1])
    model = DGSRRegressor(random_state=0, max_evaluations=20_000).fit(np.arange(8.0)[:, None], y)
    assert model.stop_reason_ == "max_evaluations"
    assert len(model.expression_.tokens) == 1


def test_a_long_formula_is_exact_by_the_digits_that_it_explains():
    x, (a, b, c) = np.arange(1.0, 4.0), np.random.default_rng(0).uniform(0.1, 1.0, 3)
    data = DataSet.from_arrays(x[:, None], a + b * np.exp(c * x))  # three numbers for three rows
    through = Expression.from_text(f"{a:.13g} + {b:.13g}*exp({c:.13g}*x1)", LIBRARY)
    loss, bits = Population.from_expressions([through]).nmse(data)[0], length_on(through, data)
    assert loss < 1e-20
    assert data.bits_explained(loss) < bits < data.bits_explained(0.0)
    (kept,) = ParetoFront.from_expressions([through], data, tolerance=1e-20)
    assert kept.loss > 1e-20


def test_further_digits_make_no_long_formula_exact():
    data = DataSet.from_arrays(AXES[:6, None], YEARS[:6])
    factors = np.polynomial.polynomial.polyfit(data.columns[0], data.y, 5).tolist()
    finer, coarse = (
        Expression.from_text(" + ".join(f"{value!r}*x1**{i}" for i, value in enumerate(numbers)), LIBRARY)
        for numbers in (factors, np.round(factors, 6).tolist())
    )
    law = Expression.from_text("x1*sqrt(x1)", LIBRARY)
    assert Population.from_expressions([finer]).nmse(data)[0] < 1e-20
    front = ParetoFront.from_expressions(
        [coarse, law], data, tolerance=1e-20, with_digits=lambda e: finer if e is coarse else e
    )
    assert str(front[front.select("mdl")].expression) == "x1*sqrt(x1)"


def test_targets_have_the_bits_of_their_digits():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(30, 1)), 20.0 * rng.normal(size=30)
    for n_decimals in range(4):
        data = DataSet.from_arrays(X, np.round(y, n_decimals))
        rounding = rng.uniform(-0.5, 0.5, 100_000) * 10.0**-n_decimals
        np.testing.assert_allclose(data.digits_nmse, np.mean(rounding**2) / data.variance, rtol=0.02)
        np.testing.assert_allclose(
            data.bits_explained([0.0, 0.25, 2.0]), [-15.0 * np.log2(data.digits_nmse), 30.0, 0.0]
        )
    computed = DataSet.from_arrays(X, y)
    assert computed.digits_nmse == computed.rounding_nmse
    assert DataSet.from_arrays(X, np.round(1e-7 * y, 9)).digits_nmse < 1e-2  # also of small numbers


def test_an_archive_takes_a_program_for_exact_that_is_shorter_than_the_targets():
    x, y = np.arange(1.0, 7.0), np.array([2.0, 4, 6, 8, 10, 12])
    exact = Population.from_expressions([Expression.from_text("2*x1", LIBRARY)])
    for data, is_exact in ((DataSet.from_arrays(x[:, None], y), True),
                           (DataSet.from_arrays(x[:2, None], y[:2]), False)):  # fmt: skip
        archive = ParetoArchive(LIBRARY, 10, 4, 1e-20, data)
        archive.update(exact, exact.nmse(data))
        assert (archive.best_nmse() <= 1e-20) == is_exact
        assert archive.best_nmse() <= np.nextafter(1e-20, 1.0)  # it is kept all the same


# --- rows left out --------------------------------------------------------------------------------


def test_the_choice_is_by_rows_left_out():
    def candidate(text, loss, left_out):
        formula = Expression.from_text(text, LIBRARY)
        uncertainty = Uncertainty(1.0, np.zeros((1, 1)), np.zeros(len(formula.constants)), left_out)
        return Candidate(formula.complexity, loss, formula, uncertainty)

    short, long = candidate("x1", 0.1, 0.12), candidate("2.5*sin(3.1*x1)", 0.001, 0.9)
    assert ParetoFront([short, long], 30.0).select("mdl") == 0
    assert ParetoFront([short, long._replace(uncertainty=None)], 30.0).select("mdl") == 1
    assert ParetoFront([short, long], 30.0).select("accuracy") == 1


def test_a_long_formula_is_chosen_only_beyond_the_error_of_what_it_gains():
    def candidate(text, left_out):
        formula = Expression.from_text(text, LIBRARY)
        uncertainty = Uncertainty(1.0, np.zeros((1, 1)), np.zeros(len(formula.constants)), left_out)
        return Candidate(formula.complexity, left_out, formula, uncertainty)

    long = " + ".join(f"sin({i}.5*x1)" for i in range(1, 11))
    assert Expression.from_text(long, LIBRARY).length > 40
    front = ParetoFront([candidate("x1", 0.1), candidate(long, 0.0985)], 20_000.0)
    assert np.diff(total_bits(front, 20_000.0)) < 0.0  # it describes the data more shortly
    assert front.select("mdl") == front.select("accuracy") == 1
    few = ParetoFront([candidate("x1", 0.1), candidate(long, 0.0993)], 200_000.0)
    many = ParetoFront([candidate("x1", 0.1), candidate(long, 0.0998)], 200_000.0)
    assert [np.diff(total_bits(each, 200_000.0))[0] < 0.0 for each in (few, many)] == [True, True]
    assert [few.select("mdl"), many.select("mdl"), many.select("accuracy")] == [1, 0, 1]


# --- what the data determine, and ties --------------------------------------------------------------


def test_constants_that_the_data_do_not_determine_are_on_no_front():
    x, errors = np.linspace(300.0, 320.0, 6), np.random.default_rng(3).normal(size=6)
    data = DataSet.from_arrays(x[:, None], 2.5e11 * np.exp(-7950.0 / x) * (1.0 + 0.08 * errors))
    texts = [
        "1.5",
        "2.5e11*exp(-7950/x1)",
        "1e-9*exp(0.07*x1) + 1e-92*x1**24",
        "1 + (x1 - 300)/(20 + 3e-95*x1**24)",
    ]
    front = ParetoFront.from_expressions([Expression.from_text(text, LIBRARY) for text in texts], data)
    arrhenius = next(c for c in front if "exp" in str(c.expression))
    assert arrhenius.standard_errors[0] > arrhenius.expression.constants[0]  # but not by many decades
    assert "24" not in str([c.expression for c in front])


@pytest.mark.parametrize(
    "text", ["1e9 + x1 - 1e9*exp(1e-12*x2)", "-2e13*log(1 - 2.1e-13*x1/(1.2 + x1))", "3 - 7e7*cos(1e-5*x1)"]
)
def test_a_formula_that_loses_its_digits_has_constants_that_are_not_determined(text):
    rng, library = np.random.default_rng(0), get_library("physics", 2)
    X, formula = rng.uniform(0.5, 3.0, (60, 2)), Expression.from_text(text, library)
    data = DataSet.from_arrays(X, formula(X) + 0.01 * formula(X).std() * rng.normal(size=60))
    mean = Expression.from_text(repr(float(data.mean)), library)
    assert [c.expression for c in ParetoFront.from_expressions([formula, mean], data)] == [mean]


def test_what_is_undetermined_hides_no_longer_formula():
    x = np.linspace(1.0, 9.0, 20)
    data = DataSet.from_arrays(x[:, None], 1.2 * x)
    expressions = [Expression.from_text(text, LIBRARY) for text in ("x1", "1.21*x1", "1.243*x1", "1.2001*x1")]

    def assess(expression, vague):
        error = np.inf if str(expression) in vague else 0.1
        return Uncertainty(1.0, np.eye(1), np.full(len(expression.constants), error), 0.0)

    shown = {}
    for vague in ((), ("1.21*x1",), ("1.21*x1", "1.2001*x1"), tuple(map(str, expressions))):
        front = ParetoFront.from_expressions(expressions, data, assess=partial(assess, vague=vague))
        shown[vague] = [str(c.expression) for c in front]
    assert list(shown.values()) == [
        ["x1", "1.21*x1", "1.2001*x1"],
        ["x1", "1.243*x1", "1.2001*x1"],
        ["x1", "1.243*x1"],
        ["x1"],
    ]


def test_where_no_constant_is_determined_the_front_is_as_it_would_be():
    x = np.linspace(1.0, 9.0, 20)
    data = DataSet.from_arrays(x[:, None], 1.2 * x)
    expressions = [Expression.from_text(text, LIBRARY) for text in ("1.243*x1", "1.21*x1", "1.2001*x1")]
    fronts = [
        ParetoFront.from_expressions(
            expressions,
            data,
            assess=lambda e, error=error: Uncertainty(1.0, np.eye(1), np.full(len(e.constants), error), 0.1),
        )
        for error in (0.1, np.inf)
    ]
    texts = [[str(c.expression) for c in front] for front in fronts]
    assert texts[0] == texts[1] != []


def test_a_fitted_constant_of_zero_is_not_determined_and_an_origin_is():
    formula = Expression(LIBRARY, Expression.from_text("x1 + 2.5", LIBRARY).tokens, [0.0])

    def candidate(error):
        uncertainty = Uncertainty(1.0, np.eye(1), np.array([error]), 0.1)
        return Candidate(formula.complexity, 0.1, formula, uncertainty)

    assert [candidate(error).is_determined for error in (0.0, 0.1)] == [True, False]


def test_an_error_that_is_not_finite_ties_with_nothing():
    def candidate(text, left_out):
        formula = Expression.from_text(text, LIBRARY)
        uncertainty = Uncertainty(1.0, np.zeros((0, 0)), np.zeros(0), left_out)
        return Candidate(formula.complexity, 0.1, formula, uncertainty)

    front = ParetoFront([candidate("x1", np.inf), candidate("exp(x1)", np.inf)], 20.0)
    assert front.rivals(1) == []


def test_a_formula_whose_error_left_out_is_unknown_is_not_compared_by_its_loss():
    def candidate(text, loss, left_out):
        formula = Expression.from_text(text, LIBRARY)
        k = len(formula.constants)
        uncertainty = Uncertainty(1.0, np.eye(k), np.ones(k), left_out)
        return Candidate(formula.complexity, loss, formula, uncertainty, bits=10.0)

    short = candidate("2*x1", 1.0, 1.5)
    for loss, chosen in ((0.54, 1), (0.55, 0)):  # 1.5 * (1 - 4/10)**2 = 0.54 with four constants of ten rows
        unknown = candidate("2*x1 + 3*exp(4*x1) + 5", loss * 0.999, np.nan)
        assert ParetoFront([short, unknown], n_samples=10).select("mdl") == chosen


def test_other_forms_within_three_bits_are_named():
    def candidate(text, bits):
        formula = Expression.from_text(text, LIBRARY)
        return Candidate(formula.complexity, 0.1, formula, bits=bits)

    texts = ("x1", "sqrt(2*x1)", "sqrt(3*x1)", "exp(x1)", "log(x1)")
    front = ParetoFront([candidate(text, bits) for text, bits in zip(texts, (6.9, 10.0, 12.0, 12.9, 13.1))])
    assert front.rivals(1) == [3]
    assert front.rivals(3) == [1, 2, 4]
    assert ParetoFront(front, tolerance=0.1).rivals(0) == []  # an exact fit has none


# --- waves ----------------------------------------------------------------------------------------


def test_a_wave_is_seen_once_it_turns_by_half_a_period():
    columns = np.linspace(0.0, 3.0, 50)[None]
    for text, n in {"sin(x1)": 1, "sin(1.1*x1)": 0, "cos(x1)*sin(0.5*x1)": 2, "exp(x1)": 0}.items():
        assert unseen_waves(Expression.from_text(text, LIBRARY), columns) == n


def test_a_wave_that_hardly_bends_is_longer_than_its_argument():
    data = DataSet.from_arrays(np.linspace(0.0, 3.0, 50)[:, None], np.arange(50.0))
    bent, straight = (Expression.from_text(t, LIBRARY) for t in ("sin(0.08*x1)", "0.0796*x1"))
    assert length_on(straight, data) < length_on(bent, data)


# --- pure numbers ---------------------------------------------------------------------------------


def test_a_function_of_a_bare_column_claims_that_it_is_a_pure_number():
    texts = {"exp(x1)": 1, "exp(-x1**2)": 1, "exp(0.3*x1)": 0, "x1*log(x1)": 1, "x1**2*sqrt(x1)": 0}
    texts |= {"cos(x1)/sin(x1)": 2, "sin(exp(x1))": 2, "tanh(2)": 0}
    for text, n in texts.items():
        assert pure_columns(Expression.from_text(text, LIBRARY)) == n
    of_two = Expression.from_text("exp(x1*x2)", get_library("physics", 2))
    assert pure_columns(of_two) == 0


def test_what_is_claimed_about_a_table_takes_bits():
    data = DataSet.from_arrays(np.linspace(1.0, 9.0, 20)[:, None], np.arange(20.0))
    claims, says_nothing = (Expression.from_text(f"2.5*{f}(x1)", LIBRARY) for f in ("exp", "sqrt"))
    paid = [length_on(each, data) - description_length(each) for each in (claims, says_nothing)]
    assert paid[0] > 0.0
    assert paid[1] == 0.0


# --- lines ----------------------------------------------------------------------------------------


def left_out(design, y):
    """Return the sum of squares of rows predicted by a fit to all others, one fit for each."""
    total = 0.0
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        factors = np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
        total += (y[i] - design[i] @ factors) ** 2
    return total


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_a_line_are_taken_by_rows_left_out(seed):
    rng = np.random.default_rng(seed)
    library = get_library("physics", 4)
    X = rng.normal(size=(15, 4))
    y = 3.0 + 2.0 * X[:, 1] - X[:, 3] + 0.5 * rng.normal(size=15)
    models = linear_models(problem_for(DataSet.from_arrays(X, y), library)).programs
    for program, with_offset in zip((models[0], models[1]), (False, True), strict=True):
        taken, best = [], np.inf
        while len(taken) < 4:
            designs = {
                i: np.column_stack([*[np.ones(15)] * with_offset, X[:, [*taken, i]]])
                for i in range(4)
                if i not in taken
            }
            errors = {i: left_out(design, y) for i, design in designs.items()}
            at = min(errors, key=errors.get)
            if errors[at] >= best:
                break
            best = errors[at]
            taken.append(at)
        used = {library.tokens[t].name for t in program.tokens if t >= library.first_variable}
        assert used == {f"x{i + 1}" for i in taken}
        design = np.column_stack([X[:, taken], *[np.ones(15)] * with_offset])
        expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        np.testing.assert_allclose(program(X), expected, rtol=1e-6, atol=1e-9)


def test_lines_need_sums_products_and_constants():
    data = DataSet.from_arrays(np.arange(5.0)[:, None], np.arange(5.0))
    for name in ("koza", "physics"):
        library = get_library(name, 1)
        models = linear_models(problem_for(data, library)).programs
        assert (len(models) > 0) == library.has_constants


@pytest.mark.search
def test_a_line_through_few_rows_is_chosen():
    x = np.linspace(1.0, 3.0, 9)
    y = 3.17 + 2.43 * x + 0.1 * np.random.default_rng(0).normal(size=9)
    model = DGSRRegressor(random_state=0, max_evaluations=2_000).fit(x[:, None], y)
    slope, offset = np.polyfit(x, y, 1)
    predicted = model.predict(x[:, None])
    np.testing.assert_allclose(np.diff(predicted, 2), 0.0, atol=1e-12)
    assert np.sqrt(np.mean((predicted - offset - slope * x) ** 2)) < 0.1  # the noise
