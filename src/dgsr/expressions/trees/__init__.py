"""Formulas as trees: their text, their values, their numbers and users' own operators."""
