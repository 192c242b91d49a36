"""How a search is shown while it goes: on a terminal, in a log, in a notebook, and not at all."""

from __future__ import annotations

import io
import math
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone

from dgsr.data import prepare
from dgsr.data.population import Population
from dgsr.data.table import Table
from dgsr.expressions import Expression, get_library
from dgsr.fitting.shown import Shown
from dgsr.pareto import ParetoArchive
from dgsr.reporting import progress
from dgsr.reporting.progress import SearchProgress, shown
from searches import flat_regressor


def fit(**parameters):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])
    # Without constants, as formulas with some take a tenth of a second to finish.
    settings = {"library": "koza", "generator": None, "max_evaluations": 3_000, "random_state": 0}
    settings |= {"look_up": False}
    return flat_regressor(**settings | parameters).fit(X, y)


def step(number, share=0.0, seconds_left=math.inf):
    """The progress of a loop, and below how it is written."""
    return SimpleNamespace(number=number, share=share, seconds_left=seconds_left)


def line(progress):
    return f"round {progress.number}"


def test_silence_is_silent(capsys):
    fit()
    assert capsys.readouterr() == ("", "")


def test_a_log_has_whole_lines_of_text_and_a_last_one(capsys):
    model = fit(verbose=1)
    out, err = capsys.readouterr()
    assert err == ""
    assert not set("\x1b\r") & set(out)
    lines = out.splitlines()
    assert re.match(r"searching \d+%, \d+ s left: [\d,]+ evaluations, ", lines[0])
    assert "best NMSE" in lines[0]
    assert lines[-1].startswith("3,000 evaluations, best NMSE")
    assert lines[-1].endswith(f"stopped: max_evaluations; chosen: {model.expression_}")


def test_a_log_has_a_line_every_two_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with shown(line, Console(file=file)) as show:
        for i in range(100):
            now[0] = 0.1 * i
            show(step(i))
    assert re.findall(r"round (\d+)", file.getvalue()) == ["0", "20", "40", "60", "80"]


def test_a_phase_without_progress_is_written_every_two_seconds_with_its_name(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_LIVE", 0.001)
    file = io.StringIO()

    def waited(seconds):
        now[0] += seconds
        before = file.getvalue()
        for _ in range(2000):
            if file.getvalue() != before:
                return file.getvalue().removeprefix(before)
            time.sleep(0.001)
        return ""

    with shown(line, Console(file=file)) as show:
        progress.begin_phase("searching")
        assert waited(2.5) == "searching, 2 s\n"
        show(step(1, share=0.25, seconds_left=100.0))
        assert file.getvalue().endswith("\nsearching 25%, 100 s left: round 1\n")
        assert waited(3.0) == "searching 25%, 97 s left: round 1\n"
        progress.begin_phase("finishing")
        assert waited(300.0) == "finishing, 5 min\n"
        show(step(2, share=0.001))
        assert file.getvalue().endswith("\nfinishing 0.1%: round 2\n")
    before = file.getvalue()
    progress.begin_phase("of nothing that is shown")
    assert file.getvalue() == before


def test_a_fit_names_its_phases_and_they_end_with_finishing(monkeypatch):
    begun = []
    monkeypatch.setattr(progress._Display, "begin", lambda self, phase: begun.append(phase))
    fit(verbose=1, library="koza-const", max_evaluations=300, loss="squared")
    assert list(dict.fromkeys(begun)) == ["searching", "finishing", "extending"]
    assert begun[-1] == "finishing"
    fit(library="koza-const", max_evaluations=300)
    assert begun.count("searching") == 1


def test_the_seconds_left_follow_from_the_share_of_the_budget():
    expression = Expression.from_text("x1", get_library("koza", 1))
    assert SearchProgress(100, 2.0, 0.5, expression, 0.25).seconds_left == pytest.approx(6.0)
    assert SearchProgress(100, 2.0, 0.5, expression, 0.001).seconds_left == math.inf


def test_a_terminal_has_one_line_that_changes_and_is_gone():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=40)
    with shown(lambda progress: line(progress) + "x" * 80, console) as show:
        show(step(1))
        during = file.getvalue()
    assert "round 1" in during
    assert "…" in during  # cut to the width, so that it stays one line
    assert during.count("\n") == 0
    assert file.getvalue().endswith("\x1b[2K")  # the line is erased


@pytest.fixture
def notebook(monkeypatch):
    """A kernel that shows HTML, as far as it is asked."""
    pages = []

    class Handle:
        def update(self, page):
            pages.append(page)

    def display(page, display_id):
        pages.append(page)
        return Handle()

    shell = SimpleNamespace(has_trait=lambda name: name == "kernel")
    module = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=module))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return pages


