"""Decoded chunks and changes in memory: a byte budget, one load per chunk in progress, threads."""
