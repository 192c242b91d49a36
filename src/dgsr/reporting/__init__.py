"""A report of a fit: one HTML file that needs nothing else.

`page` puts it together from the facts of a fit (`facts`), its plots (`charts`), formulas (`mathml`) and
numbers (`numbers`); what a browser does with it is in `assets`.
"""

from dgsr.reporting.page import write_report

__all__ = ["write_report"]
