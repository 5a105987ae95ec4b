"""Open files: reading, writing, and what the kernel keeps of them."""
