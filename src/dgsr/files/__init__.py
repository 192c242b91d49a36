"""Files that are written atomically, and with a digest of their content."""
