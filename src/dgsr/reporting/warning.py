"""Warnings that point at the line of the user that called for a fit."""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: str) -> None:
    """Give a UserWarning at the nearest caller that belongs neither to this package nor to scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "dgsr",
        "sklearn",
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
