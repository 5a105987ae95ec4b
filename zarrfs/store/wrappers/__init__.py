"""Stores around a store: retries, time limits, counts."""
