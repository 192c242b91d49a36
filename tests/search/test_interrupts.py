"""Ctrl-C, as the operating system sends it, at whatever moment: a process that goes on in good order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pkgutil import resolve_name

import numpy as np
import pytest
from typer.testing import CliRunner

from dgsr import DGSRRegressor, load
from dgsr.cli import app
from dgsr.finders import Interrupts
from searches import X, Y, flat_regressor

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process")

# A shell may have started the tests with SIGINT ignored; a terminal does not start programs so.
CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

# Calls a kernel over and over and interrupts it at every moment there is, also within compiled code.
KERNELS = """
import random, signal, sys
import numpy as np
from dgsr.search.evolution import random_population
from dgsr.expressions import get_library
from dgsr.expressions.programs.constraints import Constraints
from dgsr.kernels.evolve import vary
from dgsr.kernels.grammar import are_valid, walk
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior

signal.signal(signal.SIGALRM, signal.default_int_handler)
library, constraints, state = get_library("koza", 2), Constraints(max_length=12), new_state(0)
grammar = constraints.grammar(library)
programs = random_population(4, library, grammar, state)
arrays = programs.arrays
X = np.random.default_rng(0).uniform(0.5, 2.0, (10, 2))
kernel = {
    "random_programs": lambda: random_population(4, library, grammar, state),
    "vary": lambda: vary(arrays, np.ones(4), grammar, 0.5, 0.5, 5, 3, state),
    "walk": lambda: walk(*arrays[:2], grammar),
    "are_valid": lambda: are_valid(*arrays[:2], grammar),
    "draw_datasets": lambda: Prior().draw(1, 8, 2, library, constraints, state),
    "squared_errors": lambda: programs.nmse(X, X[:, 0]),
    "predictions": lambda: programs.predict(X),
}[sys.argv[1]]
kernel()
rng = random.Random(0)
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-4, 1.5e-3))
        while True:
            kernel()
    except KeyboardInterrupt:
        pass
"""

# Fits without end, one after another; says when each has begun, and how it ended.
FITS = (
    CTRL_C
    + """
import sys, warnings
import numpy as np
from dgsr import DGSRRegressor

generator, n = {"none": None}.get(sys.argv[1], sys.argv[1]), int(sys.argv[2])
warnings.simplefilter("ignore")
X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])
for seed in range(n):
    begun = []

    def report(progress):
        if not begun:
            print("begun", flush=True)
        begun.append(progress)

    model = DGSRRegressor(
        "koza", generator, max_evaluations=10**9, selection="accuracy", random_state=seed, callback=report
    ).fit(X, y)
    loss = np.mean((y - model.predict(X)) ** 2) / y.var()
    as_promised = np.isclose(loss, model.pareto_front_[-1].loss) and loss <= begun[-1].best_nmse * (1 + 1e-9)
    print(model.stop_reason_, as_promised, flush=True)
"""
)

# One endless training run, interrupted and resumed; says when each part has begun, its first step, and
# the step it left in the file. Last, whether it is the run without the interruptions.
PRETRAINING = (
    CTRL_C
    + """
import json, sys
import torch
from safetensors import safe_open
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.generator.config import GeneratorConfig
from dgsr.pretraining import pretrain
from dgsr.pretraining.prior import Prior

torch.set_num_threads(1)
config = GeneratorConfig(
    encoder_width=16, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2,
    tree_embedding=4, tree_layers=1, decoder_width=16, decoder_heads=2, decoder_layers=1, max_length=8,
)
settings = {
    "config": config, "prior": Prior(min_leaves=2, max_leaves=3), "constraints": Constraints(1, 8),
    "steps": 10**6, "warmup": 2, "n_datasets": 8, "n_programs": 10, "n_validation": 4, "objective": "vpg",
}
out, n = sys.argv[1], int(sys.argv[2])


def left(folder, callback):
    try:
        pretrain(Library("mine", ("add", "mul"), False, 2), 2, folder, callback=callback, **settings)
    except KeyboardInterrupt:
        with safe_open(folder + "/training.safetensors", framework="np") as file:
            step = json.loads(file.metadata()["training"])["step"]
            return step, {key: file.get_tensor(key) for key in file.keys()}


for _ in range(n):
    steps = []

    def report(progress):
        if not steps:
            print("begun", flush=True)
        steps.append(progress.step)

    step, parts = left(out + "/parts", report)
    print(steps[0], step, flush=True)


def stop_there(progress):
    if progress.step == step:
        raise KeyboardInterrupt


_, whole = left(out + "/whole", stop_there)
print(all((tensor == parts[name]).all() for name, tensor in whole.items()))
"""
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    ["random_programs", "vary", "walk", "are_valid", "draw_datasets", "squared_errors", "predictions"],
)
def test_a_compiled_function_may_be_interrupted_at_any_moment(kernel):
    done = subprocess.run(
        [sys.executable, "-c", KERNELS, kernel], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def answers_to_ctrl_c(code, *arguments, n, within):
    """What a process prints after Ctrl-C at a random moment of each of `n` parts; it must end well."""
    moments = random.Random(0)
    answers = []
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments, str(n)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        alarm = threading.Timer(180.0, process.kill)  # should it hang
        alarm.start()
        try:
            for _ in range(n):
                if process.stdout.readline() != "begun\n":
                    break
                time.sleep(moments.uniform(0.0, within))
                process.send_signal(signal.SIGINT)
                answers.append(process.stdout.readline())
            rest, err = process.communicate()
        finally:
            alarm.cancel()
            process.kill()
    assert (process.returncode, err) == (0, "")
    return answers, rest


@pytest.mark.slow
@pytest.mark.parametrize(("generator", "within"), [("none", 0.15), ("untrained", 0.5)])
def test_ctrl_c_at_any_moment_of_a_fit_keeps_the_best_so_far(generator, within):
    answers, rest = answers_to_ctrl_c(FITS, generator, n=6, within=within)
    assert (answers, rest) == (["interrupted True\n"] * 6, "")


@pytest.mark.slow
def test_ctrl_c_at_any_moment_of_a_pretraining_is_as_if_there_had_been_none(tmp_path):
    answers, rest = answers_to_ctrl_c(PRETRAINING, str(tmp_path), n=15, within=0.1)
    parts = [tuple(map(int, answer.split())) for answer in answers]
    begun = [first for first, _ in parts]
    left = [last for _, last in parts]
    assert begun == [1] + [last + 1 for last in left[:-1]]
    assert rest == "True\n"


# --- one interrupt, in a phase of one's choice ----------------------------------------------------


@pytest.fixture
def _default_handler():
    """SIGINT as in a program that a terminal has started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("_default_handler")
