"""Decoded chunks in memory: a byte budget, one load per chunk in flight, worker threads."""
