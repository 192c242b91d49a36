"""What a person writes on the command line about formulas and units, as parameters of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def rules_of(complexity: Sequence[str] | None, nested: Sequence[str] | None) -> dict[str, Any]:
    """Return the parameters `complexity` and `nested`, those that are given.

    Parameters
    ----------
    complexity : sequence of str or None
        Texts such as ``"sin=9"``.
    nested : sequence of str or None
        Texts such as ``"sin/sin=1"``, or ``"sin/sin=any"``.

    Raises
    ------
    ValueError
        If a text is of another form. What the names and numbers mean is left to the estimator.
    """
    complexities = {}
    for text in complexity or ():
        name, number = _parts(text, "--complexity", "NAME=NUMBER, such as sin=9")
        complexities[name] = _number(number)
    limits: dict[str, dict[str, Any]] = {}
    for text in nested or ():
        form = "OUTER/INNER=NUMBER, such as sin/sin=1 or sin/sin=any"
        pair, number = _parts(text, "--nested", form)
        outer, slash, inner = pair.partition("/")
        if not slash:
            raise ValueError(f"--nested {text!r} must be {form}.")
        limits.setdefault(outer, {})[inner] = None if number == "any" else _number(number)
    given = {"complexity": complexities, "nested": limits}
    return {name: value for name, value in given.items() if value}


def units_of(
    units: Sequence[str] | None, y_units: str | None, unitless_constants: bool, unit_penalty: float | None
) -> dict[str, Any]:
    """Return the parameters of the estimator that units are given by; none without units.

    Parameters
    ----------
    units : sequence of str or None
        Texts such as ``"v=m/s"``; ``"v="`` has no dimension.
    y_units : str or None
    unitless_constants : bool
    unit_penalty : float or None

    Raises
    ------
    ValueError
        If a text is of another form, or there are no units that the last two could matter for.
    """
    if not units and y_units is None:
        for option, is_given in {
            "--unitless-constants": unitless_constants,
            "--unit-penalty": unit_penalty is not None,
        }.items():
            if is_given:
                raise ValueError(f"{option} means nothing without units; give --units, too, or leave it out.")
        return {}
    found = {}
    for text in units or ():
        column, equals, unit = text.rpartition("=")
        if not (equals and column):
            raise ValueError(f"--units {text!r} must be COLUMN=UNIT, such as v=m/s.")
        found[column] = unit
    return {
        "units": found,
        "y_units": y_units,
        "unitless_constants": unitless_constants,
        "unit_penalty": unit_penalty,
    }


def _parts(text: str, option: str, form: str) -> tuple[str, str]:
    """Return what stands before and after the last ``=``."""
    name, equals, number = text.rpartition("=")
    if not (equals and name and number):
        raise ValueError(f"{option} {text!r} must be {form}.")
    return name, number


def _number(text: str) -> Any:
    """Return a whole number, or the text, which the estimator then refuses."""
    return int(text) if text.isdecimal() else text