def test_ctrl_c_is_a_request_within_the_context_and_an_exception_outside():
    with Interrupts() as interrupts:
        ctrl_c()
        ctrl_c()
        assert interrupts.n == 2
        assert interrupts.more_than(1)
        assert not interrupts.more_than(2)
        with pytest.raises(KeyboardInterrupt), interrupts.raising():
            ctrl_c()
        ctrl_c()
    assert interrupts.n == 4
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


@pytest.mark.usefixtures("_default_handler")
def test_a_request_that_nobody_reads_is_an_exception_when_it_is_repeated(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("dgsr.finders.interrupts.time.monotonic", lambda: now[0])
    with Interrupts() as interrupts:
        ctrl_c()
        now[0] = 10.0
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
        assert interrupts.more_than(0)  # read at last
        ctrl_c()


def test_another_handler_and_other_threads_are_left_alone():
    received = []
    before = signal.signal(signal.SIGINT, lambda *_: received.append(1))
    try:
        with Interrupts() as interrupts:
            ctrl_c()
        assert (received, interrupts.n) == ([1], 0)
        worker = threading.Thread(target=lambda: Interrupts().__enter__().__exit__())
        worker.start()
        worker.join()
        ctrl_c()
        assert received == [1, 1]
    finally:
        signal.signal(signal.SIGINT, before)


def small(**settings):
    settings |= {"generator": None, "look_up": False, "batch_size": 50, "max_length": 12}
    return flat_regressor(max_evaluations=1_000, random_state=0, **settings)


@pytest.mark.usefixtures("_default_handler")
@pytest.mark.parametrize(
    "place",
    [
        "dgsr.search.search.Search.tell",
        "dgsr.search.evaluation.Fitted.score",
        "dgsr.fitting.run.noise_exponent",
        "dgsr.finishing.snapped",
        "dgsr.pareto.making.are_supported",
        "dgsr.fitting.ending.uncertainty_of",
        "dgsr.fitting.checkpoint.write_atomically",
        "dgsr.estimator.one_target._take",
    ],
)
def test_ctrl_c_in_any_phase_keeps_what_was_found(monkeypatch, tmp_path, place):
    left = [3]

    def interrupting(real):
        def function(*arguments, **options):
            found = real(*arguments, **options)
            while left[0]:  # once there is something to keep
                left[0] -= 1
                ctrl_c()
            return found

        return function

    module, _, name = place.rpartition(".")
    owner = resolve_name(module)
    monkeypatch.setattr(owner, name, interrupting(getattr(owner, name)))
    model = small(checkpoint=tmp_path / "checkpoint")
    if place.endswith("_take"):
        model.fit(X, Y)
    else:
        with pytest.warns(UserWarning, match="interrupted"):
            model.fit(X, Y)
        assert model.stop_reason_ == "interrupted"
    assert left == [0]
    loss = np.mean((Y - model.predict(X)) ** 2) / Y.var()
    np.testing.assert_allclose(loss, model.pareto_front_.candidate_of(model.expression_).loss, rtol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()


@pytest.mark.usefixtures("_default_handler")
def test_ctrl_c_before_there_is_a_formula_is_an_exception(monkeypatch):
    monkeypatch.setattr("dgsr.fitting.plan.compile_kernels", lambda *_: ctrl_c())
    model = small()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "expression_")


@pytest.mark.usefixtures("_default_handler")
def test_ctrl_c_in_a_callback_ends_the_search_and_is_heard_in_the_one_of_each_target():
    with pytest.warns(UserWarning, match="interrupted"):
        model = small(callback=lambda progress: ctrl_c()).fit(X, np.column_stack([Y, Y**2]))
    assert model.stop_reason_ == ["interrupted", "interrupted"]


@pytest.mark.usefixtures("_default_handler")
def test_ctrl_c_while_the_command_line_writes_loses_no_result(monkeypatch, tmp_path):
    table, saved = tmp_path / "table.csv", tmp_path / "fit.dgsr"
    table.write_text("x,y\n" + "".join(f"{x},{x * x}\n" for x in range(1, 12)), encoding="utf-8")
    real = DGSRRegressor.save

    def interrupted(self, *arguments, **options):
        ctrl_c()
        real(self, *arguments, **options)

    monkeypatch.setattr(DGSRRegressor, "save", interrupted)
    options = ["--target", "y", "--generator", "none", "--max-evaluations", "500", "--save", str(saved)]
    ended = CliRunner().invoke(app, ["fit", str(table), *options])
    assert ended.exit_code == 130
    assert "y = x**2" in ended.output
    assert load(saved).expression_.text == "x**2"
