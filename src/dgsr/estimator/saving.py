"""Files of fitted estimators, safetensors with a JSON header; reading one executes nothing.

Formulas are written as names of tokens, so that files remain readable when token ids change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dgsr.constants.by_group import UncertaintyByGroup
from dgsr.constants.uncertainty import Uncertainty
from dgsr.estimator.parameters import flat, grouped
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import ByGroup, GroupedExpression
from dgsr.expressions.formulas.parts import with_names_in
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.files.container import DAMAGE, TEXT, from_json, packed, unpacked
from dgsr.files.version import __version__
from dgsr.files.writing import write_atomically
from dgsr.pareto import Candidate, ParetoFront
from dgsr.reporting.warning import warn_caller

#: Number of the format, raised when older versions of dgsr cannot read it, or newer ones require more. Files
#: have a digest from 2 on, and fits with groups from 3 on; others are written in format 2.
FORMAT_VERSION = 3

_KIND = "dgsr.DGSRRegressor"
_ATTRIBUTES = {
    **dict.fromkeys(("n_evaluations_", "n_examined_", "n_features_in_"), int),
    **dict.fromkeys(("stop_reason_", "generator_", "loss_"), str),
}
# Longest header, in characters. A fit with a longer one, by its history, is not saved.
_MAX_HEADER = 1 << 25
# Largest number of variables that is read; no fit reaches it.
_MAX_VARIABLES = 1_000_000


def save(regressor: Any, path: str | Path, targets: Sequence[str]) -> None:
    """Write a fitted estimator to a file; an existing file is replaced in one step.

    `targets` are the names of the targets; `load` sets `target_name_` to them. A warning
    names the parameters that are objects (a generator, an engine, a callback, a RandomState). They are not
    saved, and have their defaults in the estimator that `load` returns.

    Raises ValueError if the library has a user's own operator, which is code and cannot be in a file, if the
    history is too long for a file, or if a parameter has an invalid value. Raises OSError if the file cannot
    be written; an existing file is then unchanged.
    """
    regressor._validate_params()  # they may have been set since the fit, and `load` would reject bad ones
    library = regressor.library_
    if library.user_operators:
        names = ", ".join(library.functions)
        raise ValueError(
            f"The library has operators of your own, {names}, which are code and cannot be saved. Keep the "
            "estimator with joblib.dump if all their functions are defined by name in a module, otherwise "
            "with cloudpickle.dump; or keep the formula, expression_.text."
        )
    parameters, left_out = _parameters(regressor)
    if left_out:
        warn_caller(f"Not saved, since a file cannot hold them: {', '.join(left_out)}.")
    several = getattr(regressor, "estimators_", None)
    parts = [_part(*one) for one in zip(several or [regressor], targets, strict=True)]
    header, arrays = parts[0]
    if several:
        header = {"parameters": parameters, "outputs": [of_one for of_one, _ in parts]}
        arrays = {f"{i}.{name}": own for i, (_, of_one) in enumerate(parts) for name, own in of_one.items()}
    version = 2 if regressor.groups_ is None else FORMAT_VERSION
    about = {"kind": _KIND, "format_version": version, "dgsr_version": __version__}
    text = json.dumps(about | header, allow_nan=False)
    if len(text) > _MAX_HEADER:
        raise ValueError(
            f"The fit takes {len(text):,} characters, of which a file holds {_MAX_HEADER:,}; thin out "
            f"its history of {sum(len(of_one['history']) for of_one, _ in parts):,} rounds: "
            "model.history_ = model.history_[::10]."
        )
    write_atomically(path, packed({TEXT: text}, arrays))


def _part(regressor: Any, target: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a file has of the fit of one target: its header and its arrays."""
    front, library = regressor.pareto_front_, regressor.library_
    expressions = [candidate.expression for candidate in front]
    columns = getattr(regressor, "feature_names_in_", None)
    header = {
        "parameters": _parameters(regressor)[0],
        "library": library.to_json(),
        "library_of_formulas": expressions[0].library.to_json(),
        "programs": [[e.library.tokens[t].name for t in e.tokens] for e in expressions],
        "names": [list(expression.feature_names) for expression in expressions],
        "units": [list(candidate.units) for candidate in front],
        "chosen": front.chosen,
        "feature_names_in": None if columns is None else [str(name) for name in columns],
        "target": str(target),
        "attributes": _plain({name: getattr(regressor, name) for name in _ATTRIBUTES}),
        "random_state": regressor.random_state_,
        "history": _plain(regressor.history_),
        "judged": {
            "n_samples": float(front.n_samples),
            "tolerance": float(front.tolerance),
            "n_left_off": front.n_left_off,
        },
    }
    if regressor.groups_ is not None:
        labels = [_plain(label) for label in regressor.groups_]
        if not all(isinstance(label, str | int | float) for label in labels):
            raise ValueError(
                f"Labels of groups such as {regressor.groups_[0]!r} cannot be saved; give texts or numbers."
            )
        header["groups"] = {"labels": labels, "column": regressor.group_column_}
    arrays = {
        "constants": np.concatenate([np.zeros(0), *(expression.constants for expression in expressions)]),
        "n_constants": np.array([len(expression.constants) for expression in expressions], dtype=np.int64),
        "losses": np.array([candidate.loss for candidate in front]),
    }
    for i, expression in enumerate(expressions):
        if isinstance(expression, GroupedExpression):
            for name in ("part_of", "values", "bits", "covariances"):
                arrays[f"{name}.{i}"] = np.ravel(getattr(expression.by_group, name)).astype(np.float64)
    if any(candidate.bits is not None for candidate in front):
        arrays["bits"] = np.array([candidate.description_length for candidate in front])
    if any(candidate.handicap != 1.0 for candidate in front):
        arrays["handicaps"] = np.array([candidate.handicap for candidate in front])
    if front.held_out is not None:
        arrays["held_out"] = front.held_out
    if any(candidate.uncertainty is not None for candidate in front):
        known = [
            candidate.uncertainty or _unknown(len(candidate.expression.constants)) for candidate in front
        ]
        arrays["noise"] = np.array([uncertainty.noise for uncertainty in known])
        arrays["leave_one_out"] = np.array([uncertainty.leave_one_out for uncertainty in known])
        arrays["standard_errors"] = np.concatenate([u.standard_errors for u in known])
        arrays["covariances"] = np.concatenate([u.covariance.ravel() for u in known])
    return header, arrays


