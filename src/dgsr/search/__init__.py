"""The search for the law behind a data set: Algorithm 2 of the paper."""

from dgsr.search.beginning import begin_with_programs, begin_with_search
from dgsr.search.compiling import compile_kernels
from dgsr.search.config import OBJECTIVES, SearchConfig
from dgsr.search.islands import Islands, number_of_islands
from dgsr.search.search import Search, run
from dgsr.search.threads import one_thread

__all__ = [
    "OBJECTIVES",
    "Islands",
    "Search",
    "SearchConfig",
    "begin_with_programs",
    "begin_with_search",
    "compile_kernels",
    "number_of_islands",
    "one_thread",
    "run",
]
