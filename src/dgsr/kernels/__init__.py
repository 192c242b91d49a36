"""Compiled functions: random numbers, constraints, sampling, evaluation, evolution and canonical forms.

A compiled function that Python calls returns nothing, a number, or one array; it writes further results into
arrays that its caller gives it. To return a tuple to Python, numba runs Python code on values that are not
complete yet, and Ctrl-C at that moment crashes the process or ends in a `SystemError`. A function that must
return a tuple is therefore a plain one that allocates arrays, around a compiled one whose name begins with an
underscore.
"""
