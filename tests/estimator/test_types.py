"""The types that a type checker is told are those that a fit has; `nox -s types` runs the type checker."""

from __future__ import annotations

import runpy
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dgsr import DGSRRegressor, Expression, Library
from dgsr.estimator.fitted import FittedRegressor
from dgsr.pareto import ParetoFront

pytestmark = pytest.mark.search

TYPES = {
    "expression_": Expression,
    "pareto_front_": ParetoFront,
    "loss_": str,
    "outliers_": np.ndarray,
    "n_evaluations_": int,
    "n_examined_": int,
    "history_": list,
    "stop_reason_": str,
    "generator_": str,
    "library_": Library,
    "random_state_": int,
    "n_features_in_": int,
    "feature_names_in_": np.ndarray,
}


def test_the_package_says_that_it_has_types():
    assert files("dgsr").joinpath("py.typed").is_file()


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """What the script of a user that is checked for types has made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("script"))
        return runpy.run_path(str(Path(__file__).parents[1] / "typed_user_script.py"))


def test_what_the_type_checker_must_refuse_fails(script):
    with pytest.raises(AttributeError, match="DGSRRegresor"):
        script["misspelt"]()
    with pytest.raises(TypeError, match="max_evaluation"):
        DGSRRegressor(max_evaluation=1_000)


def test_the_attributes_of_a_fit_have_the_types_they_are_declared_with(script):
    told = {name for name in FittedRegressor.__annotations__ if name[0] != "_"} - {"estimators_"}
    told -= {"target_name_", "groups_", "group_column_"}  # of a file, and of a fit with groups
    assert told | {"expression_"} == set(TYPES)  # which is a property
    model = script["model"]
    model.feature_names_in_ = np.array(["a", "b"], dtype=object)
    assert {name: isinstance(getattr(model, name), kind) for name, kind in TYPES.items()} == dict.fromkeys(
        TYPES, True
    )
