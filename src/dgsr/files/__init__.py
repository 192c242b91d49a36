"""Files: written whole or not at all, and with a digest of what they hold."""
