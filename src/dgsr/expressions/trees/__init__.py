"""Formulas as trees: their text, values and numbers, and user-defined operators."""
