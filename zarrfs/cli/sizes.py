"""Numbers of bytes as people read them."""

from __future__ import annotations

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
    whole = unit == _UNITS[0] or size >= 99.95
    return f"{size:.0f} {unit}" if whole else f"{size:.3g} {unit}"
