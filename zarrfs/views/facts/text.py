"""Text and numbers in a form that is safe for all readers, from any metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LONGEST_TEXT = 128
_MOST_ITEMS = 64
# The signs of units, and their usual forms in ASCII.
_INSTEAD = {"µ": "u", "μ": "u", "Å": "A", "\u212b": "A", "°": "deg"}


def plain(value: object, longest: int = LONGEST_TEXT) -> str:
    """``value`` if it is text, on one line and truncated; empty for everything else."""
    if not isinstance(value, str):
        return ""
    kept = "".join(c if c.isprintable() else " " for c in value[: 4 * longest])
    return " ".join(kept.split())[:longest]


def ascii_text(value: object, longest: int = LONGEST_TEXT) -> str:
    text = plain(value, longest)
    for letter, instead in _INSTEAD.items():
        text = text.replace(letter, instead)
    return text.encode("ascii", "replace").decode()


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
    """The shortest text that is read as the same number: ``2``, ``0.25``, ``nan``."""
    if not math.isfinite(value):
        return repr(value)
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def xml_attribute(value: object) -> str:
    """The value in quotes."""
    # It imports what speaks HTTP, which takes longer than most commands here.
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415

    return quoteattr(str(value))


def numbers(value: object, count: int) -> tuple[float, ...] | None:
    """``count`` finite numbers; None for everything else."""
    if not isinstance(value, list | tuple) or len(value) != count:
        return None
    found = [number(item) for item in value]
    return None if None in found else tuple(n for n in found if n is not None)


def dicts(value: object) -> list[Mapping[str, Any]]:
    """The mappings in a list, a bounded number of them."""
    if not isinstance(value, list | tuple):
        return []
    return [item for item in value[:_MOST_ITEMS] if isinstance(item, Mapping)]
