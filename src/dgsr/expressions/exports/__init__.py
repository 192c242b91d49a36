"""What becomes of a formula elsewhere: sympy, LaTeX, MathML, Python, C, jax and torch."""
