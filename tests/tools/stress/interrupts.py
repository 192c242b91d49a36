"""Interrupt fits at random moments, as Ctrl-C in a terminal does, and count what is kept of them.

    python tests/tools/stress/interrupts.py [--interrupts K] [--seed N]

Every fit is interrupted once, and every third one a second time soon after. SIGINT goes to the whole group of
processes, those of islands among them. A fit is kept if it leaves an estimator behind that predicts as its
front says and fits as well as the best formula that its callback was told of. It is refused if Ctrl-C came
before there was any formula, where KeyboardInterrupt is right. Anything else is a loss. The program prints
what became of the fits by the phase in which the last interrupt came.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from functools import wraps
from pathlib import Path

import numpy as np
from faults import Faults

from dgsr import DGSRRegressor
from dgsr.estimator import one_target, regressor, several_targets
from dgsr.fitting import checkpoint, plan, run
from dgsr.search import Islands

N_INTERRUPTS = 50
# Factor by which simple numbers in place of fitted ones may raise the loss where digits are not finished.
_SIMPLER = 1.5
# Seconds within which the second interrupt follows the first.
_SOON = 0.3
_phases: list[str] = ["outside of a fit"]


def watched(name: str, function):
    """Return a function that says in which phase the process is while it runs."""

    @wraps(function)
    def phase(*arguments, **options):
        _phases.append(name)
        try:
            return function(*arguments, **options)
        finally:
            _phases.pop()

    return phase


def watch() -> None:
    """Tell the phases of all fits from now on."""
    fit_one = watched("before and after the search", one_target.fit_one)
    regressor.fit_one = several_targets.fit_one = fit_one
    plan.compile_kernels = watched("compiling", plan.compile_kernels)
    run.run_search = watched("search", run.run_search)
    run.FitDriver._finish = watched("finishing", run.FitDriver._finish)
    checkpoint.Checkpoint.write = watched("writing the checkpoint", checkpoint.Checkpoint.write)
    Islands._in_processes = watched("islands", Islands._in_processes)


KINDS = ("usual", "checkpoint", "outliers", "islands", "no constants", "many rows", "two targets", "relative")


def case(kind: str, seed: int, folder: str) -> tuple[dict, np.ndarray, np.ndarray]:
    """Return the settings of a fit, and its data."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 3.0, (20_000 if kind == "many rows" else 100, 2))
    y = X[:, 0] * np.exp(-X[:, 1]) + 0.3 * np.sin(3.0 * X[:, 0])
    y = y + 0.05 * y.std() * rng.normal(size=len(y))
    settings: dict = {"max_evaluations": 20_000, "random_state": seed}
    if kind == "checkpoint":
        settings["checkpoint"] = str(Path(folder, f"{seed}.checkpoint"))
    elif kind == "outliers":
        y[rng.choice(100, 6, replace=False)] += 20.0
    elif kind == "islands":
        settings |= {"n_jobs": 2, "max_evaluations": 100_000}
    elif kind == "no constants":
        settings["library"] = "koza"
    elif kind == "two targets":
        y = np.column_stack([y, y**2])
    elif kind == "relative":
        y = 10.0 ** (2.0 * y)
    return settings, X, y


def interrupted(seed: int, seconds: dict[str, float], folder: str) -> tuple[str, str]:
    """Return the phase in which a fit was interrupted, and what became of it."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    settings, X, y = case(kind, seed, folder)
    told: list[float] = []
    hit: list[str] = []

    def press() -> None:
        hit.append(_phases[-1])
        os.killpg(os.getpgrp(), signal.SIGINT)

    first = rng.uniform(0.0, seconds.get(kind, 3.0))
    timers = [threading.Timer(first, press)]
    if seed % 3 == 0:
        timers.append(threading.Timer(first + rng.uniform(0.0, _SOON), press))
    model = DGSRRegressor(callback=lambda progress: told.append(progress.best_nmse), **settings)
    ended, started = "kept", time.perf_counter()
    try:
        for timer in timers:
            timer.start()
        model.fit(X, y)
        took = time.perf_counter() - started
        seconds[kind] = 0.8 * seconds.get(kind, took) + 0.2 * max(took, 0.2) if hit else took
    except KeyboardInterrupt:
        ended = "lost" if hasattr(model, "expression_") or told else "refused"
    finally:
        while any(timer.is_alive() for timer in timers):
            try:
                for timer in timers:
                    timer.join()
            except KeyboardInterrupt:
                hit[-1:] = ["after the fit"]
    if not hit or ended == "refused":
        return (hit or ["after the fit"])[-1], ended
    for one in getattr(model, "estimators_", [model]):
        target = y if y.ndim == 1 else y[:, model.estimators_.index(one)]
        loss = np.mean((target - one.predict(X)) ** 2) / target.var()
        front = one.pareto_front_
        if one.loss_ == "squared" and not np.isclose(loss, front.candidate_of(one.expression_).loss):
            ended = "wrong"
        # Other kinds have several searches, which judge rows differently.
        has_one_search = kind in ("usual", "checkpoint", "islands", "no constants")
        if has_one_search and told and front[-1].loss > told[-1] * _SIMPLER:
            ended = "worse than what the callback was told"
    return hit[-1], ended


def interrupts(seed: int, faults: Faults) -> list[str]:
    """Interrupt fits in a process of its own, which leads a group, and return what became of them."""
    arguments = ["--interrupts", str(N_INTERRUPTS), "--seed", str(seed * 1000)]
    ended = subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, check=False
    )
    lines = ended.stdout.splitlines()
    for line in lines:
        if line.startswith("fit "):
            faults.add(f"interrupts: {line}")
    if ended.returncode != 0:
        faults.add(f"interrupts: exit code {ended.returncode}\n{ended.stderr[-2000:]}")
    return [line for line in lines if not line.startswith("fit ")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interrupts", type=int, default=N_INTERRUPTS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.setpgrp()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    watch()
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.seed, arguments.seed + arguments.interrupts):
            if seed == arguments.seed:
                for has_constants in (True, False):
                    plan.compile_kernels(has_constants)
            phase, ended = interrupted(seed, _usual, folder)
            found[phase, ended] += 1
            if ended not in ("kept", "refused"):
                print(f"fit {seed}, interrupted in {phase!r}: {ended}", flush=True)
    for (phase, ended), n in sorted(found.items()):
        print(f"{n:5d}  {phase}: {ended}")


# Seconds that fits of each kind took so far.
_usual: dict[str, float] = {}

if __name__ == "__main__":
    main()
