"""The search for the law behind a data set: Algorithm 2 of the paper."""

from dgsr.search.budget import Budget
from dgsr.search.config import OBJECTIVES, SearchConfig
from dgsr.search.scored import Scored
from dgsr.search.search import Search, run

__all__ = ["OBJECTIVES", "Budget", "Scored", "Search", "SearchConfig", "run"]