def test_a_notebook_has_a_bar_that_fills_and_is_gone(notebook, monkeypatch):
    monkeypatch.setattr(progress, "_LIVE", 0.0)
    fit(verbose=1)
    values = [int(page.split('value="')[1].split('"')[0]) for page in notebook[:-1]]
    assert values == sorted(values)
    assert values[-1] == 100
    assert notebook[-1] == ""


def test_a_bar_escapes_the_names_of_features(notebook):
    with shown(line, Console(file=io.StringIO())) as show:
        show(step(1, share=0.5))
    assert 'value="50"' in notebook[1]
    with shown(lambda progress: "<b>", Console(file=io.StringIO())) as show:
        show(step(1))
    assert "&lt;b&gt;" in notebook[-2]


def test_a_callback_is_told_beside_what_is_shown(capsys):
    seen = []
    fit(verbose=1, batch_size=100, gp_generations=2, callback=seen.append)
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 1.0 == shares[-1]
    assert "evaluations" in capsys.readouterr().out


def test_the_share_of_a_budget_in_seconds(capsys):
    seen = []
    fit(max_evaluations=10**9, max_time=0.5, tolerance=0.0, callback=seen.append)  # no fit is exact enough
    assert 0.9 < seen[-1].share <= 1.0


# --- the rows that what is shown is computed on ---------------------------------------------------


def nmse_of(expression, X, y):
    return np.mean((y - expression(X)) ** 2) / y.var()


def test_progress_and_history_speak_of_the_rows_of_the_front(capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (400, 2)) * [1e6, 1.0]
    y = X[:, 0] * np.exp(-X[:, 1]) + 3e4 * rng.normal(size=400)
    told = []
    model = flat_regressor(
        generator=None,
        max_evaluations=600,
        batch_size=50,
        max_length=12,
        max_rows=30,
        look_up=False,
        loss="squared",
        random_state=0,
        callback=told.append,
    ).fit(X, y)
    assert [entry["best_nmse"] for entry in model.history_] == [said.best_nmse for said in told]
    for said in told:
        assert nmse_of(said.best_expression, X, y) == pytest.approx(said.best_nmse, rel=1e-6)
    for candidate in model.pareto_front_:
        assert nmse_of(candidate.expression, X, y) == pytest.approx(candidate.loss, rel=1e-6)
        is_number = len(candidate.expression.tokens) == 1  # the mean, within two standard errors
        assert candidate.loss <= 1.0 + (1.01 * 4.0 / 400 if is_number else 1e-6)
    silent = clone(model).set_params(callback=None).fit(X, y)
    assert str(silent.pareto_front_) == str(model.pareto_front_)
    assert [entry["best_nmse"] for entry in silent.history_] == [said.best_nmse for said in told]


def shown_and_archive(X, y, texts, max_rows=20):
    """What is shown of an archive of formulas that a search of a sample of the rows found."""
    prepared = prepare(Table(X, y), with_scales=True, with_origins=True, max_rows=max_rows, seed=0)
    library = get_library("physics", X.shape[1])
    programs = Population.from_expressions([Expression.from_text(text, library) for text in texts])
    archive = ParetoArchive(library, programs.tokens.shape[1], programs.constants.shape[1])
    archive.update(programs, programs.nmse(prepared.search))
    return Shown(prepared), archive


def test_a_formula_that_is_undefined_on_rows_the_search_does_not_see_is_passed_over():
    X = np.linspace(0.5, 2.0, 300)[:, None]
    X[:3] = -1.0  # three rows that are not in the sample
    y = np.log(np.abs(X[:, 0]))
    shown, archive = shown_and_archive(X, y, ["x1", "log(x1)"])
    assert archive.best_nmse() < 1e-20
    program, nmse = shown.best(archive)
    assert program[0].text == "x1"
    assert nmse == pytest.approx(nmse_of(program[0], X, y))
    shown, archive = shown_and_archive(X, y, ["log(x1)"])
    assert shown.best(archive)[1] == np.inf


def test_a_formula_is_judged_once_and_by_no_more_rows_than_are_quick(monkeypatch):
    monkeypatch.setattr("dgsr.fitting.shown.MANY_ROWS", 50)
    X = np.random.default_rng(0).uniform(0.5, 2.0, (300, 1))
    shown, archive = shown_and_archive(X, X[:, 0] ** 2, ["x1", "x1*x1*x1"])
    seen = []
    nmse = Population.nmse
    monkeypatch.setattr(
        Population, "nmse", lambda programs, data: seen.append(len(data.y)) or nmse(programs, data)
    )
    assert shown.best(archive)[1] == shown.best(archive)[1] < 1.0
    assert seen == [50]
