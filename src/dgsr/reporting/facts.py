"""The facts of a report: how well the candidates fit its rows, and the settings that repeat the fit."""

from __future__ import annotations

import inspect
import math
import platform
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dgsr.files.version import __version__
from dgsr.pareto import Candidate
from dgsr.reporting.numbers import counted

#: Most rows whose values are written into a report, and that an estimator stores for it.
MAX_ROWS = 1_000
# Largest value on an axis. The range of larger ones would overflow.
_LARGEST = 1e300
# Candidates of a long front that are shown at first, and those of them before the chosen one.
_MOST_CANDIDATES = 8
_BEFORE = 5
# Parameters that change what a fit displays and not its result.
_WITHOUT_EFFECT = ("verbose", "callback")


class Rows(NamedTuple):
    """Rows that candidates are judged on."""

    X: np.ndarray  # (n_rows, n_features)
    y: np.ndarray  # (n_rows,)
    weights: np.ndarray  # (n_rows,), not all 0


class Judged(NamedTuple):
    """A candidate with its fit to the rows of the report."""

    candidate: Candidate
    r2: float | None  # None where it is not defined
    rmse: float | None  # None where a prediction with weight is not finite
    n_undefined: int  # rows without a finite prediction
    residuals: np.ndarray  # (n_rows,) measured minus predicted; not finite where undefined


def judged(candidate: Candidate, rows: Rows) -> Judged:
    """Compare the predictions of a candidate with the targets of `rows`.

    R² and root mean square are weighted; neither is defined if the prediction of a row that has weight is not
    finite.
    """
    X, y, weights = rows
    with np.errstate(all="ignore"):
        predictions = np.asarray(candidate.expression(X), dtype=np.float64)
        residuals = y - predictions
        residuals[~(np.abs(residuals) < _LARGEST) | ~(np.abs(predictions) < _LARGEST)] = np.nan
        weighted = weights > 0
        share = weights[weighted] / weights.max()  # divided first, so that the sum cannot overflow
        share /= share.sum()
        mean_square = float(share @ residuals[weighted] ** 2)
        variance = float(share @ (y[weighted] - share @ y[weighted]) ** 2)
    rmse = math.sqrt(mean_square) if math.isfinite(mean_square) else None
    r2 = None
    if rmse is not None and y[weighted].min() < y[weighted].max():
        r2 = 1 - mean_square / variance if variance > 0 else None
    elif rmse == 0:
        r2 = 1.0  # the value of scikit-learn's r2_score for a constant that is predicted exactly
    return Judged(candidate, r2, rmse, int(np.sum(~np.isfinite(residuals))), residuals)


def sampled_rows(n_rows: int) -> np.ndarray:
    """Return the indices of the rows that an estimator stores for its report, and that the page shows.

    They are all rows, or always the same random `MAX_ROWS` in order. Evenly spaced rows of a grid might all
    have the same value of a column.
    """
    if n_rows <= MAX_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MAX_ROWS, replace=False))


def window(chosen: int, n_candidates: int) -> tuple[int, int]:
    """Return the first of the candidates to show at first, and the one after the last."""
    first = max(0, min(chosen - _BEFORE, n_candidates - _MOST_CANDIDATES))
    return first, min(n_candidates, first + _MOST_CANDIDATES)


def snippet(estimator: Any, *, weighted: bool) -> str:
    """Return Python code that repeats the fit, with the parameters of `estimator` that are not defaults.

    A parameter that cannot be written as code, such as a `Library`, is written as ``...`` with a comment.
    """
    name = type(estimator).__name__
    module = "dgsr" if type(estimator).__module__.startswith("dgsr.") else type(estimator).__module__
    defaults = inspect.signature(type(estimator)).parameters
    lines = []
    for parameter, value in estimator.get_params(deep=False).items():
        if parameter == "random_state":
            # The integer that repeats the fit; the parameter itself may be None or a RandomState.
            value = getattr(estimator, "random_state_", value)
        if parameter not in _WITHOUT_EFFECT and repr(value) != repr(defaults[parameter].default):
            lines.append(f"    {parameter}={_source(value)}\n")
    arguments = "".join(["\n", *lines]) if lines else ""
    fitted = ["X", "y"] + ["sample_weight=sample_weight"] * weighted
    fitted += ["groups=groups"] * (estimator.group_column_ == getattr(estimator, "n_features_in_", -1))
    names = f"{name}, Units" if "Units(" in arguments else name
    made = f"from {module} import {names}\n\nregressor = {name}({arguments})\n"
    return made + f"regressor.fit({', '.join(fitted)})\n"


