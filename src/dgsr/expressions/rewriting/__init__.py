"""Rewriting of formulas: as polynomials, in normal form, expanded, and with merged constants."""
