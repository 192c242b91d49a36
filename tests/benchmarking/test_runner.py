"""Runs are recorded once, resumed where they stopped, and counted right in the tables."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import time

import numpy as np
import pytest
import torch

from dgsr.benchmarking import METHODS, read_records, run_set, tables, wilson_interval
from dgsr.benchmarking.environment import environment
from dgsr.benchmarking.fits import _warm, described
from dgsr.benchmarking.methods import PACKAGES
from dgsr.benchmarking.record_files import adding_to, write_records
from dgsr.benchmarking.runner import is_found_for
from dgsr.benchmarking.summaries import is_success, summary
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.generator.checkpoints import folder_of
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state
from dgsr.problems import Problem, load_set
from dgsr.problems.problem import Variable


class Oracle:
    """Answers x1*x2, which is right for Feynman-1 alone; fails when asked to."""

    fits = 0

    def __init__(self, library, max_evaluations, max_length, random_state, fails=False):
        self.library = library
        self.max_evaluations = max_evaluations
        self.random_state = random_state
        self.fails = fails

    def fit(self, X, y):
        Oracle.fits += 1
        if self.fails:
            raise RuntimeError("asked to fail")
        self.expression_ = Expression.from_text("x1*x2", get_library(self.library, X.shape[1]))
        self.n_evaluations_ = self.max_evaluations + self.random_state
        self.n_examined_, self.generator_ = 7, "untrained"
        self.stop_reason_ = "oracle"
        return self

    def predict(self, X):
        return self.expression_(X)


@pytest.fixture(params=["runs.jsonl", "runs.jsonl.gz"])
def out(request, tmp_path):
    """A file of records that is not there yet."""
    return tmp_path / request.param


@pytest.fixture(autouse=True)
def oracle(monkeypatch):
    monkeypatch.setitem(METHODS, "oracle", Oracle)
    monkeypatch.setattr(Oracle, "fits", 0)
    _warm.add(("oracle", "koza"))
    yield
    _warm.clear()


def run(out=None, **options):
    arguments = {"problems": ["Feynman-1", "Feynman-3"], "methods": ["oracle"], "seeds": 2, "budget": 10}
    return run_set("feynman_d2", out=out, **{**arguments, **options})


def test_a_set_that_allows_longer_equations_than_the_estimator_does_is_run():
    assert {problem.max_length for problem in load_set("synthetic_d12")} == {256}
    (record,) = run_set("synthetic_d12", problems=["Synthetic-1"], methods=["gp"], seeds=1, budget=200)
    assert "error" not in record
    assert record["parameters"]["max_length"] == 100


def test_one_run_is_a_plain_json_record():
    (record,) = run(problems=["Feynman-1"], seeds=[3], budget=100)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["recovered"] is True
    assert record["how"] == "equal"
    assert (record["problem"], record["set"], record["seed"]) == ("Feynman-1", "feynman_d2", 3)
    assert record["evaluations"] == 103
    assert record["formula"] == "x1*x2"
    assert record["train_nmse"] == record["test_nmse"] == 0.0
    assert record["stop_reason"] == "oracle"
    assert record["seconds"] > 0
    assert (record["library"], record["rows"]) == ("koza", 20)
    assert (record["looks"], record["generator"], record["weights"]) == (7, "untrained", None)
    assert record["environment"] == environment()


def test_a_law_whose_constant_srbench_rounds_to_zero_is_judged_by_its_values(monkeypatch):
    class Bohr(Oracle):
        def fit(self, X, y):
            super().fit(X, y)
            self.expression_ = Expression.from_text("-2.179e-18*x1^2/x2^2", get_library("physics", 2))
            return self

    monkeypatch.setitem(METHODS, "oracle", Bohr)
    _warm.add(("oracle", "physics"))
    (record,) = run_set("laws", ["law_bohr_energy"], ["oracle"], [0], 10)
    assert (record["found"], record["recovered"]) == (True, False)
    assert is_success(record)
    assert summary("oracle", [record]).recovery == 100.0


def test_noise_in_root_mean_squares_is_judged_in_standard_deviations():
    variables = (Variable("a", 9.0, 11.0),)
    problem = Problem("p", "laws", "a", variables, 4_000, "uniform", "physics", n_test=7)
    # The root mean square is 10.0 and the standard deviation 0.577: 1% of the one are 17% of the other.
    limit = 0.02 * (0.01 * 10.0 / 0.577) ** 2
    errors = [(0.01, 0.95 * limit), (0.01, 1.05 * limit), (0.0, 9e-9), (0.0, 1.1e-8), (0.0, None)]
    verdicts = [is_found_for(problem, 0, noise, error) for noise, error in errors]
    assert verdicts == [True, False, True, False, False]


def test_a_short_fit_that_is_not_recorded_comes_before_the_first():
    _warm.clear()
    assert len(run()) == 4
    assert Oracle.fits == 5


def test_a_record_says_which_weights_and_parameters_a_fit_had():
    regressor = METHODS["exact"](library="koza", max_evaluations=50)
    regressor.n_evaluations_, regressor.n_examined_, regressor.stop_reason_ = 50, 3, "max_evaluations"
    regressor.generator_ = "koza-d12"
    said = described(regressor)
    weights = folder_of("koza-d12") / "weights.safetensors"
    assert said["weights"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    assert said["parameters"] == {"library": "koza", "generator": None, "max_evaluations": 50}
    regressor.generator_ = "none"
    assert (described(regressor)["generator"], described(regressor)["weights"]) == (None, None)


def test_a_record_names_a_folder_of_weights_and_not_where_it_lies(tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(folder_of("koza-d12"), folder)
    regressor = METHODS["generator"](library="koza", max_evaluations=50, generator=str(folder))
    regressor.n_evaluations_, regressor.stop_reason_ = 50, "max_evaluations"
    regressor.generator_ = str(folder)
    said = described(regressor)
    assert (said["generator"], said["parameters"]["generator"]) == ("mine", "mine")
    assert said["weights"] == hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
    assert str(tmp_path) not in json.dumps(said)


@pytest.mark.parametrize("other", [{"commit": "c0ffee"}, {"commit": "unknown", "version": "0.0"}, None])
def test_runs_of_another_commit_are_not_mixed_unless_told(tmp_path, other):
    out = tmp_path / "runs.jsonl"
    records = [{**record, "environment": other} for record in run(seeds=1)]
    if other is None:
        records = [{k: v for k, v in record.items() if k != "environment"} for record in records]
    out.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert run(out, seeds=1) == records  # nothing to add
    own = re.escape(environment()["commit"])
    with pytest.raises(
        ValueError, match=rf"runs\.jsonl' has runs of commit .*, and this is .*{own}.*any_commit"
    ):
        run(out)
    assert len(read_records(out)) == 2
    run(out, any_commit=True)
    assert len(read_records(out)) == 4


def test_no_run_begins_after_its_time(out):
    assert run(out, until=time.monotonic()) == read_records(out) == []
    assert len(run(out, until=time.monotonic() + 60.0)) == 4


def test_each_run_is_a_line_of_the_file(out):
    records = run(out)
    assert [(r["problem"], r["seed"], r["recovered"]) for r in records] == [
        ("Feynman-1", 0, True),
        ("Feynman-1", 1, True),
        ("Feynman-3", 0, False),
        ("Feynman-3", 1, False),
    ]
    assert read_records(out) == records
    content = out.read_bytes()
    lines = (gzip.decompress(content) if out.suffix == ".gz" else content).splitlines()
    assert [json.loads(line) for line in lines] == records


def test_runs_in_the_file_are_not_run_again(out):
    first = run(out, seeds=1)
    assert Oracle.fits == 2
    both = run(out, seeds=2)
    assert Oracle.fits == 4
    assert [record for record in both if record["seed"] == 0] == first
    assert len(read_records(out)) == 4
    run(out, seeds=1, budget=20)
    assert Oracle.fits == 6


def test_a_line_cut_off_by_a_kill_is_run_again(tmp_path):
    out = tmp_path / "runs.jsonl"
    run(out)
    out.write_bytes(out.read_bytes()[:-25])
    run(out)
    assert Oracle.fits == 5
    assert len(read_records(out)) == 4


def test_a_part_of_a_compressed_file_that_was_cut_off_anywhere_is_run_again(tmp_path):
    out, known = tmp_path / "runs.jsonl.gz", [{"seed": seed, "formula": "x1" * seed} for seed in range(3)]
    write_records(out, known[:1])
    with adding_to(out, known[:1]) as add:
        add(known[1])
        before = out.read_bytes()
        add(known[2])
        last = out.read_bytes().removeprefix(before)
    assert gzip.decompress(out.read_bytes()).count(b"\n") == 3
    for n in range(len(last)):
        out.write_bytes(before + last[:n])
        rest = read_records(out)
        assert rest[:2] == known[:2]
        with adding_to(out, rest[:2]) as add:
            add(known[2])
        assert read_records(out) == known
    written = out.read_bytes()
    write_records(out, known)
    assert out.read_bytes() == written  # as one part


def test_a_file_that_is_called_compressed_and_is_none_is_not_replaced(tmp_path):
    out = tmp_path / "table.gz"
    out.write_bytes(b"y,a\n1,2\n")
    with pytest.raises(ValueError, match="no compressed file of runs"):
        run(out)
    assert out.read_bytes() == b"y,a\n1,2\n"


@pytest.mark.parametrize("content", [b"y,a\n1,2\n", b"1\n2\n", b"\x89PNG\n\xff"])
def test_runs_are_not_added_to_a_file_of_anything_else(out, content):
    written = gzip.compress(content) if out.suffix == ".gz" else content
    out.write_bytes(written)
    with pytest.raises(ValueError, match="has a line that is no run of a benchmark"):
        run(out)
    assert (out.read_bytes(), Oracle.fits) == (written, 0)


def test_a_failing_run_is_recorded_and_tried_again(out):
    options = {"oracle": {"fails": True}}
    records = run(out, options=options)
    assert all(record["error"] == "RuntimeError: asked to fail" for record in records)
    assert tables(records)[1][0][0]["recovery %"] == "0.0 (0.0 to 65.8)"
    run(out, options=options)
    assert Oracle.fits == 8
    (row,), _ = tables(read_records(out))[1]
    assert (row["runs"], row["failed"]) == (4, 4)


@pytest.mark.slow
def test_parallel_runs_give_the_same_records(tmp_path):
    def without_time(records):
        return [{key: value for key, value in record.items() if key != "seconds"} for record in records]

    assert without_time(run(tmp_path / "runs.jsonl", n_jobs=2)) == without_time(run())
    assert len(read_records(tmp_path / "runs.jsonl")) == 4


def test_the_callback_sees_every_new_record():
    seen = []
    assert run(callback=seen.append) == seen


def test_unknown_names_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match="methods=\\['magic'\\]"):
        run(methods=["oracle", "magic"])
    with pytest.raises(ValueError, match="did you mean Feynman-1"):
        run(problems=["Feyman-1"])
    with pytest.raises(ValueError, match="not in the set"):
        run(problems=["Nguyen-1"])
    with pytest.raises(ValueError, match="not a problem set"):
        run_set("feynman", methods=["oracle"])
    assert Oracle.fits == 0


def test_the_methods_of_the_package_differ_in_the_generator_and_the_exact_search_alone():
    assert {name: method.keywords for name, method in METHODS.items() if hasattr(method, "keywords")} == {
        "dgsr": {"generator": "auto"},
        "generator": {"generator": "auto", "look_up": False},
        "exact": {"generator": None},
        **{control: {"look_up": False} for control in ("misled", "blind", "features")},
        **{control: {"look_up": False, "refine": False} for control in ("guide-alone", "samples-alone")},
        "unrefined": {"generator": "auto", "look_up": False, "refine": False},
        "untrained": {"generator": "untrained", "look_up": False},
        "gp": {"generator": None, "look_up": False},
        "pqt": {"generator": "auto", "look_up": False, "refine": True},
        "sampled": {"generator": "auto", "look_up": False, "refine": False, "gp_generations": 0},
        **{
            name: {"generator": "auto", "look_up": False, "objective": name, "refine": True}
            for name in ("vpg", "risk-seeking")
        },
        **{peer: {} for peer in PACKAGES},
    }


def test_the_tables_have_methods_and_problems():
    heading, (methods, problems) = tables(run())
    assert heading == "set feynman_d2, noise 0.0, budget 10"
    (row,) = methods
    assert (row["method"], row["problems"], row["runs"], row["failed"]) == ("oracle", 2, 4, 0)
    assert row["recovery %"] == "50.0 (9.5 to 90.5)"
    found = [(each["problem"], each["oracle"]) for each in problems]
    assert found == [("Feynman-1", "2 of 2"), ("Feynman-3", "0 of 2")]


def test_of_two_records_of_one_run_the_last_counts():
    records = run(seeds=1, problems=["Feynman-1"])
    _, (_, (row,)) = tables([{**records[0], "recovered": False}, *records])
    assert row["oracle"] == "1 of 1"


def test_settings_and_variants_of_a_method_are_told_apart():
    _, (methods, _) = tables([*run(), *run(budget=20)])
    assert [(row["budget"], row["method"]) for row in methods] == [(10, "oracle"), (20, "oracle")]
    _, (methods, *_) = tables([*run(), *run(options={"oracle": {"fails": False}})])
    assert [row["method"] for row in methods] == ["oracle", "oracle fails=False"]


def test_tables_have_a_row_per_method_and_problem():
    _, ((method,), problems) = tables(run())
    assert (method["problems"], method["runs"], method["failed"]) == (2, 4, 0)
    assert method["recovery %"] == "50.0 (9.5 to 90.5)"
    assert {"problem": "Feynman-1", "oracle": "2 of 2"} in problems
    assert tables([])[1] == []


def test_the_interval_is_wilsons():
    # Newcombe, Statistics in Medicine 17, 1998, table I: 81 of 263 and 0 of 20.
    assert wilson_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)


def controlled(method, generator, n_columns):
    """Return what stands in the generator's place in a method, for data of so many columns."""
    regressor = METHODS[method](library=generator.library.name, generator=generator, random_state=0)
    regressor.library_ = generator.library.with_variables(n_columns)
    return regressor._as_used(generator.with_variables(n_columns), 0)


