"""What all runners share: the small fit before the first timed one, and what a record says of a fit."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dgsr.benchmarking.recording import plain

# Equations that the fit before the first timed one evaluates.
_WARM_UP = 2_000

# Methods and libraries that have had their first fit in this process.
_warm: set[tuple[str, str]] = set()


def warm_up(method: str, library: str, budget: int, regressor: Callable[[int], Any]) -> None:
    """Make a small fit, so that the first timed fit of this process has no compiling in its time.

    Parameters
    ----------
    method, library : str
        What is fitted once in a process.
    budget : int
        Most equations of the timed fit.
    regressor : callable
        A function of the most equations to evaluate that returns an unfitted regressor.
    """
    if (method, library) in _warm:
        return
    random = np.random.default_rng(0)
    X = random.uniform(1.0, 3.0, (40, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        regressor(min(budget, _WARM_UP)).fit(X, X[:, 0] + random.normal(size=40))
    _warm.add((method, library))


def described(regressor: Any) -> dict[str, Any]:
    """Return what a record says of a fitted regressor beside its result.

    Returns
    -------
    dict
        evaluations; looks (candidates that exact search examined, None for a regressor that does not say);
        stop_reason; generator (the name of the one that was used, ``"untrained"`` or None; of a folder its
        last part, since records are shared and say nothing of the machine); weights (the SHA-256 of its
        weights file, None without a file); and parameters (those of the regressor that differ from the
        default).
    """
    generator = getattr(regressor, "generator_", "none")
    looks = getattr(regressor, "n_looks_", None)
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
