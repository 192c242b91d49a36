"""Numbers in reports and tables: few digits, powers of ten, a typographic minus sign."""

from __future__ import annotations

import math
from typing import Any

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TIMES, _MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"
#: The text for a value that is not defined.
MISSING = "\N{EN DASH}"


def number(value: float | None, digits: int = 3, *, keep_zeros: bool = False) -> str:
    """Return a number with `digits` significant digits as text, such as 0.00703 or 1.2×10⁻⁹.

    None and values that are not finite become a dash. Trailing zeros are dropped unless `keep_zeros`, which
    keeps the digits of a column of numbers aligned.
    """
    if value is None or not math.isfinite(value):
        return MISSING
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if value != 0 and not -4 <= power < 6:
        mantissa = _without_zeros(mantissa)
        text = f"{mantissa}{_TIMES}10{str(power).translate(_SUPERSCRIPTS)}"
        if mantissa in ("1", "-1"):
            text = text.replace(f"1{_TIMES}", "", 1)
    else:
        text = f"{value:.{max(digits - 1 - power, 0)}f}"
        text = text if keep_zeros and value != 0 else _without_zeros(text)
    return text.replace("-", _MINUS)


def share_explained(r2: float | None) -> str:
    """Return an R² as text that distinguishes an almost exact fit from an exact one, such as 1 − 3×10⁻⁹."""
    if r2 is not None and 0 < 1 - r2 < 5e-5:
        return f"1 {_MINUS} {number(1 - r2, 2)}"
    if r2 is not None and -1000 < r2 < 1:
        return f"{r2:.4f}".replace("-", _MINUS)
    return number(r2, 4)


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(n: int, thing: str) -> str:
    """Return a number of things as text, such as ``1 row`` or ``1,503 rows``."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def finite(value: float) -> float | None:
    """Return a number for JSON, which cannot represent one that is not finite: None in its place."""
    return float(value) if math.isfinite(value) else None


def cell(value: Any) -> str:
    """Return the text of a cell of a printed table, such as 1,503, 0.0123 or, for None, nothing."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return "" if value is None else str(value)
