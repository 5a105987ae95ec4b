"""Metadata of new arrays."""
