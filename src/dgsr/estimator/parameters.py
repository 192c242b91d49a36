"""The parameters of `DGSRRegressor`: what they may be, and what they group.

Rules for formulas, units and what few people change are grouped, as `constraints`, `units` and `config`;
inside a fit, in files and in checkpoints each setting has a name of its own.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_parameter_constraints

from dgsr.data.groups import NEW_GROUPS
from dgsr.expressions.programs.library import Library, library_of, library_over
from dgsr.expressions.trees.syntax import suggestion
from dgsr.expressions.trees.trees import MAX_LEVELS
from dgsr.pareto import SELECTIONS
from dgsr.search import OBJECTIVES

P = ParamSpec("P")


class _Names(StrOptions):
    """Names that an error lists in their order."""

    def __init__(self, *names: str) -> None:
        super().__init__(set(names))
        self.options = dict.fromkeys(names)


class _Range(Interval):
    """An interval that rejects values that numpy cannot compare, such as a Fraction or a huge integer."""

    def is_satisfied_by(self, val: Any) -> bool:
        try:
            return bool(super().is_satisfied_by(val))
        except (TypeError, OverflowError):
            return False


@dataclass(frozen=True)
class Units:
    """Units of columns, target and constants, for `DGSRRegressor`.

    Parameters
    ----------
    columns : mapping of str to (str or None)
        Units of the columns by name, such as ``{"m": "kg", "v": "m/s"}``, read by pint (``dgsr[units]``).
        The unit ``""`` has no dimension; that of a column without an entry is unknown, and nothing is held
        against it. Only dimensions count: km and m are alike.
    target : str or sequence of (str or None), optional
        Unit of the target, such as ``"J"``, or one for each of several; None if it is unknown.
    unitless_constants : bool, default=False
        Whether constants are mere numbers. Otherwise each may carry a unit, which the front prints.
    penalty : float, optional
        What violations cost: the loss of a formula with n of them is multiplied by 1 + penalty*n. None keeps
        no formula that has any.
    """

    columns: Mapping[str, str | None]
    target: str | Sequence[str | None] | None = None
    unitless_constants: bool = False
    penalty: float | None = None


#: The keys of `constraints` and of `config`, with their defaults and what they may be.
CONSTRAINTS: dict[str, tuple[Any, list[Any]]] = {
    "required": (None, ["array-like", None]),
    "forbidden": (None, ["array-like", None]),
    "nested": (None, [Mapping, None]),
    "min_length": (1, [Interval(Integral, 1, None, closed="left")]),
    "lower": (None, [_Range(Real, None, None, closed="neither"), None]),
    "upper": (None, [_Range(Real, None, None, closed="neither"), None]),
    "monotone": (None, [Mapping, None]),
    "at": (None, [Mapping, "array-like", None]),
}
CONFIG: dict[str, tuple[Any, list[Any]]] = {
    "batch_size": (500, [Interval(Integral, 2, 100_000, closed="both")]),  # whose arrays take a gigabyte
    "gp_generations": (25, [Interval(Integral, 0, None, closed="left")]),
    "new_groups": ("mean", [_Names(*NEW_GROUPS)]),
    "max_rows": (200, [Interval(Integral, 2, None, closed="left"), None]),
    "tolerance": (1e-20, [_Range(Real, 0, 1.0, closed="both")]),  # the mean of the targets has an NMSE of 1
}
_UNITS: dict[str, list[Any]] = {
    "columns": [Mapping],
    "target": [str, "array-like", None],
    "unitless_constants": ["boolean"],
    "penalty": [_Range(Real, 0, 1e12, closed="both"), None],  # no fit can outweigh the largest
}
# The other settings that parameters of earlier versions had names for, and where they stand now.
_RENAMED = {
    "objective": "refine={value!r}",
    "complexity": "library=get_library(...).with_complexities({value!r})",
    "y_units": "units=Units({{...}}, target={value!r})",
    "unitless_constants": "units=Units({{...}}, unitless_constants={value!r})",
    "unit_penalty": "units=Units({{...}}, penalty={value!r})",
}


def flat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a fit, each under a name of its own.

    Raises ValueError if a key of `constraints` or `config` is unknown, or a value is of the wrong kind or
    range.
    """
    found = dict(parameters)
    if (operators := found.pop("operators")) is not None:
        if found["library"] != "auto":
            raise ValueError("operators and library are both given; leave out one of them.")
        found["library"] = library_of(operators)
    constraints, config, units = (found.pop(name) for name in ("constraints", "config", "units"))
    found |= _settings("constraints", constraints, CONSTRAINTS) | _settings("config", config, CONFIG)
    units = Units(units or {}) if units is None or isinstance(units, Mapping) else units
    validate_parameter_constraints(_UNITS, vars(units), "Units")
    found |= {"units": dict(units.columns) or None, "y_units": units.target}
    found |= {"unitless_constants": units.unitless_constants, "unit_penalty": units.penalty}
    refine = found["refine"]
    is_objective = isinstance(refine, str) and refine in OBJECTIVES
    found |= {"objective": refine if is_objective else "pqt", "refine": True if is_objective else refine}
    if found["gp"] is None:
        found |= {"gp": "compiled", "gp_generations": 0}
    library = found["library"]
    found["complexity"] = (dict(library.complexities) or None) if isinstance(library, Library) else None
    return found


