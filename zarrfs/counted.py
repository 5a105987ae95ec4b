"""Counts in messages: one chunk, two chunks."""

from __future__ import annotations


def counted(number: int, name: str) -> str:
    """``1 chunk`` or ``2 chunks``."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
