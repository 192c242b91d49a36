"""A fitted estimator in a file: what comes back, and what is refused."""

from __future__ import annotations

import errno
import json
import math
import pickle
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone

import dgsr
from dgsr.estimator.saving import FORMAT_VERSION
from dgsr.expressions import Library, get_library
from dgsr.files.container import TEXT, packed
from dgsr.pareto import ParetoFront
from searches import flat_regressor

pytestmark = pytest.mark.search

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, (30, 2))
Y = 2.5 * X[:, 0] * np.exp(-X[:, 1]) + 0.01 * RNG.normal(size=30)


def fitted(X=X, y=Y, **parameters):
    settings = {"generator": None, "max_evaluations": 500, "max_length": 12, "look_up": False}
    return flat_regressor(**{**settings, "random_state": 0, **parameters}).fit(X, y)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"library": "koza", "selection": "accuracy", "look_up": False, "random_state": None},
        {"library": Library("own", ("add", "mul", "tanh"), True, 1), "selection": "holdout"},
        {"max_time": 30.0, "max_rows": None, "tolerance": 1e-9, "warm_start": True},
    ],
)
def test_what_is_loaded_predicts_and_says_the_same(tmp_path, parameters):
    model = fitted(**parameters)
    model.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for i in range(len(model.pareto_front_)):
        np.testing.assert_array_equal(again.predict(X, index=i), model.predict(X, index=i))
    assert again.get_params() == model.get_params()
    assert repr(again.pareto_front_) == repr(model.pareto_front_)
    assert again.sympy_expr_ == model.sympy_expr_
    assert again.history_ == model.history_
    for name in (
        "n_evaluations_",
        "n_examined_",
        "stop_reason_",
        "generator_",
        "n_features_in_",
        "library_",
        "random_state_",
    ):
        assert getattr(again, name) == getattr(model, name)
    rules = [rule for rule in ("mdl", "bic", "score", "accuracy", "holdout") if rule != "holdout"]
    rules += ["holdout"] * (model.selection == "holdout")
    for rule in rules:
        assert again.pareto_front_.select(rule) == model.pareto_front_.select(rule)
    clone(again).fit(X, Y)


def test_the_names_of_the_columns_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=["a mass", "λ"])
    model = fitted(frame)
    model.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert str(again.expression_) == str(model.expression_)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"λ": "b"}))


def test_a_file_of_the_latest_format_has_groups():
    """Whoever raises `FORMAT_VERSION` adds a file, and keeps these."""
    model = dgsr.load(Path(__file__).parents[1] / "data" / f"fit_format_{FORMAT_VERSION}.dgsr")
    rows = pd.DataFrame({"x": [1.0, 2.0], "Subject": ["A", "C"]})
    np.testing.assert_allclose(model.predict(rows), [2.0, 5.0] * np.exp([-0.7, -1.4]), rtol=1e-3)
    assert str(model.expression_) == "a*exp(-0.7*x)"
    assert list(model.constants_by_group_.index) == [*"ABCDE"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_file_of_every_format_is_read_by_every_version(number):
    model = dgsr.load(Path(__file__).parents[1] / "data" / f"fit_format_{number}.dgsr")
    rows = pd.DataFrame({"a mass": [1.4554425309821815, 0.5614602859042921], "time": [0.9, 0.5]})
    expected = rows["a mass"] / np.exp(rows["time"] - 0.92)
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-12)
    assert str(model.expression_) == "`a mass`/exp(time - 0.92)"
    assert [candidate.complexity for candidate in model.pareto_front_] == [1, 3, 4, 5, 6, 8, 10]
    assert model.get_params()["generator"] is None
    assert model.stop_reason_ == "max_evaluations"


def test_a_file_with_a_changed_number_is_refused(tmp_path, saved):
    for damaged in (bytes([*saved[:-9], saved[-9] ^ 1, *saved[-8:]]), saved.replace(b"x1", b"x2", 1)):
        assert damaged != saved
        (tmp_path / "fit.dgsr").write_bytes(damaged)
        with pytest.raises(ValueError, match="its content is not what was written"):
            dgsr.load(tmp_path / "fit.dgsr")


def test_a_file_that_lost_its_digest_is_refused(tmp_path, saved):
    (tmp_path / "fit.dgsr").write_bytes(saved.replace(b'"sha256"', b'"sha255"'))
    with pytest.raises(ValueError, match="it has lost its digest"):
        dgsr.load(tmp_path / "fit.dgsr")


@pytest.mark.parametrize("parameters", [{}, {"form": "f(x1) + k"}])
def test_a_constant_target_is_saved(tmp_path, parameters):
    with pytest.warns(UserWarning, match="y is 3"):
        model = fitted(y=np.full(30, 3.0), **parameters)
    model.save(tmp_path / "fit.dgsr")
    np.testing.assert_array_equal(dgsr.load(tmp_path / "fit.dgsr").predict(X), np.full(30, 3.0))


