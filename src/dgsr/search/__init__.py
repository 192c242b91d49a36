"""The search for the law behind a data set: Algorithm 2 of the paper."""

from dgsr.search.budget import Budget
from dgsr.search.compiling import compile_kernels
from dgsr.search.config import OBJECTIVES, SearchConfig
from dgsr.search.interrupts import Interrupts
from dgsr.search.islands import Islands, number_of_islands
from dgsr.search.longer import by_description
from dgsr.search.looking_up import curves_of, lines_of
from dgsr.search.scored import Scored
from dgsr.search.search import Search, run
from dgsr.search.symmetries import find_symmetries
from dgsr.search.threads import one_thread

__all__ = [
    "OBJECTIVES",
    "Budget",
    "Interrupts",
    "Islands",
    "Scored",
    "Search",
    "SearchConfig",
    "by_description",
    "compile_kernels",
    "curves_of",
    "find_symmetries",
    "lines_of",
    "number_of_islands",
    "one_thread",
    "run",
]
