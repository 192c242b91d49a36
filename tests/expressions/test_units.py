"""Units of measurement: what is consistent, what a search keeps, and the units of constants."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from typer.testing import CliRunner

import dgsr
from dgsr.cli import app
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions import Constraints, Expression, get_library
from dgsr.expressions.formulas.units_of_constants import units_of_constants
from dgsr.expressions.programs.library import Opcode
from dgsr.expressions.programs.units import Unit, Units
from dgsr.finishing import finish
from dgsr.kernels.random import new_state
from dgsr.search import Search, SearchConfig
from dgsr.search.evolution import random_population
from searches import flat_regressor

NAMES = ["m", "v", "h"]
UNITS = {"m": "kg", "v": "m/s", "h": "m"}
RNG = np.random.default_rng(0)
X = RNG.uniform(1.0, 5.0, (40, 3))
LAW = X[:, 0] * (0.5 * X[:, 1] ** 2 + 9.81 * X[:, 2])
Y = LAW + 0.01 * LAW.std() * RNG.normal(size=len(X))
TABLE = pd.DataFrame(X, columns=NAMES)


def units(of_columns=UNITS, target="J", **settings):
    return Units.of(of_columns, target, NAMES, **settings)


def formula(text, library="physics"):
    return Expression.from_text(text, get_library(library, 3), feature_names=NAMES)


def violations(text, known, **asked):
    expression = formula(text)
    arrays = Population.from_expressions([expression]).arrays
    return int(known.violations(*arrays, expression.library, **asked)[0])


def small(**settings):
    usual = {
        "generator": None,
        "max_evaluations": 2_000,
        "batch_size": 100,
        "max_length": 15,
        "random_state": 0,
    }
    usual |= {"units": UNITS, "y_units": "J"}
    return flat_regressor(**(usual | settings))


@pytest.fixture(scope="module")
def fitted():
    return small().fit(TABLE, Y)


# Texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "factor"),
    [
        ("kg*m^2/s^2", {"kg": 1, "m": 2, "s": -2}, 1.0),
        ("kJ", {"kg": 1, "m": 2, "s": -2}, 1e3),
        ("W/kg^0.75", {"kg": 0.25, "m": 2, "s": -3}, 1.0),
        ("J/(g K)", {"m": 2, "s": -2, "K": -1}, 1e3),
        ("m^(1/2)", {"m": 0.5}, 1.0),
        ("s m⁻¹", {"s": 1, "m": -1}, 1.0),
        ("°C", {"K": 1}, 1.0),
        ("", {}, 1.0),
        ("1", {}, 1.0),
        ("%", {}, 0.01),
    ],
)
def test_a_text_is_the_unit_it_says(text, expected, factor):
    known = Units.of({"x1": text}, None, ["x1"])
    (unit,) = known.columns
    assert dict(zip(known.base, unit.exponents, strict=True)) == pytest.approx(expected)
    assert unit.factor == pytest.approx(factor)


@pytest.mark.parametrize(
    "text",
    [["kg"], 3 * pint.Unit("kg"), "9**9**9**9", "m**9**9**9", "(m)**9", "m**(9**9)",
     "2*m", "1e9", "__import__('os')", "m.real", "m; s",
     "m[0]", "lambda: m", "m" * 101, "m^123", "((m))", "kg\n+ 1", 5],
)  # fmt: skip
def test_what_is_no_unit_never_reaches_the_parser(text, monkeypatch):
    monkeypatch.setattr(pint, "get_application_registry", lambda: pytest.fail("pint was asked"))
    with pytest.raises(ValueError, match=r"units\['m'\]=.* is no unit; write it as in 'kg\*m\^2/s\^2'"):
        units({"m": text})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"units": {"m": "kq"}}, r"units\['m'\]='kq' is no unit that pint knows \('kq' is not defined"),
        ({"units": {"mm": "kg"}}, "units names 'mm', which is no column; did you mean 'm'"),
        ({"units": {"mass": "kg"}}, "units names 'mass', which is no column; choose from m, v, h"),
        (
            {"y_units": "kg/m3"},
            r"of the target='kg/m3' is no unit that pint knows \('m3' is not defined",
        ),
        (
            {"units": {"m": "kg", "h": "pH"}},
            r"units\['h'\]='pH' has 'pH', which pint reads as picohenry; give ''",
        ),
        ({"units": {"m": "kg", "h": "dBm/MHz"}}, r"units\['h'\]='dBm/MHz' has 'dBm', which is a logarithm"),
        ({"y_units": "ppt"}, "unit of the target='ppt' has 'ppt', which pint reads as picopint"),
        ({"y_units": "Np*m"}, r"unit of the target='Np\*m' has 'Np', which is a logarithm; give ''"),
        (
            {"units": None},
            r"the target, 'J', is given without units of columns, which.*Units\(\{name: unit\}",
        ),
        ({"units": ["kg"]}, "columns.*Mapping"),
        ({"unit_penalty": -1.0}, "'penalty' parameter of Units.*"),
        (
            {"units": None, "y_units": None, "unit_penalty": 9.0},
            "unit_penalty=9.0 means nothing without units",
        ),
        ({"units": {}, "y_units": None, "unitless_constants": True}, "unitless_constants=True means nothing"),
        ({"initial_formulas": ["m + v"]}, r"initial_formulas\[0\]: it is not consistent with the units"),
        ({"unitless_constants": True, "initial_formulas": ["m*v"]}, r"initial_formulas\[0\]: it is not cons"),
    ],
)
def test_units_that_cannot_be_used_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        small(**given).fit(TABLE, Y)


def test_no_units_at_all_are_none():
    assert Units.of({}, None, NAMES) is None


def test_without_pint_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    with pytest.raises(
        ImportError, match=r"units\['m'\]='kg' needs pint; install it with pip install dgsr\[un"
    ):
        small().fit(TABLE, Y)


@pytest.mark.parametrize("unit", ["kg*m^2/s^2", "W/kg^0.75", "J/(mol K)", "", "degC"])
def test_a_unit_of_pint_is_that_of_its_text(unit):
    given, text = (Units.of({"m": one}, None, NAMES) for one in (pint.Unit(unit), unit))
    assert (given.columns, given.base) == (text.columns, text.base)


def test_a_unit_that_a_person_defines_is_known():
    pint.get_application_registry().define("groat = [money]")
    known = Units.of({"m": "groat/kg"}, None, NAMES)
    assert known.base == ("kg", "money")


# Consistency ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "carried", "unitless"),
    [
        ("m*v**2", 0, 0),
        ("m + v", 2, 2),  # unlike terms, and no energy
        ("m*v", 1, 1),
        ("2*m*v", 0, 1),
        ("2 + m*v**2", 0, 1),
        ("sin(h)*m*v**2", 1, 1),
        ("sin(3*h)*m*v**2", 0, 1),
        ("m*sqrt(v**2*v**2) - abs(m*v*v)", 0, 0),
        ("m*v**3/v", 0, 0),
        ("exp(m/m)*m*v**2", 0, 0),
        ("exp(m/3)*m*v**2", 0, 1),
        ("m**h*v", 3, 3),
        ("h**4*m/h**4*v**2", 0, 2),  # an exponent is still to be fitted
        ("2**(h/h)*m*v**2", 0, 0),
        ("2**h*m*v**2", 1, 1),
    ],
)
def test_a_formula_breaks_as_many_rules_as_it_does(text, carried, unitless):
    assert violations(text, units()) == carried
    assert violations(text, units(unitless_constants=True)) == unitless


def test_an_exponent_that_is_known_counts():
    assert violations("h + h**1.5/3", units(target="m")) == 0
    assert violations("h + h**1.5", units(target="m")) == 0  # the exponent may still become 1
    assert violations("h + h**1.5", units(target="m"), by_value=True) == 2
    assert violations("h + h**1.5*h**(-0.5)", units(target="m"), by_value=True) == 0
    assert violations("h**1.5", units(target="m^1.5", unitless_constants=True), by_value=True) == 0
    assert violations("h**1.5", units(target="m^1.5", unitless_constants=True)) == 2


def test_nothing_is_held_against_what_is_unknown():
    known = units({"m": "kg", "v": None})
    assert violations("m + v", known) == 1  # its whole is a mass
    assert violations("m + v", known, of_whole=False) == 0
    assert violations("sin(h)*v", known) == 0
    assert violations("exp(m)", units(target=None)) == 1
    assert violations("m*m", units(target=None)) == 0


def reference(expression, known, of_whole, by_value):
    """The number of violations, by recursion: a dimension is a tuple of exponents, or None if it is open."""
    library, carry = expression.library, not known.unitless_constants
    none, count = (0.0,) * len(known.base), 0
    tokens, constants = list(expression.tokens), list(expression.constants)

    def unlike(a, b):
        return a is not None and b is not None and not np.allclose(a, b, rtol=0, atol=1e-6)

    def dimension():
        nonlocal count
        token = tokens.pop(0)
        op = library.tokens[token].opcode
        if op == Opcode.VARIABLE:
            unit = known.columns[token - library.first_variable]
            return (None if unit is None else unit.exponents), None
        if op == Opcode.CONSTANT:
            return (None if carry else none), constants.pop(0)
        operands = [dimension() for _ in range(library.tokens[token].arity)]
        (a, _), (b, number) = operands[0], operands[-1]
        powers = {
            Opcode.SQRT: 0.5,
            Opcode.SQUARE: 2,
            Opcode.CUBE: 3,
            Opcode.INV: -1,
            Opcode.NEG: 1,
            Opcode.ABS: 1,
        }
        if op in (Opcode.ADD, Opcode.SUB):
            count += unlike(a, b)
            return (a if b is None else b), None
        if op in (Opcode.MUL, Opcode.DIV):
            sign = 1 if op == Opcode.MUL else -1
            return (None if a is None or b is None else tuple(p + sign * q for p, q in zip(a, b))), None
        if op in powers:
            return (None if a is None else tuple(powers[op] * p for p in a)), None
        if op == Opcode.POW and number is not None:
            if by_value:
                return (None if a is None else tuple(number * p for p in a)), None
            if a is not None and not unlike(a, none):
                return none, None
            count += a is not None and not carry
            return (None if a is None or carry else none), None
        count += sum(unlike(one, none) for one, _ in operands)
        return none, None

    whole, _ = dimension()
    return count + (of_whole and known.target is not None and unlike(whole, known.target.exponents))


def test_an_infinite_dimension_of_one_program_is_not_in_the_next():
    known = units(target="J", unitless_constants=True)
    sound = formula("h + 2")
    texts = ["square(" * 7 + f"h**{n}" + ")" * 7 for n in ("1e307", "-1e307")]
    huge = [formula(text) for text in texts]
    both = Population.from_expressions([*huge, sound])
    alone = known.violations(*Population.from_expressions([sound]).arrays, sound.library, by_value=True)
    counts = known.violations(*both.arrays, sound.library, by_value=True)
    assert counts[-1] == alone[0] == 2  # a length and a number are added, and the whole is no energy


UNIT = st.one_of(st.none(), st.tuples(*[st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])] * 2))


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.lists(UNIT, min_size=3, max_size=3), UNIT, *[st.booleans()] * 3)
def test_the_kernel_counts_what_recursion_counts(seed, columns, target, unitless, of_whole, by_value):
    as_units = [None if exponents is None else Unit(exponents, 1.0, ()) for exponents in (*columns, target)]
    known = Units(tuple(as_units[:3]), as_units[3], ("kg", "m"), (), unitless)
    library = get_library("physics", 3)
    programs = random_population(40, library, Constraints().grammar(library), new_state(seed))
    programs.constants[:] = np.random.default_rng(seed).choice([0.5, 1.0, 1.5, 2.0], programs.constants.shape)
    counts = known.violations(*programs.arrays, library, of_whole=of_whole, by_value=by_value)
    assert counts.tolist() == [reference(programs[i], known, of_whole, by_value) for i in range(40)]


# The search -------------------------------------------------------------------------------------


def consistent(model, **settings):
    """Whether each formula of a front breaks no rule of units."""
    own = model.units
    known = Units.of(own.columns, own.target, NAMES, unitless_constants=own.unitless_constants)
    return [reference(candidate.expression, known, True, True) == 0 for candidate in model.pareto_front_]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"generator": "auto", "look_up": False},
        {"unitless_constants": True, "max_evaluations": 2_000, "look_up": False},
        {"gp": "deap", "look_up": False},
        {"library": "koza", "look_up": False},
        {"max_length": 8, "required": ["v"]},
    ],
)
def test_every_formula_of_the_front_is_consistent(settings, fitted):
    model = small(**{"max_evaluations": 600} | settings).fit(TABLE, Y) if settings else fitted
    assert len(model.pareto_front_) > 0
    assert all(consistent(model))


@pytest.mark.slow
def test_columns_of_extreme_scale_and_several_searches_make_no_difference():
    table = TABLE.assign(v=TABLE["v"] * 1e-9)
    with parallel_config("sequential"):
        model = small(n_jobs=2, units=UNITS | {"v": "Gm/s"}).fit(table, Y)
    assert all(consistent(model))
    chosen = model.pareto_front_.candidate_of(model.expression_)
    assert "m/s^2" in " ".join(chosen.units)
    # 0.5*m*(1e9*v)**2 has a constant of 5e17 J/(kg (Gm/s)^2), which is 0.5.
    assert any(unit.startswith(("= 0.5", "= 0.4", "= 0.7")) for unit in chosen.units), chosen.units


def test_exact_search_finds_the_consistent_one_of_two_laws():
    x = X.copy()
    x[:, 2] = x[:, 1]  # so that m*v*h and m*h**2 fit as well
    table, y = pd.DataFrame(x, columns=NAMES), x[:, 0] * x[:, 1] ** 2
    model = small(library="koza").fit(table, y)
    assert model.stop_reason_ == "exact fit"
    assert str(model.expression_) == "m*v**2"
    assert all(consistent(model))


def test_units_tell_a_law_from_a_shorter_formula_that_fits_about_as_well():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.uniform(1, 5, 12), rng.uniform(1.95, 2.05, 12), rng.uniform(1, 5, 12)])
    y = 0.5 * x[:, 0] * x[:, 1] ** 2
    y += 0.05 * y.std() * rng.normal(size=12)
    table = pd.DataFrame(x, columns=NAMES)
    blind, told = small(units=None, y_units=None), small(unitless_constants=True)
    assert str(blind.fit(table, y).expression_) == "m*v"
    assert str(told.fit(table, y).expression_) == "0.5*m*v**2"
    losses = [model.pareto_front_.candidate_of(model.expression_).loss for model in (blind, told)]
    assert losses[1] < losses[0] < 1.3 * losses[1]


def test_a_program_that_is_not_consistent_counts_and_is_not_kept():
    library = get_library("physics", 3)
    config = SearchConfig(max_evaluations=10_000)
    constraints = Constraints(units=units())
    search = Search(DataSet.from_arrays(X, Y), library, constraints, config, None, seed=0)
    programs = Population.from_expressions([formula(text) for text in ("m + v", "m + 2*v", "m*v**2")])
    before = programs.constants.copy()
    nmse = search.evaluate(programs, 3)
    assert search.n_evaluations == 3
    assert np.isfinite(nmse).all()
    np.testing.assert_array_equal(programs.constants[0], before[0])
    front = search.archive.population()
    assert all(reference(front[i], units(), True, False) == 0 for i in range(len(front)))
    free = Search(DataSet.from_arrays(X, Y), library, Constraints(), config, None, seed=0)
    assert nmse[0] == 10.0 * free.evaluate(programs[:1], 1)[0]


@pytest.mark.slow
def test_a_penalty_lets_formulas_stay_that_fit_far_better():
    x = RNG.uniform(1.0, 3.0, (30, 3))
    table, y = pd.DataFrame(x, columns=NAMES), x[:, 0] + np.exp(x[:, 1])
    strict = small(max_evaluations=1_000).fit(table, y)
    lenient = small(max_evaluations=1_000, unit_penalty=10.0).fit(table, y)
    handicaps = np.array([candidate.handicap for candidate in lenient.pareto_front_])
    assert set(handicaps) <= {1.0, 11.0, 21.0, 31.0, 41.0}
    assert handicaps.max() > 1.0
    counted = [candidate.loss * candidate.handicap for candidate in lenient.pareto_front_]
    assert counted == sorted(counted, reverse=True)
    assert all(candidate.handicap == 1.0 for candidate in strict.pareto_front_)
    assert all(consistent(strict))


def test_where_nothing_can_be_consistent_the_error_says_so():
    with pytest.raises(
        ValueError, match=r"None of .* equations was consistent with the units .* let constants"
    ):
        small(
            units={"m": "kg", "v": "kg", "h": ""},
            unitless_constants=True,
            max_evaluations=200,
            look_up=False,
        ).fit(TABLE, Y)


def test_a_constant_of_1_that_carries_a_unit_stays():
    data = DataSet.from_arrays(X, X[:, 2])
    (found,) = finish(
        Population.from_expressions([formula("1.0000001*h")]),
        np.ones(3),
        data,
        1e-20,
        Constraints(units=units()),
    )
    assert found.constants.tolist() == [1.0]
    assert units_of_constants(found, units()) == ("J/m",)
    (plain,) = finish(Population.from_expressions([formula("1.0000001*h")]), np.ones(3), data, 1e-20)
    assert len(plain.constants) == 0


# The units of constants -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m*(9.81*h + 0.5*v**2)", ("m/s^2", "")),
        ("3*m", ("J/kg",)),
        ("2.5 + m*v**2", ("kg*m^2/s^2",)),
        ("m*v**2*exp(-h/3)", ("m",)),
        ("m*v**2*sin(2*h + 1)", ("1/m", "")),
        ("m*(v + 2)**2", ("m/s",)),
        ("2*m*(3 + h)/v", ("J/(kg*s)", "m")),
        ("m*sqrt(2*h)", ("J^2/(kg^2*m)",)),
        ("2*m**0.75", ("J/kg^(3/4)", "")),
        ("2*(3*m + 4)", ("?", "?", "?")),
        ("2**(h/3)*m*v**2", ("", "m")),
    ],
)
def test_a_constant_has_the_unit_that_its_place_asks_for(text, expected):
    assert units_of_constants(formula(text), units()) == expected


def test_a_constant_has_the_units_in_which_the_columns_and_the_target_are_written():
    known = units({"m": "g", "v": "km/h", "h": "km"}, "kJ")
    assert units_of_constants(formula("0.00981*m*h"), known) == ("kJ/(g*km)",)
    assert units_of_constants(formula("m*v**2*sin(2*h)"), known) == ("1/km",)
    assert units_of_constants(formula("m*(v + 2.5)**2"), known) == ("km/h",)
    # In J/(kg (m/s)^2) that is 1e3/(1e-3 (1000/3600)^2) times as much.
    assert units_of_constants(formula("0.5*m*v**2"), known) == ("= 6.48e+06",)
    gas = units({"m": "mol", "v": "degF", "h": "L"}, "kJ/mol")
    assert units_of_constants(formula("0.0083*v"), gas) == ("kJ/(mol*degF)",)
    assert units_of_constants(formula("2*m/h"), gas) == ("kJ*L/mol^2",)
    assert units_of_constants(formula("3*m"), units(unitless_constants=True)) == ()


@given(st.tuples(*[st.sampled_from([-2.0, -0.75, 0.0, 1 / 3, 1.0, 3.0])] * 3))
def test_a_unit_that_is_printed_can_be_read(exponents):
    known = Units(
        (Unit((0.0,) * 3, 1.0, (0.0,) * 3),) * 3, Unit(exponents, 1.0, exponents), *[("kg", "m", "s")] * 2
    )
    (text,) = units_of_constants(formula("2*m"), known)
    again = Units.of({"m": "kg"}, text, NAMES)
    read = dict(zip(again.base, again.target.exponents))
    assert [read.get(symbol, 0.0) for symbol in known.base] == pytest.approx(exponents)


def test_the_front_the_table_and_the_report_print_the_units(fitted, tmp_path):
    front = fitted.pareto_front_
    last = front[front.select("mdl")]
    assert dict(zip(last.expression.constants.tolist(), last.units)) == {9.8: "m/s^2", 0.5: ""}
    assert "9.8 m/s^2" in repr(front)
    assert "9.8 m/s^2" in front.to_html()
    assert last.units in front.to_frame()["units"].tolist()
    (with_unit,) = [text for text in last.constants_text().split(", ") if text.startswith("9.8 ± ")]
    assert with_unit.endswith(" m/s^2")
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f">{with_unit.removeprefix('9.8 ')}</mtext>" in page
    assert "units=Units(columns={&#x27;m&#x27;: &#x27;kg&#x27;" in page
    assert "from dgsr import DGSRRegressor, Units" in page


# Files and the command line ---------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"unit_penalty": 2.0, "max_evaluations": 300, "look_up": False}])
def test_a_saved_fit_keeps_its_units(settings, fitted, tmp_path):
    model = fitted if not settings else small(**settings).fit(TABLE, Y)
    model.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    assert again.get_params() == model.get_params()
    assert repr(again.pareto_front_) == repr(model.pareto_front_)
    for own, loaded in zip(model.pareto_front_, again.pareto_front_, strict=True):
        assert (own.units, own.handicap) == (loaded.units, loaded.handicap)


def test_a_checkpoint_of_other_units_is_refused(tmp_path):
    file = tmp_path / "checkpoint"
    settings = {"look_up": False, "checkpoint": file}
    small(max_evaluations=200, **settings).fit(TABLE, Y)
    again = small(max_evaluations=300, **settings, units=dict(reversed(UNITS.items()))).fit(TABLE, Y)
    assert again.n_evaluations_ > 200
    with pytest.raises(ValueError, match="is of a fit with another units"):
        small(**settings, units=UNITS | {"v": "km/s"}).fit(TABLE, Y)
    with pytest.raises(ValueError, match=r"of a fit with another y_units \(J in .* and unitless_constants"):
        small(**settings, y_units="eV", unitless_constants=True).fit(TABLE, Y)


def test_the_command_line_takes_and_prints_units(tmp_path):
    TABLE.assign(E=Y).to_csv(tmp_path / "data.csv", index=False)
    options = ["fit", str(tmp_path / "data.csv"), "--target", "E", "--generator", "none", "--quiet"]
    options += ["--max-evaluations", "500", "--random-state", "0", "--y-units", "J"]
    options += ["--units", "m=kg", "--units", "v=m/s"]
    done = CliRunner().invoke(app, [*options, "--units", "h=m", "--json", "--save", str(tmp_path / "kept")])
    assert done.exit_code == 0, done.output
    for row in json.loads(done.stdout)["pareto_front"]:
        assert len(row["units"]) == len(row["constants"])
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "kept")])
    assert " m/s^2" in shown.stdout
    assert " ± " in shown.stdout
    for entry, said in {
        "hh=m": "did you mean 'h'?",
        "h": "--units 'h' must be COLUMN=UNIT",
        "h=mm3": "'mm3' is no unit",
    }.items():
        done = CliRunner().invoke(app, [*options, "--units", entry])
        assert done.exit_code == 2
        assert said in done.output
