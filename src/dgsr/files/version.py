"""The version of this package, for pyproject.toml and for the files that it writes."""

__version__ = "0.1.0"
