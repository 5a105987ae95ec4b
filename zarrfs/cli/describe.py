"""Short descriptions of shapes, sizes and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zarrfs.format.metadata.node import ArrayMetadata


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
