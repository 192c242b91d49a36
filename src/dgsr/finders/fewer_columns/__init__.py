"""Formulas among the fewer columns that symmetries of a table leave."""
