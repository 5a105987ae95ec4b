"""What bytes each virtual file holds."""
