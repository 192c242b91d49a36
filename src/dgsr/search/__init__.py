"""The search for the equation behind a data set: Algorithm 2 of the paper."""

from dgsr.search.config import OBJECTIVES, SearchConfig
from dgsr.search.search import Search, best_unique, run

__all__ = ["OBJECTIVES", "Search", "SearchConfig", "best_unique", "run"]
