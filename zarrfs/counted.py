"""Counts and names in messages: one chunk, two chunks; no control characters."""

from __future__ import annotations


def counted(number: int, name: str) -> str:
    """``1 chunk`` or ``2 chunks``."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def printable(text: str) -> str:
    """``text`` with escapes for control characters: it may come from an untrusted source."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
