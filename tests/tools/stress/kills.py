"""Fits that are killed at random moments and go on from their checkpoints."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from faults import Faults

N_KILLS = 50

FIT = """
import json, sys
import numpy as np
from dgsr import DGSRRegressor
from dgsr.passes import checkpoint
checkpoint._SECONDS = 0.05

if __name__ == "__main__":
    path, settings = sys.argv[1], json.loads(sys.argv[2])
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (60, 3))
    y = X[:, 0] * np.sin(X[:, 1]) / (X[:, 2] + 1.3) + 0.05 * rng.normal(size=60)
    callback = lambda progress: print("round", flush=True)
    model = DGSRRegressor(random_state=0, checkpoint=path or None, callback=callback, **settings).fit(X, y)
    front = [[str(c.expression), c.loss] for c in model.pareto_front_]
    print(json.dumps([str(model.expression_), model.n_evaluations_, front]), flush=True)
"""
SETTINGS = (
    {"max_evaluations": 120_000},
    {"max_evaluations": 120_000, "generator": None, "loss": "huber"},
    {"max_evaluations": 30_000, "library": "koza", "max_length": 12},
    {"max_evaluations": 120_000, "n_jobs": 2},
    {"max_evaluations": 120_000, "selection": "holdout", "required": ["x1"], "initial_formulas": ["a*x1/x3"]},
)


def fit(checkpoint: str, settings: dict, rounds: float = float("inf"), wait: float = 0.0) -> str | None:
    """Run a fit in a process; return what it ends with, or None if it was killed after some rounds."""
    command = [sys.executable, "-W", "ignore", "-c", FIT, checkpoint, json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        last, n = "", 0
        for line in process.stdout:
            if line == "round\n":
                n += 1
            else:
                last = line
            if n >= rounds:
                time.sleep(wait)
                os.killpg(process.pid, signal.SIGKILL)
                break
        process.wait()
    return last if process.returncode == 0 else None


def kills(seed: int, faults: Faults) -> str:
    """Kill fits at random moments, once or twice, and compare their ends with those that nobody killed."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        whole = list(pool.map(lambda settings: fit("", settings), SETTINGS))
        n_resumed = 0

        def one(number: int) -> tuple[int, str]:
            own = random.Random(f"{seed} {number}")
            at = number % len(SETTINGS)
            path = str(Path(folder, f"{number}"))
            n_killed = 0
            for _ in range(own.choice([1, 1, 2])):
                if fit(path, SETTINGS[at], own.randint(1, 4), own.uniform(0.0, 0.6)) is None:
                    n_killed += 1
            end = fit(path, SETTINGS[at])
            if end != whole[at]:
                faults.add(f"kills, {SETTINGS[at]}, number {number}:\n{end}\ninstead of\n{whole[at]}")
            return n_killed, Path(path).name

        rng.shuffle(numbers := list(range(N_KILLS)))
        for n_killed, _ in pool.map(one, numbers):
            n_resumed += n_killed
    return f"{n_resumed} kills of {N_KILLS} fits, all of which went on"
