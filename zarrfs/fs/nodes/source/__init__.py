"""Metadata, listings and documents of a source, as its nodes need them."""
