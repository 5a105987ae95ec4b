"""Open files: reading, writing, resizing, and storing what was written."""
