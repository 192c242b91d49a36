"""What a person writes on the command line about formulas, in the words of the estimator.

The command fits arrays, whose columns the estimator calls x1 .. xd, and a person writes the names of the
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dgsr.expressions.library import Library
from dgsr.expressions.syntax import parse, to_text
from dgsr.expressions.trees import rename


def formulas_over_columns(formulas: Sequence[str] | None, names: Sequence[str]) -> list[str] | None:
    """Return formulas with x1 .. xd in place of the names of columns; None for none.

    A text that is no formula is returned as it is, and the estimator says what is wrong with it.
    """
    columns = _columns(names)

    def renamed(text: str) -> str:
        try:
            return to_text(rename(parse(text), columns))
        except ValueError:
            return text

    return [renamed(text) for text in formulas] if formulas else None


def rules_of(
    complexity: Sequence[str] | None, nested: Sequence[str] | None, library: Library, names: Sequence[str]
) -> dict[str, Any]:
    """Return the parameters `complexity` and `nested` of an estimator, those that are given.

    Parameters
    ----------
    complexity : sequence of str or None
        Texts such as ``"sin=9"``.
    nested : sequence of str or None
        Texts such as ``"sin/sin=1"``, or ``"sin/sin=any"``.
    library : Library
    names : sequence of str
        Names of the columns.

    Raises
    ------
    ValueError
        If a text is of another form, or names what is neither a column nor an operator.
    """
    from dgsr.passes.demands import Demands

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
    Demands.of(None, None, library, names, complexities, limits)  # which knows the names of the table
    columns = _columns(names)
    complexities = {columns.get(name, name): number for name, number in complexities.items()}
    given = {"complexity": complexities, "nested": limits}
    return {name: value for name, value in given.items() if value}


def _columns(names: Sequence[str]) -> dict[str, str]:
    """Return what the estimator calls the columns of these names."""
    return {name: f"x{i + 1}" for i, name in enumerate(names)}


def _parts(text: str, option: str, form: str) -> tuple[str, str]:
    """Return what stands before and after the last ``=``."""
    name, equals, number = text.rpartition("=")
    if not (equals and name and number):
        raise ValueError(f"{option} {text!r} must be {form}.")
    return name, number


def _number(text: str) -> Any:
    """Return a whole number, or the text, which the estimator then refuses."""
    return int(text) if text.isdecimal() else text
