"""A user's demands on formulas: required and forbidden tokens, limits of nesting, and complexities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import SYMBOLS, Library
from dgsr.expressions.programs.nesting import MOST_NESTED
from dgsr.expressions.trees.syntax import suggestion

# Operators that write the scale and the offset of a formula.
_AROUND = ("add", "sub", "mul", "neg")


def demanded(
    settings: Mapping[str, Any],
    library: Library,
    feature_names: Sequence[str] | None,
    group_column: int | None = None,
) -> tuple[Library, Constraints]:
    """Return the library and the constraints of demands that are given by names of columns and operators.

    The library is without the forbidden operators, and has the complexities of columns by their tokens. A
    name of both a column and an operator is the column's. Raises ValueError if a name is unknown, or both
    required and forbidden; if every column is forbidden, or an operator that writes scale and offset; if a
    complexity or a limit is out of range; or if a column of groups is required, or the library has no
    constants that may differ by group.
    """
    columns = library.variable_names
    known = {name: name for name in library.operators}
    known |= dict(zip(columns if feature_names is None else feature_names, columns, strict=True))
    tokens = {}
    for parameter in ("required", "forbidden"):
        names = () if settings[parameter] is None else settings[parameter]
        tokens[parameter] = [
            _token(name, f"{parameter}[{i}]={name!r}", known) for i, name in enumerate(names)
        ]
    both = sorted(set(tokens["required"]) & set(tokens["forbidden"]))
    if both:
        name = {token: name for name, token in known.items()}[both[0]]
        raise ValueError(f"{name!r} is both required and forbidden; take it out of one of the two.")
    forbidden_columns = tuple(
        i for i, name in enumerate(columns) if name in tokens["forbidden"] or i == group_column
    )
    if group_column is not None and columns[group_column] in tokens["required"]:
        raise ValueError("required has the column of groups, which is no input of a formula; take it out.")
    if group_column is not None and not library.has_constants:
        raise ValueError(
            f"groups tell fitted constants apart, which library={library.name!r} lacks; choose another "
            "library, or leave the groups out."
        )
    if len(columns) == 1 and group_column is not None:
        raise ValueError("X has no column beside the groups; give an input that formulas may have.")
    if len(forbidden_columns) == len(columns):
        raise ValueError("forbidden names every column; leave at least one.")
    needed = [name for name in ("add", "mul") if name in tokens["forbidden"]]
    if needed and library.has_constants:
        raise ValueError(
            f"forbidden names {needed[0]!r}, which writes the scale or the offset of a formula; take it "
            "out, or choose a library without constants."
        )
    own = {_token(name, f"complexity[{name!r}]", known): n for name, n in library.complexities}
    nested = _limits(settings["nested"] or {}, library)
    library = replace(library.without(tokens["forbidden"]), complexities=()).with_complexities(own)
    required = tuple(tokens["required"])
    return library, Constraints(forbidden_columns=forbidden_columns, required=required, nested=nested)


def _limits(nested: Mapping[str, Any], library: Library) -> tuple[tuple[str, str, int | None], ...]:
    """Return the limits of `nested`, in order of their names."""
    found: dict[tuple[str, str], int | None] = {}
    known = {name: name for name in library.operators}
    for name, inners in nested.items():
        outer = _token(name, f"nested[{name!r}]", known, "no operator")
        if outer in _AROUND and library.has_constants:
            raise ValueError(
                f"nested has limits below {outer!r}, which writes the scale or the offset of a formula; "
                "leave them out, or choose a library without constants."
            )
        if not isinstance(inners, Mapping):
            raise ValueError(
                f"nested[{outer!r}]={inners!r} must be a dict of inner operators, such as {{'sin': 0}}."
            )
        for inner, most in inners.items():
            place = f"nested[{outer!r}][{inner!r}]"
            pair = outer, _token(inner, place, known, "no operator")
            found[pair] = _checked(most, place)
    return tuple((*pair, most) for pair, most in sorted(found.items()))


def _checked(limit: Any, place: str) -> int | None:
    """Return a limit of `nested`; ValueError if it is neither None nor a whole number in range."""
    if limit is None:
        return None
    is_whole = isinstance(limit, Integral) and not isinstance(limit, bool)
    if not is_whole or not 0 <= int(limit) <= MOST_NESTED:
        raise ValueError(f"{place}={limit!r} must be a whole number from 0 to {MOST_NESTED} or None.")
    return int(limit)


def _token(
    name: str, place: str, known: dict[str, str], kind: str = "neither a column nor an operator"
) -> str:
    """Return the token of a name; ValueError if there is none."""
    if isinstance(name, str) and name not in known:
        name = SYMBOLS.get(name, name)
    if isinstance(name, str) and name in known:
        return known[name]
    if name == "const":
        raise ValueError(
            f"{place} is a fitted number, which is neither a column nor an operator; for formulas without "
            "such numbers choose a library without constants: 'koza', or Library(..., has_constants=False)."
        )
    raise ValueError(f"{place} is {kind} of the library; {suggestion(name, known)}")
