"""Exact search: programs without fitted constants that have the values of the target, by enumeration."""

from dgsr.exact_search.solver import ExactSolver

__all__ = ["ExactSolver"]
