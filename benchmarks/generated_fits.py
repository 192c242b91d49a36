"""Fit generated data, much of it hostile, and check that every fit ends in time and without a fault.

    python benchmarks/generated_fits.py [--fits K] [--max-time S] [--kinds NAME ...] [--seed N] --out FILE

The kinds of fits take turns. In the kind "hostile" libraries, shapes, inputs, targets, generators and
limits are drawn at random; the others are tables of a drawn law with noise, each with one thing that takes
time. The seed determines a fit, so that a fit that fails can be repeated: `--seed N --fits 1` is fit N. The
`max_time` of a fit is S times 0.2, 0.5, 1 or 2 (and 6 s more in a quarter of the hostile fits, to leave
time for the large bank), and it may end a tenth of that and a second later. The time to compile and to
start processes does not count. An unusable table may be refused by a `ValueError`; any other exception is a
fault, and so is a fit that is still running a minute after its time, which is then stopped. The program
writes one line of JSON for each fit, goes on where the file ends, and prints how late the latest fits of
every kind ended.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dgsr import DGSRRegressor
from dgsr.estimator.parameters import grouped
from dgsr.expressions.programs.library import PRESETS
from dgsr.finders import Budget
from dgsr.search.compiling import compile_kernels

# Seconds beyond max_time after which a fit is stopped.
_STOPPED = 60.0
# Factors of the usual max_time.
_TIMES = (0.2, 0.5, 1.0, 2.0)


def inputs(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a table of one kind: shape (n, d)."""
    X = rng.normal(size=(n, d))
    if kind == "uniform":
        return rng.uniform(0.3, 3.0, (n, d))
    if kind == "log-uniform":
        return 10.0 ** rng.uniform(-6.0, 6.0, (n, d))
    if kind == "binary":
        return rng.integers(0, 2, (n, d)).astype(float)
    if kind == "integer":
        return rng.integers(-5, 6, (n, d)).astype(float)
    if kind == "huge integer":
        return rng.integers(2**52, 2**62, (n, d)).astype(float)
    if kind == "constant":
        return np.full((n, d), rng.choice([0.0, 1.0, -1.0, 1e300, np.pi]))
    if kind == "nearly constant":
        return 1.0 + rng.integers(0, 3, (n, d)) * np.finfo(float).eps
    if kind == "tiny":
        return X * 10.0 ** -rng.integers(10, 308)
    if kind == "huge":
        return X * 10.0 ** rng.integers(10, 307)
    if kind == "mixed scales":
        return X * 10.0 ** rng.integers(-300, 300, d)
    if kind == "repeated rows":
        return X[rng.integers(0, min(n, 3), n)]
    if kind == "equal columns":
        return np.repeat(X[:, :1], d, axis=1)
    if kind == "mostly zero":
        return X * (rng.uniform(size=(n, d)) < 0.02)
    if kind == "sorted":
        return np.sort(X, axis=0)
    return X


INPUTS = (
    "normal", "uniform", "log-uniform", "binary", "integer", "huge integer", "constant", "nearly constant",
    "tiny", "huge", "mixed scales", "repeated rows", "equal columns", "mostly zero", "sorted",
)  # fmt: skip


