"""Whole rows of chunks, for programs that read or write a file in order."""
