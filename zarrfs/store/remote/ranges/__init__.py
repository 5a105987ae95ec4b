"""Ranges of objects: which requests fetch them, how many at once, and again after a failure."""
