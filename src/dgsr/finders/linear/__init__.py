"""Laws that are linear in their coefficients, or in all but one number."""
