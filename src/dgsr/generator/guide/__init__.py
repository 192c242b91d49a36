"""The guide: probabilities of tokens, read from a table, for the random choices of genetic programming."""
