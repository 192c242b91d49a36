"""What a person writes on the command line about formulas and units, as settings of the estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: What --units is given for the units that stand in the table.
TABLE = "table"


def known_units(units: Mapping[str, str]) -> dict[str, str]:
    """Return those units of columns that pint knows, or all where it is not installed."""
    from dgsr.expressions.programs.units import Units

    def is_known(unit: str) -> bool:
        try:
            Units.of({"x": unit}, None, ["x"])
        except ImportError:
            return True
        except ValueError:
            return False
        return True

    return {name: unit for name, unit in units.items() if is_known(unit)}


def rules_of(
    complexity: Sequence[str] | None,
    nested: Sequence[str] | None,
    monotone: Sequence[str] | None,
    at: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the settings `complexity`, `nested`, `monotone` and `at`, those that are given.

    The texts are such as ``"sin=9"``, ``"sin/sin=1"`` or ``"sin/sin=any"``, ``"dose=increasing"``, and
    ``"dose=0,value=0"``; ValueError if one has another form. The estimator checks names and numbers.
    """
    complexities: dict[str, Any] = {}
    for text in complexity or ():
        name, number = _parts(text, "--complexity", "NAME=NUMBER, such as sin=9")
        _check_new(name, complexities, "--complexity")
        complexities[name] = _number(number)
    limits: dict[str, dict[str, Any]] = {}
    for text in nested or ():
        form = "OUTER/INNER=NUMBER, such as sin/sin=1 or sin/sin=any"
        pair, number = _parts(text, "--nested", form)
        outer, slash, inner = map(str.strip, pair.partition("/"))
        if not slash:
            raise ValueError(f"--nested {text!r} must be {form}.")
        _check_new(inner, limits.get(outer, {}), f"--nested {outer}/...")
        limits.setdefault(outer, {})[inner] = None if number == "any" else _number(number)
    directions: dict[str, str] = {}
    for text in monotone or ():
        name, direction = _parts(text, "--monotone", "COLUMN=increasing or COLUMN=decreasing")
        _check_new(name, directions, "--monotone")
        directions[name] = direction
    points = [_point(text) for text in at or ()]
    given = {"complexity": complexities, "nested": limits, "monotone": directions, "at": points}
    return {name: value for name, value in given.items() if value}


def units_of(
    units: Sequence[str] | None,
    y_units: str | None,
    unitless_constants: bool,
    unit_penalty: float | None,
    target: str,
    of_table: Mapping[str, str],
) -> dict[str, Any]:
    """Return the settings of the estimator that units are given by; none without units.

    `units` are texts such as ``"v=m/s"``; ``"v="`` has no dimension, and ``"table"`` stands for the units
    `of_table`, with which the others take precedence. `target` is the name of the target, whose unit is
    `y_units`. ValueError if a text has another form, if a column occurs twice or is the target, if the table
    has no units, or if another option is given without units of columns.
    """
    written: dict[str, str] = {}
    if units and TABLE in units:
        units = [text for text in units if text != TABLE]
        written = dict(of_table)
        of_target = written.pop(target, None)
        y_units = of_target if y_units is None else y_units
        if not written:
            raise ValueError(
                f"--units {TABLE} needs a table with units of its inputs, in a row below the names or behind "
                "them, as in speed (m/s); this one has none that are known. Write --units COLUMN=UNIT."
            )
    options = {"y_units": y_units, "unitless_constants": unitless_constants, "unit_penalty": unit_penalty}
    if not (units or written):
        for name, value in options.items():
            if value is not None and value is not False:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{option} means nothing without units of columns; give --units, too, or leave it out."
                )
        return {}
    found: dict[str, str] = {}
    for text in units or ():
        column, equals, unit = map(str.strip, text.rpartition("="))
        if not (equals and column):
            raise ValueError(f"--units {text!r} must be COLUMN=UNIT, such as v=m/s.")
        if column == target:
            raise ValueError(f"--units {text!r} is for the target; give its unit by --y-units {unit!r}.")
        _check_new(column, found, "--units")
        found[column] = unit
    return {"units": written | found, **options}


def _check_new(name: str, known: Mapping[str, Any], option: str) -> None:
    if name in known:
        raise ValueError(f"{option} is given twice for {name!r}; give it once.")


def _parts(text: str, option: str, form: str) -> tuple[str, str]:
    """Return the texts before and after the last ``=``, without spaces around them."""
    name, equals, number = map(str.strip, text.rpartition("="))
    if not (equals and name and number):
        raise ValueError(f"{option} {text!r} must be {form}.")
    return name, number


def _point(text: str) -> dict[str, Any]:
    """Return the numbers of a known point by the names of columns and ``value``."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, number = _parts(part, "--at", "COLUMN=NUMBER,value=NUMBER, such as dose=0,value=0")
        _check_new(name, found, f"--at {text!r}")
        try:
            found[name] = float(number)
        except ValueError:
            raise ValueError(f"--at {text!r} has {number!r}, which is no number.") from None
    return found


def _number(text: str) -> Any:
    """Return a whole number, or the text itself, which the estimator rejects."""
    return int(text) if text.isdecimal() else text
