"""Drawn problems follow from their seed, are judged by one rule, and methods are compared in pairs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import product
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr
from typer.testing import CliRunner

from dgsr.benchmarking import METHODS, read_records, tables
from dgsr.benchmarking.drawn import N_TEST, draw_problems
from dgsr.benchmarking.environment import _commit
from dgsr.benchmarking.fits import _warm
from dgsr.benchmarking.runner import run_drawn
from dgsr.benchmarking.summaries import mcnemar
from dgsr.cli import app
from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.generator.sampling import Samples
from dgsr.pareto import Candidate

KOZA = get_library("koza", 12)


def same(a, b):
    return a.name == b.name and a.truth == b.truth and np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y)


# --- what is drawn --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["physics", "wide-12"])
def test_a_problem_follows_from_the_seed_and_its_number_alone(name):
    few, many = draw_problems(name, 3, 7), draw_problems(name, 8, 7)
    assert all(map(same, few, many))
    assert [problem.name for problem in few] == [f"{name}-drawn-7-00{i}" for i in range(3)]
    assert not any(map(same, few, draw_problems(name, 3, 8)))
    assert len({str(problem.truth) for problem in many}) > 4
    [one] = draw_problems(name, 8, 7, [f"{name}-drawn-7-006"])
    assert same(one, many[6])


def test_the_columns_cycle_and_some_problems_have_many():
    columns = [problem.n_columns for problem in draw_problems("physics", 64, 1)]
    assert columns[:20] == [1, 2, 3, 4, 5] * 4
    assert columns[20::21] == [6, 7, 8]
    assert columns.count(5) == 12


def test_a_problem_has_the_values_of_its_equation_and_its_rows():
    problems = draw_problems("physics", 64, 1)
    rows = [problem.n_rows for problem in problems]
    assert min(rows) >= 20
    assert max(rows) <= 200
    assert 45 < np.median(rows) < 90  # of a uniform logarithm 63
    for problem in problems:
        data = problem.sample()
        np.testing.assert_array_equal(problem.truth(data.X_train), data.y_train)
        np.testing.assert_array_equal(problem.truth(data.X_test), data.y_test)
        assert data.X_test.shape == (N_TEST, problem.n_columns)
        assert np.var(data.y_train) > 0


def test_the_noise_is_in_standard_deviations_of_y():
    ratios = []
    for problem in draw_problems("physics", 64, 1):
        clean, noisy, noisier = (problem.sample(noise) for noise in (0.0, 0.01, 0.05))
        np.testing.assert_array_equal(clean.y_test, noisy.y_test)
        added = noisy.y_train - clean.y_train
        ratios.append(np.mean(added**2) / np.var(clean.y_train))
        tolerance = 1e-12 * np.abs(clean.y_train).max()
        np.testing.assert_allclose(noisier.y_train - clean.y_train, 5 * added, atol=tolerance)
        np.testing.assert_array_equal(noisy.y_train, problem.sample(0.01).y_train)
    # Some 4,000 draws: the mean square of noise of 1% is 1e-4 within 5%.
    weights = [problem.n_rows for problem in draw_problems("physics", 64, 1)]
    assert np.average(ratios, weights=weights) == pytest.approx(1e-4, rel=0.05)


def test_equations_of_a_library_without_constants_have_none():
    problems = draw_problems("koza", 21, 1)
    assert all(problem.truth.library.name == "koza" for problem in problems)
    assert not any(len(problem.truth.constants) for problem in problems)
    for problem in problems:
        np.testing.assert_allclose(problem.truth(problem.X), problem.y, rtol=1e-12)


def test_transformed_targets_are_lines_of_the_values_of_their_equations():
    problems = draw_problems("transformed", 21, 1)
    slopes = []
    for problem in problems:
        values = problem.truth(problem.X)
        slope, offset = np.polyfit(values, problem.y, 1)
        np.testing.assert_allclose(slope * values + offset, problem.y, atol=1e-6 * np.std(problem.y))
        slopes.append(slope)
    assert len(set(np.round(np.log10(np.abs(slopes)), 2))) > 15
    assert {-1.0, 1.0} == set(np.sign(slopes))


def test_the_problems_of_published_figures_stay_as_they_are():
    [problem] = draw_problems("wide", 1, 1)
    assert str(problem.truth) == "x24*x21"
    # Single precision, since the last digits of exp differ between processors.
    values = b"".join(part.astype("<f4").tobytes() for part in (problem.X, problem.y))
    digest = "b393dc76f607529e4733c7b3a2f35f179d52b45c60b95f453ff8f7d15ad0c5cd"
    assert hashlib.sha256(values).hexdigest() == digest


def columns_that_matter(problem):
    tokens, first = problem.truth.tokens, problem.truth.library.first_variable
    return np.unique(tokens[tokens >= first]) - first


@pytest.mark.parametrize("n_columns", [12, 30, 100])
def test_laws_of_wide_tables_have_three_to_six_of_the_columns_anywhere(n_columns):
    problems = draw_problems(f"wide-{n_columns}", 60, 1)
    matter = [columns_that_matter(problem) for problem in problems]
    assert {len(columns) for columns in matter} == {3, 4, 5, 6}
    assert np.mean(np.concatenate(matter)) == pytest.approx((n_columns - 1) / 2, rel=0.1)
    rows = [problem.n_rows for problem in problems]
    assert min(rows) >= 100
    assert max(rows) <= 1_000
    assert 230 < np.median(rows) < 430  # of a uniform logarithm 316
    for problem in problems:
        assert problem.X.shape == (problem.n_rows + N_TEST, n_columns)
        # A law may lack the factor of a change of units.
        assert np.corrcoef(problem.truth(problem.X), problem.y)[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("n_columns", [12, 30, 100])
def test_a_third_of_the_other_columns_are_correlated_and_a_sixth_are_noisy_copies(n_columns):
    correlations, shifts = [], []
    for problem in draw_problems(f"wide-{n_columns}", 40, 1):
        X, n, matter = problem.X, problem.n_rows, columns_that_matter(problem)
        others = np.setdiff1d(np.arange(n_columns), matter)
        strongest = np.abs(spearmanr(X).statistic[np.ix_(others, matter)]).max(axis=1)
        differences = np.std(X[:, others, None] - X[:, None, matter], axis=0) / np.std(X[:, matter], axis=0)
        is_copy = np.any(np.abs(differences - 0.1) < 0.015, axis=1)
        is_correlated = ~is_copy & (strongest > 0.4)
        assert is_copy.sum() == round(len(others) / 6)
        assert is_correlated.sum() == round(len(others) / 3)
        assert np.all(strongest[~is_copy & ~is_correlated] < 0.2)
        correlations += strongest[is_correlated].tolist()
        ranks = rankdata(X[:, others[is_correlated]], axis=0) / len(X)
        shifts += (ranks[:n].mean(axis=0) - ranks[n:].mean(axis=0)).tolist()
    # Ties and sampling move the coefficients of 0.5 to 0.95 a little.
    assert 0.44 < min(correlations) < 0.56
    assert 0.89 < max(correlations) < 0.97
    assert np.mean(correlations) == pytest.approx(0.725, abs=0.03)
    # The rows of the fit and of the test have one distribution.
    assert abs(np.mean(shifts)) < 3.0 * np.std(shifts) / np.sqrt(len(shifts))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("paper", 3, 1), "prior_name='paper'"),
        (("physics", 0, 1), "n=0"),
        (("physics", 3, 2**32), "seed=4294967296"),
        (("physics", 2, 1, ["physics-drawn-1-002"]), "physics-drawn-1-000 and the 1 that"),
    ],
)
def test_what_cannot_be_drawn_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_problems(*arguments)


# --- runs -----------------------------------------------------------------------------------------


class Formula:
    """A function of X whose NMSE on the test rows of a problem is given."""

    complexity = 3

    def __init__(self, problem, error):
        self.truth = problem.truth
        self.shift = np.sqrt(error * np.var(problem.sample().y_test))

    def __call__(self, X):
        return self.truth(X) + self.shift


class Prophet:
    """Chooses a formula of one error, and has one of another error on its front."""

    chosen = on_front = None
    fits = 0

    def __init__(self, **parameters):
        self.parameters = parameters

    def fit(self, X, y):
        Prophet.fits += 1
        self.expression_ = Prophet.chosen
        self.pareto_front_ = [Candidate(3, 0.0, Prophet.chosen), Candidate(3, 0.0, Prophet.on_front)]
        self.n_evaluations_, self.stop_reason_, self.generator_ = 5, "prophet", "small"
        return self

    def predict(self, X):
        return self.expression_(X)


@cache
def square():
    """The problem x2 + x1**2."""
    return draw_problems("physics", 2, 1)[1]


@pytest.fixture
def prophet(monkeypatch):
    for name in ("prophet", "seer"):
        monkeypatch.setitem(METHODS, name, Prophet)
        _warm.add((name, "physics"))
    monkeypatch.setattr("dgsr.benchmarking.runner.has_the_form", lambda *arguments: True)
    monkeypatch.setattr(Prophet, "fits", 0)
    monkeypatch.setattr(Prophet, "chosen", Formula(square(), 1.0))
    monkeypatch.setattr(Prophet, "on_front", Formula(square(), 1.0))
    yield Prophet
    _warm.clear()


@pytest.mark.parametrize(("noise", "limit"), [(0.0, 1e-8), (1e-4, 1e-8), (0.01, 2e-6), (0.05, 5e-5)])
@pytest.mark.parametrize("name", ["chosen", "on_front"])
def test_found_is_what_the_chosen_formula_says_of_clean_rows(prophet, monkeypatch, noise, limit, name):
    def record(error):
        monkeypatch.setattr(prophet, name, Formula(square(), error))
        [record] = run_drawn([square()], ["prophet"], noise=noise)
        return record

    below, above = record(0.99 * limit), record(1.01 * limit)
    assert (below["found"], below["on_front"]) == (name == "chosen", True)
    assert (above["found"], above["on_front"]) == (False, False)
    assert not record(np.nan)["on_front"]


def test_a_record_is_plain_json_and_says_what_the_problem_was(prophet):
    [record] = run_drawn([square()], ["prophet"], max_time=5.0)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["set"], record["draw_seed"], record["problem"]) == ("drawn:physics", 1, square().name)
    assert (record["truth"], record["truth_length"]) == ("x2 + x1**2", 4)
    assert (record["columns"], record["variables"], record["constants"]) == (2, 2, 0)
    assert (record["rows"], record["max_time"], record["budget"]) == (square().n_rows, 5.0, 10**9)
    assert (record["generator"], record["evaluations"], record["complexity"]) == ("small", 5, 3)
    assert (record["library"], record["weights"], record["looks"]) == ("physics", None, None)
    names = {"version", "commit", "python", "numpy", "torch", "processor"}
    assert names <= set(record["environment"])
    assert all(record["environment"].values())


def test_the_commit_is_unknown_outside_of_a_checkout(tmp_path):
    assert _commit(tmp_path) == "unknown"


def test_the_commit_is_the_last_that_changed_what_runs(tmp_path):
    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", tmp_path, *names, *arguments], check=True, capture_output=True)

    git("init")
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "runner.py").write_text("1\n")
    git("add", ".")
    git("commit", "-m", "sources")
    commit = _commit(folder)
    assert len(commit) == 40
    (tmp_path / "results.jsonl").write_text("{}\n")
    git("add", ".")
    git("commit", "-m", "results")
    assert _commit(folder) == commit
    (folder / "new.py").write_text("2\n")
    assert _commit(folder) == commit + "-dirty"


def test_all_methods_run_on_a_problem_before_the_next_and_runs_of_the_file_are_not_run_again(
    prophet, tmp_path
):
    out = tmp_path / "runs.jsonl"

    def run(problems, methods=("prophet", "seer"), **settings):
        return run_drawn(problems, methods, **{"max_time": 1.0, "out": out, **settings})

    # The formula is one of two columns, so that the runs on the other two problems fail.
    records = run(draw_problems("physics", 3, 1))
    assert [(r["problem"][-1], r["method"]) for r in records] == list(product("012", ("prophet", "seer")))
    assert ["error" in record for record in records] == [True, True, False, False, False, False]
    assert read_records(out) == records
    assert prophet.fits == 6
    run(draw_problems("physics", 3, 1))
    assert prophet.fits == 8  # those that failed
    for changed in ({"max_time": 5.0}, {"noise": 0.01}, {"seeds": 2}):
        before = prophet.fits
        run([square()], **changed)
        assert prophet.fits == before + 2
    run(draw_problems("physics", 4, 1), ["seer"])
    assert prophet.fits == 8 + 6 + 2


def test_a_short_fit_that_is_not_recorded_comes_before_the_first_of_a_method(prophet):
    _warm.clear()
    records = run_drawn(draw_problems("physics", 2, 1), ["prophet", "seer"])
    assert (len(records), prophet.fits) == (4, 6)


def test_unknown_methods_are_refused_before_anything_runs(prophet):
    with pytest.raises(ValueError, match="methods=\\['magic'\\]"):
        run_drawn([square()], ["prophet", "magic"])
    assert prophet.fits == 0


# --- pairs ----------------------------------------------------------------------------------------


def record(number, method, found, evaluations=10, columns=1, **changed):
    settings = {"set": "drawn:physics", "draw_seed": 1, "noise": 0.0, "max_time": 5.0, "budget": 100}
    run = {"problem": str(number), "seed": 0, "method": method, "columns": columns}
    result = {"found": found, "on_front": True, "evaluations": evaluations, "seconds": 2.0}
    return {**settings, **run, **result, **changed}


RECORDS = [
    record(0, "a", True, 10), record(0, "b", True, 70),
    record(1, "a", True, 30), record(1, "b", True, 50, seconds=1.0),
    record(2, "a", True, 999), record(2, "b", False, 999),
    record(3, "a", True, 999, 2), record(3, "b", False, 999, 2),
    record(4, "a", True, 999, 2), record(4, "b", False, 999, 2),
    record(5, "a", False, 999, 2), record(5, "b", True, 999, 2),
    record(6, "a", False, 999, 2), record(6, "b", False, 999, 2),
    record(7, "a", True),  # b has not run on it
    record(0, "a", True, max_time=1.0), record(0, "b", False, max_time=1.0),
]  # fmt: skip


def test_pairs_are_counted_as_by_hand():
    _, (_, (row, at_one_second)) = tables(RECORDS)
    assert (row["first"], row["second"], row["max_time"], row["problems"]) == ("a", "b", 5.0, 7)
    assert (row["only_first"], row["only_second"]) == (3, 1)
    assert row["p"] == pytest.approx(2 * (1 + 4) / 16)
    assert (at_one_second["problems"], at_one_second["only_first"], at_one_second["max_time"]) == (1, 1, 1.0)


def test_formulas_of_the_form_of_the_equation_are_counted_where_that_was_judged():
    assert [row["form %"] for row in tables(RECORDS)[1][0]] == [None] * 4
    judged = [{**each, "form": each["problem"] in "02"} for each in RECORDS]
    assert [row["form %"] for row in tables(judged)[1][0]] == pytest.approx([25.0, 200 / 7, 100.0, 100.0])
    assert [row["on front %"] for row in tables(RECORDS)[1][0]] == [100.0] * 4


def test_a_run_that_failed_is_not_found_and_the_last_record_of_a_run_counts():
    failed = {
        name: record(0, "b", True)[name] for name in ("set", "draw_seed", "noise", "max_time", "budget")
    }
    failed |= {"problem": "0", "seed": 0, "method": "b", "columns": 1, "error": "ValueError: asked to"}
    methods, (row, _) = tables([*RECORDS, failed])[1]
    assert (row["only_first"], methods[1]["recovery %"].split()[0]) == (4, "28.6")
    assert [each["failed"] for each in methods] == [0, 1, 0, 0]
    _, (row, _) = tables([RECORDS[0], failed, *RECORDS[1:]])[1]
    assert row["only_first"] == 3


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 5), (3, 12), (20, 9)])
def test_mcnemars_test_is_the_sum_over_all_outcomes_that_are_no_likelier(first, second):
    n = first + second
    ways = [comb(n, k) for k in range(n + 1)]
    assert mcnemar(first, second) == pytest.approx(sum(w for w in ways if w <= ways[first]) / 2**n)
    assert mcnemar(first, second) == mcnemar(second, first)


def test_the_tables_leave_out_what_all_runs_share():
    heading, parts = tables(RECORDS)
    assert heading == "set drawn:physics, draw_seed 1, noise 0.0, budget 100"
    assert [list(rows[0])[:3] for rows in parts] == [
        ["max_time", "method", "problems"],
        ["max_time", "first", "second"],
    ]
    assert tables([]) == ("", [])


# --- the command ----------------------------------------------------------------------------------


def test_bench_runs_a_drawn_set_and_goes_on_with_it(tmp_path):
    out = tmp_path / "runs.jsonl"
    options = ["--method", "gp", "--method", "untrained", "--budget", "300", "--noise", "0.01"]
    command = ["bench", "drawn:physics", "--problems", "2", "--draw-seed", "0x3", "--out", str(out), *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    records = read_records(out)
    assert [(r["problem"], r["method"], r["generator"]) for r in records] == [
        ("physics-drawn-3-000", "gp", None),
        ("physics-drawn-3-000", "untrained", "untrained"),
        ("physics-drawn-3-001", "gp", None),
        ("physics-drawn-3-001", "untrained", "untrained"),
    ]
    assert "physics-drawn-3-001 gp seed 0: " in result.stderr
    assert "set drawn:physics, draw_seed 3, noise 0.01" in result.stdout
    assert any(line.split()[:3] == ["gp", "untrained", "2"] for line in result.stdout.splitlines())
    again = CliRunner().invoke(app, command)
    assert (again.stdout, again.stderr) == (result.stdout, "")
    assert read_records(out) == records


def test_options_of_drawn_sets_are_refused_for_others():
    result = CliRunner().invoke(app, ["bench", "nguyen", "--problems", "3"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: --problems 3 is for drawn sets")


# --- the network alone ----------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "factor", "first"), [(0.0, 1.0, 3), (0.01, 1.0, 3), (0.01, 2.0, None)])
def test_the_network_alone_is_judged_by_its_first_sample_that_is_the_law(
    benchmark, monkeypatch, noise, factor, first
):
    alone = benchmark("network_alone")
    [problem] = draw_problems("koza", 3, 5, ["koza-drawn-5-002"])  # three columns, no constants
    truth, library = problem.truth, problem.truth.library

    def sample_encoded(encoding, n, grammar, state):
        written = [[library.first_variable]] * n
        written[2] = written[4] = list(truth.tokens)
        tokens = np.zeros((n, grammar.max_length), dtype=np.int64)
        for row, program in zip(tokens, written, strict=True):
            row[: len(program)] = program
        return Samples(tokens, np.array([len(program) for program in written]), np.zeros(n))

    monkeypatch.setattr(alone.shipped("koza"), "sample_encoded", sample_encoded)
    # Without constants a program has the scale of the law, so that twice the values are another law.
    problem = replace(problem, y=factor * problem.y)
    record = alone.Sampling(problem, noise, "generator").record()
    assert (record["first"], record["distinct"], record["columns"]) == (first, 2, 3)


@pytest.mark.parametrize(("factor", "first"), [(1.0, 1), (2.0, None)])
def test_beside_the_network_alone_the_law_itself_is_judged(benchmark, factor, first):
    alone = benchmark("network_alone")
    [problem] = draw_problems("koza", 3, 5, ["koza-drawn-5-002"])  # no constants, so no scale is fitted
    problem = replace(problem, y=factor * problem.y)
    assert alone.Sampling(problem, 0.0, "truth").record()["first"] == first


def test_the_network_alone_fits_constants_before_it_judges(benchmark):
    fitted = benchmark("network_alone").fitted
    [problem] = draw_problems("laws", 1, 5)
    data = problem.sample()
    data = data._replace(y_train=3.0 * data.X_train[:, 0] - 2.0)
    library = problem.truth.library
    values = fitted(Population.from_expressions([Expression.from_text("x1", library)]), data)
    np.testing.assert_allclose(values, [3.0 * data.X_test[:, 0] - 2.0], atol=1e-9)


def test_what_a_training_had_is_counted_in_any_order_of_columns_and_goes_on(benchmark, monkeypatch, tmp_path):
    seen = benchmark("training_equations")
    problems = draw_problems("koza", 12, 5)
    monkeypatch.setattr(seen, "draw_problems", lambda *_: problems)
    law = next(problem for problem in problems if problem.n_variables == 2 and problem.n_columns > 2)
    used, library = np.unique(law.truth.tokens[law.truth.tokens >= law.truth.library.first_variable]), KOZA
    others = {int(used[0]): library.first_variable + 4, int(used[1]): library.first_variable + 1}
    tokens = [others.get(token, token) for token in law.truth.tokens.tolist()]
    again = Population.from_expressions([Expression(library, tokens, [])])
    another = Population.from_expressions([Expression.from_text("sin(x1)", library)])

    class Stream(list):
        constraints = Constraints()

    stream = Stream(
        SimpleNamespace(drawn=SimpleNamespace(programs=drawn)) for drawn in (again, another, again)
    )
    stream.library = library
    out = tmp_path / "seen.json"
    monkeypatch.setattr(sys, "argv", ["training_equations.py", "drawn", "mine", "koza", "--out", str(out)])
    for n_batches, count in ((2, 1), (3, 2)):  # the second run begins with the third batch
        monkeypatch.setattr(seen, "training_of", lambda _, n=n_batches: (stream, n, []))
        seen.main()
        row = json.loads(out.read_text())
        assert (row["batches"], row["equations"]) == (n_batches, n_batches)
        assert row["counts"][law.name] == count
        assert sum(row["counts"].values()) == count


def test_equations_are_compared_with_problems_where_these_are_defined(benchmark):
    equations, rng = benchmark("training_equations"), np.random.default_rng(0)
    ours, theirs = (rng.integers(0, 3, (n, 6)).astype(float) for n in (40, 30))
    ours[rng.random(ours.shape) < 0.1] = np.nan
    theirs[rng.random(theirs.shape) < 0.5] = np.nan
    theirs[:, 0] = 1.0
    pairs = set(zip(*(numbers.tolist() for numbers in equations.same_where_defined(ours, theirs))))
    defined = np.isfinite(theirs)
    assert pairs == {(i, j) for i in range(40) for j in range(30) if (ours[i] == theirs[j])[defined[j]].all()}
    assert 0 < len(pairs) < 1200


def test_a_training_whose_seed_draws_other_equations_now_is_refused(benchmark):
    equations = benchmark("training_equations")
    with pytest.raises(ValueError, match=r"koza-d12 were drawn by version 1 .* docs/benchmarks.md names"):
        equations.training_of("koza-d12")


@pytest.mark.parametrize("name", ["laws", "transformed"])
def test_the_form_that_a_control_is_told_has_the_values_of_the_target(benchmark, name):
    told_forms = benchmark("_noise.told_forms")
    problems = draw_problems(name, 12, seed=3)
    for problem in problems:
        values = told_forms.told_form(problem)(problem.X)
        np.testing.assert_allclose(values, problem.y, rtol=0, atol=1e-8 * np.abs(problem.y).max())
        assert told_forms.verdicts_on(problem, 0.0).fitted
    assert not all(told_forms.verdicts_on(problem, 1.0).fitted for problem in problems)
