"""Stored documents changed in place."""
