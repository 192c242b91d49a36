"""The version of this package, for pyproject.toml and for the files that name who wrote them."""

__version__ = "0.1.0"
