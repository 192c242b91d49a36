"""A fitted estimator as a file: safetensors with a JSON header. Nothing in it is executed.

Formulas are written as names of tokens, so that files outlive changes of the token ids.
"""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

import dgsr
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library
from dgsr.pareto import Candidate, ParetoFront
from dgsr.regressor import DGSRRegressor
from dgsr.writing import write_atomically

#: Raised when an older version could not read what this one writes.
FORMAT_VERSION = 1

_KIND = "dgsr.DGSRRegressor"
_MAX_BYTES = 1 << 28
_ATTRIBUTES = ("n_evaluations_", "stop_reason_", "generator_", "n_features_in_")


def save(regressor: DGSRRegressor, path: str | Path) -> None:
    """Write a fitted estimator to a file; an existing one is replaced in one step.

    Parameters
    ----------
    regressor : DGSRRegressor
        Fitted.
    path : str or Path

    Raises
    ------
    ValueError
        If a formula has an operator of the user's own, which is code and which no file can hold.
    OSError
        If the file cannot be written; one that was there is unchanged then.

    Warns
    -----
    UserWarning
        If a parameter is an object (a generator, an engine, a callback, a RandomState): it is left out, and
        has its default in the estimator that `load` returns.
    """
    front = regressor.pareto_front_
    library = regressor.library_
    if library.user_operators:
        names = ", ".join(library.functions)
        raise ValueError(
            f"The library has operators of your own, {names}, which are code and cannot be saved; "
            "keep the estimator with joblib.dump, or the formula with expression_.text."
        )
    parameters, left_out = _parameters(regressor)
    if left_out:
        warnings.warn(f"Not saved, since a file cannot hold them: {', '.join(left_out)}.", stacklevel=3)
    expressions = [candidate.expression for candidate in front]
    header = {
        "kind": _KIND,
        "format_version": FORMAT_VERSION,
        "dgsr_version": dgsr.__version__,
        "parameters": parameters,
        "library": _library_entry(library),
        "library_of_formulas": _library_entry(expressions[0].library),
        "programs": [[e.library.tokens[t].name for t in e.tokens] for e in expressions],
        "names": [list(expression.feature_names) for expression in expressions],
        "chosen": expressions.index(regressor.expression_),
        "feature_names_in": _feature_names(regressor),
        "attributes": {name: _plain(getattr(regressor, name)) for name in _ATTRIBUTES},
        "history": [{key: _plain(value) for key, value in entry.items()} for entry in regressor.history_],
        "judged": {"n_samples": float(front.n_samples), "tolerance": float(front.tolerance)},
    }
    arrays = {
        "constants": np.concatenate([np.zeros(0), *(expression.constants for expression in expressions)]),
        "n_constants": np.array([len(expression.constants) for expression in expressions], dtype=np.int64),
        "losses": np.array([candidate.loss for candidate in front]),
    }
    if front.held_out is not None:
        arrays["held_out"] = front.held_out
    metadata = {"dgsr": json.dumps(header, allow_nan=False)}
    write_atomically(path, to_bytes(arrays, metadata=metadata))


def load(path: str | Path) -> DGSRRegressor:
    """Read an estimator that `DGSRRegressor.save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DGSRRegressor
        Fitted: it predicts as the one that was saved.

    Raises
    ------
    ValueError
        If the file is no saved estimator, is damaged, or was written by a later version of dgsr.
    FileNotFoundError
        If there is none.
    """
    path = Path(path)
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} is not a saved estimator: it has {path.stat().st_size} bytes.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        header = json.loads(metadata.get("dgsr", "{}"))
    except (SafetensorError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no saved estimator, or is damaged ({error}); save it again.") from error
    if header.get("kind") != _KIND:
        raise ValueError(f"{path} is not a saved estimator; give a file that DGSRRegressor.save wrote.")
    if header["format_version"] > FORMAT_VERSION:
        raise ValueError(
            f"{path} was written by dgsr {header['dgsr_version']} in format {header['format_version']}; "
            f"this is dgsr {dgsr.__version__}, which reads up to format {FORMAT_VERSION}: update dgsr."
        )
    try:
        return _rebuilt(header, arrays)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}); save it again.") from error


def _rebuilt(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> DGSRRegressor:
    parameters = dict(header["parameters"])
    if isinstance(parameters.get("library"), dict):
        parameters["library"] = _library(parameters["library"])
    known = DGSRRegressor().get_params()
    regressor = DGSRRegressor(**{name: value for name, value in parameters.items() if name in known})
    ends = np.cumsum(arrays["n_constants"])
    candidates = []
    library = _library(header["library_of_formulas"])
    for i, program in enumerate(header["programs"]):
        constants = arrays["constants"][ends[i] - arrays["n_constants"][i] : ends[i]]
        tokens = [library.index[name] for name in program]
        expression = Expression(library, tokens, constants, header["names"][i])
        candidates.append(Candidate(expression.complexity, float(arrays["losses"][i]), expression))
    regressor.pareto_front_ = ParetoFront(candidates, **header["judged"], held_out=arrays.get("held_out"))
    regressor.expression_ = candidates[header["chosen"]].expression
    regressor.library_ = _library(header["library"])
    for name in _ATTRIBUTES:
        setattr(regressor, name, header["attributes"][name])
    if header["feature_names_in"] is not None:
        regressor.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
    regressor.history_ = [
        {key: math.inf if value is None else value for key, value in entry.items()}
        for entry in header["history"]
    ]
    return regressor


def _parameters(regressor: DGSRRegressor) -> tuple[dict[str, Any], list[str]]:
    """The parameters a file can hold, and the names of the others."""
    held: dict[str, Any] = {}
    left_out = []
    for name, value in regressor.get_params(deep=False).items():
        if isinstance(value, Library):
            held[name] = _library_entry(value)
        elif isinstance(value, Path):
            held[name] = str(value)
        elif value is None or isinstance(value, str | bool | int | float | np.number | np.bool_):
            held[name] = _plain(value)
        else:
            left_out.append(name)
    return held, left_out


def _plain(value: Any) -> Any:
    """A number as JSON has it: None for one that is not finite."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _feature_names(regressor: DGSRRegressor) -> list[str] | None:
    names = getattr(regressor, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _library_entry(library: Library) -> dict[str, Any]:
    return {
        "name": library.name,
        "operators": list(library.operators),
        "has_constants": library.has_constants,
        "n_variables": library.n_variables,
    }


def _library(entry: dict[str, Any]) -> Library:
    return Library(entry["name"], tuple(entry["operators"]), entry["has_constants"], entry["n_variables"])
