"""The guide: probabilities of tokens, predicted from a table, for random choices of genetic programming."""
