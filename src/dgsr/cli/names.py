"""The names of columns: the units behind them, and short names for the formulas that are printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from dgsr.expressions import Expression
from dgsr.expressions.exports.identifiers import fresh
from dgsr.expressions.programs.units import UNIT_TEXT
from dgsr.expressions.trees.trees import ALIASES, FUNCTIONS

# Longest name that formulas have as it is, in characters; a longer one is shortened.
_LONGEST = 20
# Letters that a long name of one word keeps.
_LETTERS = 8
# A name with a unit in parentheses or brackets.
_WITH_UNIT = re.compile(r"(?P<bare>.*?\w)\s*(?:\((?P<round>.+)\)|\[(?P<square>.+)\])", re.DOTALL)
# A power without a sign for it, as in m3 and s-1.
_POWER = re.compile(r"(?<=[^\W\d_])(-?\d)(?!\w)")
#: Texts in place of a unit or a number where there is none.
DASHES = ("-", "--", "---", "\u2013", "\u2014", "\u2212")


def unit_of(written: str) -> str:
    """Return a unit that stands in a table as `Units` takes it, "" where a dash stands for it.

    Examples
    --------
    >>> unit_of("kg/m3"), unit_of("[m s-1]"), unit_of("-")
    ('kg/m^3', 'm s^-1', '')
    """
    written = re.sub(r"^[\[(]([^\[\]()]*)[\])]$", r"\1", written)
    return "" if written in DASHES else _POWER.sub(r"^\1", written)


def without_unit(name: str) -> tuple[str, str | None]:
    """Return a name without the unit behind it, and the unit, None where the name has none.

    Examples
    --------
    >>> without_unit("velocity [uM/min]"), without_unit("ratio (-)"), without_unit("log(dose)")
    (('velocity', 'uM/min'), ('ratio', ''), ('log(dose)', None))
    """
    match = _WITH_UNIT.fullmatch(name)
    if match is None or match["bare"].rstrip("0123456789") in (*FUNCTIONS, *ALIASES):
        return name, None
    unit = unit_of((match["round"] or match["square"]).strip())
    return (match["bare"], unit) if UNIT_TEXT.fullmatch(unit) else (name, None)


@cache
def short_names(names: tuple[str, ...], taken: tuple[str, ...] = ()) -> dict[str, str]:
    """Return another name for each column that has a unit behind its name, a long name, or one with spaces.

    It is the name without the unit if that is short, and else the first letters of its words. No two names
    are equal, and none is among the names that are `taken`, such as that of the target, with or without its
    unit.

    Examples
    --------
    >>> short_names(("time", "T [K]", "total particulate mass (ug/m3)", "thermal power maximum"))
    {'T [K]': 'T', 'total particulate mass (ug/m3)': 'tpm', 'thermal power maximum': 'tpm_2'}
    """
    bare = {name: without_unit(name)[0] for name in names}
    changed = [name for name in names if bare[name] != name or _is_long(name)]
    used = {*FUNCTIONS, *ALIASES, "pi", *taken, *(without_unit(name)[0] for name in taken)}
    used.update(name for name in names if name not in changed)
    short = {}
    for name in changed:
        word = _initials(bare[name]) if _is_long(bare[name]) else bare[name]
        short[name] = fresh(word, used)
        used.add(short[name])
    return short


def with_short_names(expression: Expression, taken: tuple[str, ...] = ()) -> Expression:
    """Return an expression with its `short_names`."""
    short = short_names(expression.feature_names, taken)
    return expression.with_feature_names([short.get(name, name) for name in expression.feature_names])


def legend(expressions: Sequence[Expression], taken: tuple[str, ...] = ()) -> list[str]:
    """Return a line for each short name in some expressions of the same columns."""
    used = {token - one.library.first_variable for one in expressions for token in one.tokens.tolist()}
    names = expressions[0].feature_names
    short = short_names(names, taken)
    return [f"{short[name]} = {name}" for name in short if names.index(name) in used]


def _is_long(name: str) -> bool:
    return len(name) > _LONGEST or " " in name


def _initials(name: str) -> str:
    words = re.findall(r"[^\W_]+", name)
    letters = words[0][:_LETTERS] if len(words) == 1 else "".join(w if w.isdecimal() else w[0] for w in words)
    return letters if letters.isidentifier() else f"x{letters}"