def load(path: str | Path, estimator: type) -> Any:
    """Return the estimator, of class `estimator`, that `save` wrote to a file; see `dgsr.load`."""
    path = Path(path)
    try:
        texts, arrays, has_digest = unpacked(path)
        header = from_json(texts.get(TEXT, "null"), _refuse_constant)
    except DAMAGE as error:
        raise ValueError(f"{path} is no saved estimator, or is damaged ({error}); save it again.") from error
    if not isinstance(header, dict) or header.get("kind") != _KIND:
        raise ValueError(f"{path} is not a saved estimator; give a file that DGSRRegressor.save wrote.")
    try:
        version = _entry(header, "format_version", int)
        if 2 <= version <= FORMAT_VERSION and not has_digest:
            raise ValueError("it has lost its digest")
        if version <= FORMAT_VERSION:
            if "outputs" in header:
                return _rebuilt_outputs(estimator, header, arrays)
            return _rebuilt(estimator, header, arrays)
        written_by = _entry(header, "dgsr_version", str)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged ({str(error)[:200]}); save it again.") from error
    raise ValueError(
        f"{path} was written by dgsr {written_by} in format {version}; "
        f"this is dgsr {__version__}, which reads up to format {FORMAT_VERSION}: update dgsr."
    )


def _rebuilt_outputs(estimator: type, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the estimator of several targets of a file."""
    regressor = _with_parameters(estimator, _entry(header, "parameters", dict))
    outputs = []
    for i, of_one in enumerate(_entry(header, "outputs", list)):
        own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{i}.")}
        outputs.append(_rebuilt(estimator, of_one, own))
    columns = [(one.n_features_in_, [*getattr(one, "feature_names_in_", ())]) for one in outputs]
    if len(outputs) < 2 or any(of_one != columns[0] for of_one in columns):
        raise ValueError(f"it has {len(outputs)} targets, of the columns {columns}")
    regressor._take_outputs(outputs)
    for name in ("n_features_in_", "feature_names_in_", "groups_", "group_column_"):
        if hasattr(outputs[0], name):
            setattr(regressor, name, getattr(outputs[0], name))
    regressor.target_name_ = [one.target_name_ for one in outputs]
    return regressor


def _rebuilt(estimator: type, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the estimator of a file; raise ValueError if `save` cannot have written a part of it."""
    regressor = _with_parameters(estimator, _entry(header, "parameters", dict))
    attributes = _entry(header, "attributes", dict)
    # Earlier versions had this loss alone, and did not count the candidates of finders.
    examined = attributes.pop("n_looks_", 0)  # the name that it had
    attributes = {"loss_": "squared", "n_examined_": examined, **attributes}
    for name, kind in _ATTRIBUTES.items():
        setattr(regressor, name, _entry(attributes, name, kind))
    n_columns = regressor.n_features_in_
    if "groups" in header:
        regressor.groups_, regressor.group_column_ = _groups(header["groups"])
        n_columns = max(n_columns, regressor.group_column_ + 1)
    regressor.library_ = _library(_entry(header, "library", dict), n_columns)
    candidates = _candidates(header, arrays, n_columns, regressor)
    held_out = _floats(arrays, "held_out", len(candidates)) if "held_out" in arrays else None
    judged = _entry(header, "judged", dict)
    n_samples, tolerance = (float(_number(judged, name)) for name in ("n_samples", "tolerance"))
    if not n_samples > 0.0 <= tolerance:
        raise ValueError(f"its losses are of {n_samples} rows, its tolerance is {tolerance}")
    n_left_off = _entry({"n_left_off": 0, **judged}, "n_left_off", int)  # 0 in earlier versions
    chosen = _entry(header, "chosen", int)
    if not 0 <= chosen < len(candidates):
        raise ValueError(f"chosen is {chosen}")
    regressor.pareto_front_ = ParetoFront(candidates, n_samples, tolerance, held_out, n_left_off, chosen)
    if header.get("feature_names_in") is not None:
        names = _names(header["feature_names_in"], regressor.n_features_in_)
        regressor.feature_names_in_ = np.array(names, dtype=object)
    regressor.history_ = [_round(entry) for entry in _entry(header, "history", list)]
    known = {"random_state": None, "target": "y", **header}  # files of earlier versions have neither
    regressor.random_state_ = _entry(known, "random_state", int, type(None))
    regressor.target_name_ = _entry(known, "target", str)
    return regressor


def _with_parameters(estimator: type, given: dict[str, Any]) -> Any:
    known = flat(estimator().get_params())
    settings = {name: value for name, value in given.items() if name in known}
    if isinstance(settings.get("library"), dict):
        settings["library"] = _library(settings["library"])
    regressor = estimator(**grouped(settings))
    regressor._validate_params()
    return regressor


def _groups(entry: Any) -> tuple[tuple[str | float, ...], int]:
    """Return the labels of groups and the column that has their numbers."""
    labels, column = _entry(entry, "labels", list), _entry(entry, "column", int)
    if not all(type(label) in (str, int, float, bool) for label in labels) or len({*labels}) != len(labels):
        raise ValueError("its labels of groups are no different texts or numbers")
    if not 0 <= column < _MAX_VARIABLES:
        raise ValueError(f"the column of groups is {column}")
    return tuple(labels), column


def _with_groups(
    expression: Expression, arrays: dict[str, np.ndarray], i: int, labels: tuple, column: int
) -> Expression:
    """Return candidate number `i` with its constants by group, if it has some."""
    if f"part_of.{i}" not in arrays:
        return expression
    part_of = _floats(arrays, f"part_of.{i}", len(expression.constants)).astype(np.int64)
    q, n = int(part_of.max(initial=-1)) + 1, len(labels)
    if q < 1 or len({*part_of[part_of >= 0].tolist()}) != q:
        raise ValueError("the constants by group are not numbered")
    by_group = ByGroup.of_values(column, labels, part_of, _floats(arrays, f"values.{i}", q * n).reshape(q, n))
    covariances = _floats(arrays, f"covariances.{i}", by_group.covariances.size)
    by_group = by_group._replace(
        covariances=covariances.reshape(by_group.covariances.shape),
        bits=float(_floats(arrays, f"bits.{i}", 1)[0]),
    )
    return GroupedExpression(
        expression.library, expression.tokens, expression.constants, by_group, expression.feature_names
    )


def _candidates(
    header: dict[str, Any], arrays: dict[str, np.ndarray], n_features: int, regressor: Any
) -> list[Candidate]:
    """Return the candidates of a file, whose groups and form the estimator has already."""
    programs, names = _entry(header, "programs", list), _entry(header, "names", list)
    if not len(programs) == len(names) > 0:
        raise ValueError(f"it has {len(programs)} programs and {len(names)} lists of names")
    losses = _floats(arrays, "losses", len(programs))
    constants = _floats(arrays, "constants")
    counts = arrays.get("n_constants", np.zeros(0))
    if not (np.isfinite(losses).all() and np.isfinite(constants).all() and losses.min() >= 0.0):
        raise ValueError("losses or constants are not finite, or losses are negative")
    if counts.dtype != np.int64 or counts.shape != losses.shape:
        raise ValueError("n_constants are not those of the programs")
    if counts.min() < 0 or counts.max() > len(constants) or counts.sum() != len(constants):
        raise ValueError("n_constants are not those of the constants")
    # The names are checked first: with one for every variable, the library cannot be larger than the file.
    names = [_names(of_one, n_features) for of_one in names]
    library = _library(_entry(header, "library_of_formulas", dict), n_features)
    n = len(programs)
    handicaps = _floats(arrays, "handicaps", n) if "handicaps" in arrays else np.ones(n)
    if not (np.isfinite(handicaps) & (handicaps >= 1.0)).all():
        raise ValueError("handicaps are below 1 or not finite")
    bits = _floats(arrays, "bits", n).tolist() if "bits" in arrays else [None] * n
    if not all(own is None or np.isfinite(own) for own in bits):
        raise ValueError("bits are not finite")
    units = header.get("units", [[]] * n)  # units of constants; earlier versions had none
    if not isinstance(units, list) or len(units) != n:
        raise ValueError(f"it has {n} programs and no units for each")
    candidates = list[Candidate]()
    parts = np.split(constants, np.cumsum(counts)[:-1])
    uncertainties = _uncertainties(arrays, counts)
    is_number = not library.operators  # of a constant target, which no form has
    form = None if regressor.form is None or is_number else Form(regressor.form, library, names[0])
    columns = programs, parts, names, losses.tolist(), uncertainties, units, handicaps.tolist(), bits
    for program, own, of_one, loss, uncertainty, texts, *judged in zip(*columns, strict=True):
        expression = Expression(library, _tokens(program, library), own, of_one)
        if len(expression.constants) != len(own):
            raise ValueError("a program has other constants than the file")
        if regressor.groups_ is not None:
            groups = regressor.groups_, regressor.group_column_
            expression = _with_groups(expression, arrays, len(candidates), *groups)
            expression = expression if form is None else with_names_in(form, expression)
            if isinstance(expression, GroupedExpression) and uncertainty is not None:
                uncertainty = UncertaintyByGroup(*uncertainty)
        texts = tuple(_names(texts, len(own))) if texts else ()
        candidate = Candidate(expression.complexity, loss, expression, uncertainty, texts, *judged)
        candidates.append(candidate._replace(form=form))
    return candidates


def _unknown(n_constants: int) -> Uncertainty:
    """Return what a file has for a candidate whose uncertainty is unknown: its noise is nan."""
    return Uncertainty(np.nan, np.zeros((n_constants, n_constants)), np.zeros(n_constants), np.nan)


def _uncertainties(arrays: dict[str, np.ndarray], counts: np.ndarray) -> list[Uncertainty | None]:
    """Return the uncertainties of the candidates, by their numbers of constants; None from old versions."""
    if "noise" not in arrays:
        return [None] * len(counts)
    noise, leave_one_out = (_floats(arrays, name, len(counts)) for name in ("noise", "leave_one_out"))
    errors = _floats(arrays, "standard_errors", int(counts.sum()))
    covariances = _floats(arrays, "covariances", int((counts**2).sum()))
    is_known = ~np.isnan(noise)
    given = errors[~np.isnan(errors)]  # those of constants by group are nan
    if not min(part.min(initial=0.0) for part in (noise[is_known], leave_one_out[is_known], given)) >= 0.0:
        raise ValueError("uncertainties are negative or not numbers")
    of_constants = np.split(errors, np.cumsum(counts)[:-1])
    of_pairs = np.split(covariances, np.cumsum(counts**2)[:-1])
    return [
        Uncertainty(float(noise[i]), of_pairs[i].reshape(n, n), of_constants[i], float(leave_one_out[i]))
        if is_known[i]
        else None
        for i, n in enumerate(counts.tolist())
    ]


def _tokens(program: Any, library: Library) -> list[int]:
    """Return the token ids of a program; ValueError if it is empty, or longer than that of any fit."""
    if not isinstance(program, list) or not 0 < len(program) <= 10_000:
        raise ValueError("a program is no list, is empty or is too long")
    return [library.index[name] for name in program]


def _round(entry: Any) -> dict[str, float]:
    """Return an entry of the history, with infinity for numbers that were not finite."""
    numbers = {key: math.inf if value is None else _number(entry, key) for key, value in entry.items()}
    until = numbers["evaluations"], numbers["seconds"]
    if min(*until, numbers["best_nmse"]) < 0 or math.isinf(max(until)):
        raise ValueError(f"a round of the history is {entry}")
    return numbers


def _entry(mapping: dict[str, Any], name: str, *kinds: type) -> Any:
    """Return an entry whose type is exactly one of `kinds`, so that true is no number."""
    if type(mapping.get(name)) not in kinds:
        raise ValueError(f"{name} is {mapping.get(name)!r}")
    return mapping[name]


def _number(mapping: dict[str, Any], name: str) -> float:
    value = _entry(mapping, name, int, float)
    if not abs(value) <= np.finfo(np.float64).max:  # also nan, and integers that exceed a float
        raise ValueError(f"{name} is {value}")
    return value


def _names(given: Any, n: int) -> list[str]:
    if not isinstance(given, list) or len(given) != n or not all(type(name) is str for name in given):
        raise ValueError(f"it does not name its {n} variables")
    return given


def _floats(arrays: dict[str, np.ndarray], name: str, n: int | None = None) -> np.ndarray:
    array = arrays.get(name, np.zeros(0, dtype=np.bool_))
    if array.dtype != np.float64 or array.ndim != 1 or (n is not None and len(array) != n):
        raise ValueError(f"{name} are not {'' if n is None else n} numbers")
    return array


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _parameters(regressor: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the settings that a file can hold, and the names of the others."""
    held: dict[str, Any] = {}
    left_out = []
    for name, value in flat(regressor.get_params(deep=False)).items():
        if name == "checkpoint" or (name == "complexity" and isinstance(regressor.library, Library)):
            continue  # a file of the process that fitted, and what the library holds already
        if isinstance(value, Library):
            held[name] = value.to_json()
        elif isinstance(value, Path):
            held[name] = str(value)
        elif name in ("initial_formulas", "required", "forbidden") and value is not None:
            held[name] = [str(text) for text in value]
        elif name in ("complexity", "nested", "monotone", "at") and value is not None:
            held[name] = _plain(value)
        elif name == "y_units" and isinstance(value, Sequence) and not isinstance(value, str):
            held[name] = [unit if unit is None else str(unit) for unit in value]
        elif name == "units" and value is not None:
            held[name] = {str(column): unit if unit is None else str(unit) for column, unit in value.items()}
        elif value is None or isinstance(value, str | bool | int | float | np.number | np.bool_):
            held[name] = _plain(value)
        else:
            left_out.append(name)
    return held, left_out


def _plain(value: Any) -> Any:
    """Return numbers, words, and mappings and lists of them in a form for JSON, None if not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _library(entry: dict[str, Any], n_variables: int | None = None) -> Library:
    """Return the library of an entry; if `n_variables` is given, the library must have that many."""
    n = _entry(entry, "n_variables", int)
    if n > _MAX_VARIABLES or n_variables not in (None, n):
        raise ValueError(f"n_variables is {n}")
    return Library.from_json(entry)
