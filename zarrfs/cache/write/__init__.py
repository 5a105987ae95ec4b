"""Changes that are not stored yet, and how they get there."""
