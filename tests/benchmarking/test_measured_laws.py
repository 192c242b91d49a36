"""The benchmark of measured tables: that it tells a formula that follows the law from one that does not."""

from __future__ import annotations

import json

import numpy as np
import pytest

# Tables whose numbers stand in the file: exact and noisy ones, with wrong rows and with two columns.
NAMES = ("kepler_8", "boyle_1662", "hydrogen_series", "dulong_petit_1819", "galileo_1604")


@pytest.fixture(scope="module")
def laws(benchmark):
    return benchmark("measured_laws")


@pytest.fixture(scope="module")
def specs(laws):
    return json.loads(laws.TABLES.read_text("utf-8"))


def test_no_two_tables_share_a_name(laws, specs):
    tables = json.loads(laws.TABLES.read_text("utf-8"), object_pairs_hook=list)  # a dict keeps the last one
    assert len(tables) == len(specs)


def test_every_table_names_its_law_and_belongs_to_a_set(specs):
    assert {spec["set"] for spec in specs.values()} == {"shared", "development", "held out", "groups"}
    for name, spec in specs.items():
        columns = [*spec["values"]] if "values" in spec else [*spec["x"], spec["y"]]
        assert spec["y"] in columns, name
        assert any(column in spec["form"] for column in columns) or "no relation" in spec["kinds"], name
        assert spec["set"] == "shared" or spec["law_source"], name


@pytest.mark.parametrize("name", NAMES)
def test_the_law_follows_itself_and_a_number_or_another_power_does_not(laws, specs, name):
    table = laws.load(specs[name])
    judge = laws.Judge(specs[name], table)
    law = laws.fitted_law(specs[name], table.without_wrong())
    assert judge.follows(law)
    assert not judge.follows(lambda X: np.full(len(X), table.y.mean()))
    assert not judge.follows(lambda X: 1.2 * law(X))


def test_wrong_rows_are_fitted_but_the_law_is_not_fitted_to_them(laws, specs):
    table = laws.load(specs["dulong_petit_1819"])
    assert 0 < np.count_nonzero(~table.right) < 4
    assert len(table.without_wrong().y) == np.count_nonzero(table.right)


def test_one_of_the_forms_is_chosen(laws, specs, monkeypatch):
    some = {text: laws._FORMS[text] for text in ("a*x", "a + b*x", "a*x**b")}
    monkeypatch.setattr(laws, "_FORMS", some)  # all nineteen would take half a minute
    fitted = laws.forms(laws.load(specs["kepler_8"]), 1.0)
    text, predict = fitted.chosen["aicc"]
    assert text == "a*x**b"
    assert laws.Judge(specs["kepler_8"], laws.load(specs["kepler_8"])).follows(predict)


def test_a_formula_of_groups_follows_the_law_if_it_has_its_form_in_each_of_them(laws, specs):
    spec = specs["plant_uptake"]
    table = laws.load(spec)
    judge = laws.Judge(spec, table)
    limits = {plant: 20.0 + i for i, plant in enumerate(table.X["Plant"].unique())}

    def saturating(X, rate=0.01):
        return X["Plant"].map(limits).to_numpy() * (1.0 - np.exp(-rate * (X["conc"].to_numpy() - 40.0)))

    assert judge.follows(saturating)
    assert judge.follows(lambda X: saturating(X, 0.02))
    assert not judge.follows(
        lambda X: X["Plant"].map(limits).to_numpy() + np.sin(0.02 * X["conc"].to_numpy())
    )
    assert table.pooled().X.columns.tolist() == ["conc"]
