"""The Pareto front of description length and loss: an archive in the search, formulas after it.

The plot of a front (`display`) is not imported before it is asked for, since it imports scikit-learn.
"""

from dgsr.pareto.archive import NOTICEABLE, ParetoArchive
from dgsr.pareto.front import SELECTIONS, Candidate, ParetoFront
from dgsr.pareto.judging import promising

__all__ = ["NOTICEABLE", "SELECTIONS", "Candidate", "ParetoArchive", "ParetoFront", "promising"]
