"""Displayed formulas of textbooks: read from MathML into tokens, parsed into trees, and counted."""
