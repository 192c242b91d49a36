"""Formulas as people use them: their description lengths, common forms, units and weak points."""
