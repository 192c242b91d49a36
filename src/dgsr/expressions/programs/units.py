"""Units of measurement: the meaning of their texts, and which programs are consistent with them.

Consistency depends on the dimension of a unit, the exponents of its base units: km and m are alike. The
factor to the base unit matters where the unit of a constant is printed
(`dgsr.expressions.formulas.units_of_constants`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.syntax import suggestion

# The texts given to pint are names of units with small powers, joined by *, / and blanks, with one level of
# parentheses, since pint would also raise numbers to powers. Most characters of a unit:
_MOST_CHARACTERS = 100
_NUMBER = r"[-+]?\d{1,2}(?:\.\d{1,6})?"
_POWER = rf"(?:\s*(?:\*\*|\^)\s*(?:{_NUMBER}|\(\s*{_NUMBER}\s*/\s*{_NUMBER}\s*\))|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,2}})?"
_FACTOR = rf"(?:1(?![\w.])|(?:°?[^\W\d]\w*|%){_POWER})"
_JOIN = r"(?:\s*[*/·]\s*|\s+)"
_TERM = rf"(?:{_FACTOR}|\(\s*{_FACTOR}(?:{_JOIN}{_FACTOR})*\s*\))"
_NAME = re.compile(r"°?[^\W\d⁰¹²³⁴⁵⁶⁷⁸⁹][^\W⁰¹²³⁴⁵⁶⁷⁸⁹]*")
# Texts with another meaning in pint: picohenry, petahenry, picohour, decibarn, decibiot, picopint, decipint,
# dry pint, exacoulomb and exavolt.
_MEANT_OTHERWISE = ("pH", "PH", "ph", "db", "dBi", "ppt", "dpt", "dpi", "EC", "EV")
#: The grammar of the text of a unit.
UNIT_TEXT = re.compile(rf"\s*(?:{_TERM}(?:{_JOIN}{_TERM})*)?\s*")

# Symbols of pint's base units in the customary order; other dimensions are shown by their names.
_SYMBOLS = {
    "[mass]": "kg", "[length]": "m", "[time]": "s", "[current]": "A", "[temperature]": "K",
    "[substance]": "mol", "[luminosity]": "cd",
}  # fmt: skip


class Unit(NamedTuple):
    """A unit of measurement."""

    exponents: tuple[float, ...]  # of the base units, in the same order for all units of a fit
    factor: float  # the unit in base units; the offset of a temperature is left out
    powers: tuple[float, ...]  # of the units that are written, `Units.written`


@dataclass(frozen=True)
class Units:
    """The units of the columns and of the target, and the penalty of formulas that violate them.

    Parameters
    ----------
    columns : tuple of Unit or None
        None for a column whose unit is unknown.
    target : Unit or None
    base : tuple of str
        Symbols of the base units.
    written : tuple of str
        The units of which the texts of columns and target consist.
    unitless_constants : bool
        Whether constants have no unit. Otherwise each may have any unit.
    penalty : float or None
        The loss of a formula is multiplied by 1 + penalty times its number of violations; it is infinite with
        None.
    """

    columns: tuple[Unit | None, ...]
    target: Unit | None
    base: tuple[str, ...]
    written: tuple[str, ...]
    unitless_constants: bool = False
    penalty: float | None = None

    @classmethod
    def of(
        cls,
        units: Mapping[str, Any] | None,
        y_units: str | None,
        feature_names: Sequence[str],
        *,
        unitless_constants: bool = False,
        penalty: float | None = None,
    ) -> Units | None:
        """Return the units that texts describe, or None if no units are given.

        Parameters
        ----------
        units : mapping of str to str or None, or None
            Units by the name of the column, unknown without an entry or with None. The empty text is the unit
            of a column without a dimension. Objects whose `str` is the text of a unit, such as units of pint,
            may be given, too.
        y_units : str or None
            Unit of the target; None if it is unknown.
        feature_names : sequence of str
        unitless_constants, penalty
            See `Units`.

        Raises
        ------
        ValueError
            If a name is no column, or a text is no unit that pint knows.
        ImportError
            If pint is not installed.
        """
        if not units and y_units is None:
            return None
        check_has_order(y_units)
        if not units:
            raise ValueError(
                f"The unit of the target, {y_units!r}, is given without units of columns, which it is "
                "compared with; give these, too, as in units=Units({name: unit}, target=...)."
            )
        if y_units is not None and not isinstance(y_units, str):
            several = f"The units of the target, {[*y_units]!r}, are for several columns of y"
            raise ValueError(f"{several}; give the unit of the one there is.")
        names = list(feature_names)
        for name in units:
            if name not in names:
                raise ValueError(f"units names {name!r}, which is no column; {suggestion(name, names)}")
        read = [_read(units.get(name), f"units[{name!r}]") for name in names]
        read.append(_read(y_units, "unit of the target"))
        found = {name for one in read if one is not None for name in one[0]}
        dimensions = [*(name for name in _SYMBOLS if name in found), *sorted(found - _SYMBOLS.keys())]
        of_target_first = [one for one in (read[-1], *read[:-1]) if one is not None]
        written = tuple(dict.fromkeys(name for one in of_target_first for name in one[2]))

        def unit_of(exponents: dict[str, float], factor: float, powers: dict[str, float]) -> Unit:
            of_base = tuple(exponents.get(name, 0.0) for name in dimensions)
            return Unit(of_base, factor, tuple(powers.get(name, 0.0) for name in written))

        known = [None if one is None else unit_of(*one) for one in read]
        base = tuple(_SYMBOLS.get(name, name.strip("[]")) for name in dimensions)
        return cls(tuple(known[:-1]), known[-1], base, written, unitless_constants, penalty)

    def violations(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        constants: np.ndarray,
        library: Library,
        *,
        of_whole: bool = True,
        by_value: bool = False,
    ) -> np.ndarray:
        """Return the numbers of violations of dimensions in programs, shape (n_programs,), int64.

        Counting continues after a violation: a sum of unlike terms has the dimension of its second term, and
        a function of an argument with a dimension has none. See `dgsr.kernels.dimensions`.

        Parameters
        ----------
        tokens, lengths, constants
            The arrays of a `Population` over `library`.
        of_whole : bool
            Whether a program must have the dimension of the target. Otherwise it may have any dimension.
        by_value : bool
            Whether constants are known, so that the dimension of x**1.5 follows from its exponent.
        """
        # These are imported here, so that formulas can be read and written without loading numba.
        from dgsr.kernels.dimensions import count_violations
        from dgsr.kernels.programs import Programs

        needed = self.target.exponents if of_whole and self.target is not None else ()
        exponents = np.zeros((len(self.columns), len(self.base)))
        for row, unit in zip(exponents, self.columns, strict=True):
            row[:] = 0.0 if unit is None else unit.exponents
        counts = np.zeros(len(lengths), dtype=np.int64)
        count_violations(
            Programs(tokens, lengths, constants),
            library.table.opcode,
            library.table.argument,
            exponents,
            np.array([unit is not None for unit in self.columns]),
            not self.unitless_constants,
            by_value,
            np.array(needed, dtype=np.float64),
            np.zeros((tokens.shape[1] // 2 + 2, len(self.base))),
            counts,
        )
        return counts

    def compile_kernel(self, library: Library) -> None:
        """Compile the kernel of `violations`, or load its stored machine code."""
        one = np.array([[library.first_variable]])
        self.violations(one, np.array([1]), np.ones((1, 1)), library)

    def handicaps(self, violations: np.ndarray) -> np.ndarray:
        """Return the factors of losses for numbers of violations: 1 or infinite without a penalty."""
        if self.penalty is None:
            return np.where(violations > 0, np.inf, 1.0)
        return 1.0 + self.penalty * violations


def check_has_order(y_units: Any) -> None:
    """Raise ValueError if units of the columns of y are given by name, or in no order."""
    if isinstance(y_units, Mapping | Set):
        raise ValueError(
            f"The unit of the target, {y_units!r}, must be a str, or a sequence with one unit for each "
            "column of y."
        )


def _read(given: Any, place: str) -> tuple[dict[str, float], float, dict[str, float]] | None:
    """Return exponents by dimension, factor and powers by written unit; raise ValueError if it is invalid."""
    if given is None:
        return None
    text = str(given)  # a unit of pint may be given, too
    mend = "write it as in 'kg*m^2/s^2' or 'J/(mol K)', and '' where there is no dimension"
    if len(text) > _MOST_CHARACTERS or not UNIT_TEXT.fullmatch(text):
        raise ValueError(f"{place}={text[:_MOST_CHARACTERS]!r} is no unit; {mend}.")
    try:
        import pint
    except ImportError as error:
        raise ImportError(f"{place}={text!r} needs pint; install it with pip install dgsr[units].") from error
    registry: Any = pint.get_application_registry()
    for name in _NAME.findall(text):
        is_meant_otherwise = name in _MEANT_OTHERWISE
        if is_meant_otherwise or _is_logarithm(registry, name):
            read = f"pint reads as {registry.Unit(name)}" if is_meant_otherwise else "is a logarithm"
            raise ValueError(
                f"{place}={text!r} has {name!r}, which {read}; give '' for a number without a dimension, "
                "such as a pH or decibels, or write the name of the unit in full."
            )
    try:
        unit = registry.parse_units(text)
        dimensions = {name: float(power) for name, power in unit.dimensionality.items()}
        factor = float(registry.get_base_units(unit)[0])
        parts: Any = pint.util.to_units_container
        written = {part: name for name in _NAME.findall(text) for part in parts(registry.parse_units(name))}
        powers = {written.get(part, part): float(power) for part, power in parts(unit).items()}
    except Exception as error:  # pint's errors are of many classes
        raise ValueError(f"{place}={text!r} is no unit that pint knows ({error}); {mend}.") from error
    if not (math.isfinite(factor) and factor > 0.0 and all(map(math.isfinite, dimensions.values()))):
        raise ValueError(f"{place}={text!r} is out of range; {mend}.")
    return dimensions, factor, powers


def _is_logarithm(registry: Any, name: str) -> bool:
    """Return whether a name is a logarithmic unit, such as the decibel."""
    try:
        zero, one, two = (registry.Quantity(n, name).to_base_units().magnitude for n in (0.0, 1.0, 2.0))
    except Exception:  # pint's errors are of many classes
        return False
    return not math.isclose(two - one, one - zero, rel_tol=1e-6)
