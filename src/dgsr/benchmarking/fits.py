"""Timed fits, and the entries of a record that describe them, for all runners."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dgsr.benchmarking.recording import nmse, plain
from dgsr.problems.problem import Sample

# Pairs of a method and a library with which this process has made such a fit.
_warm: set[tuple[str, str]] = set()


def timed_fit(
    method: str, make: Callable[..., Any], data: Sample, library: str, budget: int, /, **parameters: Any
) -> tuple[Any, dict[str, Any]]:
    """Fit a method to the training rows of a problem; the first call in a process makes a small fit before.

    `make` returns an unfitted regressor as those of `dgsr.benchmarking.METHODS` do, with further
    `parameters`; `budget` is the number of equations to evaluate.

    Returns
    -------
    regressor : object
        The fitted regressor.
    entries : dict
        seconds, formula, complexity, train_nmse, test_nmse, and the entries of `described`.
    """

    def unfitted(max_evaluations: int) -> Any:
        return make(library=library, max_evaluations=max_evaluations, **parameters)

    warm_up(method, library, budget, unfitted)
    regressor = unfitted(budget)
    start = time.perf_counter()
    regressor.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    return regressor, {
        "seconds": seconds,
        "formula": str(regressor.expression_),
        "complexity": regressor.expression_.complexity,
        "train_nmse": nmse(data.y_train, regressor.predict(data.X_train)),
        "test_nmse": nmse(data.y_test, regressor.predict(data.X_test)),
        **described(regressor),
    }


def warm_up(method: str, library: str, budget: int, regressor: Callable[[int], Any]) -> None:
    """Make a small fit, so that the time of the first timed fit of this process excludes compilation.

    It is made once in a process for each pair of a method and a library. `regressor` returns an unfitted
    regressor, given the most equations to evaluate; `budget` is that number for the timed fit.
    """
    if (method, library) in _warm:
        return
    random = np.random.default_rng(0)
    X = random.uniform(1.0, 3.0, (40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regressor(min(budget, 2_000)).fit(X, X[:, 0] + random.normal(size=40))
    _warm.add((method, library))


def described(regressor: Any) -> dict[str, Any]:
    """Return the entries of a record that describe a fitted regressor besides its result.

    Returns
    -------
    dict
        evaluations; looks (candidates that exact search examined, None if the regressor does not count them);
        stop_reason; generator (its name, ``"untrained"`` or None; only the last part of a folder, since
        shared records must not describe the machine); weights (the SHA-256 of its weights file, None without
        a file); and parameters (those that differ from the default).
    """
    generator = getattr(regressor, "generator_", "none")
    looks = getattr(regressor, "n_examined_", None)
    return {
        "evaluations": int(regressor.n_evaluations_),
        "looks": None if looks is None else int(looks),
        "stop_reason": str(regressor.stop_reason_),
        "generator": None if generator == "none" else Path(generator).name,
        "weights": None if generator in ("none", "untrained", "given") else _digest_of(generator),
        "parameters": _parameters(regressor),
    }


@cache
def _digest_of(generator: str) -> str | None:
    """Return the SHA-256 of a generator's weights file, or None if there is no such generator."""
    from dgsr.generator.checkpoints import WEIGHTS, folder_of

    try:
        return hashlib.sha256((folder_of(generator) / WEIGHTS).read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None


def _parameters(regressor: Any) -> dict[str, Any]:
    if not hasattr(regressor, "get_params"):
        return {}
    defaults = type(regressor)().get_params(deep=False)
    given = regressor.get_params(deep=False)
    if isinstance(given.get("generator"), str | Path):
        given["generator"] = Path(given["generator"]).name
    return {name: plain(value) for name, value in given.items() if value != defaults[name]}
