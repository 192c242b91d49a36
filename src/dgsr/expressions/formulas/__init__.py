"""Formulas as a person sees them: how long they are, which are common, which are sound."""
