"""How a search is shown while it goes: on a terminal, in a log, in a notebook, and not at all."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from dgsr import DGSRRegressor
from dgsr.reporting import progress
from dgsr.reporting.progress import shown


def fit(**parameters):
    X = np.random.default_rng(0).uniform(0.5, 2.0, (30, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])
    settings = {"generator": None, "max_evaluations": 30_000, "random_state": 0, **parameters}
    return DGSRRegressor(**settings).fit(X, y)


def test_silence_is_silent(capsys):
    fit()
    assert capsys.readouterr() == ("", "")


def test_a_log_has_whole_lines_of_text_and_a_last_one(capsys):
    model = fit(verbose=1)
    out, err = capsys.readouterr()
    assert err == ""
    assert not set("\x1b\r") & set(out)
    lines = out.splitlines()
    assert lines[0].split()[1] == "evaluations,"
    assert "best NMSE" in lines[0]
    assert lines[-1].startswith("30,000 evaluations, best NMSE")
    assert lines[-1].endswith(f"stopped: max_evaluations; chosen: {model.expression_}")


def test_a_log_has_a_line_every_two_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with shown(str, Console(file=file)) as show:
        for i in range(100):
            now[0] = 0.1 * i
            show(i)
    assert file.getvalue().split() == ["0", "20", "40", "60", "80"]


def test_a_terminal_has_one_line_that_changes_and_is_gone():
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=40)
    with shown(lambda i: f"round {i} " + "x" * 80, console) as show:
        show(1)
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
    with shown(str, Console(file=io.StringIO()), float) as show:
        show(0.5)
    assert 'value="50"' in notebook[1]
    with shown(lambda progress: "<b>", Console(file=io.StringIO())) as show:
        show(None)
    assert "&lt;b&gt;" in notebook[-2]


def test_a_callback_is_told_beside_what_is_shown(capsys):
    seen = []
    fit(verbose=1, callback=seen.append)
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 1.0 == shares[-1]
    assert "evaluations" in capsys.readouterr().out


def test_the_share_of_a_budget_in_seconds(capsys):
    seen = []
    fit(max_evaluations=10**9, max_time=0.5, tolerance=0.0, callback=seen.append)  # no fit is exact enough
    assert 0.9 < seen[-1].share <= 1.0
