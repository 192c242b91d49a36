"""Finders of formulas that are longer than the programs of the rounds."""
