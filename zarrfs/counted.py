"""Counts and names in messages: one chunk, two chunks; no control characters."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, name: str) -> str:
    """``1 chunk`` or ``2 chunks``."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def did_you_mean(name: str, names: Iterable[str], most: int = 3) -> str:
    """``; did you mean uint8?``, or "" if none of ``names`` is like ``name``."""
    import difflib  # noqa: PLC0415 - only for a user who is mistaken

    near = difflib.get_close_matches(name, list(names), n=most)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def printable(text: str) -> str:
    """``text`` with escapes for control characters: it may come from an untrusted source."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
