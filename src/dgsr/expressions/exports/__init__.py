"""Exports of formulas: to sympy, LaTeX, MathML, Python, C, jax and torch."""
