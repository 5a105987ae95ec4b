"""Whole rows of chunks, for whoever reads or writes a file in order."""
