"""Laws that are written out as texts, by families, for `written_laws.py`."""
