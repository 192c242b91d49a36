"""Formulas that are longer than the rounds of a search can write."""
