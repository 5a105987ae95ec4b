"""Writing to a local store."""
