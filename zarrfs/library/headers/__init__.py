"""Reads shape and data type from headers of other formats, and nothing else."""
