"""Decoded chunks, kept and shared by those who read."""
