"""Baselines and controls that the search is compared with."""