def caveats(estimator: Any) -> list[str]:
    """Return the reasons why another fit with the same settings may have another result."""
    found: list[str] = []
    if estimator.stop_reason_ == "constant target":
        return found
    if not isinstance(getattr(estimator, "random_state", None), int | np.integer):
        drawn = estimator.random_state_  # None in files of earlier versions
        repeats = "" if drawn is None else f"; random_state={drawn} repeats this one"
        found.append(f"random_state is no integer, so another fit draws other random numbers{repeats}.")
    if estimator.stop_reason_ == "max_time":
        found.append("The search ended by max_time, which depends on the machine.")
    if estimator.stop_reason_ in ("interrupted", "error"):
        found.append("The search was broken off before its budget was spent.")
    return found


def rivals_text(estimator: Any) -> str:
    """Return the numbers and texts of the formulas that tie with the chosen one, empty if none do."""
    front = estimator.pareto_front_
    rivals = front.rivals(front.index_of(estimator.expression_))
    return "; ".join(f"formula {i}, {front[i].expression.shortened().text}" for i in rivals)


def rule_of_choice(estimator: Any) -> str | None:
    """Return the rule that chose the formula of a fit; None if `selection` now chooses another formula."""
    front, rule = estimator.pareto_front_, estimator.selection
    if rule == "holdout" and front.held_out is None:
        rule = "accuracy"
    return rule if front.select(rule) == front.index_of(estimator.expression_) else None


def particulars(estimator: Any, n_rows: int, n_test: int) -> list[tuple[str, str]]:
    """Return the circumstances of the fit as pairs of a name and a value."""
    seconds = estimator.history_[-1]["seconds"] if estimator.history_ else 0.0
    speed = f", {estimator.n_evaluations_ / seconds:,.0f} a second" if seconds > 0.0 else ""
    seed = estimator.random_state_
    rule = rule_of_choice(estimator) or f"none, selection={estimator.selection!r} chooses another"
    packages = ("numpy", "torch", "scikit-learn")
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    return [
        ("Data of this report", f"{counted(n_rows, 'row')}, {counted(estimator.n_features_in_, 'feature')}"),
        *([("Rows held out", f"{n_test:,}")] if n_test else []),
        ("Search ended by", estimator.stop_reason_),
        ("Equations evaluated", f"{estimator.n_evaluations_:,}{speed}"),
        ("Seconds of search", f"{seconds:,.2f}"),
        ("Random state", "not known" if seed is None else str(seed)),
        ("Library", estimator.library_.name),
        ("Generator", estimator.generator_),
        ("Chosen by", rule),
        ("Versions", f"dgsr {__version__}, Python {platform.python_version()}, {versions}"),
    ]


def _is_plain(value: Any) -> bool:
    """Return whether the representation of a value is Python code for the same value."""
    if isinstance(value, dict):
        return all(map(_is_plain, [*value, *value.values()]))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if type(value).__name__ == "Units":  # whose representation is code
        return all(map(_is_plain, vars(value).values()))
    return value is None or isinstance(value, bool | int | float | str)


def _without_numpy(value: Any) -> Any:
    """Return a parameter with numbers of Python for those of numpy, also within it."""
    if isinstance(value, dict):
        return {_without_numpy(key): _without_numpy(entry) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))
    return value.item() if isinstance(value, np.generic) else value


def _source(value: Any) -> str:
    """Return a parameter as Python code, with a comma."""
    value = _without_numpy(value)
    if isinstance(value, Path):
        value = str(value)
    if _is_plain(value):
        return f"{value!r},"
    what = " ".join(repr(value).split())  # without line breaks, since it becomes a comment
    what = what if len(what) <= 60 else f"{what[:59]}…"
    return f"...,  # {what}"
