"""Decoded chunks, cached and shared by all readers."""
