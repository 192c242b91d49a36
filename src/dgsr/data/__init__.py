"""The data of a fit: checks, joining and sampling of rows, and the coordinates of a search.

The checks (`checks`) are imported by name, since they import scikit-learn, which no search needs.
"""

from dgsr.data.prepared import Prepared, prepare, redundant_columns
from dgsr.data.rows import are_counts, row_ranks

__all__ = ["Prepared", "are_counts", "prepare", "redundant_columns", "row_ranks"]
