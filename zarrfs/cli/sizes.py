"""Sizes, shapes and arrays in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zarrfs.counted import counted

if TYPE_CHECKING:
    from zarrfs.format.metadata.node import ArrayMetadata


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


def shape_text(shape: Sequence[int]) -> str:
    """``100x200``; an array without axes has one element."""
    return "x".join(map(str, shape)) or "scalar"


def summary_line(metadata: ArrayMetadata) -> str:
    """``1000x2000 uint16, chunks 100x100, shards 1000x1000``."""
    layout = metadata.layout
    text = f"{shape_text(metadata.shape)} {layout.data_type.name}"
    text += f", chunks {shape_text(layout.read.largest_chunk)}"
    if layout.sharded:
        text += f", shards {shape_text(layout.stored.largest_chunk)}"
    return f"{text}, Zarr {metadata.zarr_format}"
