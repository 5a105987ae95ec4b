"""What the headers of other formats say of shape and data type; nothing else is read."""
