"""The search for the equation behind a data set: Algorithm 2 of the paper."""

from dgsr.search.config import OBJECTIVES, SearchConfig
from dgsr.search.scored import Scored
from dgsr.search.search import Search, run
from dgsr.search.warm_start import begin_with, what_is_left

__all__ = ["OBJECTIVES", "Scored", "Search", "SearchConfig", "begin_with", "run", "what_is_left"]
