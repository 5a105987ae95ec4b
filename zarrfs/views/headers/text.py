"""Text and numbers in a form that is safe for headers, from any metadata."""

from __future__ import annotations

import math
from xml.sax.saxutils import quoteattr

LONGEST_TEXT = 128


def plain(value: object, longest: int = LONGEST_TEXT) -> str:
    """``value`` if it is text, on one line and truncated; empty for everything else."""
    if not isinstance(value, str):
        return ""
    kept = "".join(c if c.isprintable() else " " for c in value[: 4 * longest])
    return " ".join(kept.split())[:longest]


def ascii_text(value: object, longest: int = LONGEST_TEXT) -> str:
    return plain(value, longest).encode("ascii", "replace").decode()


def number(value: object) -> float | None:
    """A finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def digits(value: float) -> str:
    """The shortest text that is read as the same number: ``2``, ``0.25``."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def xml_attribute(value: object) -> str:
    """The value in quotes."""
    return quoteattr(str(value))
