"""Arrays created, resized and cut."""