def target(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a target of one kind over a table: shape (n,)."""
    n, x = len(X), X[:, 0]
    y = rng.normal(size=n)
    if kind == "law":
        return X[:, 0] * np.exp(-np.abs(X[:, -1])) + np.sin(X[:, X.shape[1] // 2])
    if kind == "noisy law":
        return x**2 + 0.1 * y
    if kind == "nan":
        return np.log(x)
    if kind == "two values":
        return (y > 0.0).astype(float)
    if kind == "one apart":
        y = np.ones(n)
        y[0] = np.nextafter(1.0, 2.0)
        return y
    if kind == "a spike":
        y = np.zeros(n)
        y[-1] = 1.0
        return y
    if kind == "constant":
        return np.full(n, 2.5)
    if kind == "tiny":
        return y * 10.0 ** -rng.integers(10, 320)
    if kind == "huge":
        return y * 10.0 ** rng.integers(10, 308)
    if kind == "integer":
        return rng.integers(0, 4, n).astype(float)
    if kind == "step":
        return np.sign(x)
    if kind == "a column":
        return X[:, -1].copy()
    return y


TARGETS = (
    "noise", "law", "noisy law", "nan", "two values", "one apart", "a spike", "constant", "tiny", "huge",
    "integer", "step", "a column",
)  # fmt: skip


def law(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a law of three random columns with some noise: shape (n,)."""
    u, v, w = X[:, rng.integers(X.shape[1], size=3)].T
    laws = (
        u * np.exp(-v) + w,
        u**2 / (v + w),
        np.sin(2.0 * u) + v * w,
        np.sqrt(u + v) * w,
        u**1.5 + np.log(v),
    )
    y = laws[rng.integers(len(laws))]
    noise = rng.choice([0.0, 0.01, 0.05, 0.2]) if kind != "outliers" else 0.02
    y = y + noise * y.std() * rng.normal(size=len(y))
    if kind == "outliers":
        rows = rng.choice(len(y), max(len(y) // 15, 1), replace=False)
        y[rows] += 10.0 * y.std() * rng.normal(size=len(rows))
    return y


def _squared(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.minimum((y - predicted) ** 2, np.abs(y - predicted))


LOSSES = (
    "relative",
    "absolute",
    "huber",
    "log(target/prediction)**2",
    "abs(target - prediction)**1.5",
    _squared,
)
# The kinds of fits, and what the tables of those that are not hostile have: rows and columns.
KINDS = {
    "hostile": ((), ()),
    "usual": ((8, 20, 60, 150, 300), (1, 2, 3, 5)),
    "many rows": ((1_000_000,), (2, 6, 20)),
    "many columns": ((60, 300, 2000), (300,)),
    "outliers": ((40, 100, 400, 20_000), (1, 2, 4)),
    "units": ((30, 100, 300), (2, 4, 6)),
    "losses": ((20, 60, 300, 5000), (1, 2, 4)),
    "two processes": ((20, 100, 1000), (1, 2, 4)),
    "no constants": ((20, 60, 300), (1, 2, 5)),
    "options": ((30, 100, 1000), (1, 3, 6)),
}


def case(
    seed: int, max_time: float, kinds: tuple[str, ...] = tuple(KINDS)
) -> tuple[dict, DGSRRegressor, tuple]:
    """Return a random fit: its description, the estimator, and its data (X, y, weights)."""
    kind, rng = kinds[seed % len(kinds)], np.random.default_rng(seed)
    max_time = float(max_time * rng.choice(_TIMES))
    if kind == "hostile":
        return hostile_case(seed, max_time)
    rows, columns = (int(rng.choice(numbers)) for numbers in KINDS[kind])
    X = rng.uniform(0.5, 3.0, (rows, columns))
    settings: dict = {"max_time": max_time, "library": "auto"}
    if kind == "no constants":
        settings["library"] = ["koza", "synth"][rng.integers(2)]
    if kind == "units":
        units = rng.choice(["m", "s", "kg", "m/s", "K"], columns).tolist()
        settings["units"] = {f"x{i + 1}": unit for i, unit in enumerate(units)}
        settings["y_units"] = [None, "J", "m"][rng.integers(3)]
    if kind == "losses":
        settings["loss"] = LOSSES[rng.integers(len(LOSSES))]
    if kind == "two processes":
        settings["n_jobs"] = 2
    if kind == "options":
        settings |= [
            {"gp": "deap"}, {"refine": True}, {"max_length": 80}, {"selection": "holdout"},
            {"max_rows": None}, {"initial_formulas": ["x1**2 + sin(x1)"]}, {"generator": None},
            {"batch_size": 5000}, {"required": ["x1"]},
        ][rng.integers(9)]  # fmt: skip
    y = law(kind, X, rng)
    words = {"seed": seed, "kind": kind, "rows": rows, "columns": columns, **settings}
    words["loss"] = str(settings.get("loss", "auto"))
    return words, DGSRRegressor(random_state=seed, **grouped(settings)), (X, y, None)


def hostile_case(seed: int, max_time: float) -> tuple[dict, DGSRRegressor, tuple]:
    """Return a random fit that is hostile in several ways at once."""
    rng = np.random.default_rng(seed)
    library = str(rng.choice(list(PRESETS)))
    n = int(
        rng.choice([1, 2, 5, 8, 9, 30, 100, 1000, 20_000], p=[0.02, 0.04, *[0.1] * 3, 0.3, 0.2, 0.1, 0.04])
    )
    d = int(rng.choice([1, 2, 3, 5, 12, 32, 60, 300, 1000], p=[0.2, 0.2, *[0.1] * 3, *[0.075] * 4]))
    kinds = str(rng.choice(INPUTS)), str(rng.choice(TARGETS))
    with np.errstate(all="ignore"):
        X = inputs(kinds[0], n, d, rng)
        y = target(kinds[1], X, rng)
    weights = None
    if rng.uniform() < 0.2:
        weights = rng.choice([0.0, 1.0, 1e-300, 1e6], n)
    if rng.uniform() < 0.05:
        X[rng.integers(n), rng.integers(d)] = rng.choice([np.nan, np.inf])
    generator = [None, "untrained", "auto"][rng.integers(3)]
    max_length = int(rng.choice([3, 4, 8, 15, 30]))
    settings = {
        "max_time": float(max_time + rng.choice([0.0, 6.0], p=[0.75, 0.25])),
        "max_length": max_length,
        "min_length": int(rng.integers(1, max_length + 1)) if rng.uniform() < 0.2 else 1,
        "batch_size": int(rng.choice([2, 10, 100, 500, 3000])),
        "gp_generations": int(rng.choice([0, 1, 25])),
        "objective": str(rng.choice(["pqt", "risk-seeking", "vpg"])),
        "selection": str(rng.choice(["mdl", "accuracy", "holdout"])),
        "max_rows": [None, 20, 200][rng.integers(3)],
        "look_up": bool(rng.uniform() < 0.9),
        "tolerance": float(rng.choice([0.0, 1e-20])),
    }
    words = {
        "seed": seed, "kind": "hostile", "library": library, "generator": generator, "rows": n, "columns": d,
        "inputs": kinds[0], "target": kinds[1], "weights": weights is not None, **settings,
    }  # fmt: skip
    model = DGSRRegressor(library, generator, random_state=seed, **grouped(settings))
    return words, model, (X, y, weights)


_stopped = [0.0]  # seconds in which the clock of a fit stood still


def _watched(stopped_clock):
    """Return a method of `Budget` that adds up the seconds within."""

    @contextmanager
    def watched(self):
        before = time.perf_counter()
        with stopped_clock(self):
            yield
        _stopped[0] += time.perf_counter() - before

    return watched


def outcome(seed: int, *arguments) -> dict:
    """Run one fit; return its description, its time and how it ended."""
    words, model, (X, y, weights) = case(seed, *arguments)
    _stopped[0], started, cpu_started = 0.0, time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                model.fit(X, y, weights)
            finally:
                seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
            ended = model.stop_reason_
            model.predict(X[:1000])
            str(model.expression_)
        except ValueError as error:
            ended = f"refused: {error}"
        except Exception:
            ended = f"fault: {traceback.format_exc()}"
    numbers = {"seconds": seconds - _stopped[0], "cpu_seconds": cpu_seconds, "stopped": _stopped[0]}
    late = {"late": numbers["seconds"] - words["max_time"]}
    return {**words, **{name: round(n, 2) for name, n in (numbers | late).items()}, "ended": ended}


def work(connection, *arguments) -> None:
    """Compile, then run the fits whose seeds come in."""
    Budget.stopped_clock = _watched(Budget.stopped_clock)
    for has_constants in (False, True):
        compile_kernels(has_constants)
    X = np.random.default_rng(0).uniform(1.0, 2.0, (20, 2))
    y = X[:, 0] / X[:, 1] + np.random.default_rng(1).normal(size=20)
    for library in PRESETS:
        for generator in ("auto", "untrained"):
            limits = grouped({"max_evaluations": 300, "batch_size": 50})
            DGSRRegressor(library, generator, random_state=0, **limits).fit(X, y)
    connection.send("ready")
    while True:
        connection.send(outcome(connection.recv(), *arguments))


class Worker:
    """A process that runs fits, and is replaced by another if it is stuck."""

    def __init__(self, *arguments) -> None:
        self._arguments = arguments
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, *self._arguments))
        self._process.start()
        theirs.close()
        self._connection.recv()

    def run(self, seed: int) -> dict:
        """Return the outcome of a fit, even if the process hangs or dies."""
        self._connection.send(seed)
        words, model, _ = case(seed, *self._arguments)
        try:
            if self._connection.poll(model.max_time + _STOPPED):
                return self._connection.recv()
            ended = "fault: stopped, for it was still running"
        except EOFError:
            ended = "fault: the process has died"
        self.end()
        self._begin()
        return {**words, "seconds": None, "cpu_seconds": None, "late": None, "ended": ended}

    def end(self) -> None:
        self._process.kill()
        self._process.join()


def verdict(fit: dict) -> str:
    """Return how a fit ended, in a word or two."""
    if fit["ended"].startswith("fault"):
        return "fault"
    if fit["late"] > 0.1 * fit["max_time"] + 1.0:
        return "too late"
    return "refused" if fit["ended"].startswith("refused") else fit["ended"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--max-time", type=float, default=2.0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    fits = []
    if arguments.out.exists():
        fits = [json.loads(line) for line in arguments.out.read_text(encoding="utf-8").splitlines()]
    done = {fit["seed"] for fit in fits}
    seeds = [s for s in range(arguments.seed, arguments.seed + arguments.fits) if s not in done]
    if seeds:
        worker = Worker(arguments.max_time, tuple(arguments.kinds))
        with arguments.out.open("a", encoding="utf-8") as out:
            for seed in seeds:
                fit = worker.run(seed)
                fits.append(fit)
                out.write(json.dumps(fit) + "\n")
                out.flush()
                if verdict(fit) in ("fault", "too late"):
                    last_line = fit["ended"].strip().splitlines()[-1]
                    print(f"fit {seed} ({fit['kind']}), {fit['late']} s late: {last_line}", flush=True)
        worker.end()
    for name, count in Counter(map(verdict, fits)).most_common():
        print(f"{count:6d} {name}")
    print("seconds after max_time: median and worst, and the worst beyond what is allowed")
    for kind in KINDS:
        own = [fit for fit in fits if fit["kind"] == kind and fit["late"] is not None]
        if own:
            late = np.array([fit["late"] for fit in own])
            beyond = late - 0.1 * np.array([fit["max_time"] for fit in own]) - 1.0
            print(f"{kind:<15}{len(own):>6}{np.median(late):>9.2f}{late.max():>9.2f}{beyond.max():>9.2f}")


if __name__ == "__main__":
    main()
