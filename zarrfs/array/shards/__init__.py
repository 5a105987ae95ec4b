"""Shards: their index, their inner chunks by range, and how they are rewritten."""
