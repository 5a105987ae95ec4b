"""The bytes of each virtual file."""
