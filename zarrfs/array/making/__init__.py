"""Creates, resizes and cuts arrays."""
