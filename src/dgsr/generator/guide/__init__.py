"""The guide: what a table tells about its law, for the random choices of genetic programming."""
