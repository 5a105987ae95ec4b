"""What a mount is told with -o, and what it makes of it."""
