"""The Pareto front of description length and loss: an archive in the search, a front of formulas after it.

The plot of a front (`display`) is imported at its first use only, since it imports scikit-learn.
"""

from dgsr.pareto.archive import LEAST_GAIN, ParetoArchive
from dgsr.pareto.candidate import Candidate
from dgsr.pareto.choosing import SELECTIONS
from dgsr.pareto.front import ParetoFront
from dgsr.pareto.judging import promising

__all__ = ["LEAST_GAIN", "SELECTIONS", "Candidate", "ParetoArchive", "ParetoFront", "promising"]
