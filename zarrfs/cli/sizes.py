"""Numbers as people read them."""

from __future__ import annotations

from zarrfs.counted import counted

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_BEYOND = 1 << 70


def size_text(size: float) -> str:
    """``12.3 MiB``: three digits at least, in units of 1024."""
    # Metadata can tell sizes that no float holds.
    if size >= _BEYOND:
        return f"more than 1024 {_UNITS[-1]}"
    unit = _UNITS[0]
    for unit in _UNITS:
        if size < 1023.5 or unit == _UNITS[-1]:
            break
        size /= 1024
    if unit == _UNITS[0]:
        return counted(round(size), "byte")
    whole = size >= 99.95
    return f"{size:.0f} {unit}" if whole else f"{size:.3g} {unit}"


def exact_size(size: int) -> str:
    """``12.3 MiB (12897485 bytes)``; the bytes alone where they are few."""
    text, exact = size_text(size), counted(size, "byte")
    return text if text == exact else f"{text} ({exact})"