def grouped(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the estimator that give some settings; the others have their defaults."""
    found = dict(settings)
    for name, known in (("constraints", CONSTRAINTS), ("config", CONFIG)):
        own = {key: found.pop(key) for key in known if key in found}
        own = {key: value for key, value in own.items() if repr(value) != repr(known[key][0])}
        if own:
            found[name] = own
    names = ("units", "y_units", "unitless_constants", "unit_penalty")
    columns, target, unitless, penalty = (found.pop(name, None) for name in names)
    if columns or unitless or target is not None or penalty is not None:
        found["units"] = Units(columns or {}, target, bool(unitless), penalty)
    objective, refine = found.pop("objective", "pqt"), found.get("refine", "auto")
    if objective != "pqt" and refine is not False:
        found["refine"] = objective
    complexity = found.pop("complexity", None)
    if complexity:
        library = found.get("library", "auto")
        library = library if isinstance(library, Library) else library_over(library, 1)
        found["library"] = library.with_complexities(complexity)
    return found


def _settings(name: str, given: Mapping[str, Any] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a group, those that are given in the place of their defaults."""
    for key in given or {}:
        if key not in known:
            raise ValueError(f"{name}[{key!r}] is unknown; {suggestion(key, known)}")
    found = {key: default for key, (default, _) in known.items()} | dict(given or {})
    validate_parameter_constraints({key: rule for key, (_, rule) in known.items()}, found, f"`{name}`")
    return found


def _written_now(name: str, value: Any) -> str | None:
    """Return how a parameter of an earlier version is written now; None for any other name."""
    for group, known in (("config", CONFIG), ("constraints", CONSTRAINTS)):
        if name in known:
            return f'{group}={{"{name}": {value!r}}}'
    return _RENAMED[name].format(value=value) if name in _RENAMED else None


def explaining_old_names(init: Callable[P, None]) -> Callable[P, None]:
    """Return a constructor that explains the parameters of earlier versions and unknown ones."""

    @wraps(init)  # scikit-learn reads the names of the parameters off it
    def checked(*arguments: P.args, **parameters: P.kwargs) -> None:
        for name, value in parameters.items():
            if (mend := _written_now(name, value)) is not None:
                raise TypeError(f"DGSRRegressor has no parameter {name!r} any more; write {mend}.")
            if name not in RULES:
                similar = difflib.get_close_matches(name, RULES, 1, 0.75)
                mend = f"did you mean {similar[0]!r}? " if similar else ""
                raise TypeError(
                    f"DGSRRegressor has no parameter {name!r}; {mend}The page 'Coming from PySR' "
                    "of the guide says what PySR's parameters are called here."
                )
        init(*arguments, **parameters)

    return checked


#: Most tokens of an equation. A sum of such equations may have 30 levels more.
MOST_TOKENS = MAX_LEVELS - 30

#: What each parameter of the estimator may be, for scikit-learn.
RULES: dict[str, list[Any]] = {
    "library": [str, Library],
    "operators": ["array-like", None],
    "generator": [str, Path, HasMethods(["encode_dataset", "refinable_copy"]), None],
    "max_evaluations": [_Range(Real, 1, 1e18, closed="both")],  # processes count them in 64 bits
    "max_time": [_Range(Real, 0, 1e9, closed="right"), None],
    "refine": ["boolean", _Names("auto", *OBJECTIVES)],
    "look_up": ["boolean"],
    "gp": [_Names("compiled", "deap"), HasMethods("evolve"), None],
    "max_length": [Interval(Integral, 2, MOST_TOKENS, closed="both")],
    "loss": [str, callable],
    "selection": [_Names(*SELECTIONS)],
    "constraints": [Mapping, None],
    "units": [Units, Mapping, None],
    "groups": [str, Integral, None],
    "initial_formulas": ["array-like", None],
    "form": [str, None],
    "config": [Mapping, None],
    "random_state": ["random_state"],
    "warm_start": ["boolean"],
    "checkpoint": [str, Path, None],
    "n_jobs": [
        Interval(Integral, None, -1, closed="right"),
        Interval(Integral, 1, 1_000, closed="both"),
        None,
    ],
    "verbose": ["verbose"],
    "callback": [callable, None],
}
