"""Exact search: programs without fitted constants that have the values of the target, by enumeration."""

from dgsr.exact_search.bank import Bank, bank_of, spread_rows
from dgsr.exact_search.solver import ExactSolver, is_law, solve_all

__all__ = ["Bank", "ExactSolver", "bank_of", "is_law", "solve_all", "spread_rows"]
