"""The compiled parts: random numbers, constraints, sampling, evaluation, evolution and the prior.

A compiled function that Python calls returns nothing, a number, or one array; anything more is
written into arrays that its caller gives it. To return a tuple, numba runs Python code with values
half made, and Ctrl-C at that moment crashes the process or ends in a `SystemError`. So what returns
a tuple to Python is a plain function that allocates, around a compiled one whose name begins with an
underscore.
"""
