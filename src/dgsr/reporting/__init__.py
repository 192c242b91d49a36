"""A report of a fit: one HTML file that needs no other file.

`page` writes the report from the facts of a fit (`facts`), its formulas (`standard_errors`), numbers
(`numbers`) and plots (`charts`; `plots` has what the script of the page draws). The template, style and
script are in `assets`. `displays` has plots with matplotlib, `progress` shows a search while it runs, and
`warning` gives warnings at the line of the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgsr.reporting.page import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    # The page imports scikit-learn, which takes a second; `dgsr --help` imports this package and does not
    # need it.
    if name != "write_report":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dgsr.reporting.page import write_report

    return write_report
