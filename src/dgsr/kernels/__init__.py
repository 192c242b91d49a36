"""Compiled functions: random numbers, constraints, sampling, evaluation, evolution and canonical forms.

A compiled function that Python calls returns nothing, a number, or one array; it writes further results into
arrays of its caller. To return a tuple to Python, numba would run Python code on incomplete values, and
Ctrl-C at that moment crashes the process or raises a `SystemError`. A function that must return a tuple is
therefore a Python function that allocates arrays and calls a compiled one whose name begins with an
underscore.
"""
