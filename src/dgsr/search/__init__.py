"""The search for the equation behind a data set: Algorithm 2 of the paper."""

from dgsr.search.search import *  # noqa: F403
