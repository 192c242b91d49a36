"""Ctrl-C, as the operating system sends it, at whatever moment: a process that goes on in good order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process"),
    pytest.mark.slow,
]

# A shell may have started the tests with SIGINT ignored; a terminal does not start programs so.
CTRL_C = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
"""

# Calls a kernel over and over and interrupts it at every moment there is, also within compiled code.
KERNELS = """
import random, signal, sys
import numpy as np
from dgsr.evolution import random_population
from dgsr.expressions import get_library
from dgsr.expressions.constraints import Constraints
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
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
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


@pytest.mark.parametrize(("generator", "within"), [("none", 0.15), ("untrained", 0.5)])
def test_ctrl_c_at_any_moment_of_a_fit_keeps_the_best_so_far(generator, within):
    answers, rest = answers_to_ctrl_c(FITS, generator, n=6, within=within)
    assert (answers, rest) == (["interrupted True\n"] * 6, "")


def test_ctrl_c_at_any_moment_of_a_pretraining_is_as_if_there_had_been_none(tmp_path):
    answers, rest = answers_to_ctrl_c(PRETRAINING, str(tmp_path), n=15, within=0.1)
    parts = [tuple(map(int, answer.split())) for answer in answers]
    begun = [first for first, _ in parts]
    left = [last for _, last in parts]
    assert begun == [1] + [last + 1 for last in left[:-1]]
    assert rest == "True\n"
