"""Fits that are killed and go on from their checkpoint, and files that are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from joblib import Parallel
from safetensors import safe_open

from dgsr.files.container import TEXT, packed
from dgsr.fitting import checkpoint as module
from dgsr.fitting import plan
from searches import X, Y, assert_same, flat_regressor, tiny_generator


class Killed(Exception):
    """What a callback raises in place of the process being killed."""


def small(**parameters):
    settings = {"generator": None, "max_evaluations": 4000, "batch_size": 100, "gp_generations": 2}
    settings |= {"look_up": False, "random_state": 0, "loss": "squared"}
    return flat_regressor(**{**settings, **parameters})


def kill_after(n_rounds):
    """Return a callback that raises in a round."""
    rounds = []

    def callback(progress):
        rounds.append(progress)
        if len(rounds) == n_rounds:
            raise Killed

    return callback


@pytest.fixture(autouse=True)
def written_after_every_round(monkeypatch):
    monkeypatch.setattr(module, "_SECONDS", 0.0)


@pytest.fixture(scope="module")
def of_a_short_fit(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoints") / "fit.checkpoint"
    small(checkpoint=path, max_evaluations=900).fit(X, Y)
    return path.read_bytes()


@pytest.fixture
def path(of_a_short_fit, tmp_path):
    """Return the checkpoint of a short fit, which a test may change."""
    copy = tmp_path / "fit.checkpoint"
    copy.write_bytes(of_a_short_fit)
    return copy


SLOW = pytest.mark.slow
# For what does not hang on which formulas are found: a tenth of the time.
QUICK = {"max_evaluations": 500, "max_length": 12, "look_up": False}
SETTINGS = {
    "evolution": {"library": "koza"},
    "exact search": {"library": "koza", "max_evaluations": 30_000, "look_up": True},
    "constants": {"look_up": True},
    "refined decoder": {"library": "koza-const", "generator": "tiny", "refine": True, "look_up": True},
    "vanilla gradient": {"library": "koza", "generator": "tiny", "refine": True, "objective": "vpg"},
    "three passes": {"loss": "huber", "look_up": True},
    "two passes": {"loss": "auto", "decades": True, "max_length": 12},
    "holdout": {"selection": "holdout", "max_length": 12},
    "islands": {"n_jobs": 3, "look_up": True},
    "islands with refined decoders": {"library": "koza", "generator": "tiny", "refine": True, "n_jobs": 2},
}
LONG = (
    *("exact search", "constants", "three passes", "refined decoder"),
    *("islands", "islands with refined decoders"),
)


@pytest.mark.parametrize("n_rounds", [1, pytest.param(5, marks=SLOW)])
@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW if n in LONG else ()) for n in SETTINGS])
def test_a_fit_that_was_killed_ends_as_if_it_had_not_been(name, n_rounds, tmp_path, monkeypatch):
    monkeypatch.setattr("dgsr.search.islands._MOST_ROUNDS", 1)
    monkeypatch.setattr("dgsr.search.islands._Parallel", partial(Parallel, backend="sequential"))
    settings = dict(SETTINGS[name])
    y = np.exp(6.0 * Y) if settings.pop("decades", False) else Y
    if settings.get("generator") == "tiny":
        settings.update(generator=tiny_generator(settings["library"]), max_length=12)
    whole = small(**settings).fit(X, y)
    assert (whole.history_[-1]["refinements"] > 0) == settings.get("refine", False)
    path = tmp_path / "fit.checkpoint"
    killed = small(**settings, checkpoint=path, callback=kill_after(n_rounds))
    with pytest.raises(Killed):
        killed.fit(X, y)
    with pytest.raises(Killed):  # once more, a round later
        small(**settings, checkpoint=path, callback=kill_after(2)).fit(X, y)
    assert_same(small(**settings, checkpoint=str(path)).fit(X, y), whole)
    # The fit is at its end, where it stays.
    assert_same(small(**settings, checkpoint=path).fit(X, y), whole)


def test_a_larger_budget_goes_on(tmp_path):
    path = tmp_path / "fit.checkpoint"
    first = small(**QUICK, checkpoint=path).fit(X, Y)
    further = small(**{**QUICK, "max_evaluations": 1000}, checkpoint=path).fit(X, Y)
    assert first.n_evaluations_ == 500
    assert further.n_evaluations_ == 1000
    assert further.history_[: len(first.history_)] == first.history_


def test_seconds_of_earlier_runs_count(tmp_path, monkeypatch):
    def slow_to_prepare(*args, **kwargs):
        time.sleep(0.15)
        return prepare(*args, **kwargs)

    path = tmp_path / "fit.checkpoint"
    settings = {**QUICK, "max_evaluations": 10**9, "max_time": 0.2, "checkpoint": path}
    first = small(**settings).fit(X, Y)
    prepare = plan.prepare
    monkeypatch.setattr(plan, "prepare", slow_to_prepare)
    again = small(**settings).fit(X, Y)
    assert again.stop_reason_ == "max_time"
    assert again.history_ == first.history_


def test_a_drawn_seed_is_that_of_the_file(tmp_path):
    path = tmp_path / "fit.checkpoint"
    with pytest.raises(Killed):
        small(**QUICK, random_state=None, checkpoint=path, callback=kill_after(2)).fit(X, Y)
    one = small(**QUICK, random_state=None, checkpoint=path).fit(X, Y)
    assert_same(small(**QUICK, random_state=None, checkpoint=path).fit(X, Y), one)


@pytest.mark.parametrize(
    ("others", "table", "named"),
    [
        ({}, (X + 1e-9, Y), "table"),
        ({}, (X, Y, np.arange(1.0, 41.0)), "table"),
        ({"random_state": 1}, (X, Y), r"random_state \(\d+ in the file, \d+ now\)"),
        ({"library": "koza"}, (X, Y), "library"),
        ({"batch_size": 101}, (X, Y), r"batch_size \(\d+ in the file, 101 now\)"),
        ({"n_jobs": 2}, (X, Y), r"n_jobs \(1 in the file, 2 now\)"),
        ({"required": ["x1"]}, (X, Y), r"required \(None in the file, \['x1'\] now\)"),
        ({"forbidden": pd.Index(["x1"])}, (X, Y), r"forbidden \(None in the file, \['x1'\] now\)"),
        ({"selection": "holdout"}, (X, Y), "selection"),
        (
            {"loss": "huber", "max_length": 20},
            (X, Y),
            r"loss \(squared in the file, huber now\) and max_length \(.*\)",
        ),
        ({"generator": "tiny"}, (X, Y), "generator"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(others, table, named, path):
    before = path.read_bytes()
    if others.get("generator") == "tiny":
        others = {"generator": tiny_generator("physics", max_length=30)}
    with pytest.raises(ValueError, match=f"is of a fit with another {named}; .* delete the file"):
        small(checkpoint=path, **others).fit(*table)
    assert path.read_bytes() == before


def squares(scale=1.0, root=np.sqrt, of=abs):
    return lambda y, p: root(scale * of(y - p) ** 4)


class Loss:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, y, p):
        return self.scale * abs(y - p)

    def of_rows(self, y, p):
        return self.scale * (y - p) ** 2


LOSSES = [
    lambda y, p: (y - p) ** 2,
    lambda y, p: abs(y - p),
    lambda y, p: 2 * abs(y - p),
    lambda y, p: abs(y - p) if y.dtype.char in {"d", "f", "e", "g"} else p,
    lambda y, p, scale=3: scale * abs(y - p),
    lambda y, p: np.array([abs(a - b) for a, b in zip(y, p)]),
    lambda y, p: np.array([(a - b) ** 2 for a, b in zip(y, p)]),
    squares(),
    squares(2.0),
    squares(root=np.cbrt),
    squares(of=lambda r: r / 2),
    Loss(1.0),
    Loss(2.0),
    Loss(1.0).of_rows,
    Loss(2.0).of_rows,
    partial(squares(), 1.0),
    partial(squares(), 2.0),
    numba.njit(lambda y, p: (y - p) ** 4),
    numba.njit(lambda y, p: (y - p) ** 6),
    np.hypot,
]


@pytest.mark.slow
def test_a_checkpoint_tells_functions_from_each_other_in_every_process():
    texts = [module._text(loss) for loss in LOSSES]
    assert len(set(texts)) == len(texts)
    code = "import test_resuming as own; print([own.module._text(loss) for loss in own.LOSSES])"
    for seed in "12":  # of the order of sets
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=os.path.dirname(__file__),
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.strip() == str(texts)


def test_a_function_that_holds_itself_has_a_text():
    def loss(y, p):
        return loss(p, y)

    assert module._text(loss).startswith("test_a_function_that_holds_itself_has_a_text.<locals>.loss ")


@pytest.mark.slow
def test_a_checkpoint_of_another_function_is_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    small(checkpoint=path, max_evaluations=300, loss=lambda y, p: (y - p) ** 2).fit(X, Y)
    small(checkpoint=path, max_evaluations=400, loss=lambda y, p: (y - p) ** 2).fit(X, Y)
    with pytest.raises(ValueError, match="is of a fit with another loss"):
        small(checkpoint=path, max_evaluations=400, loss=lambda y, p: abs(y - p)).fit(X, Y)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def parts_of(path):
    with safe_open(path, framework="numpy") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118


DAMAGES = {
    "tokens": lambda arrays: arrays["0/generation/tokens"].__iadd__(10**6),
    "negative tokens": lambda arrays: arrays["0/archive/tokens"].__isub__(1),
    "lengths": lambda arrays: arrays["0/generation/lengths"].__iadd__(10**6),
    "cut programs": lambda arrays: arrays["0/generation/lengths"].__isub__(1),
    "constants": lambda arrays: arrays.update({"0/archive/constants": np.ones((1, 1))}),
    "missing": lambda arrays: arrays.pop("0/evolved/nmse"),
    "types": lambda arrays: arrays.update({"0/random_state": np.zeros(4)}),
    "more": lambda arrays: arrays.update({"0/else": np.zeros(4)}),
    "losses": lambda arrays: arrays["0/generation/nmse"].__imul__(np.nan),
    "negative losses": lambda arrays: arrays["0/archive/nmse"].__imul__(-1.0),
    "infinite constants": lambda arrays: arrays["0/archive/constants"].__imul__(np.inf),
    "programs without tokens": lambda arrays: arrays["0/generation/lengths"].__imul__(0),
    "no random numbers": lambda arrays: arrays["0/random_state"].__imul__(np.uint64(0)),
    "rows of programs": lambda arrays: arrays.update({"0/queue/nmse": np.zeros((0, 1))}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_before_anything_is_run(damage, path):
    arrays, header = parts_of(path)
    DAMAGES[damage](arrays)
    path.write_bytes(packed({TEXT: header[TEXT]}, arrays))
    with pytest.raises(ValueError, match=r"is damaged .*; delete it, or name another file"):
        small(checkpoint=path).fit(X, Y)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("n_states", 10**12),
        ("n_states", 0),
        ("0/budget/seconds", -1e300),
        ("0/budget/seconds", float("nan")),
        ("0/budget/n_evaluations", 1.5),
        ("0/stage", "1"),
        ("0/history", [1.0]),
        ("0/history", [{"evaluations": 5}]),
        ("0/history", {}),
        ("0/history", nested(900)),
        ("0/restarts/n", 10**30),
        ("0/restarts/best", 10**400),
        ("0/tolerance", 0.5),
        ("0/refinement", 5),
        ("0/solving", 5),
        ("0/islands", {}),
        ("random_state", "5"),
        ("random_state", 10**30),
        ("identity", {"loss": 5}),
        ("plain", [1]),
    ],
)
def test_numbers_that_no_search_has_are_refused(entry, value, path):
    arrays, metadata = parts_of(path)
    header = json.loads(metadata["dgsr"])
    (header if entry in header else header["plain"])[entry] = value
    path.write_bytes(packed({TEXT: json.dumps(header)}, arrays))
    with pytest.raises(ValueError, match=r"is damaged .*; delete it, or name another file"):
        small(checkpoint=path).fit(X, Y)


REFINED_ISLANDS = {"library": "koza", "look_up": False, "refine": True, "n_jobs": 2, "max_length": 12}
OPTIMIZER = "0/islands/1/refinement/optimizer/0"


@pytest.fixture(scope="module")
def of_refined_islands(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoints") / "fit.checkpoint"
    given = REFINED_ISLANDS | {"generator": tiny_generator("koza")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dgsr.search.islands._Parallel", partial(Parallel, backend="sequential"))
        patched.setattr("dgsr.search.islands._MOST_ROUNDS", 1)
        small(**given, checkpoint=path, max_evaluations=900).fit(X, Y)
    return path.read_bytes(), given


@pytest.mark.parametrize(
    ("names", "change"),
    [
        ("0/islands/1/", None),
        (f"{OPTIMIZER}/step", None),
        (f"{OPTIMIZER}/exp_avg", lambda array: array[:1]),
        (f"{OPTIMIZER}/exp_avg_sq", lambda array: array - 1.0),
        ("0/refinement/decoder/", lambda array: array * np.nan),
        ("0/islands/0/refinement/baseline", lambda number: "1"),
        ("0/islands/0/solving", lambda number: {"stage": 1, "step": 10**30}),
    ],
)
def test_damaged_islands_and_decoders_are_refused(names, change, of_refined_islands, tmp_path):
    path = tmp_path / "fit.checkpoint"
    content, given = of_refined_islands
    path.write_bytes(content)
    arrays, metadata = parts_of(path)
    header = json.loads(metadata[TEXT])
    for part in (arrays, header["plain"]):
        for name in [name for name in part if name.startswith(names)]:
            value = part.pop(name)
            if change is not None:
                part[name] = change(value)
    path.write_bytes(packed({TEXT: json.dumps(header)}, arrays))
    with pytest.raises(ValueError, match=r"is damaged .*; delete it, or name another file"):
        small(**given, checkpoint=path).fit(X, Y)


@pytest.mark.parametrize("content", [b"x", b"\x80\x04.", b"\xff" * 100, b"\x00" * 64, b'{"a": 1}'])
def test_a_file_that_is_no_checkpoint_is_refused_and_kept(content, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is no checkpoint, or is damaged .*; delete it, or name another"):
        small(checkpoint=path).fit(X, Y)
    assert path.read_bytes() == content


def test_what_a_kill_left_half_written_is_removed(tmp_path):
    path = tmp_path / "fit[1].checkpoint"
    others = [
        tmp_path / name for name in ("fit1.checkpoint.0123abcd.part", "fit[1].checkpoint.part", "notes")
    ]
    half = tmp_path / "fit[1].checkpoint.0123abcd.part"
    for file in (half, *others):
        file.write_text("half")
    small(**QUICK, checkpoint=path).fit(X, Y)
    assert not half.exists()
    assert sorted(tmp_path.iterdir()) == sorted([path, *others])


def test_a_checkpoint_of_another_version_is_refused(path, monkeypatch):
    monkeypatch.setattr(module, "__version__", "99.0")
    with pytest.raises(ValueError, match=r"was written by dgsr .*, and this is 99\.0"):
        small(checkpoint=path).fit(X, Y)


def test_a_file_that_cannot_be_written_is_refused_before_the_search(tmp_path):
    with pytest.raises(OSError, match=r"cannot be written .* name a file in a folder that exists"):
        small(checkpoint=tmp_path / "none" / "fit.checkpoint").fit(X, Y)


def test_a_disk_that_fills_up_is_no_reason_to_lose_the_search(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_atomically", full)
    with pytest.warns(UserWarning, match=r"search goes on, but its checkpoint is an old one: .*No space"):
        model = small(**QUICK, checkpoint=tmp_path / "fit.checkpoint").fit(X, Y)
    assert_same(model, small(**QUICK).fit(X, Y))


def test_a_fit_goes_on_from_a_file_or_from_the_last_fit(tmp_path):
    with pytest.raises(ValueError, match="checkpoint and warm_start=True are both given; set one"):
        small(checkpoint=tmp_path / "fit.checkpoint", warm_start=True).fit(X, Y)


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2], os.path.dirname(sys.argv[2])
from test_resuming import module, small, X, Y
module._SECONDS = 0.0
n = 0
def kill(progress):
    global n
    n += 1
    if n == 5:
        os.kill(os.getpid(), signal.SIGKILL)
small(checkpoint=sys.argv[1], callback=kill).fit(X, Y)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_process_that_was_killed_goes_on(tmp_path):
    path = str(tmp_path / "fit.checkpoint")
    folder = os.path.dirname(os.path.abspath(__file__))
    ended = subprocess.run([sys.executable, "-c", KILLED, path, folder], check=False, timeout=300)
    assert ended.returncode == -signal.SIGKILL
    assert_same(small(checkpoint=path).fit(X, Y), small().fit(X, Y))
