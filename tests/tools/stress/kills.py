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
from typing import NamedTuple

from faults import Faults

N_KILLS = 50

FIT = """
import json, sys
import numpy as np
from dgsr import DGSRRegressor
from dgsr.fitting import checkpoint
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
    {"max_evaluations": 400_000, "config": {"batch_size": 200}, "n_jobs": 2},  # the islands meet seven times
    {
        "max_evaluations": 120_000,
        "selection": "holdout",
        "constraints": {"required": ["x1"]},
        "initial_formulas": ["a*x1/x3"],
    },
)


class End(NamedTuple):
    """How a process with a fit ended."""

    text: str  # the last that it printed, which is the result
    was_killed: bool  # by this program
    error: str  # empty if it was killed or went well, else its exit code and the end of its errors


def fit(checkpoint: str, settings: dict, rounds: float = float("inf"), wait: float = 0.0) -> End:
    """Run a fit in a process, and kill it some seconds after some rounds if it has not ended by then."""
    command = [sys.executable, "-W", "ignore", "-c", FIT, checkpoint, json.dumps(settings)]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        last, n, was_sent = "", 0, False
        for line in process.stdout:
            if line == "round\n":
                n += 1
            else:
                last = line
            if n >= rounds:
                time.sleep(wait)
                os.killpg(process.pid, signal.SIGKILL)
                was_sent = True
                break
        process.wait()
        errors.seek(0)
        said = errors.read()
    was_killed = was_sent and process.returncode == -signal.SIGKILL
    went_well = was_killed or process.returncode == 0
    return End(last, was_killed, "" if went_well else f"exit code {process.returncode}: {said[-2000:]}")


def kills(seed: int, faults: Faults) -> str:
    """Kill fits at random moments, once or twice, and compare their ends with those that nobody killed."""
    rng, n_before = random.Random(seed), faults.n
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        whole = list(pool.map(lambda settings: fit("", settings), SETTINGS))
        for settings, end in zip(SETTINGS, whole):
            if end.error or not end.text:
                faults.add(f"kills, {settings}, whole: {end.error}")

        def one(number: int) -> int:
            own = random.Random(f"{seed} {number}")
            at = number % len(SETTINGS)
            path = str(Path(folder, f"{number}"))
            ends = [
                fit(path, SETTINGS[at], own.randint(1, 4), own.uniform(0.0, 0.6))
                for _ in range(own.choice([1, 1, 2]))
            ]
            ends.append(fit(path, SETTINGS[at]))
            crashed = [end.error for end in ends if end.error]
            if crashed or ends[-1].text != whole[at].text:
                faults.add(
                    f"kills, {SETTINGS[at]}, number {number}: {crashed}\n{ends[-1].text}\ninstead of\n"
                    f"{whole[at].text}"
                )
            return sum(end.was_killed for end in ends)

        rng.shuffle(numbers := list(range(N_KILLS)))
        n_killed = sum(pool.map(one, numbers))
    return f"{n_killed} kills of {N_KILLS} fits, {faults.n - n_before} faults"
