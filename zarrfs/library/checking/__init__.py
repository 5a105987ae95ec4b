"""Arrays looked over, and mended."""
