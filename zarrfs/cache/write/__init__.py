"""Changes that are not stored yet, and the code that stores them."""