def read_by(generator, data):
    """Return what a network is given: encodings and guides of two data sets, and 20 samples for the last."""
    encodings, guides = [], []
    for X, y in data:  # one after the other, as in searches
        encodings.append(generator.encode_dataset(X, y))
        guides.append(generator.guide_probabilities(encodings[-1]))
    samples = generator.sample_encoded(encodings[1], 20, generator.grammar(2), new_state(0))
    return encodings, guides, samples


def two_datasets(n_columns):
    X = np.random.default_rng(0).uniform(1.0, 3.0, (30, n_columns))
    return [(X, X[:, 0] * X[:, 1]), (X, np.sin(X[:, 0] * X[:, 1]))]


CONTROLS = ["misled", "blind", "features"]
GUIDED = GeneratorConfig(encoder="descriptions", n_latents=1, encoder_width=16, encoder_layers=1)


@pytest.mark.parametrize("method", CONTROLS)
@pytest.mark.parametrize("library", ["physics", "koza"])
def test_controls_switch_off_what_they_name(method, library):
    generator = Generator.untrained(get_library(library, 2), GUIDED, Constraints(), 0)
    data = two_datasets(2)
    encodings, guides, samples = read_by(controlled(method, generator, 2), data)
    own, own_guides, _ = read_by(generator, data)
    is_switched_off = method in ("misled", "blind")
    assert torch.equal(encodings[0].latents, encodings[1].latents) == is_switched_off
    assert torch.equal(encodings[1].latents, own[1].latents) == (method == "features")
    assert np.array_equal(*guides) == is_switched_off
    assert not np.array_equal(guides[1], own_guides[1])
    written = [str(program) for program in generator.population(samples.tokens, samples.lengths)]
    assert (written[0] == "sin(x1*x2)") == (method == "features")


@pytest.mark.parametrize("method", ["misled", "blind"])
def test_in_wide_tables_controls_do_not_say_which_columns_were_left_unread(method):
    n_columns = 30
    wide = Generator.untrained(get_library("physics", 2), GUIDED, Constraints(), 0).with_variables(n_columns)
    X, y = two_datasets(n_columns)[0]
    assert wide.encode_dataset(X, y).unread is not None
    encodings, guides, _ = read_by(
        controlled(method, wide, n_columns), [(X, y), (X, np.exp(X[:, 7]) + X[:, 20])]
    )
    assert torch.equal(encodings[0].latents, encodings[1].latents)
    np.testing.assert_array_equal(encodings[0].unread, encodings[1].unread)
    np.testing.assert_array_equal(*guides)


def test_a_file_that_cannot_be_written_is_told_before_anything_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "dgsr.benchmarking.recording._record_safely", lambda *_: pytest.fail("a run was made")
    )
    with pytest.raises(FileNotFoundError, match=r"runs\.jsonl"):
        run_set(
            "nguyen", problems=["Nguyen-1"], methods=["gp"], budget=50, out=tmp_path / "none" / "runs.jsonl"
        )
