"""What a person demands of a formula: columns and operators that it must have, or must not."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from dgsr.expressions.library import Library


class Demands(NamedTuple):
    """Columns and operators that a formula must have, or must not."""

    library: Library  # without the operators that are forbidden
    forbidden_columns: tuple[int, ...]
    required: tuple[str, ...]  # names of tokens

    @classmethod
    def of(
        cls,
        required: Sequence[str] | None,
        forbidden: Sequence[str] | None,
        library: Library,
        feature_names: Sequence[str] | None,
    ) -> Demands:
        """Return what names of columns and operators demand.

        Parameters
        ----------
        required, forbidden : sequence of str or None
        library : Library
        feature_names : sequence of str or None
            Names of the columns; x1 .. xd by default. A name of a column and an operator is the column's.

        Raises
        ------
        ValueError
            If a name is unknown or in both, every column is forbidden, or an operator without which scale and
            offset cannot be written.
        """
        columns = [token.name for token in library.tokens[library.first_variable :]]
        known = {name: name for name in library.operators}
        known |= dict(zip(columns if feature_names is None else feature_names, columns, strict=True))
        tokens = {}
        for parameter, names in (("required", required), ("forbidden", forbidden)):
            tokens[parameter] = [
                _token(name, f"{parameter}[{i}]", known)
                for i, name in enumerate(() if names is None else names)
            ]
        both = sorted(set(tokens["required"]) & set(tokens["forbidden"]))
        if both:
            raise ValueError(f"{both[0]!r} is both required and forbidden; take it out of one of the two.")
        forbidden_columns = tuple(i for i, name in enumerate(columns) if name in tokens["forbidden"])
        if len(forbidden_columns) == len(columns):
            raise ValueError("forbidden names every column; leave at least one.")
        needed = [name for name in ("add", "mul") if name in tokens["forbidden"]]
        if needed and library.has_constants:
            raise ValueError(
                f"forbidden names {needed[0]!r}, which writes the scale or the offset of a formula; take it "
                "out, or choose a library without constants."
            )
        return cls(library.without(tokens["forbidden"]), forbidden_columns, tuple(tokens["required"]))


def _token(name: str, place: str, known: dict[str, str]) -> str:
    """Return the token that a name stands for; ValueError if there is none."""
    if name in known:
        return known[name]
    similar = difflib.get_close_matches(str(name), known, 1, 0.6)
    mend = f"did you mean {similar[0]!r}?" if similar else f"choose from {', '.join([*known][:60])}."
    raise ValueError(f"{place}={name!r} is neither a column nor an operator of the library; {mend}")
