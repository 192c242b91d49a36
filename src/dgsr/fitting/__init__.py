"""The searches of a fit, one after the other: their losses, their weights of rows, and their results."""
