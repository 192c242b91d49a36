"""Searches in tables of fewer columns, which follow from symmetries of a table."""
