"""Benchmark problems as data: the DGSR paper's sets, SRBench's ground-truth problems, laws of textbooks."""

from dgsr.problems.problem import Problem, Sample, Variable
from dgsr.problems.sets import list_sets, load_problem, load_set

__all__ = ["Problem", "Sample", "Variable", "list_sets", "load_problem", "load_set"]
