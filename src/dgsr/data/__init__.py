"""The data of a fit: checks, joining and sampling of rows, and the coordinates of a search."""

from dgsr.data.checks import (
    check_finite,
    check_numbers,
    check_spread,
    checked,
    data_warnings,
    first_of,
    is_index,
    numbers_the_rows,
)
from dgsr.data.prepared import Prepared, prepare, redundant_columns
from dgsr.data.rows import are_counts, row_ranks

__all__ = [
    "Prepared",
    "are_counts",
    "check_finite",
    "check_numbers",
    "check_spread",
    "checked",
    "data_warnings",
    "first_of",
    "is_index",
    "numbers_the_rows",
    "prepare",
    "redundant_columns",
    "row_ranks",
]