def test_what_a_file_cannot_hold_is_named_and_left_out(tmp_path):
    model = fitted(callback=lambda progress: None, random_state=np.random.RandomState(0))
    with pytest.warns(UserWarning, match="callback, random_state") as caught:
        model.save(tmp_path / "fit.dgsr")
    assert caught[0].filename == __file__
    again = dgsr.load(tmp_path / "fit.dgsr")
    assert again.callback is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_operators_of_the_users_own_are_refused(tmp_path):
    library = get_library("physics").with_operator("bump", lambda x: np.exp(-x * x))
    model = fitted(library=library)
    with pytest.raises(ValueError, match=r"operators of your own, bump.* joblib.dump if .* cloudpickle.dump"):
        model.save(tmp_path / "fit.dgsr")
    assert not list(tmp_path.iterdir())
    with pytest.raises((pickle.PicklingError, AttributeError)):
        joblib.dump(model, tmp_path / "fit.joblib")
    again = pickle.loads(cloudpickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def bump(x):
    return math.exp(-x * x)


@pytest.mark.slow
def test_joblib_keeps_operators_that_are_functions_of_a_module(tmp_path):
    model = fitted(library=get_library("physics").with_operator("bump", bump))
    joblib.dump(model, tmp_path / "fit.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "fit.joblib").predict(X), model.predict(X))


def test_what_is_no_saved_estimator_is_refused(tmp_path):
    path = tmp_path / "fit.dgsr"
    with pytest.raises(FileNotFoundError):
        dgsr.load(path)
    for content in (b"", b"nonsense", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"no saved estimator|not a saved estimator"):
            dgsr.load(path)
    save_file({"weights": np.zeros(3)}, path)
    with pytest.raises(ValueError, match="not a saved estimator; give a file"):
        dgsr.load(path)
    path.write_bytes(packed({TEXT: '{"kind": "dgsr.checkpoint"}'}, {"number": np.zeros(1)}))
    with pytest.raises(ValueError, match="not a saved estimator"):
        dgsr.load(path)


def changed(path, change):
    """Write a saved estimator again after `change` of its header and arrays."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["dgsr"])
        arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    change(header, arrays)
    path.write_bytes(packed({TEXT: json.dumps(header)}, arrays))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h, a: h.update(format_version=99, dgsr_version="9.9"), "written by dgsr 9.9 in format 99"),
        (lambda h, a: h["programs"].append(["add"]), "damaged"),
        (lambda h, a: h["programs"][0].append("x1"), "damaged"),
        (lambda h, a: h.update(chosen=1_000), "damaged"),
        (lambda h, a: a.pop("losses"), "damaged"),
        (lambda h, a: h["library_of_formulas"].update(operators=["os.system"]), "damaged"),
        (lambda h, a: h.pop("attributes"), "damaged"),
    ],
)
def test_a_file_of_another_version_or_a_damaged_one_is_refused(damageable, change, message):
    changed(damageable, change)
    with pytest.raises(ValueError, match=message):
        dgsr.load(damageable)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def replaced(*path):
    """A change that puts the last of `path` where the others lead in the header."""
    *parents, name, value = path

    def change(header, arrays):
        for parent in parents:
            header = header[parent]
        header[name] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        replaced("format_version", "1"),
        replaced("format_version", None),
        lambda h, a: h.pop("format_version"),
        replaced("parameters", []),
        replaced("parameters", "max_time", -1.0),
        replaced("parameters", "objective", "guess"),
        replaced("parameters", "library", {"name": "koza"}),
        replaced("parameters", "callback", "print"),
        replaced("parameters", "initial_formulas", nested(900)),
        replaced("parameters", "initial_formulas", nested(30)),
        replaced("library", "koza"),
        replaced("library", "operators", [["add"]]),
        replaced("library", "has_constants", "no"),
        replaced("library", "n_variables", 3),
        replaced("library_of_formulas", "n_variables", 10**7),
        replaced("library_of_formulas", None),
        replaced("programs", 3),
        replaced("programs", []),
        replaced("programs", 0, []),
        replaced("programs", 0, nested(400)),
        replaced("programs", 0, ["neg"] * 301 + ["x1"]),
        replaced("programs", 0, ["add"] * 6_000 + ["x1"] * 6_001),
        replaced("names", [["x1", "x2"]]),
        replaced("names", 0, ["x1"]),
        replaced("names", 0, ["x1", 2]),
        replaced("chosen", -1),
        replaced("chosen", True),
        replaced("feature_names_in", ["a"]),
        replaced("feature_names_in", "ab"),
        replaced("attributes", "n_features_in_", 10**7),
        replaced("attributes", "n_evaluations_", "many"),
        replaced("attributes", "stop_reason_", None),
        replaced("random_state", "0"),
        replaced("random_state", True),
        replaced("history", {}),
        replaced("history", 0, 5),
        replaced("history", 0, "best_nmse", "low"),
        replaced("history", 0, "best_nmse", -1.0),
        replaced("history", 0, "seconds", None),
        replaced("history", 0, "seconds", 10**400),
        lambda h, a: h["history"][0].pop("evaluations"),
        replaced("judged", "n_samples", 0),
        replaced("judged", "tolerance", float("nan")),
        replaced("judged", {}),
        lambda h, a: a.update(losses=a["losses"][:-1]),
        lambda h, a: a.update(losses=-a["losses"]),
        lambda h, a: a.update(losses=a["losses"].astype(np.float32)),
        lambda h, a: a.update(constants=np.append(a["constants"], 1.0)),
        lambda h, a: a.update(constants=a["constants"] * np.inf),
        lambda h, a: a.update(n_constants=a["n_constants"] - 1),
        lambda h, a: a.update(n_constants=a["n_constants"] + 2**62),
        lambda h, a: a.update(n_constants=a["n_constants"][:, None]),
        lambda h, a: a.update(held_out=np.zeros(99)),
    ],
)
def test_every_part_of_a_file_is_checked_before_anything_is_built(damageable, change):
    changed(damageable, change)
    with pytest.raises(ValueError, match="damaged"):
        dgsr.load(damageable)


def test_parameters_that_became_invalid_are_refused_before_the_file_is_written(tmp_path):
    model = fitted().set_params(max_time=0)
    with pytest.raises(ValueError, match="'max_time' parameter"):
        model.save(tmp_path / "fit.dgsr")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fit.dgsr"
    fitted().save(path)
    return path.read_bytes()


@pytest.fixture
def damageable(tmp_path, saved):
    (tmp_path / "fit.dgsr").write_bytes(saved)
    return tmp_path / "fit.dgsr"


@pytest.mark.parametrize("text", ["[]", "3", "null", '"dgsr"', "[" * 100_000, '{"kind": NaN}', "9" * 5_000])
def test_a_header_that_is_no_mapping_is_refused(tmp_path, text):
    (tmp_path / "fit.dgsr").write_bytes(packed({TEXT: text}, {}))
    with pytest.raises(ValueError, match=r"no saved estimator|not a saved estimator"):
        dgsr.load(tmp_path / "fit.dgsr")


def test_a_fit_that_is_too_long_for_a_file_is_told_when_it_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("dgsr.estimator.saving._MAX_HEADER", 1_000)
    with pytest.raises(ValueError, match=r"thin out its history of .* rounds"):
        fitted().save(tmp_path / "fit.dgsr")
    assert not list(tmp_path.iterdir())


def test_parameters_of_other_versions_are_passed_over(tmp_path):
    """A parameter that is gone is of no use, one that is new has its default."""
    path = tmp_path / "fit.dgsr"
    model = fitted()
    model.save(path)

    def change(header, arrays):
        header["parameters"]["islands"] = 4
        del header["parameters"]["gp_generations"]

    changed(path, change)
    again = dgsr.load(path)
    assert again.config is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_file_that_is_replaced_is_never_half_there(tmp_path, monkeypatch):
    path = tmp_path / "fit.dgsr"
    model = fitted()
    model.save(path)
    before = path.read_bytes()

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(
        OSError, match=r"fit\.dgsr cannot be written \(No space left on device\); name a file"
    ):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["fit.dgsr"]


def test_a_folder_that_is_missing_is_told_with_the_mend(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"cannot be written \(.*\); name a file in a folder that exists"
    ):
        fitted().save(tmp_path / "none" / "fit.dgsr")


def test_an_uncertainty_that_is_unknown_is_unknown_again_and_the_others_are_kept(tmp_path):
    model = fitted()
    front = model.pareto_front_
    candidates = [front[0]._replace(uncertainty=None), *front[1:]]
    model.pareto_front_ = ParetoFront(candidates, front.n_samples, front.tolerance, chosen=front.chosen)
    model.save(tmp_path / "fit.dgsr")
    again = dgsr.load(tmp_path / "fit.dgsr").pareto_front_
    assert again[0].uncertainty is None
    assert repr(again) == repr(model.pareto_front_)
    assert again.select("mdl") == model.pareto_front_.select("mdl")


def test_a_file_that_calls_the_examined_candidates_looks_is_read(damageable):
    def change(header, arrays):
        attributes = header["attributes"]
        attributes["n_looks_"] = attributes.pop("n_examined_") + 7

    before = dgsr.load(damageable).n_examined_
    changed(damageable, change)
    assert dgsr.load(damageable).n_examined_ == before + 7
