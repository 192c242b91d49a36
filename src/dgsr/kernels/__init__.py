"""Compiled functions: random numbers, constraints, sampling, evaluation, evolution and canonical forms.

A compiled function that Python calls returns nothing, a number, or one array, and writes further results into
arrays of its caller: Ctrl-C while numba makes a tuple for Python crashes the process. A function that must
return a tuple is a Python function that allocates arrays and calls a compiled one with an underscore.
"""
