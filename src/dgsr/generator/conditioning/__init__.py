"""What the decoder knows of the data while it writes: targets of open nodes, their features, and a basis."""
