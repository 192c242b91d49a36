"""A report of a fit: one HTML file that needs nothing else.

`page` puts the report together from the facts of a fit (`facts`), its plots (`charts`) and numbers
(`numbers`); the template, style and script of the page are in `assets`. `displays` has plots with matplotlib,
and `progress` shows a search while it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgsr.reporting.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    # The page imports scikit-learn, which takes a second; `dgsr --help` uses this room and needs none of it.
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dgsr.reporting.page import write_report

    return write_report
